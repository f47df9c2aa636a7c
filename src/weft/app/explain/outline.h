// weft/app/explain/outline.h -- a plan as its author wrote it: WITH entries inside layers, repeats folded.
//
//   x                 gather, slice, add
//   gpt_block × 12                              twelve alike, shown once
//   ├─ n1             layer-norm, mul, add
//   ├─ q              contract, add
//   ...
//   repeat × 32                                 layers that take turns, alike in every turn
//   ├─ attention
//   └─ experts
//
// Every plan node that runs belongs to one entry. Neighbouring iterations of a layer, or of several that take
// turns, fold into one when they hold the same operators on the same types; figures of a folded entry are for
// all of them, those of its nodes and children for one. Measured times differ between iterations, so one is the mean.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "weft/base/hash.h"
#include "weft/plan/cluster/device.h"
#include "weft/plan/graph/graph.h"
#include "weft/predict/cost/roofline.h"

namespace weft::explain {

struct Entry {
  std::string name;
  std::int64_t times = 1;           // folded iterations
  bool repeated = false;            // has an iteration number
  std::vector<plan::NodeId> nodes;  // its own, in order, of the first iteration
  std::vector<Entry> children;
  plan::Work work;  // of all iterations, children included
  double seconds = 0;
  double seconds_by_limit[4] = {};    // indexed by cost::Limit
  double kept = 0;                    // bytes that the backward pass reads again, like `work`
  double measured = 0;                // seconds, like `seconds`
  std::vector<double> node_measured;  // as `nodes`
  Digest content;

  cost::Limit limit() const;  // what bounds most of its time
};

// Sources and views take no time and are in no entry.
bool takes_time(const plan::Node& node);

// The nodes of a phase, as an entry of its name. `node_seconds` are measured times by node and `node_kept`
// bytes kept of its results, each empty when there are none.
Entry outline(const plan::Graph& graph, plan::Phase phase, const cluster::Device& device,
              std::span<const double> node_seconds = {}, std::span<const double> node_kept = {});

// The roofline of every node, by node: what measured times are held against, and shared by.
std::vector<double> seconds_at_best(const plan::Graph& graph, const cluster::Device& device);

}  // namespace weft::explain
