// weft/app/session/training_log.h -- how a TRAIN went: its losses and its tests, kept and written as they come.
//
//   step,loss,seconds,test_loss,test_accuracy        .csv; a name with tfevents is TensorBoard's
//   99,0.412,1.84,,
//   100,0.407,1.86,0.455,0.88                        a test stands with the step it was made after
//
// A TRAIN that goes on from an earlier one adds to a file that is there; one that begins takes its place.
//
// Included by app/session and app/command only.
#pragma once
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "weft/app/session/learn.h"
#include "weft/app/session/state.h"
#include "weft/base/result.h"
#include "weft/runtime/run/training.h"

namespace weft::session {

class TrainingLog {
 public:
  // `path` empty: nothing is written.
  static Result<TrainingLog> open(const std::string& path, std::int64_t first_step);

  Status add(const run::StepReport& report);
  Status add(std::int64_t step, const Score& test);
  Status finish();

  bool tested_at(std::int64_t step) const { return !tests_.empty() && tests_.back().first == step; }
  const Score& last_test() const { return tests_.back().second; }

  // {"steps": [..], "losses": [..]} of all steps or, of very many, as many as a curve needs; the first and the
  // last are among them. {"tests": [{"step", "loss", ..}]} where there were some.
  nlohmann::ordered_json curve() const;

 private:
  Status write(std::string_view bytes);
  Status write_pending();

  std::string path_;
  bool events_ = false;
  std::ofstream file_;
  std::vector<run::StepReport> steps_;
  std::vector<std::pair<std::int64_t, Score>> tests_;
  std::optional<run::StepReport> pending_;  // its row is not written yet: a test may belong to it
};

}  // namespace weft::session
