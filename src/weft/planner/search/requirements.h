// weft/planner/search/requirements.h -- what settings require of a distributed plan.
//
//   sync_every = 8                        ranks slice the batch, and each has whole parameters and states
//   gradient_delay = 1                    ranks sum gradients
//   all_reduce_window, gradient_delay, parameter_servers, sync_every    no stages or micro-batches
//
// The search considers only distributions that meet them. A given distribution that does not fails
// with the error of the same table row.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribute.h"

namespace weft::search {

// Settings of a statement that not every distribution supports.
struct Asked {
  std::int64_t sync_every = 1, delay = 0, servers = 0;
  double credit = 0;

  friend bool operator==(const Asked&, const Asked&) = default;
};

inline constexpr std::string_view kStagesOrMicroBatches = "stages or micro-batches";

struct Requirement {
  std::string_view setting;
  std::string_view reason;  // why plans with stages or micro-batches do not support it
  bool (*is_asked)(const Asked& asked);
  // Null: every plan without stages and micro-batches supports it.
  Status (*check)(const distribute::DistributedPlan& plan);
};

// By setting name. None can be combined with stages or micro-batches.
std::span<const Requirement> requirements();

// Fails if the plan, which has no stages or micro-batches, does not support the settings.
Status check_requirements(const Asked& asked, const distribute::DistributedPlan& plan);
// Fails if a setting cannot be combined with stages or micro-batches.
Status check_in_time(const Asked& asked);

}  // namespace weft::search
