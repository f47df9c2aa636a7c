// weft/predict/sim/step/rank_classes.h -- which ranks of a mesh do the same thing at the same time.
//
//   b=7 sliced on gpu=4: blocks 2 2 2 1           kinds    0 0 0 1     equal sizes, so equal programs
//   node=2, gpu=4, and gpu 0 alone adds a bias    classes  0 1 1 2 ..  and equal peers
//
// Ranks are of one kind if all their blocks have equal sizes. Their plans differ at most in where
// blocks begin, which costs nothing. A kind is derived from the few distinct cuts of values,
// without building any rank's plan. Ranks are of one class if they are of one kind and have the
// same classes as peers along every axis. So one rank stands for its whole class, and a collective
// of its group is a collective between classes.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/plan/graph/graph.h"
#include "weft/plan/graph/layout.h"

namespace weft::sim {

// A number per rank, consecutive from 0 in order of first occurrence.
using Numbering = std::vector<std::int32_t>;

Numbering rank_kinds(const plan::Graph& graph, const plan::Mesh& mesh, std::span<const plan::Layout> layouts);

// Splits kinds until ranks of one class have the same peers along every axis.
Numbering rank_classes(const plan::Mesh& mesh, std::span<const std::int32_t> kinds);

// All groups of one axis that consist of the same classes.
struct Meeting {
  std::size_t axis = 0;
  std::vector<std::uint32_t> classes;  // ascending
};

struct Meetings {
  std::vector<Meeting> all;
  std::vector<std::vector<std::uint32_t>> of_axis;  // of_axis[a][c]: index in `all`
};

// REQUIRES: classes as returned by rank_classes(), or a distinct number per rank.
Meetings find_meetings(const plan::Mesh& mesh, std::span<const std::int32_t> classes);

}  // namespace weft::sim
