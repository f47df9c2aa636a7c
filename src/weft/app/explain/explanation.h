// weft/app/explain/explanation.h -- what EXPLAIN says of a plan, before it is put into words.
//
// One value, several renderers: as text for people, as JSON for programs. The plan itself prints as
// plan text (plan/graph/text.h).
#pragma once
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weft/app/explain/lines.h"
#include "weft/app/explain/outline.h"
#include "weft/plan/cluster/cluster.h"
#include "weft/plan/graph/graph.h"
#include "weft/planner/search/optimize.h"
#include "weft/planner/search/rewrite/trail.h"
#include "weft/program/tasks/attribution.h"
#include "weft/program/tasks/by_definition.h"

namespace weft::explain {

// Bytes that are live for the whole step, by what they hold.
struct MemoryItem {
  std::string what;
  double bytes = 0;
};

// Of a model on an accelerator whose weights are in the host's memory: seconds until it has answered once.
struct FirstAnswer {
  double seconds = 0;              // weights in groups, while it computes
  double one_after_the_other = 0;  // first all weights
  double copying = 0, computing = 0;
  double bytes = 0;
  std::size_t groups = 0;
};

// Seconds from asking to being done.
struct Latency {
  double median = 0, p99 = 0;
};

// Of a small unit of others while this one runs on the same device.
struct Urgency {
  Latency alone;                         // nothing else runs
  Latency in_turn;                       // on a stream like any other
  Latency going_first;                   // on an urgent one
  Latency given_way;                     // so, and this step leaves room
  double step = 0, step_giving_way = 0;  // this step's own seconds, nothing else running
};

// What EXPLAIN ANALYZE adds: the same plan, really run, each worker being one device of the cluster.
struct Measurement {
  program::Attribution times = {};  // of the nodes of Explanation::graph
  double memory_bytes = 0;          // taken
  double memory_lower_bound = 0;    // no packing takes less
  std::optional<FirstAnswer> first_answer = {};
  std::optional<Urgency> urgency = {};
};

// What the rules made of the plan: the graph is what they led to.
struct Rewriting {
  double seconds_before = 0, seconds_after = 0;  // at best, of what runs for every answer
  std::vector<search::Step> trail;
  search::Stopped stopped = search::Stopped::saturated;
};

struct Explanation {
  std::string task;  // TRAIN or INFER
  std::string model;
  std::vector<std::pair<std::string, std::int64_t>> sizes;
  std::vector<std::pair<std::string, std::string>> settings;  // optimizer, precision
  const plan::Graph* graph = nullptr;
  std::vector<plan::Phase> phases;  // that it tells of
  plan::DType precision = plan::DType::f32;
  cluster::Cluster cluster;
  std::vector<MemoryItem> memory;
  std::vector<plan::ValueId> kept;  // forward results that the backward pass reads
  double predicted_seconds = 0;     // of a step, by the units that run it; 0: not asked for
  double memory_limit = 0;          // 0: the device's own
  std::string within_limit;         // what is done to stay within it; empty: nothing
  double spilled_bytes = 0;         // of the memory that lie elsewhere, as within_limit says
  double spilled_seconds = 0;       // what that adds to a step; 0: nobody knows
  std::vector<std::string> hints;   // kept for the planner
  bool verbose = false;             // a line a node, nothing left out for width
  bool brief = false;               // the summary alone
  std::size_t width = kUsualWidth;  // of the reader's screen
  std::optional<Measurement> measurement;
  std::optional<Rewriting> rewriting;
  std::vector<search::StageReport> stages;           // of the optimizer
  std::string proof;                                 // of a plan that rules made, in words
  std::vector<program::ByDefinition> by_definition;  // where it runs on this processor: without a kernel
};

std::string print_text(const Explanation& explanation);
std::string print_json(const Explanation& explanation);  // one line

// A line a step: the rule, what it saved, what it replaced.
std::string print_trail(std::span<const search::Step> trail, std::size_t width = kUsualWidth);

// A phase as one entry, with measured times where there are some.
Entry outline(const Explanation& explanation, plan::Phase phase);

// Elements of all parameters of a plan.
std::int64_t count_parameters(const plan::Graph& graph);

// Measured time that belongs to no entry of the outline: copies of sources, constants that are stored.
double other_seconds(const plan::Graph& graph, const program::Attribution& times);

}  // namespace weft::explain
