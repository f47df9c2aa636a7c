#include "weft/planner/search/requirements.h"

#include <fmt/format.h>

#include "weft/planner/search/sync/delay_gradients.h"
#include "weft/planner/search/sync/sync_every.h"

namespace weft::search {
namespace {

constexpr Requirement kRequirements[] = {
    {"all_reduce_window", "it limits the all-reduces of one backward pass, and each micro-batch has its own",
     [](const Asked& asked) { return asked.credit > 0; }, nullptr},
    {"gradient_delay", "stages would apply gradients of different steps",
     [](const Asked& asked) { return asked.delay > 0; }, check_delayable},
    {"parameter_servers", "each stage would need servers of its own",
     [](const Asked& asked) { return asked.servers > 0; }, nullptr},
    {"sync_every", "a rank that holds one stage cannot train alone",
     [](const Asked& asked) { return asked.sync_every > 1; }, check_learns_alone},
};

}  // namespace

std::span<const Requirement> requirements() { return kRequirements; }

Status check_requirements(const Asked& asked, const distribute::DistributedPlan& plan) {
  for (const Requirement& one : kRequirements)
    if (one.check != nullptr && one.is_asked(asked)) WEFT_TRY_STATUS(one.check(plan));
  return {};
}

Status check_in_time(const Asked& asked) {
  for (const Requirement& one : kRequirements)
    if (one.is_asked(asked))
      return user_error(
          fmt::format("{} cannot be combined with {}: {}", one.setting, kStagesOrMicroBatches, one.reason),
          "remove one of them");
  return {};
}

}  // namespace weft::search
