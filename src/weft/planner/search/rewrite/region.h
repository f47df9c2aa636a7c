// weft/planner/search/rewrite/region.h -- a plan cut into parts that are planned each for itself.
//
//   x ─▶ q k v .. add ─▶ norm ─▶ up gelu down add ─▶ norm ─▶ q k v ..
//       └── region ──┘          └─── region ────┘           └─ equal to the first: planned once
//
// Nodes that run stand in the plan's order, and a cut is wherever no match of any rule has nodes on both
// sides, and no view is read from the other side (its reader's price would depend on it). Where the cuts are
// depends on what is near them, so a change in one layer leaves the regions of the others as they were.
//
// A region is a plan of its own, written so that equal regions are equal plans: values that come in are
// inputs x0, x1, ..; parameters and states p0, p1, ..; what others read goes out as y0, y1, ..; nodes are
// labelled n0, n1, ..; indices are called i0, i1, ... What is computed from parameters alone belongs to every
// region that reads it.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "weft/plan/graph/graph.h"
#include "weft/planner/search/rewrite/rule_book.h"

namespace weft::search {

struct Region {
  plan::Graph plan;

  // What x0, x1, ..; p0, p1, ..; y0, y1, ..; n0, n1, ..; i0, i1, .. are in the whole plan.
  std::vector<plan::ValueId> inputs;
  std::vector<plan::NodeId> sources;
  std::vector<plan::ValueId> outputs;
  std::vector<plan::NodeId> nodes;
  std::vector<Symbol> indices;

  // The node of the whole plan that a label of the region's plan stands for; invalid when it is
  // no such label.
  plan::NodeId node_labelled(std::string_view label) const;
};

// In an order in which each reads only what comes before it. REQUIRES: an output needs every node.
// Parameters of a plan that `learns` are values that come in, like any other.
std::vector<Region> cut(const plan::Graph& whole, const RuleBook& rules, bool learns = false);

// All of a plan as one region.
Region as_region(const plan::Graph& whole);

// Whether the plan takes what the region's own takes and gives what it gives: what was read from a
// disk may not.
bool fits(const plan::Graph& plan, const Region& region);

// The whole plan again, with plans[i] in place of regions[i]'s own. REQUIRES: they fit.
struct Joined {
  plan::Graph plan;
  std::vector<plan::NodeId> stands_for;  // by node: the one of the whole that it is or replaces; or invalid
};
Joined join(const plan::Graph& whole, std::span<const Region> regions,
            std::span<const plan::Graph* const> plans);

}  // namespace weft::search
