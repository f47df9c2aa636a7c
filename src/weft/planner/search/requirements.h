// weft/planner/search/requirements.h -- what settings require of the plan of a mesh, in one table.
//
//   sync_every = 8                        ranks slice the batch, and each has whole parameters and states
//   gradient_delay = 1                    ranks sum gradients
//   all_reduce_window, gradient_delay, parameter_servers, sync_every    a step without stages and micro-batches
//
// The search looks only at distributions that meet them. The same row gives the error where a distribution is given
// that does not.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribute.h"

namespace weft::search {

// Settings that not every distribution can keep, as a statement has them.
struct Asked {
  std::int64_t sync_every = 1, delay = 0, servers = 0;
  double credit = 0;

  friend bool operator==(const Asked&, const Asked&) = default;
};

inline constexpr std::string_view kStagesOrMicroBatches = "stages or micro-batches";

struct Requirement {
  std::string_view setting;
  std::string_view reason;  // why no plan with stages or micro-batches keeps it
  bool (*is_asked)(const Asked& asked);
  // Null: every plan without stages and micro-batches will do.
  Status (*check)(const distribute::DistributedPlan& plan);
};

// By name of the setting. None of them goes with stages and micro-batches.
std::span<const Requirement> requirements();

// Fails where the plan, which has no stages and micro-batches, cannot keep what is asked.
Status check_requirements(const Asked& asked, const distribute::DistributedPlan& plan);
// Fails where something is asked that no plan with stages or micro-batches can keep.
Status check_in_time(const Asked& asked);

}  // namespace weft::search
