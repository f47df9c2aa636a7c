// weft/plan/ops/global_offset.h -- the position of a slice's elements in the whole tensor.
//
//   whole [8, 4]   rows 2 and 3, columns 2 and 3 of it: f32[b=2,d=2] {begin=10, whole="8,4"}
//
//    .  .  .  .    The first element is number 10 of the whole. A step along b skips 4 elements of the
//    .  .  .  .    whole, a step along d 1. Dropout draws its mask by these numbers, so that slices
//    .  . 10 11    agree with the whole.
//    .  . 14 15
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"
#include "weft/plan/graph/layout.h"

namespace weft::ops {

struct GlobalOffset {
  std::int64_t begin = 0;
  std::vector<std::int64_t> sizes, strides;  // of the whole, one per dim
};

// `whole` is empty if the slice is the whole tensor. Fails if it is not a list of sizes, one per
// dim and none smaller than the slice's, or if the slice would extend beyond the whole.
Result<GlobalOffset> read_global_offset(const plan::Type& slice, std::int64_t begin, std::string_view whole);

// The `begin` of the block that `shares` cut out of a value at `place`.
std::int64_t begin_of_block(const GlobalOffset& place, std::span<const plan::Share> shares);
std::string print_sizes(const GlobalOffset& place);  // 8,4

}  // namespace weft::ops
