// weft/app/explain/distributed.h -- what EXPLAIN says of a plan for many devices, before it is put into words.
//
// The tree is the plan of one rank: its local sizes, its collectives, how long each entry is predicted to
// take and, where it ran, took. A summary stands above it, the plans that were not chosen below.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weft/app/explain/explanation.h"
#include "weft/plan/cluster/cluster.h"
#include "weft/plan/graph/graph.h"
#include "weft/planner/search/codec/place_codecs.h"
#include "weft/planner/search/distribution/choose_distribution.h"
#include "weft/planner/target/job_hosts.h"

namespace weft::explain {

// The same plan, really run. Node times are those of the rank that the tree shows.
struct MeasuredStep {
  double seconds = 0;  // of a step: the median of the steps, of the slowest rank
  std::size_t steps = 0;
  std::vector<double> node_seconds;
  double exposed_communication_seconds = 0;
  double memory_bytes = 0;  // of the fullest rank
  std::string ranks;        // "4 processes over shared memory"
  // |predicted - measured| / measured, the median over units and collectives: with the statistics as they
  // were, and with what this run added; 0: not known.
  double error_before = 0, error_after = 0;
  double predicted_after = 0;  // of the step, with what this run added; 0: not known
};

struct DistributedExplanation {
  std::string task, model;
  std::vector<std::pair<std::string, std::int64_t>> sizes;
  std::vector<std::pair<std::string, std::string>> settings;
  plan::DType precision = plan::DType::f32;
  cluster::Cluster cluster;
  std::optional<planner::JobHosts> hosts;  // of ON JOB
  double memory_bytes = 0;                 // that a rank may take
  double spilled_seconds = 0;              // what it adds to a step that part of that lies in a file
  double planning_seconds = 0;             // wall time from the statement to this plan, its proof counted
  std::string parallelism;                 // in the usual terms: "TP 8, DP 4 (ZeRO-1)"
  const search::DistributionChoice* choice = nullptr;
  int devices_a_rank = 1;  // processors of this machine that a local rank has
  double model_flops = 0;  // of the plan of one device: what utilization counts

  const plan::Graph* local = nullptr;  // of the rank that stands for most
  std::vector<plan::Phase> phases;     // of it
  std::vector<double> predicted;       // seconds by node of it
  std::string proof;                   // that it computes what the plan of one device does, in words
  bool proven = false;
  std::vector<std::string> hints;
  bool verbose = false, trail = false;
  bool brief = false;                             // the summary and the table of plans alone
  std::size_t width = kUsualWidth;                // of the reader's screen
  std::vector<search::StageReport> stages;        // of the optimizer
  std::vector<search::Step> rules;                // that led to the plan of one device
  std::vector<search::Step> communication_rules;  // and from there to the plan of the mesh
  std::vector<search::CodedExchanges> coded;      // what codecs made small
  std::string slices;                             // what stages send each other in slices
  std::string credit;                             // long all-reduces that go in parts; empty: none
  std::string servers;                            // what spare hosts add up; empty: there are none
  std::string delayed;                            // gradients that are applied a step later; empty: none
  std::string averages;                           // of ranks that learn by themselves; empty: they do not
  std::optional<MeasuredStep> measured;

  // Model flops per second over what the devices could do.
  double utilization(double seconds) const;
};

std::string print_text(const DistributedExplanation& explanation);
std::string print_json(const DistributedExplanation& explanation);  // one line

}  // namespace weft::explain
