// weft/program/memory/tiling.h -- what it costs to run operators tile by tile through a small fast memory.
//
//   slow memory  ==bandwidth==>  fast memory (capacity)  -->  compute, native tile [w, h]
//
// A schedule is a list of steps. A step runs some operators together, tile after tile [w, h] of their outputs; what
// flows between them is free. Matrix products whose result is such a tile run over their reduction in strips of k,
// the result staying in fast memory; a product that feeds the strips of another needs its own reduction whole:
//
//   (A B) C, tile [w, h]:  A [all, h] once;  for each k:  B [k, all], C [w, k]   -> accumulate [w, h]
//
// A tile's strip takes max(compute, bytes in and out / bandwidth). An operator costs its base for every native tile
// that it fills or begins to fill, spread over the strips. Tensors may stay in fast memory from a step to the next.
// Tiles in an order that is given keep what the next tile needs too; without one, nothing is kept between tiles.
// Pointwise operators may write where they read.
//
// The model is that of the MLSys 2026 contest; price() answers its worked examples exactly.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "weft/base/result.h"

namespace weft::memory {

struct TilingOperator {
  bool product = false;              // of two matrices, else pointwise
  std::vector<std::int32_t> inputs;  // tensors; of a product left and right
  std::int32_t output = 0;
  double base_cost = 0;
};

struct TilingProblem {
  std::vector<std::int64_t> widths, heights;  // of tensors
  std::vector<TilingOperator> operators;
  std::int64_t capacity = 0;  // elements
  double bandwidth = 1;       // elements in a unit of time
  std::int64_t native_width = 1, native_height = 1;

  std::int64_t elements(std::int32_t tensor) const {
    return widths[static_cast<std::size_t>(tensor)] * heights[static_cast<std::size_t>(tensor)];
  }
};

struct TilingStep {
  std::vector<std::int32_t> operators;
  std::int64_t width = 1, height = 1, depth = 1;   // w, h, k
  std::vector<std::int32_t> retained;              // tensors that stay for the next step
  std::optional<std::vector<std::int32_t>> order;  // of tiles, counted along rows
};

struct TilingPrice {
  std::vector<double> latencies;       // by step
  std::vector<std::int64_t> elements;  // that each step holds at most
  double total = 0;
};

// Fails as the user's mistake when sizes are not positive, a product's do not match, a tensor is made twice, or
// operators wait for each other.
Status check(const TilingProblem& problem);

// Fails when a step takes more than the capacity, an operator is missing, a step reads what is nowhere, its outputs
// differ in size, an order leaves out a tile, or an output of the whole is not in slow memory at the end.
// REQUIRES: a problem that check() accepts.
Result<TilingPrice> price(const TilingProblem& problem, std::span<const TilingStep> steps);

}  // namespace weft::memory
