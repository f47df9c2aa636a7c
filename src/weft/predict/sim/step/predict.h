// weft/predict/sim/step/predict.h -- what a step of a distributed plan takes: time, memory, bytes on the wires.
//
//   WEFT_TRY(costs, cost::step_costs(cluster, mesh));
//   WEFT_TRY(prediction, predict(plan, mesh, layouts, costs));
//   prediction.seconds                          0.0214
//   prediction.exposed_communication_seconds    0.0031     while a rank computed nothing
//
// Every rank's plan is compiled (program/) and the programs are run by discrete events: a rank has a stream
// that computes and a stream for each mesh axis that moves bytes, in the program's order; a task begins when
// its stream is free and what it waits for is done; a collective begins when all ranks of its group are
// there. Collectives that are under way at once and pass the same wires share them. Ranks whose programs are
// equal are run once for all of them, unless `exact`.
//
//   rank_classes   which ranks are alike                  memory_curve    what is alive when
//   step_run       the events                             critical_path   what the end waited for
//   link_sharing   who gets how much of the wires         bound           the path in a sentence
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

using cost::ExchangePrice;
using cost::Source;
using cost::StepCosts;
using cost::TaskPrice;

struct PredictOptions {
  bool exact = false;    // every rank by itself
  bool overlap = true;   // false: a rank waits for each collective before it goes on
  bool timeline = true;  // keep when each task ran, and the memory curve
  // Of a rank: more than one take whatever is ready, the first in the program first; collectives keep the
  // program's order.
  int workers = 1;
  bool alike = false;  // all ranks are taken to be like rank 0, whose shares are the largest
  // For a search that asks often: ranks are alike, and values do not take turns in memory, so peak_bytes is
  // what no packing goes below and nothing waits for memory; timeline, memory curve, collectives, critical
  // path and bound are left out.
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

// Ranks whose programs are alike.
struct RankClass {
  std::vector<std::int32_t> ranks;
  std::shared_ptr<const program::Program> program;
  program::Timeline timeline;                     // as the program's tasks; empty unless asked for
  std::vector<std::pair<double, double>> memory;  // when, and bytes alive from then on
};

struct AxisTraffic {
  std::string axis;
  double bytes = 0;         // a rank sends in a step
  double busy_seconds = 0;  // of its stream
};

// Collectives of one kind and size along one axis.
struct PricedCollective {
  std::string axis;
  program::Exchange::Kind kind = program::Exchange::Kind::all_reduce;
  std::int64_t bytes = 0;  // as nccl-tests counts them
  std::size_t times = 0;   // in a step
  ExchangePrice price;     // of each, alone on its wires
};

struct CriticalTask {
  std::size_t rank_class = 0;
  std::uint32_t task = 0;
};

struct Prediction {
  double seconds = 0;
  double compute_seconds = 0;                 // of the busiest rank's computing stream
  double communication_seconds = 0;           // of its collectives, overlapped or not
  double exposed_communication_seconds = 0;   // of the step, while it computed nothing
  double flops = 0;                           // of the whole mesh: the plan's multiply-adds, each as two
  double peak_bytes = 0;                      // of the fullest rank: what its program takes
  MemoryByKind memory;                        // of that rank at its fullest moment; its total is peak_bytes
  std::vector<AxisTraffic> traffic;           // by mesh axis
  std::vector<PricedCollective> collectives;  // of the busiest rank, those that take most first
  std::vector<RankClass> classes;
  std::vector<CriticalTask> critical;  // in order
  std::string bound;  // "compute: 71 % of the step" | "communication on ib: 54 % of the step"
  std::int64_t events = 0;
  // How much of the computing stream's seconds has which source, by cost::Source.
  std::array<double, cost::kSources> seconds_by_source{};
};

// `layouts` as spmd::infer_layouts gives them. Unless `quick`, the programs of the answer name the algorithms
// that are priced (cost/choose_algorithms.h), and are what ranks are to run. Fails where a rank's plan
// cannot be made or compiled, where bytes must cross a link that has no bandwidth, and where `exact` asks for
// too much.
Result<Prediction> predict(const plan::Graph& graph, const plan::Mesh& mesh,
                           std::span<const plan::Layout> layouts, const StepCosts& costs,
                           const PredictOptions& options = {});

// The same for programs that are there already: programs[kinds[r]] is what rank r runs. Of the plan's flops
// these know nothing.
Result<Prediction> predict(const plan::Mesh& mesh,
                           std::span<const std::shared_ptr<const program::Program>> programs,
                           std::span<const std::int32_t> kinds, const StepCosts& costs,
                           const PredictOptions& options = {});

}  // namespace weft::sim
