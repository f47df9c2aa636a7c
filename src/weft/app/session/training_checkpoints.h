// weft/app/session/training_checkpoints.h -- the files that a TRAIN saves to while it goes on.
//
//   step 100  saved
//   step 200  warning: the checkpoint of step 200 is not saved, the file is that of step 100: no space left on device
//   step 300  warning: the checkpoint of step 300 is saved again: 1 was not
//
// A disk that is full for an hour costs checkpoints, not the training. An old file stays until a new one is whole.
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
  // REQUIRES: both outlive it.
  CheckpointFile(const Session::State& state, const Context& context, std::string path)
      : state_(state), context_(context), path_(std::move(path)) {}

  bool wanted() const { return !path_.empty(); }
  const std::string& path() const { return path_; }

  // What goes wrong is told, and the next one is tried all the same.
  bool save(std::int64_t step, const formats::Checkpoint& learned);
  std::optional<std::int64_t> saved() const {
    return saved_;
  }  // the step of what is in the file, if it is ours

 private:
  const Session::State& state_;
  const Context& context_;
  std::string path_;
  std::optional<std::int64_t> saved_;
  std::int64_t missed_ = 0;  // since then
};

// Keeps the checkpoint of the least loss: as it was tested, or else the mean of the steps since the last.
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
