// weft/predict/cost/step_costs.h -- what the parts of a distributed step cost: tasks that compute, collectives.
//
//   WEFT_TRY(costs, step_costs(cluster, mesh, {.statistics = &statistics}));
//   costs.compute(program, task)            {1.31 ms, datasheet}
//   costs.exchange(exchange, axis, bytes)   {36 us + 2.1 ms, "all_reduce_ring", datasheet}
//
// Where the statistics database has the time of this very unit or collective on this machine, that is the
// price, and it says so. Else the price comes from the figures of device and links (unit_seconds.h). For
// collectives the caller may know better: what the algorithm takes that would be chosen for these wires
// (exchange/exchange_prices.h). Where it does not, formulas price them (exchange_seconds.h).
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

// Where a figure comes from: a data sheet, rates that were measured on the machine, the thing itself; of a
// collective also its algorithm run on the wires by the simulator, a formula fitted to measurements of
// others, or the simulation of fewer ranks carried on to more of them.
enum class Source : std::uint8_t { datasheet, calibrated, measured, simulated, fitted, carried };
constexpr std::size_t kSources = 6;

std::string_view name(Source source);

// Seconds of one task of a unit that computes.
struct TaskPrice {
  double seconds = 0;
  Source source = Source::datasheet;
};

// Seconds of a collective that has its wires to itself: `bytes` is what nccl-tests calls the size (the whole
// vector of an all-reduce, the gathered result, the scattered operand).
struct ExchangePrice {
  double latency_seconds = 0;   // part that more bytes do not change
  double transfer_seconds = 0;  // part that shares the wires; infinite where there are none
  std::string algorithm;        // "all_reduce_ring(channels=3)", "direct"; empty: the communicator chooses
  Source source = Source::datasheet;
  std::optional<collective::Protocol> protocol = {};  // none: it is not known, or there is but one

  double seconds() const { return latency_seconds + transfer_seconds; }
};

// "ring(channels=3) LL128": the algorithm as people see it beside the collective's name.
std::string short_name(program::Exchange::Kind kind, const ExchangePrice& price);

struct StepCosts {
  std::function<TaskPrice(const program::Program&, const program::Task&)> compute;
  std::function<ExchangePrice(const program::Exchange&, std::size_t mesh_axis, std::int64_t bytes)> exchange;
  // By mesh axis: axes of one number pass the same wires and share them. Empty: each has its own.
  std::vector<std::int32_t> wires = {};
  // How programs for these devices are compiled; the number of workers is the caller's.
  program::CompileOptions compile = {};
};

struct StepCostOptions {
  const Statistics* statistics = nullptr;  // none: figures alone. Read once, not kept.
  int processors = 0;                      // of this machine, for LOCAL clusters; 0: those it has
  int workers = 1;                         // of a rank, likewise
  std::string transport = "shm";           // between its ranks
  // What a collective costs on an axis' wires, from a caller who knows better than a formula; nothing where
  // it does not. Measured times go before it, formulas after it. May be called from several threads at once.
  // `algorithm`: of that one, where a name is given; else of the one that should run.
  std::function<std::optional<ExchangePrice>(program::Exchange::Kind, const MeshLink&, std::int64_t bytes,
                                             const program::ChosenAlgorithm& algorithm)>
      exchange = {};
};

// Fails where mesh_links() does. What it returns keeps copies of all it needs, and may be called from several
// threads at once.
Result<StepCosts> step_costs(const cluster::Cluster& cluster, const plan::Mesh& mesh,
                             const StepCostOptions& options = {});

// What nccl-tests calls the size of a collective.
std::int64_t message_bytes(const program::Exchange& exchange);

// What the collective compiler calls it.
collective::Kind collective_kind(program::Exchange::Kind kind);

// What a rank sends of it.
double sent_bytes(program::Exchange::Kind kind, std::int32_t ranks, double bytes);

}  // namespace weft::cost
