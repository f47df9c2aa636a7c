// weft/predict/cost/step_costs.h -- costs of the tasks and collectives of a distributed step.
//
//   WEFT_TRY(costs, step_costs(cluster, mesh, {.statistics = &statistics}));
//   costs.compute(program, task)            {1.31 ms, datasheet}
//   costs.exchange(exchange, axis, bytes)   {36 us + 2.1 ms, "all_reduce_ring", datasheet}
//
// If the statistics database has this machine's time of this very unit or collective, that is the
// cost, with source `measured`. Otherwise the cost comes from the figures of device and links
// (unit_seconds.h). For collectives, the caller may supply a better estimate: the time of the
// algorithm that would be selected on these wires (exchange/exchange_costs.h). Otherwise formulas
// estimate them (exchange_seconds.h).
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/chunks/collective.h"
#include "weft/plan/cluster/cluster.h"
#include "weft/plan/graph/layout.h"
#include "weft/program/tasks/program.h"

namespace weft::cost {

class Statistics;
struct MeshLink;

// The source of a figure. datasheet: a data sheet. calibrated: rates measured on the machine.
// measured: this very unit or collective, measured. For collectives also simulated: the algorithm,
// simulated on the wires. fitted: a formula fitted to others' measurements. carried: extrapolated
// from simulations of fewer ranks.
enum class Source : std::uint8_t { datasheet, calibrated, measured, simulated, fitted, carried };
constexpr std::size_t kSources = 6;

std::string_view name(Source source);

// The time of one compute task.
struct TaskCost {
  double seconds = 0;
  Source source = Source::datasheet;
};

// The time of a collective without contention. `bytes` is what nccl-tests calls the size (the whole
// vector of an all-reduce, the gathered result, the scattered operand).
struct ExchangeCost {
  double latency_seconds = 0;   // does not grow with the bytes
  double transfer_seconds = 0;  // uses the wires, may be shared; infinite without a link rate
  std::string algorithm;        // "all_reduce_ring(channels=3)", "direct"; empty: the communicator chooses
  Source source = Source::datasheet;
  std::optional<collective::Protocol> protocol = {};  // empty: not known, or there is only one

  double seconds() const { return latency_seconds + transfer_seconds; }
};

// "ring(channels=3) LL128": the algorithm as printed beside the collective's name.
std::string short_name(program::Exchange::Kind kind, const ExchangeCost& price);

struct StepCosts {
  std::function<TaskCost(const program::Program&, const program::Task&)> compute;
  std::function<ExchangeCost(const program::Exchange&, std::size_t mesh_axis, std::int64_t bytes)> exchange;
  // Per mesh axis: axes with the same number use the same wires and share them. Empty: no sharing.
  std::vector<std::int32_t> wires = {};
  // How programs for these devices are compiled; the caller sets the number of workers.
  program::CompileOptions compile = {};
};

struct StepCostOptions {
  const Statistics* statistics = nullptr;  // null: device figures only. Read once, not kept.
  int processors = 0;                      // of this machine, for LOCAL clusters; 0: all available
  int workers = 1;                         // per rank, also for LOCAL clusters
  std::string transport = "shm";           // between its ranks
  // The caller's cost of a collective on an axis' wires; empty if it has none. Times measured in
  // steps take precedence over it; it takes precedence over formulas. May be called from several
  // threads at once. `algorithm`: the one to estimate if it has a name; otherwise estimate the one
  // that should run.
  std::function<std::optional<ExchangeCost>(program::Exchange::Kind, const MeshLink&, std::int64_t bytes,
                                            const program::ChosenAlgorithm& algorithm)>
      exchange = {};
};

// Fails when mesh_links() does. The returned object copies all it needs, and may be called from
// several threads at once.
Result<StepCosts> step_costs(const cluster::Cluster& cluster, const plan::Mesh& mesh,
                             const StepCostOptions& options = {});

// The size of a collective as nccl-tests counts it.
std::int64_t message_bytes(const program::Exchange& exchange);

// The same kind as an enumerator of the collective compiler.
collective::Kind collective_kind(program::Exchange::Kind kind);

// Bytes sent per rank.
double sent_bytes(program::Exchange::Kind kind, std::int32_t ranks, double bytes);

}  // namespace weft::cost
