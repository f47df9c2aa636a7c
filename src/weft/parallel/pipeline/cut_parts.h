// weft/parallel/pipeline/cut_parts.h -- where a chain of parts is cut into runs, one for each place on the way.
//
//   work   3 1 1 3 2     two places     3 1 1 | 3 2     the heaviest run is as light as can be: 5
//
// What prices a plan in time and what runs it cut by this, so that both have the same stages. Places may differ in
// how long a part takes there and in how much they hold:
//
//   work   3 1 1 3 2     the first place twice as fast     3 1 1 3 | 2     4 and 2
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "weft/plan/graph/graph.h"

namespace weft::pipeline {

// The end of each run; of equally heavy cuts the runs are most alike. REQUIRES: as many parts as places.
std::vector<std::size_t> cut_parts(std::span<const double> work, std::size_t places);

// One place of several that differ.
struct CutPlace {
  std::span<const double> work, bytes;  // of each part, there; no bytes: they do not count
  double room = 0;                      // bytes
  // Bytes beside those while a part runs, of a run the most; and of what comes into a run that begins with it. None: 0.
  std::span<const double> working = {}, entering = {};
};
// The same; nothing where no cut fits. REQUIRES: as many parts as places.
std::optional<std::vector<std::size_t>> cut_parts(std::span<const CutPlace> places);

// What each part of a plan's chain computes, where nobody knows what it takes: its multiply-adds.
std::vector<double> flops_of_parts(const plan::Graph& graph);

}  // namespace weft::pipeline
