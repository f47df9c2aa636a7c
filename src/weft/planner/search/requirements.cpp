#include "weft/planner/search/requirements.h"

#include <fmt/format.h>

#include "weft/planner/search/sync/delay_gradients.h"
#include "weft/planner/search/sync/sync_every.h"

namespace weft::search {
namespace {

constexpr Requirement kRequirements[] = {
    {"credit", "a credit is", [](const Asked& asked) { return asked.credit > 0; }, nullptr},
    {"delay", "delay is", [](const Asked& asked) { return asked.delay > 0; }, check_delayable},
    {"servers", "servers are", [](const Asked& asked) { return asked.servers > 0; }, nullptr},
    {"sync_every", "sync_every is", [](const Asked& asked) { return asked.sync_every > 1; },
     check_learns_alone},
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
      return user_error(fmt::format("{} for plans without stages and micro-batches", one.subject),
                        fmt::format("leave out {}, or the stages and micro-batches", one.setting));
  return {};
}

}  // namespace weft::search
