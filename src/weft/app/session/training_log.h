// weft/app/session/training_log.h -- records the losses and tests of a TRAIN and writes them as they arrive.
//
//   step,loss,seconds,test_loss,test_accuracy        .csv; a name with tfevents is TensorBoard's
//   99,0.412,1.84,,
//   100,0.407,1.86,0.455,0.88                        a test is in the row of the step it followed
//
// A TRAIN that continues an earlier one appends to an existing file; one that starts anew replaces
// it.
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
  // An empty `path` writes nothing.
  static Result<TrainingLog> open(const std::string& path, std::int64_t first_step);

  Status add(const run::StepReport& report);
  Status add(std::int64_t step, const Score& test);
  Status finish();

  bool tested_at(std::int64_t step) const { return !tests_.empty() && tests_.back().first == step; }
  const Score& last_test() const { return tests_.back().second; }

  // {"steps": [..], "losses": [..]}, thinned to what a curve needs if there are very many steps;
  // keeps the first and the last. {"tests": [{"step", "loss", ..}]} if there were tests.
  nlohmann::ordered_json curve() const;

 private:
  Status write(std::string_view bytes);
  Status write_pending();

  std::string path_;
  bool events_ = false;
  std::ofstream file_;
  std::vector<run::StepReport> steps_;
  std::vector<std::pair<std::int64_t, Score>> tests_;
  std::optional<run::StepReport> pending_;  // not yet written, because a test may still belong to its row
};

}  // namespace weft::session
