// weft/program/tasks/grouping.h -- decides which nodes are fused and where values are stored.
//
//   rows      pointwise nodes, norms, softmax and reductions over the same indices: one pass
//   product   a contraction that is a matrix product
//   call      an operator with its own kernel
//   exchange  a collective with the other ranks
//   copy      a value in another order, for a reader that requires it
//
// Nodes are processed in plan order. A node joins the group of an operand if it can, unless it also
// needs something that waits for that group. Constants, positions and values computed only from
// these are not stored; each reader recomputes them. Renaming, reordering and slicing move nothing.
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

  // rows: the loop indices, slowest first; the last `row` of them form the row. Without
  // `row_fixed`, a shorter row would do as well.
  std::vector<plan::Dim> domain = {};
  std::size_t row = 0;
  bool row_fixed = false;

  std::vector<Place> operands = {}, results = {};  // product, call, exchange, copy

  // Greater than the depth of all groups that this one depends on.
  std::uint32_t depth = 0;
  bool is_read = false;            // by another group
  std::uint32_t heavy_before = 0;  // products and calls before its last node
};

constexpr std::uint32_t kNoGroup = 0xffffffff;

struct Grouping {
  std::vector<Group> groups;
  std::vector<Place> places;         // by value; the buffer is that of the value that owns the memory
  std::vector<std::uint32_t> group;  // by value: its group; kNoGroup for sources and unstored values
  std::vector<bool> recomputed;      // by value: not stored unless some reader requires it
  std::size_t buffer_count = 0;      // buffers of values come first, one per value
};

// By source value: the next value of the source NAME; invalid if it does not change.
std::vector<plan::ValueId> next_values(const plan::Graph& graph);

bool is_optimizer(const plan::Operator& op);

// `any_float`: row loops and products support all float types, not only f32. `accelerated`: see
// CompileOptions.
Grouping group_nodes(const plan::Graph& graph, const Readers& readers, const std::vector<bool>& needed,
                     bool any_float = false, std::span<const std::uint32_t> turns = {},
                     bool accelerated = false);

// Whether the group accumulates that result of a node until its loop ends: a sum over its rows.
bool is_accumulated(const Group& group, const plan::NodeView& node);

}  // namespace weft::program
