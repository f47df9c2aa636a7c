// weft/parallel/train/chain.h -- a plan as a chain of parts; each reads only from the previous one.
//
//   embed ─▶ attention ─▶ mlp ─▶ attention ─▶ mlp ─▶ .. ─▶ head       parts 0 1 2 3 4 .. 193
//   └──────┘ └────────────────── 96 times ────────────────┘ └────┘    kinds 0 1 2 1 2 .. 3
//
// The forward pass may be split wherever a single value is live and no entry spans the split.
// Splits are made before entries that multiply by parameters, so a part is a product with its
// surroundings. A branch or residual around a product makes all of that one part. Backward and
// update nodes of an entry belong to the entry's part. Parts at the same place in different
// iterations of a REPEAT are of one kind.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"

namespace weft::train {

// `length` parts from part `first` on, `times` times in a row.
struct Stretch {
  std::size_t first = 0, length = 0, times = 1;

  std::size_t end() const { return first + length * times; }
  friend bool operator==(const Stretch&, const Stretch&) = default;
};

// Identifies the nodes of one label in one scope.
struct Entry {
  plan::ScopeId scope;
  Symbol label;

  friend bool operator==(const Entry&, const Entry&) = default;
};

struct Part {
  std::vector<plan::NodeId> nodes;  // of all phases, ascending; without sources
  std::vector<Entry> entries;       // that the forward pass computes, in order
  std::size_t kind = 0;
};

struct Chain {
  std::vector<Part> parts;
  std::vector<Stretch> stretches;  // covers all parts, in order
  std::size_t kinds = 0;
  std::string why_not;  // why the chain cannot be planned along: fewer than two parts, or kinds recur
};

// A value that several iterations read, such as the encoder output in decoder layers, skips over
// all parts in between.
enum class Skips : std::uint8_t {
  none,    // those become one part
  allowed  // and may be split nevertheless
};

// The outermost iteration around a scope, so that a part lies within one; may be the scope itself,
// or invalid.
plan::ScopeId iteration_of(const plan::Graph& graph, plan::ScopeId scope);

Chain chain_of(const plan::Graph& graph, Skips skips = Skips::none);

// Consecutive parts as a separate plan: values from other parts become inputs, and values that
// others read become outputs. An input gets the phase of the node that it replaces. REQUIRES: the
// chain is of this graph.
Result<plan::Graph> extract(const plan::Graph& graph, const Chain& chain, std::size_t first,
                            std::size_t count);

}  // namespace weft::train
