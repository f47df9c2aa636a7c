#include "weft/predict/cost/step_costs.h"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <unordered_map>

#include "weft/base/machine.h"
#include "weft/plan/cluster/rates.h"
#include "weft/plan/ops/operators.h"
#include "weft/predict/cost/exchange_seconds.h"
#include "weft/predict/cost/exchange_times.h"
#include "weft/predict/cost/mesh_links.h"
#include "weft/predict/cost/operator_time.h"
#include "weft/predict/cost/roofline.h"
#include "weft/predict/cost/statistics.h"
#include "weft/predict/cost/time_curve.h"
#include "weft/predict/cost/unit_seconds.h"

namespace weft::cost {
namespace {

using Kind = program::Exchange::Kind;

// Defaults for ranks of a machine without measurements: the latency of a shared-memory message
// between two processors, and the bytes per second that one processor copies. Round figures for
// planning.
constexpr double kSharedMemoryLatency = 2e-6, kSharedMemoryRate = 4e9;
// Wake-up time of a rank that waits while others use its processor.
constexpr double kWaking = 30e-6;

// The data that costs are computed from; the functions of a StepCosts share one.
struct Figures {
  cluster::Device device;
  std::vector<MeshLink> links;
  Source device_source = Source::datasheet;
  double oversubscription = 1;  // ranks per processor, if more than one
  Concurrency concurrency;
  cluster::Stack stack;
  std::unordered_map<std::string, double> units;  // by key
  cluster::Device roofline;                       // as the cluster describes it, without measurements
  // The fraction of the roofline that units reach at this concurrency, by unit_kind().
  std::map<std::string, double, std::less<>> reached;
  std::map<std::pair<collective::Kind, std::int32_t>, TimeCurve> collectives;  // by kind and ranks
  ExchangeTimes exchanges;                                                     // from steps that ran here
  decltype(StepCostOptions::exchange) better;                                  // takes precedence

  TaskCost compute(const program::Program& program, const program::Task& task) const {
    const program::Unit& unit = program.units[task.unit];
    const double part =
        unit.items > 0 ? static_cast<double>(task.end - task.begin) / static_cast<double>(unit.items) : 1;
    if (!units.empty()) {
      if (const auto found = units.find(unit_key(program, unit, concurrency)); found != units.end())
        return {found->second * part, Source::measured};
      // Measured with one rank on the machine. If there are more ranks than processors, they share
      // them.
      if (const auto found = units.find(unit_key(program, unit)); found != units.end())
        return {found->second * part * oversubscription, Source::measured};
    }
    if (const auto found = reached.find(unit_kind(unit)); found != reached.end())
      return {unit_seconds(program, unit, roofline) / found->second * part, Source::calibrated};
    // A unit is launched once, into however many tasks it is split.
    const double launch = device.launch_seconds, all = unit_seconds_of(program, unit);
    return {(std::max(all - launch, 0.0) * part + (task.chunk == 0 ? launch : 0)) * oversubscription,
            has_fitted_rate(program, unit, device) ? Source::fitted : device_source};
  }

  // The software of the cluster reaches a share of the device's rates, and moves more bytes where it fuses less.
  double unit_seconds_of(const program::Program& program, const program::Unit& unit) const {
    const double seconds = unit_seconds(program, unit, device);
    if (stack.is_weft() && !is_narrow()) return seconds;
    const double launch = std::min(device.launch_seconds, seconds), body = seconds - launch;
    if (const auto* const product = std::get_if<program::MatrixProduct>(&unit.kernel))
      return launch + body * narrow_ratio(*product) / stack.products + quantize_seconds(unit);
    if (std::holds_alternative<program::Updates>(unit.kernel)) return launch + body * stack.optimizer;
    if (const auto* const call = std::get_if<program::OperatorCall>(&unit.kernel)) {
      const plan::Operator& op = program.graph->view(call->node).op();
      if (&op == &ops::attention()) return launch + body / stack.attention;
      if (&op == &ops::attention_gradient()) return launch + body / stack.attention_gradient;
    }
    return launch + body * stack.elementwise;
  }

  bool is_narrow() const { return stack.product_format != cluster::ProductFormat::plan; }

  // The time of a product in f8 or NVFP4, relative to bf16.
  double narrow_ratio(const program::MatrixProduct& product) const {
    if (!is_narrow()) return 1;
    const bool is_f8 = stack.product_format == cluster::ProductFormat::f8;
    const std::string_view format = is_f8 ? "fp8" : "nvfp4";
    const double f8_rate = device.rate(cluster::Precision::f8),
                 bf16_rate = device.rate(cluster::Precision::bf16);
    if (is_f8 && stack.f8_time > 0 && f8_rate > bf16_rate)
      return std::min(1.0, stack.f8_time * bf16_rate / f8_rate);
    double points = 1;
    for (const program::ProductLoop& loop : product.outer) points *= static_cast<double>(loop.size);
    const auto m = static_cast<double>(product.m), n = static_cast<double>(product.n),
               k = static_cast<double>(product.k);
    if (device.rates != nullptr) {
      const auto narrow = device.rates->product_seconds(format, m, n, k, points),
                 bf16 = device.rates->product_seconds("bf16", m, n, k, points);
      if (narrow && bf16 && *bf16 > 0) return std::min(1.0, *narrow / *bf16);
    }
    return f8_rate > bf16_rate ? bf16_rate / f8_rate : 1;
  }

  // The time to write the operands of a product in eight or four bits.
  double quantize_seconds(const program::Unit& unit) const {
    if (!is_narrow()) return 0;
    double bytes = 0;
    for (const program::Place& place : unit.reads)
      bytes += static_cast<double>(place.elements() * plan::size_in_bytes(place.dtype));
    return stack.quantize * bytes / (device.reach * device.memory_bytes_per_second);
  }

  ExchangeCost exchange(const program::Exchange& what, std::size_t axis, std::int64_t bytes) const {
    const MeshLink& link = links[axis];
    if (link.ranks < 2) return {.algorithm = "none"};
    if (stack.collectives != 1) {
      ExchangeCost price = alone(what.kind, link, bytes, what.algorithm);
      price.latency_seconds *= stack.collectives;
      price.transfer_seconds *= stack.collectives;
      return price;
    }
    const auto formula = [&](Kind kind, std::int32_t ranks, double size) {
      MeshLink of = link;
      of.ranks = ranks;
      return alone(kind, of, static_cast<std::int64_t>(size), {}).seconds();
    };
    ExchangeCost price = alone(what.kind, link, bytes, what.algorithm);
    if (link.link == kNetwork) return price;  // measured times are for ranks of this machine
    const auto seen = exchanges.price(what.kind, link.ranks, bytes, formula);
    if (!seen) return price;
    // Lateness does not depend on the bytes. The formula splits the rest into latency and transfer.
    const double all = price.seconds(), part = all > 0 ? seen->own / all : 1;
    price.latency_seconds = price.latency_seconds * part + seen->late;
    price.transfer_seconds *= part;
    price.source = seen->source;
    return price;
  }

  // The cost of the collective from all sources except the steps that contained it. Fabrics that lose bandwidth
  // with the number of nodes lose it in collectives, where all nodes send at once.
  ExchangeCost alone(Kind kind, const MeshLink& link, std::int64_t bytes,
                     const program::ChosenAlgorithm& algorithm) const {
    ExchangeCost price = on_an_ideal_fabric(kind, link, bytes, algorithm);
    if (kind != Kind::send && kind != Kind::receive) price.transfer_seconds /= link.collective_share;
    return price;
  }

  ExchangeCost on_an_ideal_fabric(Kind kind, const MeshLink& link, std::int64_t bytes,
                                  const program::ChosenAlgorithm& algorithm) const {
    if (better)
      if (auto price = better(kind, link, bytes, algorithm)) return *std::move(price);
    if (const auto found = collectives.find({collective_kind(kind), link.ranks});
        found != collectives.end() && link.link != kNetwork) {
      const TimeCurve& curve = found->second;
      const double latency = curve.least(), all = curve.seconds(std::max(1.0, static_cast<double>(bytes)));
      // The fastest measured time: the communicator selects that algorithm.
      return {latency, std::max(all - latency, 0.0), {}, Source::measured};
    }
    if (const auto measured = measured_exchange(device, kind, link, static_cast<double>(bytes)))
      return *measured;
    ExchangeCost price = exchange_seconds(kind, link, static_cast<double>(bytes));
    if (link.link == kNetwork) {
      price.algorithm.clear();  // between hosts the communicator selects the algorithm
      price.source = Source::calibrated;
    }
    return price;
  }
};

// Replaces the device's round figures by what `weft profile` measured of this machine's processors.
Status take_rates(Figures& figures, const Statistics& statistics) {
  WEFT_TRY(rates, statistics.rates());
  std::int64_t largest = -1;
  for (const Rate& rate : rates) {
    if (rate.what == "multiply f32" && rate.threads == 1) {
      figures.device.flops_per_second[static_cast<std::size_t>(cluster::Precision::f32)] = rate.per_second;
      figures.device_source = Source::calibrated;
    } else if (rate.what == "call" && rate.threads == 1) {
      figures.device.launch_seconds = 1 / rate.per_second;
    } else if (rate.what == "copy" && rate.threads == 1 && rate.bytes > largest) {
      // Copied bytes are read and written.
      figures.device.memory_bytes_per_second = 2 * rate.per_second;
      largest = rate.bytes;
    }
  }
  return {};
}

Status take_measurements(Figures& figures, const Statistics& statistics, std::string_view transport) {
  WEFT_TRY_STATUS(take_rates(figures, statistics));
  WEFT_TRY(rates, statistics.rates());
  constexpr std::string_view kReached = "reached ";
  for (const Rate& rate : rates)
    if (rate.what.starts_with(kReached) && rate.threads == figures.concurrency.ranks)
      figures.reached.insert_or_assign(rate.what.substr(kReached.size()), rate.per_second);
  WEFT_TRY(units, statistics.operator_times());
  figures.exchanges = ExchangeTimes(units, transport, figures.concurrency);
  for (OperatorTime& time : units) figures.units.emplace(std::move(time.unit), time.seconds);
  WEFT_TRY(times, statistics.collective_times());
  for (const CollectiveTime& time : times)
    if (time.hosts == 1 && time.transport == transport_without_servers(transport) && time.bytes > 0)
      figures.collectives[{time.kind, time.ranks}].add(static_cast<double>(time.bytes), time.seconds);
  return {};
}

// Sets up `ranks` ranks of this machine: links get shared-memory figures, and processors are shared
// if there are too few.
Status make_local(Figures& figures, std::int32_t ranks, const StepCostOptions& options) {
  const int processors = std::max(1, options.processors > 0 ? options.processors : available_processors());
  figures.concurrency = {ranks, std::max(1, options.workers)};
  figures.oversubscription =
      std::max(1.0, static_cast<double>(ranks) * figures.concurrency.workers / processors);
  for (MeshLink& link : figures.links) {
    if (link.link == kNetwork) continue;
    link.latency_seconds = kSharedMemoryLatency + (figures.oversubscription > 1 ? kWaking : 0);
    link.bytes_per_second = kSharedMemoryRate / figures.oversubscription;
  }
  if (options.statistics == nullptr) return {};
  return take_measurements(figures, *options.statistics, options.transport);
}

// Accelerators compute in any narrow dtype, and can do many flops in the time of one byte on the
// slowest link. Every device with a matrix unit runs the same units, whether its figures are
// measured or from a data sheet. Programs for this machine's own ranks are compiled as the executor
// compiles them.
program::CompileOptions compile_options(const Figures& figures) {
  program::CompileOptions options;
  options.any_float = true;
  options.accelerated = has_matrix_unit(figures.device);
  options.tiles = !options.accelerated;
  double slowest = 0;
  for (const MeshLink& link : figures.links)
    if (link.ranks > 1 && link.bytes_per_second > 0 && (slowest == 0 || link.bytes_per_second < slowest))
      slowest = link.bytes_per_second;
  constexpr double kReached = 0.5;  // fraction of the peak that a whole model reaches, roughly
  if (slowest > 0)
    options.flops_per_exchanged_byte = kReached * peak_rate(figures.device, plan::DType::bf16) / slowest;
  return options;
}

}  // namespace

std::string_view name(Source source) {
  switch (source) {
    case Source::datasheet: return "datasheet";
    case Source::calibrated: return "calibrated";
    case Source::measured: return "measured";
    case Source::simulated: return "simulated";
    case Source::fitted: return "fitted";
    case Source::carried: return "carried";
  }
  return "";
}

collective::Kind collective_kind(Kind kind) {
  switch (kind) {
    case Kind::all_reduce: return collective::Kind::all_reduce;
    case Kind::reduce_scatter: return collective::Kind::reduce_scatter;
    case Kind::all_gather: return collective::Kind::all_gather;
    case Kind::all_to_all: return collective::Kind::all_to_all;
    case Kind::broadcast_from: return collective::Kind::broadcast;
    case Kind::permute_ranks:
    case Kind::halo:
    case Kind::send:
    case Kind::receive: return collective::Kind::send;
  }
  return collective::Kind::custom;
}

std::string short_name(Kind kind, const ExchangeCost& price) {
  program::ChosenAlgorithm algorithm{price.algorithm, price.protocol};
  const std::string prefix = std::string(collective::name(collective_kind(kind))) + "_";
  if (algorithm.name.starts_with(prefix)) algorithm.name.erase(0, prefix.size());
  return print(algorithm);
}

std::int64_t message_bytes(const program::Exchange& exchange) {
  // A rank that sends nothing, or receives nothing, has no buffer for that side.
  const program::Place& place = exchange.operand.buffer.valid() ? exchange.operand : exchange.result;
  const std::int64_t width = plan::size_in_bytes(place.dtype);
  switch (exchange.kind) {
    case Kind::reduce_scatter:
    case Kind::all_gather:
      return std::accumulate(exchange.counts.begin(), exchange.counts.end(), std::int64_t{0}) * width;
    case Kind::all_to_all:
    case Kind::halo:
      return std::max(std::accumulate(exchange.counts.begin(), exchange.counts.end(), std::int64_t{0}),
                      std::accumulate(exchange.takes.begin(), exchange.takes.end(), std::int64_t{0})) *
             width;
    case Kind::all_reduce:
    case Kind::broadcast_from:
    case Kind::permute_ranks:
    case Kind::send:
    case Kind::receive: return exchange.counts.empty() ? 0 : exchange.counts[0] * width;
  }
  return 0;
}

Result<StepCosts> step_costs(const cluster::Cluster& cluster, const plan::Mesh& mesh,
                             const StepCostOptions& options) {
  auto figures = std::make_shared<Figures>();
  WEFT_TRY(links, mesh_links(cluster, mesh));
  figures->device = figures->roofline = cluster.device;
  figures->links = std::move(links);
  figures->better = options.exchange;
  StepCosts costs;
  if (is_local(cluster)) {
    WEFT_TRY_STATUS(make_local(*figures, static_cast<std::int32_t>(ranks_of_a_host(cluster)), options));
  } else {
    costs.compile = compile_options(*figures);
  }
  figures->stack = cluster.stack;
  for (const MeshLink& link : figures->links)
    costs.wires.push_back(static_cast<std::int32_t>(link.cluster_axis));
  costs.compute = [figures](const program::Program& program, const program::Task& task) {
    return figures->compute(program, task);
  };
  costs.exchange = [figures](const program::Exchange& exchange, std::size_t axis, std::int64_t bytes) {
    return figures->exchange(exchange, axis, bytes);
  };
  return costs;
}

}  // namespace weft::cost
