// weft/app/session/training_checkpoints.h -- the checkpoint files that a TRAIN writes as it runs.
//
//   step 100  saved
//   step 200  warning: the checkpoint of step 200 is not saved; training continues: no space left ..
//   step 300  warning: checkpoints are saved again, from step 300 on: 1 before it could not be saved
//
// A full disk loses checkpoints but does not stop the training. The old file stays until the new
// one is complete.
//
// Included by app/session and app/command only.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "weft/app/session/state.h"
#include "weft/formats/safetensors.h"
#include "weft/runtime/run/training.h"

namespace weft::session {

class CheckpointFile {
 public:
  // REQUIRES: `state` and `context` outlive it.
  CheckpointFile(const Session::State& state, const Context& context, std::string path)
      : state_(state), context_(context), path_(std::move(path)) {}

  bool wanted() const { return !path_.empty(); }
  const std::string& path() const { return path_; }

  // Returns false and warns on failure; later saves are still tried.
  bool save(std::int64_t step, const formats::Checkpoint& learned);
  std::optional<std::int64_t> saved() const {
    return saved_;
  }  // the step in the file, if this object wrote it

 private:
  const Session::State& state_;
  const Context& context_;
  std::string path_;
  std::optional<std::int64_t> saved_;
  std::int64_t missed_ = 0;  // failed saves since then
};

// Keeps the checkpoint with the lowest loss: the test loss, or if none, the mean training loss
// since the last offer.
class BestCheckpoint {
 public:
  BestCheckpoint(const Session::State& state, const Context& context, const std::string& path)
      : file_(state, context, path) {}

  void see(const run::StepReport& report);
  void offer(const formats::Checkpoint& learned, std::optional<double> tested);

  std::int64_t step() const { return step_; }  // 0: none yet
  double loss() const { return loss_; }
  const std::string& path() const { return file_.path(); }

 private:
  CheckpointFile file_;
  std::int64_t step_ = 0, last_ = 0, count_ = 0;
  double loss_ = 0, sum_ = 0;
};

}  // namespace weft::session
