// weft/parallel/pipeline/slice_boundaries.h -- sends stage boundaries in slices.
//
//   stage 0   %9 = all-reduce %8 {axis=gpu}            %9 = reduce-scatter %8 {axis=gpu, along=s}
//                                                      %10 = slice-across %5 {axis=gpu, along=s}
//             %10 = add %9, %5                   =>    %11 = add %9, %10
//   stage 1                                            %12 = all-gather %11 {axis=gpu, along=s}
//             %11 = layer-norm %10 {over=[d]}          %13 = layer-norm %12 {over=[d]}
//
// If n ranks along an axis all hold the value, each sends 1/n of it, and the receiving stage
// gathers it. If no other node reads it, it is also computed in slices, as far back as the
// computation is elementwise, up to the all-reduce that makes it. That becomes a reduce-scatter,
// and the total communication does not grow.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribute.h"

namespace weft::pipeline {

struct SlicedBoundaries {
  distribute::DistributedPlan plan;
  std::size_t sliced = 0, whole = 0;  // values sent between stages
  std::size_t scattered = 0;          // all-reduces that became reduce-scatters
  std::int64_t bytes = 0, sent = 0;   // of sliced values, per rank and step: unsliced, and as sent
};

// "2 of 2 values are sent between stages in slices, 1 MiB per rank and step for 8 MiB; 2 sums are
// left scattered for it"
std::string print(const SlicedBoundaries& made);

// REQUIRES: plan.time is set.
Result<SlicedBoundaries> slice_boundaries(const distribute::DistributedPlan& plan);

}  // namespace weft::pipeline
