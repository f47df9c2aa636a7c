// weft/app/explain/outline.h -- a plan as written: WITH entries inside layers, repeats folded.
//
//   x                 gather, slice, add
//   gpt_block × 12                              twelve equal layers, shown once
//   ├─ n1             layer-norm, mul, add
//   ├─ q              contract, add
//   ...
//   repeat × 32                                 layers that alternate, equal in every iteration
//   ├─ attention
//   └─ experts
//
// Every node that runs belongs to one entry. Neighbouring iterations of a layer, or of a sequence
// of layers, are folded if they hold the same operators on the same types. Figures of a folded
// entry cover all iterations; those of its nodes and children cover one. Measured times differ
// between iterations, so one is the mean.
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
  std::vector<plan::NodeId> nodes;  // its own, in order; of the first iteration
  std::vector<Entry> children;
  plan::Work work;  // of all iterations, children included
  double seconds = 0;
  double seconds_by_limit[4] = {};    // indexed by cost::Limit
  double kept = 0;                    // bytes that the backward pass reads; covers the same as `work`
  double measured = 0;                // seconds; covers the same as `seconds`
  std::vector<double> node_measured;  // parallel to `nodes`
  Digest content;

  cost::Limit limit() const;  // what bounds most of its time
};

// Sources and views take no time and belong to no entry.
bool takes_time(const plan::Node& node);

// The nodes of a phase as an entry named after it. `node_seconds` are measured times and
// `node_kept` the bytes kept of each node's results; both are indexed by node and may be empty.
Entry outline(const plan::Graph& graph, plan::Phase phase, const cluster::Device& device,
              std::span<const double> node_seconds = {}, std::span<const double> node_kept = {});

// The roofline time of every node, by node. Measured times are compared with it and attributed by
// it.
std::vector<double> seconds_at_best(const plan::Graph& graph, const cluster::Device& device);

}  // namespace weft::explain
