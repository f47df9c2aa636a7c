// weft/predict/sim/step/rank_classes.h -- which ranks of a mesh do the same thing at the same time.
//
//   b=7 sliced on gpu=4: shares 2 2 2 1           kinds    0 0 0 1     equal sizes, so equal programs
//   node=2, gpu=4, and gpu 0 alone adds a bias    classes  0 1 1 2 ..  and equal company
//
// Ranks are of one kind when all their shares have equal sizes: their plans differ at most in where shares
// begin, which costs nothing. A kind is found from the few ways in which values are cut, without making any
// rank's plan. Ranks are of one class when they are of one kind and meet the same classes in the groups of
// every axis; so one of them stands for all, and a collective of its group is one among classes.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/plan/graph/graph.h"
#include "weft/plan/graph/layout.h"

namespace weft::sim {

// A number for each rank, from 0 on without gaps, in order of the first rank that has it.
using Numbering = std::vector<std::int32_t>;

Numbering rank_kinds(const plan::Graph& graph, const plan::Mesh& mesh, std::span<const plan::Layout> layouts);

// Splits kinds until ranks of one class have the same company along every axis.
Numbering rank_classes(const plan::Mesh& mesh, std::span<const std::int32_t> kinds);

// Groups of one axis that consist of the same classes are one meeting.
struct Meeting {
  std::size_t axis = 0;
  std::vector<std::uint32_t> classes;  // ascending
};

struct Meetings {
  std::vector<Meeting> all;
  std::vector<std::vector<std::uint32_t>> of_axis;  // of_axis[a][c]: the meeting of class c along axis a
};

// REQUIRES: classes as rank_classes() gives them, or a number for each rank.
Meetings find_meetings(const plan::Mesh& mesh, std::span<const std::int32_t> classes);

}  // namespace weft::sim
