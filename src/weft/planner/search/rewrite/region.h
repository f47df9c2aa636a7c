// weft/planner/search/rewrite/region.h -- cut a plan into regions that are planned separately.
//
//   x ─▶ q k v .. add ─▶ norm ─▶ up gelu down add ─▶ norm ─▶ q k v ..
//       └── region ──┘          └─── region ────┘           └─ equal to the first: planned once
//
// Nodes that run are kept in the plan's order. A cut is made wherever no match of any rule spans it
// and no view is read across it, since the cost of the reader would depend on the view. Cuts depend
// only on nearby nodes, so a change in one layer leaves the regions of other layers unchanged.
//
// A region is a plan in a canonical form, so that equal regions are equal plans. Incoming values
// are inputs x0, x1, ..; parameters and states are p0, p1, ..; values read outside are outputs y0,
// y1, ..; node labels are n0, n1, ..; indices are i0, i1, ... Values computed only from parameters
// are part of every region that reads them.
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

  // What x0, x1, ..; p0, p1, ..; y0, y1, ..; n0, n1, ..; i0, i1, .. stand for in the whole plan.
  std::vector<plan::ValueId> inputs;
  std::vector<plan::NodeId> sources;
  std::vector<plan::ValueId> outputs;
  std::vector<plan::NodeId> nodes;
  std::vector<Symbol> indices;

  // The node of the whole plan for a label of the region's plan; invalid if there is no such label.
  plan::NodeId node_labelled(std::string_view label) const;
};

// In topological order. REQUIRES: every node is needed by an output. If the plan `learns`,
// parameters are incoming values like any other.
std::vector<Region> cut(const plan::Graph& whole, const RuleBook& rules, bool learns = false);

// The whole plan as one region.
Region as_region(const plan::Graph& whole);

// Whether the plan has the inputs and outputs of the region. A plan read from disk may not.
bool fits(const plan::Graph& plan, const Region& region);

// The whole plan with plans[i] in place of regions[i]. REQUIRES: each plan fits its region.
struct Joined {
  plan::Graph plan;
  std::vector<plan::NodeId> stands_for;  // by node: the whole plan's node that it is or replaces; or invalid
};
Joined join(const plan::Graph& whole, std::span<const Region> regions,
            std::span<const plan::Graph* const> plans);

}  // namespace weft::search
