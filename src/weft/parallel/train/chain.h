// weft/parallel/train/chain.h -- a plan as a chain of parts, each of which reads only what the one before it made.
//
//   embed ─▶ attention ─▶ mlp ─▶ attention ─▶ mlp ─▶ .. ─▶ head       parts 0 1 2 3 4 .. 193
//   └──────┘ └────────────────── 96 times ────────────────┘ └────┘    kinds 0 1 2 1 2 .. 3
//
// The forward pass may be cut wherever a single value goes on and no entry stands on both sides. Cuts are
// made before entries that multiply by parameters, so a part is a product with what surrounds it; where a
// branch or a residual goes around a product, all of that is one part. What the backward pass and the update
// do for an entry belongs to the entry's part. Parts of a REPEAT that stand at the same place of their
// iterations are of one kind.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"

namespace weft::train {

// `length` parts from part `first` on, again and again.
struct Stretch {
  std::size_t first = 0, length = 0, times = 1;

  std::size_t end() const { return first + length * times; }
  friend bool operator==(const Stretch&, const Stretch&) = default;
};

// The nodes of one label in one scope.
struct Entry {
  plan::ScopeId scope;
  Symbol label;

  friend bool operator==(const Entry&, const Entry&) = default;
};

struct Part {
  std::vector<plan::NodeId> nodes;  // of all phases, ascending; sources are not among them
  std::vector<Entry> entries;       // that the forward pass computes, in order
  std::size_t kind = 0;
};

struct Chain {
  std::vector<Part> parts;
  std::vector<Stretch> stretches;  // all parts, in order
  std::size_t kinds = 0;
  std::string why_not;  // where there are fewer than two parts, or kinds come back: no chain to plan along
};

// What several iterations read, as the decoder's layers read what the encoder made, goes around all parts between.
enum class Skips : std::uint8_t {
  none,    // those are one part
  allowed  // and may be cut all the same
};

// The outermost iteration around a scope, so that a part lies in one: the scope that is it, or none.
plan::ScopeId iteration_of(const plan::Graph& graph, plan::ScopeId scope);

Chain chain_of(const plan::Graph& graph, Skips skips = Skips::none);

// Some parts in a row as a plan of their own: what comes from others is an input, and what others read an
// output. An input stands in the phase of the node whose result it is. REQUIRES: the chain is the graph's.
Result<plan::Graph> extract(const plan::Graph& graph, const Chain& chain, std::size_t first,
                            std::size_t count);

}  // namespace weft::train
