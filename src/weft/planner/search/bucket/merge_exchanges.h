// weft/planner/search/bucket/merge_exchanges.h -- merge some all-reduces of a plan.
//
//   %4 = all-reduce %2 {axis=gpu}             %5, %6 = all-reduce %2, %3 {axis=gpu}
//   %5 = all-reduce %3 {axis=gpu}      =>
#pragma once
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribute.h"

namespace weft::search {

// Each bucket takes the position of its last member, and readers of other members move behind it.
// Otherwise the order of nodes is kept. `low`: buckets get low priority. Fails if buckets would
// wait for each other. REQUIRES: all-reduces of one operand; those of a bucket along one axis, of
// one kind and dtype; no node in two buckets.
Result<distribute::DistributedPlan> merge_exchanges(const distribute::DistributedPlan& plan,
                                                    std::span<const std::vector<plan::NodeId>> buckets,
                                                    bool low = false);

}  // namespace weft::search
