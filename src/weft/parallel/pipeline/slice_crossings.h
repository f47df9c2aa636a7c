// weft/parallel/pipeline/slice_crossings.h -- ranks of a stage that would all send the same send a slice of it each.
//
//   stage 0   %9 = all-reduce %8 {axis=gpu}            %9 = reduce-scatter %8 {axis=gpu, along=s}
//                                                      %10 = slice-across %5 {axis=gpu, along=s}
//             %10 = add %9, %5                   =>    %11 = add %9, %10
//   stage 1                                            %12 = all-gather %11 {axis=gpu, along=s}
//             %11 = layer-norm %10 {over=[d]}          %13 = layer-norm %12 {over=[d]}
//
// What crosses is 1/n, where n ranks along an axis have it all; it is put together on the stage that wants it. What
// nobody but that stage reads is computed in slices as far back as it goes elementwise, up to the sum over ranks that
// makes it: then that is a reduce-scatter, and nothing is gathered that was not gathered before.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribute.h"

namespace weft::pipeline {

struct SlicedCrossings {
  distribute::DistributedPlan plan;
  std::size_t sliced = 0, whole = 0;  // values that go from stage to stage
  std::size_t scattered = 0;          // sums that leave every rank its slice alone
  std::int64_t bytes = 0, sent = 0;   // of the sliced: what a rank would send a step, and what it sends
};

// "2 of 2 values go from stage to stage in slices, 1 MiB a rank for 8 MiB; 2 sums are left scattered"
std::string print(const SlicedCrossings& made);

// REQUIRES: the plan is in time.
Result<SlicedCrossings> slice_crossings(const distribute::DistributedPlan& plan);

}  // namespace weft::pipeline
