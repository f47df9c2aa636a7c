// weft/predict/sim/step/predict.h -- predicts a step of a distributed plan: time, memory, traffic.
//
//   WEFT_TRY(costs, cost::step_costs(cluster, mesh));
//   WEFT_TRY(prediction, predict(plan, mesh, layouts, costs));
//   prediction.seconds                          0.0214
//   prediction.exposed_communication_seconds    0.0031     while a rank computed nothing
//
// Every rank's plan is compiled (program/), and the programs run in a discrete-event simulation. A
// rank has one compute stream and one stream per mesh axis for communication, each in program
// order. A task starts when its stream is free and its dependencies are done. A collective starts
// when all ranks of its group have arrived. Concurrent collectives on the same wires share them.
// Ranks with equal programs are simulated once, unless `exact`.
//
//   rank_classes   which ranks are equivalent             memory_curve    live memory over time
//   step_run       the events                             critical_path   which tasks determine the end
//   link_sharing   how collectives share the wires        bound           the path in a sentence
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"
#include "weft/plan/graph/layout.h"
#include "weft/predict/cost/step_costs.h"
#include "weft/program/tasks/program.h"
#include "weft/program/tasks/timeline.h"

namespace weft::sim {

using cost::ExchangeCost;
using cost::Source;
using cost::StepCosts;
using cost::TaskCost;

struct PredictOptions {
  bool exact = false;    // simulate every rank individually
  bool overlap = true;   // false: a rank waits for each collective before it continues
  bool timeline = true;  // keep task times and the memory curve
  // Per rank. With more than one, workers take any ready task, in program order; collectives keep
  // program order.
  int workers = 1;
  bool alike = false;  // treat all ranks like rank 0, whose shards are the largest
  // For a search with many calls. Ranks are treated as alike. Buffers are not packed, so peak_bytes
  // is a lower bound of any packing and no task waits for memory. Timeline, memory curve,
  // collectives, critical path and bound are omitted.
  bool quick = false;
};

struct MemoryByKind {
  double parameters = 0, gradients = 0, optimizer = 0, activations = 0, inputs = 0, scratch = 0;
  double total() const { return parameters + gradients + optimizer + activations + inputs + scratch; }
  std::array<std::pair<std::string_view, double>, 6> kinds() const {
    return {{{"parameters", parameters},
             {"gradients", gradients},
             {"optimizer", optimizer},
             {"activations", activations},
             {"inputs", inputs},
             {"scratch", scratch}}};
  }
  void scale(double by) {
    for (double* kind : {&parameters, &gradients, &optimizer, &activations, &inputs, &scratch}) *kind *= by;
  }
};

// A set of ranks that behave identically.
struct RankClass {
  std::vector<std::int32_t> ranks;
  std::shared_ptr<const program::Program> program;
  program::Timeline timeline;                     // of the program's tasks; empty unless requested
  std::vector<std::pair<double, double>> memory;  // times, and bytes allocated from then on
};

struct AxisTraffic {
  std::string axis;
  double bytes = 0;         // sent per rank and step
  double busy_seconds = 0;  // of its stream
};

// Collectives of one kind and size along one axis.
struct EstimatedCollective {
  std::string axis;
  program::Exchange::Kind kind = program::Exchange::Kind::all_reduce;
  std::int64_t bytes = 0;  // as nccl-tests counts them
  std::size_t times = 0;   // per step
  ExchangeCost price;      // of each, without contention
};

struct CriticalTask {
  std::size_t rank_class = 0;
  std::uint32_t task = 0;
};

struct Prediction {
  double seconds = 0;
  double compute_seconds = 0;                    // of the busiest rank's compute stream
  double communication_seconds = 0;              // of its collectives, overlapped or not
  double exposed_communication_seconds = 0;      // of the step, while the rank computed nothing
  double flops = 0;                              // of the whole mesh: the plan's multiply-adds, each as two
  double peak_bytes = 0;                         // of the rank with the highest peak
  MemoryByKind memory;                           // of that rank at its peak; its total is peak_bytes
  std::vector<AxisTraffic> traffic;              // by mesh axis
  std::vector<EstimatedCollective> collectives;  // of the busiest rank, by total time, descending
  std::vector<RankClass> classes;
  std::vector<CriticalTask> critical;  // in order
  std::string bound;  // "compute: 71 % of the step" | "communication on ib: 54 % of the step"
  std::int64_t events = 0;
  // The seconds of the compute stream per source of the cost, indexed by cost::Source.
  std::array<double, cost::kSources> seconds_by_source{};
};

// `layouts` as returned by spmd::infer_layouts. Unless `quick`, the returned programs name the
// algorithms of the prediction (cost/choose_algorithms.h) and are what the ranks should run. Fails
// if a rank's plan cannot be built or compiled, if bytes must cross a link without bandwidth, or if
// `exact` would simulate too many tasks.
Result<Prediction> predict(const plan::Graph& graph, const plan::Mesh& mesh,
                           std::span<const plan::Layout> layouts, const StepCosts& costs,
                           const PredictOptions& options = {});

// The same for existing programs: rank r runs programs[kinds[r]]. Does not set the plan's flops.
Result<Prediction> predict(const plan::Mesh& mesh,
                           std::span<const std::shared_ptr<const program::Program>> programs,
                           std::span<const std::int32_t> kinds, const StepCosts& costs,
                           const PredictOptions& options = {});

}  // namespace weft::sim
