// weft/parallel/partition/profile.h -- layers with measured times, and the data between them.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "weft/parallel/partition/ideals.h"

namespace weft::partition {

struct ProfileNode {
  std::string id, description;
  double forward = 0, backward = 0;        // ms per mini-batch
  double activations = 0, parameters = 0;  // bytes
};

struct Profile {
  std::vector<ProfileNode> nodes;
  std::vector<std::pair<std::int32_t, std::int32_t>> edges;  // positions in `nodes`

  Dag dag() const { return {static_cast<std::int32_t>(nodes.size()), edges}; }
};

// Sums over the nodes of each ideal.
struct IdealSums {
  std::vector<double> forward, backward;  // ms
  std::vector<double> parameters;         // bytes
  std::vector<double> crossing;           // bytes of activations that nodes outside the ideal read
};
IdealSums sums_of(const Profile& profile, const Ideals& ideals);

// The profile without what PipeDream's planner omits: inputs, which cost nothing, and sinks that
// only select an element of a tuple that no node reads.
Profile without_inputs(const Profile& profile);

}  // namespace weft::partition
