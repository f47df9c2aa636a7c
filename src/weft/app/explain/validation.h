// weft/app/explain/validation.h -- predictions beside measurements: errors by file and overall, and the worst rows.
#pragma once
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "weft/app/explain/anchored_runs.h"
#include "weft/app/explain/lines.h"

namespace weft::explain {

struct ValidatedRun {
  std::string id, stack, plan, series;
  std::string choice;        // rows of one choice are plans for the same model, batch and devices
  double step_interval = 0;  // half of the 80 % interval, relative to the prediction
  bool unseen = false;
  double measured_seconds = 0, predicted_seconds = 0;  // measured 0: not known
  double measured_bytes = 0, predicted_bytes = 0;
  bool ran = true, certain = true,
       fits = true;  // whether it ran, that is certain, the prediction says that it fits
  // Of the predicted step, the largest first: "computing" 1.2 s.
  std::vector<std::pair<std::string, double>> terms;
  std::vector<std::pair<std::string, double>> memory;  // bytes of the fullest device, by kind
  // By pipeline stage, peak bytes of its ranks: measured (0: not known) and predicted.
  std::vector<std::pair<double, double>> stages;

  double error() const { return predicted_seconds / measured_seconds - 1; }
  bool is_inside() const {
    return std::abs(measured_seconds - predicted_seconds) <= step_interval * predicted_seconds;
  }
};

struct ValidatedFile {
  std::string path;
  std::vector<ValidatedRun> runs;
  std::vector<std::pair<std::string, std::string>> left_out;  // row and why
};

struct ValidationText {
  std::vector<ValidatedFile> files;
  std::vector<AnchoredFile> anchored;  // with --anchor, in the order of `files`
  std::string half;
  double seconds = 0;
  bool rows = false;
  std::size_t width = kUsualWidth;
};

std::string print_text(const ValidationText& text);
std::string print_json(const ValidationText& text);

}  // namespace weft::explain
