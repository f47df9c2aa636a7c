// weft/parallel/pipeline/cut_parts.h -- splits a chain of parts into contiguous runs.
//
//   work   3 1 1 3 2     two positions     3 1 1 | 3 2     minimizes the heaviest run: 5
//
// The cost model and the plans that run both use this, so they have the same stages. Positions may
// differ in the time that a part takes there and in their memory:
//
//   work   3 1 1 3 2     the first position twice as fast     3 1 1 3 | 2     4 and 2
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "weft/plan/graph/graph.h"

namespace weft::pipeline {

// The end of each run; ties are broken by the most even runs. REQUIRES: at least as many parts as
// places.
std::vector<std::size_t> cut_parts(std::span<const double> work, std::size_t places);

// One position, where positions differ.
struct CutPlace {
  std::span<const double> work, bytes;  // per part at this position; no bytes: not limited
  double room = 0;                      // bytes
  // Additional bytes while a part runs (the maximum over a run counts), and of what enters a run
  // that begins with the part. Empty: 0.
  std::span<const double> working = {}, entering = {};
};
// The same; empty if nothing fits. REQUIRES: at least as many parts as places.
std::optional<std::vector<std::size_t>> cut_parts(std::span<const CutPlace> places);

// The work of each part of a plan's chain in flops, for when no times are known.
std::vector<double> flops_of_parts(const plan::Graph& graph);

}  // namespace weft::pipeline
