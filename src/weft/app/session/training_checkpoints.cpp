#include "weft/app/session/training_checkpoints.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/base/units.h"

namespace weft::session {

bool CheckpointFile::save(std::int64_t step, const formats::Checkpoint& learned) {
  const Status written = formats::save(path_, learned);
  const auto warn = [&](const std::string& so, const Status& why) {
    state_.warnings.add_now(so, why, context_.on_warning);
  };
  if (!written.ok()) {
    // Warns only once while saving keeps failing.
    if (missed_++ == 0)
      warn(fmt::format("the checkpoint of step {} is not saved; training continues", print_exact(step)),
           written);
    return false;
  }
  if (missed_ > 0)
    warn(fmt::format("checkpoints are saved again, from step {} on", print_exact(step)),
         environment_error(fmt::format("earlier checkpoints that could not be saved: {}", missed_)));
  missed_ = 0;
  saved_ = step;
  return true;
}

void BestCheckpoint::see(const run::StepReport& report) {
  last_ = report.step;
  sum_ += report.loss;
  ++count_;
}

void BestCheckpoint::offer(const formats::Checkpoint& learned, std::optional<double> tested) {
  const double loss = tested.value_or(sum_ / static_cast<double>(std::max<std::int64_t>(count_, 1)));
  sum_ = 0;
  count_ = 0;
  if (step_ > 0 && !(loss < loss_)) return;
  if (!file_.save(last_, learned)) return;
  step_ = last_;
  loss_ = loss;
}

}  // namespace weft::session
