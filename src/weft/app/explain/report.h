// weft/app/explain/report.h -- the report of EXPLAIN: one value, printed as text, JSON or HTML.
//
//   TRAIN alexnet on ethernet (8 v100): b = 512, precision f32, optimizer adam
//
//   Plan      TP 8 (layers with d) · DP 8 (other layers)
//   Step      64.2 ms predicted · 7,980 rows/s · 997 rows/s per GPU · 26 % of peak
//   ...
//
// A report starts with one line per common question (report_lines.cpp) and ends with the requested
// sections (report_sections.cpp). All three formats take both from there, in the same order.
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
#include "weft/planner/search/pipeline/choose_pipeline.h"
#include "weft/planner/target/job_hosts.h"
#include "weft/program/tasks/attribution.h"
#include "weft/program/tasks/reference_ops.h"

namespace weft::explain {

struct MemoryItem {
  std::string what;
  double bytes = 0;
};

struct TimeShare {
  std::string what;
  double seconds = 0;
};

// Time and memory of a step, for any kind of plan.
struct StepFacts {
  double seconds = 0;
  bool at_best = false;            // a roofline lower bound
  std::vector<TimeShare> shares;   // add up to `seconds`
  std::vector<MemoryItem> memory;  // of the fullest device
  double memory_bytes = 0;
  std::string fullest;  // "stage 3"; empty: all devices hold similar amounts
  bool fits = true;
  std::string limit;  // what takes most of the time
};

// Seconds until the first answer of a model on an accelerator, starting with weights in host
// memory.
struct FirstAnswer {
  double seconds = 0;              // weights loaded in groups that overlap computing
  double one_after_the_other = 0;  // all weights loaded first
  double copying = 0, computing = 0;
  double bytes = 0;
  std::size_t groups = 0;
};

struct Latency {
  double median = 0, p99 = 0;  // seconds
};

// Latency of a small unit of another program while this step runs on the same device.
struct PriorityLatency {
  Latency alone;                              // nothing else runs
  Latency in_turn;                            // on a stream of normal priority
  Latency at_high_priority;                   // on a high-priority stream
  Latency beside_low_priority;                // the same, with this step at low priority
  double step = 0, step_at_low_priority = 0;  // this step's time on its own
};

// Measurements of the same plan.
struct Measured {
  program::Attribution times = {};  // for Operators::graph, on the rank that runs it
  std::string ranks;                // "4 processes over shared memory", "2 threads"
  double memory_bytes = 0;          // of the fullest rank
  double memory_lower_bound = 0;    // of any packing; 0: unknown
  std::optional<double> exposed_communication_seconds = {};
  // The median of |predicted - measured| / measured over units and collectives, with the statistics
  // before this run and including it; 0: unknown.
  double error_before = 0, error_after = 0;
  double predicted_after = 0;  // step time predicted with this run's measurements; 0: unknown
  struct Stage {
    double forward = 0, backward = 0, weight = 0;  // seconds per micro-batch, collectives included
    double update = 0, idle = 0;                   // per step
  };
  std::vector<Stage> stages = {};                       // pipeline stages: means over their ranks
  std::vector<std::vector<pipeline::Slot>> slots = {};  // by stage and pass, of the first rank in one step
  double bubble = 0;                                    // seconds per step in which the busiest stage is idle
  std::optional<FirstAnswer> first_answer = {};
  std::optional<PriorityLatency> urgency = {};
};

// How the rules rewrote the plan for one device.
struct Rewriting {
  double seconds_before = 0, seconds_after = 0;  // roofline, without work done once for all steps
  search::Stopped stopped = search::Stopped::saturated;
};

struct OneDevice {
  double predicted_seconds = 0;    // of the compiled units; 0: only the roofline is known
  std::vector<MemoryItem> memory;  // live for the whole step
  std::optional<Rewriting> rewriting;
  std::vector<program::ReferenceOps> by_definition;  // operators without a kernel on this processor
};

// A plan with stages and micro-batches.
struct Pipeline {
  const search::ChosenPipeline* choice = nullptr;
  bool given = false;     // set by the user, not searched
  std::string batch;      // the index that is split into micro-batches
  std::int64_t rows = 1;  // size of that index per step
  double lower_bound_seconds = 0;
  std::string lower_bound_by;
  std::vector<search::Alternative> without_stages;
  std::int64_t batch_norms = 0;  // whose statistics are per micro-batch
};

// The plan of one rank, shown as the operator tree.
struct Operators {
  const plan::Graph* graph = nullptr;  // null: no tree
  std::vector<plan::Phase> phases;
  std::vector<double> predicted;    // seconds by node; empty: only the roofline is known
  std::vector<plan::ValueId> kept;  // forward results that the backward pass reads
};

// Everything it points to must outlive it.
struct Report {
  // The statement.
  std::string task, model;  // task: TRAIN or INFER
  std::vector<std::pair<std::string, std::int64_t>> sizes;
  std::vector<std::pair<std::string, std::string>> settings;
  plan::DType precision = plan::DType::f32;
  cluster::Cluster cluster;
  std::optional<planner::JobHosts> hosts;  // for ON JOB
  distribute::IndexRoles roles;
  std::int64_t rows = 0;         // batch size; 0: unknown
  std::string example = "rows";  // unit of throughput: rows or tokens
  double examples = 0;           // per step; 0: unknown
  double memory_limit = 0;       // bytes per rank; 0: unknown
  double device_memory = 0;      // bytes, of which `memory_reserve` is a share that plans leave free
  double memory_reserve = 0;
  double model_flops = 0;    // per step of the plan for one device; used for utilization
  int devices_per_rank = 1;  // processors per local rank

  // The plan: one device, several, or a pipeline.
  std::optional<OneDevice> alone;
  const search::DistributionChoice* choice = nullptr;
  std::optional<Pipeline> pipeline;
  std::optional<StepFacts> step;                // if none of the above provides it
  const sim::Prediction* prediction = nullptr;  // from the simulation: collectives, timelines
  Operators operators;
  std::string terms;  // the plan as text, if it is none of the above

  // Results of planning.
  std::string within_limit;                                // measures taken to stay within memory_limit
  double spilled_bytes = 0;                                // memory kept outside the device
  double spilled_seconds = 0;                              // added to the step by spilling
  double planning_seconds = 0;                             // wall time from the statement to the proof
  std::vector<search::StageReport> stages;                 // planner stages
  std::vector<search::Step> rules;                         // applied to the plan for one device
  std::vector<search::Step> communication_rules;           // applied to the distributed plan
  std::vector<std::pair<std::string, std::string>> notes;  // by JSON key, which is a setting's name
  std::vector<search::CodedExchanges> coded;
  std::string simpler;  // the faster plan that was left for a simpler one
  std::string proof;
  bool proven = false;
  std::vector<std::string> hints;
  std::optional<Measured> measured;

  // Output options.
  std::set<std::string, std::less<>> sections;  // requested, in upper case
  bool verbose = false;                         // all sections, one line per node, nothing dropped for width
  std::size_t width = kUsualWidth;
  bool with_text = false;  // JSON includes the printed report

  bool is_local() const;
  std::int64_t devices() const { return alone ? 1 : cluster.devices(); }
  // "GPU", "rank" or "device": the unit for per-device figures.
  std::string_view per() const;
  // The distribution; null if there is none.
  const distribute::Distribution* distribution() const;
  // Model FLOPs per second divided by the devices' peak rate.
  double utilization(double seconds) const;
};

StepFacts step_of(const Report& report);

// One of the alternatives, including the chosen plan.
struct Candidate {
  std::string name = {};  // "Megatron"
  const distribute::Distribution* distribution = nullptr;
  double seconds = 0, bytes = 0;
  double computing = 0, exposed = 0, bubble = 0;  // seconds per step
  bool fits = true;
  std::string why_not = {};
  const search::Evaluation* evaluation = nullptr;  // one of these two is set
  const search::PipelinePlan* in_time = nullptr;
};
std::vector<Candidate> alternatives_of(const Report& report);
std::string terms_of(const Report& report, const distribute::Distribution& distribution);

// The text of a line: the value is emphasized, the note adds detail.
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

// Value and note joined into one line.
std::string whole_text(const ReportLine& line, const LineText& text);

// "TRAIN alexnet on ethernet (8 v100): b = 512, precision f32".
std::string headline(const Report& report);
// Only the report lines, with aligned labels; `after` as in ReportLine.
std::string print_lines(const Report& report, bool after);
// A single line; empty if it has no text.
std::string print_line(const Report& report, std::string_view label);

// Every section with content, requested or not, in order.
std::vector<Section> sections_of(const Report& report);
bool is_section(std::string_view option);
Section collectives_section(const sim::Prediction& prediction, bool every);

std::string print_text(const Report& report);
std::string print_json(const Report& report);  // one line

// Total elements of all parameters of a plan.
std::int64_t count_parameters(const plan::Graph& graph);
// Measured time outside all entries of the outline: copies of sources, stored constants.
double other_seconds(const plan::Graph& graph, const program::Attribution& times);

}  // namespace weft::explain
