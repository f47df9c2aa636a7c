// weft/program/memory/tiling.h -- the cost of running operators in tiles through a fast memory.
//
//   slow memory  ==bandwidth==>  fast memory (capacity)  -->  compute, native tile [w, h]
//
// A schedule is a list of steps. A step runs several operators fused, tile after tile [w, h] of
// their outputs; data between them is free. Matrix products whose result is such a tile iterate
// over their reduction in strips of k, with the result in fast memory. A product that feeds the
// strips of another needs its own reduction whole:
//
//   (A B) C, tile [w, h]:  A [all, h] once;  for each k:  B [k, all], C [w, k]   -> accumulate [w, h]
//
// A strip of a tile takes max(compute, bytes in and out / bandwidth). An operator costs its base
// for every native tile that it covers at least partly, distributed over the strips. Tensors may
// stay in fast memory from one step to the next. With a given tile order, data that the next tile
// also needs stays; without one, nothing stays between tiles. Pointwise operators may work in
// place.
//
// The model is that of the MLSys 2026 contest; price() reproduces its worked examples exactly.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "weft/base/result.h"

namespace weft::memory {

struct TilingOperator {
  bool product = false;              // matrix product; otherwise pointwise
  std::vector<std::int32_t> inputs;  // tensors; for a product left and right
  std::int32_t output = 0;
  double base_cost = 0;
};

struct TilingProblem {
  std::vector<std::int64_t> widths, heights;  // by tensor
  std::vector<TilingOperator> operators;
  std::int64_t capacity = 0;  // elements
  double bandwidth = 1;       // elements per unit of time
  std::int64_t native_width = 1, native_height = 1;

  std::int64_t elements(std::int32_t tensor) const {
    return widths[static_cast<std::size_t>(tensor)] * heights[static_cast<std::size_t>(tensor)];
  }
};

struct TilingStep {
  std::vector<std::int32_t> operators;
  std::int64_t width = 1, height = 1, depth = 1;   // w, h, k
  std::vector<std::int32_t> retained;              // tensors that stay for the next step
  std::optional<std::vector<std::int32_t>> order;  // of tiles, numbered row by row
};

struct TilingCost {
  std::vector<double> latencies;       // by step
  std::vector<std::int64_t> elements;  // by step: the most elements held
  double total = 0;
};

// A user error: sizes that are not positive, product sizes that do not match, a tensor made twice,
// or a cycle of operators.
Status check(const TilingProblem& problem);

// Fails if a step exceeds the capacity, an operator is missing, a step reads a tensor that is not
// available, its outputs differ in size, an order omits a tile, or a final output is not in slow
// memory at the end. REQUIRES: a problem that check() accepts.
Result<TilingCost> price(const TilingProblem& problem, std::span<const TilingStep> steps);

}  // namespace weft::memory
