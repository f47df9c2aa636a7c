// weft/app/explain/report.h -- what EXPLAIN reports of a plan: one value, written as text, JSON and a page.
//
//   TRAIN alexnet on ethernet (8 v100): b = 512, precision f32, optimizer adam
//
//   Plan      TP 8 (layers with d) · DP 8 (other layers)
//   Step      64.2 ms predicted · 7,980 rows/s · 997 rows/s per GPU · 26 % of peak
//   ...
//
// A report begins with a line for each question that everybody asks (report_lines.cpp) and ends with the sections that
// were asked for (report_sections.cpp). Text, JSON and page take both from there, in the same order.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "weft/app/explain/lines.h"
#include "weft/app/explain/outline.h"
#include "weft/app/explain/table.h"
#include "weft/parallel/distribute/index_roles.h"
#include "weft/plan/cluster/cluster.h"
#include "weft/plan/graph/graph.h"
#include "weft/planner/search/optimize.h"
#include "weft/planner/search/pipeline/choose_in_time.h"
#include "weft/planner/target/job_hosts.h"
#include "weft/program/tasks/attribution.h"
#include "weft/program/tasks/by_definition.h"

namespace weft::explain {

struct MemoryItem {
  std::string what;
  double bytes = 0;
};

struct TimeShare {
  std::string what;
  double seconds = 0;
};

// What a step takes, of a plan of any kind.
struct StepFacts {
  double seconds = 0;
  bool at_best = false;            // by the roofline: no device takes less
  std::vector<TimeShare> shares;   // of the seconds: their sum
  std::vector<MemoryItem> memory;  // of the fullest device
  double memory_bytes = 0;
  std::string fullest;  // "stage 3"; empty: all devices hold about as much
  bool fits = true;
  std::string limit;  // what most of the time goes to
};

// A model on an accelerator whose weights are in host memory: seconds until the first answer.
struct FirstAnswer {
  double seconds = 0;              // weights in groups, while it computes
  double one_after_the_other = 0;  // all weights first
  double copying = 0, computing = 0;
  double bytes = 0;
  std::size_t groups = 0;
};

struct Latency {
  double median = 0, p99 = 0;  // seconds
};

// A small unit of another program, while this step runs on the same device.
struct Urgency {
  Latency alone;                         // nothing else runs
  Latency in_turn;                       // on a stream of normal priority
  Latency going_first;                   // on a high-priority stream
  Latency given_way;                     // so, and this step is low-priority
  double step = 0, step_giving_way = 0;  // this step's own seconds, nothing else running
};

// The same plan, really run.
struct Measured {
  program::Attribution times = {};  // of Operators::graph, of the rank that it is the plan of
  std::string ranks;                // "4 processes over shared memory", "2 threads"
  double memory_bytes = 0;          // of the fullest rank
  double memory_lower_bound = 0;    // no packing takes less; 0: not known
  std::optional<double> exposed_communication_seconds = {};
  // |predicted - measured| / measured, the median over units and collectives: with the statistics as they were, and
  // with what this run added; 0: not known.
  double error_before = 0, error_after = 0;
  double predicted_after = 0;  // of the step, with what this run added; 0: not known
  struct Stage {
    double forward = 0, backward = 0, weight = 0;  // seconds per micro-batch, collectives included
    double update = 0, idle = 0;                   // per step
  };
  std::vector<Stage> stages = {};                       // of a pipeline: the mean of their ranks
  std::vector<std::vector<pipeline::Slot>> slots = {};  // by stage and pass: its first rank in one step
  double bubble = 0;                                    // seconds of a step that the busiest stage is idle
  std::optional<FirstAnswer> first_answer = {};
  std::optional<Urgency> urgency = {};
};

// Of what the rules made of the plan of one device.
struct Rewriting {
  double seconds_before = 0, seconds_after = 0;  // at best, without what is computed once for all steps
  search::Stopped stopped = search::Stopped::saturated;
};

struct OneDevice {
  double predicted_seconds = 0;    // by the units that run it; 0: the roofline alone is known
  std::vector<MemoryItem> memory;  // live for the whole step
  std::optional<Rewriting> rewriting;
  std::vector<program::ByDefinition> by_definition;  // operators without a kernel on this processor
};

// A step in stages and micro-batches.
struct Pipeline {
  const search::ChosenInTime* choice = nullptr;
  bool given = false;     // by the user: nothing was searched
  std::string batch;      // the index that micro-batches cut
  std::int64_t rows = 1;  // of a step along it
  double lower_bound_seconds = 0;
  std::string lower_bound_by;
  std::vector<search::Alternative> without_stages;
  std::int64_t batch_norms = 0;  // that take their statistics from a micro-batch
};

// The plan of one rank: what the tree of operators shows.
struct Operators {
  const plan::Graph* graph = nullptr;  // null: there is no tree
  std::vector<plan::Phase> phases;
  std::vector<double> predicted;    // seconds by node; empty: the roofline alone is known
  std::vector<plan::ValueId> kept;  // forward results that the backward pass reads
};

// What it points to outlives it.
struct Report {
  // What was asked.
  std::string task, model;  // task: TRAIN or INFER
  std::vector<std::pair<std::string, std::int64_t>> sizes;
  std::vector<std::pair<std::string, std::string>> settings;
  plan::DType precision = plan::DType::f32;
  cluster::Cluster cluster;
  std::optional<planner::JobHosts> hosts;  // of ON JOB
  distribute::IndexRoles roles;
  std::int64_t rows = 0;         // of the batch; 0: not known
  std::string example = "rows";  // what throughput counts: rows or tokens
  double examples = 0;           // per step; 0: not known
  double memory_limit = 0;       // bytes that a rank may take; 0: not known
  double model_flops = 0;        // per step of the plan of one device: what utilization counts
  int devices_a_rank = 1;        // processors of this machine that a local rank has

  // The plan: one device, several, or a pipeline.
  std::optional<OneDevice> alone;
  const search::DistributionChoice* choice = nullptr;
  std::optional<Pipeline> pipeline;
  std::optional<StepFacts> step;                // where no part has them
  const sim::Prediction* prediction = nullptr;  // simulated: collectives, timelines
  Operators operators;
  std::string terms;  // the plan in words, where it is none of the above

  // What belongs to it.
  std::string within_limit;                                // what is done to stay within memory_limit
  double spilled_bytes = 0;                                // of the memory, kept outside the device
  double spilled_seconds = 0;                              // what that adds to a step
  double planning_seconds = 0;                             // wall time from the statement to the proof
  std::vector<search::StageReport> stages;                 // of the optimizer
  std::vector<search::Step> rules;                         // that led to the plan of one device
  std::vector<search::Step> communication_rules;           // and from there to the plan of the ranks
  std::vector<std::pair<std::string, std::string>> notes;  // by JSON key, the name of a setting
  std::vector<search::CodedExchanges> coded;
  std::string proof;
  bool proven = false;
  std::vector<std::string> hints;
  std::optional<Measured> measured;

  // How it is shown.
  std::set<std::string, std::less<>> sections;  // that were asked for, in capitals
  bool verbose = false;                         // all sections, a line per node, nothing left out for width
  std::size_t width = kUsualWidth;

  bool is_local() const;
  std::int64_t devices() const { return alone ? 1 : cluster.devices(); }
  // "GPU", "rank", "device": what memory and throughput are per.
  std::string_view per() const;
  // The distribution; null where there is none.
  const distribute::Distribution* distribution() const;
  // Model flops per second over what the devices could do.
  double utilization(double seconds) const;
};

StepFacts step_of(const Report& report);

// A plan that was not chosen, or the chosen one among them.
struct Candidate {
  std::string name = {};  // "Megatron"
  const distribute::Distribution* distribution = nullptr;
  double seconds = 0, bytes = 0;
  double computing = 0, exposed = 0, bubble = 0;  // seconds of a step
  bool fits = true;
  std::string why_not = {};
  const search::Evaluation* evaluation = nullptr;  // or
  const search::PlanInTime* in_time = nullptr;
};
std::vector<Candidate> alternatives_of(const Report& report);
std::string terms_of(const Report& report, const distribute::Distribution& distribution);

// A line of the report: its value stands out, the note says more.
struct LineText {
  std::string value;
  std::string note = {};
};
struct ReportLine {
  std::string_view label;  // "Step"
  bool after_others = false;
  LineText (*text)(const Report&, const StepFacts&);
  void (*json)(const Report&, const StepFacts&, nlohmann::ordered_json&);
};
std::span<const ReportLine> report_lines();

// Value and note as they are printed in one line.
std::string whole_text(const ReportLine& line, const LineText& text);

// "TRAIN alexnet on ethernet (8 v100): b = 512, precision f32".
std::string headline(const Report& report);
// Those lines alone, labels in a column; `after` as in ReportLine.
std::string print_lines(const Report& report, bool after);
// One of them; empty where it says nothing.
std::string print_line(const Report& report, std::string_view label);

// Every section that the report has material for, asked for or not, in order.
std::vector<Section> sections_of(const Report& report);
bool is_section(std::string_view option);
Section collectives_section(const sim::Prediction& prediction, bool every);

std::string print_text(const Report& report);
std::string print_json(const Report& report);  // one line

// Elements of all parameters of a plan.
std::int64_t count_parameters(const plan::Graph& graph);
// Measured time that belongs to no entry of the outline: copies of sources, stored constants.
double other_seconds(const plan::Graph& graph, const program::Attribution& times);

}  // namespace weft::explain
