// weft/program/tasks/grouping.h -- which nodes run as one, and where their values lie.
//
//   rows      pointwise nodes, norms, softmax and reductions over the same indices: one pass
//   product   a contraction that is a matrix product
//   call      an operator with a kernel of its own
//   exchange  a collective with the other ranks
//   copy      a value in another order, for a reader that insists on it
//
// Nodes are taken in the plan's order. One that can join the group of an operand does, unless it
// also needs something that waits for that group. Constants, positions and what is computed from
// these alone are not stored but computed again by whoever reads them; renaming, reordering and
// cutting move nothing.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "weft/plan/graph/graph.h"
#include "weft/program/tasks/order.h"
#include "weft/program/tasks/place.h"

namespace weft::program {

enum class GroupKind : std::uint8_t { rows, product, call, exchange, copy };

struct Group {
  GroupKind kind = GroupKind::call;
  std::vector<plan::NodeId> nodes = {};

  // rows: the indices it runs over, slowest first, the last `row` of which are its row. Without
  // `row_fixed` a shorter row would do as well.
  std::vector<plan::Dim> domain = {};
  std::size_t row = 0;
  bool row_fixed = false;

  std::vector<Place> operands = {}, results = {};  // product, call, exchange, copy

  // Longer than any chain of groups that this one needs.
  std::uint32_t depth = 0;
  bool is_read = false;            // by another group
  std::uint32_t heavy_before = 0;  // products and calls made before its last node joined
};

constexpr std::uint32_t kNoGroup = 0xffffffff;

struct Grouping {
  std::vector<Group> groups;
  std::vector<Place> places;         // by value; the buffer is that of the value that owns the memory
  std::vector<std::uint32_t> group;  // by value: who makes it; kNoGroup for sources and what is not stored
  std::vector<bool> recomputed;      // by value: never stored, unless some reader insists
  std::size_t buffer_count = 0;      // the buffers of values come first, one for each value
};

// The value that a source NAME holds after the step, by the source's value; invalid where it keeps its own.
std::vector<plan::ValueId> next_values(const plan::Graph& graph);

bool is_optimizer(const plan::Operator& op);

// `any_float`: floats of every width run by rows and as products, not f32 alone. `accelerated`: see CompileOptions.
Grouping group_nodes(const plan::Graph& graph, const Readers& readers, const std::vector<bool>& needed,
                     bool any_float = false, std::span<const std::uint32_t> turns = {},
                     bool accelerated = false);

// True when the group keeps that result of a node until its loop is over: a sum over its rows.
bool is_accumulated(const Group& group, const plan::NodeView& node);

}  // namespace weft::program
