// weft/planner/search/bucket/partition_all_reduces.h -- partitioned all-reduces: split long ones into parts.
//
//   %5, %6 = all-reduce %2, %3 {axis=gpu}      =>      %5, %6 = all-reduce %2, %3 {axis=gpu, parts=4}
//
// One part per axis is in flight at a time, so the size of a part is the in-flight window.
// High-priority exchanges can overtake between two parts (program/tasks/partition_exchanges.h). Each
// part has latency: a smaller window delivers first results earlier but takes longer overall.
// Several windows are simulated. The fastest is used if it shortens the step by `least_gain`. A
// given window is always used.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "weft/base/result.h"
#include "weft/planner/search/distribution/evaluator.h"

namespace weft::search {

// The smallest pipelining unit of a communicator. Calls below it are bound by latency.
constexpr double kMinWindow = 32 << 10;

struct WindowOptions {
  double least_gain = 0.02;  // share of the step time
  double memory_bytes = 0;   // limit per rank; 0: no limit
  double credit = 0;         // bytes per part; 0: choose the fastest
};

struct PartitionedAllReduces {
  std::optional<PredictedPlan> plan;  // none: unchanged
  double credit = 0;                  // window of the plan
  std::string said;  // "2 all-reduces in 9 parts of at most 4 MiB"; without a plan, the reason
};

Result<PartitionedAllReduces> partition_all_reduces(const PredictedPlan& before, const Machine& machine,
                                                    const WindowOptions& options = {});

// The plan with all-reduces split into parts of at most `credit` bytes. `bytes`: size of each
// all-reduce, by node. Also counts the split all-reduces and their parts.
struct InParts {
  distribute::DistributedPlan plan;
  std::size_t cut = 0, parts = 0;
};
Result<InParts> in_parts(const distribute::DistributedPlan& plan, std::span<const std::int64_t> bytes,
                         double credit);

}  // namespace weft::search
