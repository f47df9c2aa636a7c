// weft/explain/outline.h -- a plan as its author wrote it: WITH entries inside layers, repeats folded.
//
//   x                 gather, slice, add
//   gpt_block × 12                              twelve alike, shown once
//   ├─ n1             layer-norm, mul, add
//   ├─ q              contract, add
//   ...
//
// Every plan node that runs belongs to one entry. Neighbouring iterations of a layer fold into one
// when they hold the same operators on the same types; figures of a folded entry are for all of them.
#pragma once
#include <string>
#include <vector>

#include "weft/base/hash.h"
#include "weft/cluster/device.h"
#include "weft/cost/roofline.h"
#include "weft/plan/graph.h"

namespace weft::explain {

struct Entry {
  std::string name;
  std::int64_t times = 1;           // folded iterations
  bool repeated = false;            // has an iteration number
  std::vector<plan::NodeId> nodes;  // its own, in order, of the first iteration
  std::vector<Entry> children;
  plan::Work work;  // of all iterations, children included
  double seconds = 0;
  double seconds_by_limit[4] = {};  // indexed by cost::Limit
  Digest content;

  cost::Limit limit() const;  // what bounds most of its time
};

// The nodes from `begin` up to `end`, without sources and views, which take no time.
Entry outline(const plan::Graph& graph, plan::NodeId begin, plan::NodeId end, const cluster::Device& device);

}  // namespace weft::explain
