// weft/parallel/partition/two_stages.h -- two stages for one synchronous step of M micro-batches, on a flat network.
//
//   stage 0   F F F . . B F B F ... B     runs three forwards first, then B, F in turn
//   stage 1     F B F B F B ...           one forward first
//
// A stage of r devices takes its times * the size of a micro-batch / r. What crosses goes over one link for each
// direction, a micro-batch after the other, at bandwidth * min(r0, r1). After its last backward a stage sums its
// gradients in a ring, 2 (r-1)/r * parameters / bandwidth; the step ends when both have. The one stage of all
// devices, where nothing crosses, is weighed beside them. After DAPPLE (Fan et al., PPoPP 2021).
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/partition/profile.h"

namespace weft::partition {

struct Step {
  std::int32_t devices = 16;
  std::int32_t micro_batches = 8;
  double micro_batch = 8;  // mini-batches of the profile
  double bandwidth = 0;    // bytes/s
};

struct ReplicatedStage {
  std::vector<std::int32_t> nodes;  // places in Profile::nodes, ascending
  std::int32_t replicas = 1;
};

struct StepAnswer {
  std::vector<ReplicatedStage> stages;  // one or two
  double cost = 0;                      // ms
  double data_parallel = 0;             // ms of one stage on all devices
  std::int32_t ideals = 0;
  bool exact = true;  // false: too many ideals, so only splits along one order of the nodes were weighed
};

Result<StepAnswer> cut_step(const Profile& profile, const Step& step);

// The ms of such stages, by going through the events; fails on stages that are none. Shares no code with
// cut_step().
Result<double> judge(const Profile& profile, const Step& step, const std::vector<ReplicatedStage>& stages);

}  // namespace weft::partition
