// weft/planner/search/bucket/merge_exchanges.h -- a plan of a mesh with some of its all-reduces made as one.
//
//   %4 = all-reduce %2 {axis=gpu}             %5, %6 = all-reduce %2, %3 {axis=gpu}
//   %5 = all-reduce %3 {axis=gpu}      =>
#pragma once
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribute.h"

namespace weft::search {

// Each bucket stands where its last member stood, and what read the others comes after it; else nodes keep their
// order. `low`: at low priority, of whoever else uses the axis. Fails where buckets would wait for each other.
// REQUIRES: all-reduces of one operand, those of a bucket along one axis, of one kind and dtype, and no node in
// two of them.
Result<distribute::DistributedPlan> merge_exchanges(const distribute::DistributedPlan& plan,
                                                    std::span<const std::vector<plan::NodeId>> buckets,
                                                    bool low = false);

}  // namespace weft::search
