// weft/plan/ops/sliding.h -- loops that windows slide along, and what a block of their steps sees beyond its own.
//
//   window 3, stride 1, padding 1 over 8 rows, two ranks:
//
//   rank 0   0 1 2 3 | 4        each computes the four windows of its block; for that it holds its rows and a
//   rank 1       3 | 4 5 6 7    border of one row on the other side: sliced(y, 1, 1)
//
// An operator's own signature says that such a loop is whole, since a block of windows reads beyond its block
// of elements. Where the borders are fetched first (halo.cpp) it may be cut like any other, and then it is
//
//   operator                  a step is   sees in its operands                        results
//   conv2d, pools             a window    the elements of the window                  parallel
//   conv2d-weight-gradient    a window    the window's gradient, its elements         summed
//   input gradient, avg pool  an element  the windows that see it                     parallel
//   max-pool-gradient         an element  these windows, and all of their elements    parallel
//
// Borders are as wide as the rank that needs the widest: sizes that no stride or padding lines up are cut
// too. Windows that see padding alone, or pools that leave gaps, are not: they stay whole. In the plan of one
// rank, `padding` is what lies before its first window, and `high` or `wide` counts its windows.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "weft/plan/graph/graph.h"
#include "weft/plan/graph/layout.h"
#include "weft/plan/graph/signature.h"

namespace weft::ops {

// What a step of the loop sees of an operand.
enum class Sees : std::uint8_t {
  nothing,     // the operand lacks the loop
  same,        // the element, or the window, of the same number
  elements,    // of the step, a window
  windows,     // that see the step, an element
  neighbours,  // the elements of these windows, and itself
};

struct Borders {
  std::int64_t before = 0, after = 0;
};

struct Sliding {
  std::size_t loop = 0;                    // of the signature
  plan::Role role = plan::Role::parallel;  // whole: not to be cut even so
  std::int64_t window = 1, stride = 1, padding = 0;
  std::int64_t elements = 0, windows = 0;  // how many there are
  bool by_window = true;                   // a step is a window, else an element
  std::vector<Sees> operands;
  std::size_t padding_attribute = 0, count_attribute = 0;  // by their number

  std::int64_t steps() const { return by_window ? windows : elements; }
  // What a block of steps sees; of no size where it sees nothing.
  plan::Share seen(Sees sees, plan::Share steps) const;
  // What the ranks need of that operand around their blocks when the loop is cut in as many parts.
  Borders borders(std::size_t operand, std::int32_t ranks) const;
};

// The loops of the node that slide, rows before columns; none in the plan of one rank, whose
// windows are counted.
std::vector<Sliding> sliding_loops(const plan::NodeView& node);

// The node's signature, with these loops as they are once borders are fetched.
plan::Signature signature_with_borders(const plan::NodeView& node);

// What operand i must be on an axis of so many ranks for the node to be cut along the loop there. Nothing
// where a border would be wider than a layout can say.
std::optional<plan::AxisLayout> operand_layout(const plan::NodeView& node, const plan::Signature& signature,
                                               std::size_t loop, std::size_t i, std::int32_t ranks);

}  // namespace weft::ops
