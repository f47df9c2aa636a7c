// weft/plan/ops/sliding.h -- loops with sliding windows, and the borders that blocks read.
//
//   window 3, stride 1, padding 1 over 8 rows, two ranks:
//
//   rank 0   0 1 2 3 | 4        each computes the four windows of its block; for that it holds its rows
//   rank 1       3 | 4 5 6 7    and a border of one row on the other side: sliced(y, 1, 1)
//
// An operator's own signature marks such a loop as whole, since a block of windows reads beyond its
// block of elements. Once the borders are fetched (halo.cpp) the loop may be sliced like any other:
//
//   operator                  a step is   sees in its operands                        results
//   conv2d, pools             a window    the elements of the window                  parallel
//   conv2d-weight-gradient    a window    the window's gradient, its elements         summed
//   input gradient, avg pool  an element  the windows that contain it                 parallel
//   max-pool-gradient         an element  these windows, and all of their elements    parallel
//
// Every rank has borders as wide as the widest that any rank needs, so sizes may be sliced even if
// stride or padding does not align with the blocks. Windows with only padding, and pools with gaps,
// stay whole. In the plan of one rank, `padding` is the padding before its first window, and `high`
// or `wide` is the number of its windows.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "weft/plan/graph/graph.h"
#include "weft/plan/graph/layout.h"
#include "weft/plan/graph/signature.h"

namespace weft::ops {

// The part of an operand that a step of the loop reads.
enum class Sees : std::uint8_t {
  nothing,     // the operand lacks the loop
  same,        // the element or window with the same number
  elements,    // the step is a window: its elements
  windows,     // the step is an element: the windows that contain it
  neighbours,  // the elements of those windows, and the element itself
};

struct Borders {
  std::int64_t before = 0, after = 0;
};

struct Sliding {
  std::size_t loop = 0;                    // its number in the signature
  plan::Role role = plan::Role::parallel;  // whole: must not be sliced even with borders
  std::int64_t window = 1, stride = 1, padding = 0;
  std::int64_t elements = 0, windows = 0;  // their numbers
  bool by_window = true;                   // a step is a window, else an element
  std::vector<Sees> operands;
  std::size_t padding_attribute = 0, count_attribute = 0;  // their numbers in the operator

  std::int64_t steps() const { return by_window ? windows : elements; }
  // The range that a block of steps reads; may be empty.
  plan::Share seen(Sees sees, plan::Share steps) const;
  // The borders that the ranks need around their blocks of that operand if the loop is sliced over
  // `ranks`.
  Borders borders(std::size_t operand, std::int32_t ranks) const;
};

// The node's sliding loops, rows before columns; empty in the plan of one rank, where windows are
// counted.
std::vector<Sliding> sliding_loops(const plan::NodeView& node);

// The node's signature with sliding loops as they are once borders are fetched.
plan::Signature signature_with_borders(const plan::NodeView& node);

// The layout that operand i needs on an axis of `ranks` ranks if the node is sliced along the loop
// there. nullopt if a border would be wider than a layout can state.
std::optional<plan::AxisLayout> operand_layout(const plan::NodeView& node, const plan::Signature& signature,
                                               std::size_t loop, std::size_t i, std::int32_t ranks);

}  // namespace weft::ops
