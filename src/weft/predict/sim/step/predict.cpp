#include "weft/predict/sim/step/predict.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "weft/base/parallel_for.h"
#include "weft/collectives/algorithm/summation_service.h"
#include "weft/plan/graph/operator.h"
#include "weft/plan/ops/pointwise.h"
#include "weft/plan/spmd/localize.h"
#include "weft/plan/spmd/ring.h"
#include "weft/predict/cost/choose_algorithms.h"
#include "weft/predict/sim/step/critical_path.h"
#include "weft/predict/sim/step/memory_curve.h"
#include "weft/predict/sim/step/program_tasks.h"
#include "weft/predict/sim/step/rank_classes.h"
#include "weft/predict/sim/step/step_run.h"

namespace weft::sim {
namespace {

using Programs = std::vector<std::shared_ptr<const program::Program>>;

// Maximum number of tasks simulated together, at some 40 bytes each.
constexpr std::size_t kMostTasks = std::size_t{1} << 25;

// Busy and exposed time of one rank.
struct PredictedTotals {
  double compute = 0, communication = 0, exposed = 0;
};

using Interval = std::pair<double, double>;

// Merges intervals that touch.
std::vector<Interval> joined(std::vector<Interval> intervals) {
  std::ranges::sort(intervals);
  std::vector<Interval> result;
  for (const Interval& at : intervals) {
    if (!result.empty() && at.first <= result.back().second)
      result.back().second = std::max(result.back().second, at.second);
    else
      result.push_back(at);
  }
  return result;
}

double length(std::span<const Interval> intervals) {
  double sum = 0;
  for (const Interval& at : intervals) sum += at.second - at.first;
  return sum;
}

// The length of `a` outside `b`. REQUIRES: both are merged
double length_outside(std::span<const Interval> a, std::span<const Interval> b) {
  double common = 0;
  std::size_t j = 0;
  for (const Interval& at : a) {
    while (j < b.size() && b[j].second <= at.first) ++j;
    for (std::size_t k = j; k < b.size() && b[k].first < at.second; ++k)
      common += std::min(at.second, b[k].second) - std::max(at.first, b[k].first);
  }
  return length(a) - common;
}

PredictedTotals totals_of(const ProgramTasks& tasks, std::span<const program::TaskTime> times) {
  PredictedTotals totals;
  std::vector<Interval> computing, moving;
  for (std::size_t t = 0; t < times.size(); ++t) {
    const bool computes = tasks.exchange[t] == ProgramTasks::kComputes;
    (computes ? computing : moving).emplace_back(times[t].begin, times[t].end);
    if (!computes) totals.communication += times[t].end - times[t].begin;
  }
  computing = joined(std::move(computing));
  totals.compute = length(computing);
  totals.exposed = length_outside(joined(std::move(moving)), computing);
  return totals;
}

// In bytes. With summation servers, the traffic of the busiest rank that is not a server.
double sent_by_rank(const ExchangeTask& exchange, std::int32_t ranks) {
  const auto bytes = static_cast<double>(exchange.bytes);
  constexpr double kNoServer = std::numeric_limits<double>::infinity();  // the servers are not considered
  if (const auto service = collective::find_summation_service(exchange.price.algorithm))
    return bytes * collective::busiest_card(*service, ranks, kNoServer);
  return cost::sent_bytes(exchange.kind, ranks, bytes);
}

// Fills in the figures of the busiest rank and returns that rank.
std::size_t describe_busiest(Prediction& prediction, const StepRun& run,
                             std::span<const ProgramTasks* const> ranks, const plan::Mesh& mesh) {
  std::size_t busiest = 0;
  PredictedTotals most;
  // Consecutive ranks with one program have equal totals; compute them once.
  const ProgramTasks* seen = nullptr;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank] == seen) continue;
    seen = ranks[rank];
    const PredictedTotals totals = totals_of(*ranks[rank], run.times(rank));
    if (rank == 0 || totals.compute > most.compute) most = totals, busiest = rank;
  }
  prediction.compute_seconds = most.compute;
  prediction.communication_seconds = most.communication;
  prediction.exposed_communication_seconds = most.exposed;
  const ProgramTasks& tasks = *ranks[busiest];
  for (std::size_t t = 0; t < tasks.count(); ++t)
    if (tasks.exchange[t] == ProgramTasks::kComputes)
      prediction.seconds_by_source[static_cast<std::size_t>(tasks.sources[t])] += tasks.seconds[t];
  for (const plan::MeshAxis& axis : mesh.axes) prediction.traffic.push_back({axis.name});
  for (const ExchangeTask& exchange : tasks.exchanges) {
    AxisTraffic& traffic = prediction.traffic[exchange.axis];
    const program::TaskTime& time = run.times(busiest)[exchange.task];
    traffic.bytes += sent_by_rank(exchange, mesh.axes[exchange.axis].ranks);
    traffic.busy_seconds += time.end - time.begin;
  }
  return busiest;
}

std::vector<EstimatedCollective> collectives_of(const ProgramTasks& tasks, const plan::Mesh& mesh) {
  std::map<std::tuple<std::uint32_t, program::Exchange::Kind, std::int64_t>, EstimatedCollective> found;
  for (const ExchangeTask& exchange : tasks.exchanges) {
    EstimatedCollective& one = found[{exchange.axis, exchange.kind, exchange.bytes}];
    if (one.times++ == 0)
      one = {mesh.axes[exchange.axis].name, exchange.kind, exchange.bytes, 1, exchange.price};
  }
  std::vector<EstimatedCollective> sorted;
  for (auto& [key, one] : found) sorted.push_back(std::move(one));
  std::ranges::stable_sort(sorted, std::greater<>(), [](const EstimatedCollective& one) {
    return static_cast<double>(one.times) * one.price.seconds();
  });
  return sorted;
}

double model_flops(const plan::Graph& graph) {
  double multiply_adds = 0;
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const plan::NodeView node = graph.view(plan::NodeId(n));
    if (node.input_count() < 2 || ops::is_pointwise(node.op())) continue;  // no multiply-adds
    multiply_adds += node.op().work(node).multiply_adds;
  }
  return 2 * multiply_adds;
}

Result<program::Program> compile_rank(const plan::Graph& graph, const plan::Mesh& mesh,
                                      std::span<const plan::Layout> layouts, std::int32_t rank,
                                      const program::CompileOptions& options) {
  WEFT_TRY(local, spmd::localize(graph, mesh, layouts, rank, spmd::Exchanges::stay));
  auto local_graph = std::make_shared<const plan::Graph>(std::move(local.graph));
  return program::compile(std::move(local_graph), options);
}

}  // namespace

Result<Prediction> predict(const plan::Mesh& mesh,
                           std::span<const std::shared_ptr<const program::Program>> programs,
                           std::span<const std::int32_t> kinds, const StepCosts& costs,
                           const PredictOptions& options) {
  WEFT_TRY_STATUS(plan::check(mesh));
  WEFT_CHECK(kinds.size() == static_cast<std::size_t>(mesh.ranks()), "a kind for every rank");
  for (const std::int32_t kind : kinds)
    WEFT_CHECK(kind >= 0 && static_cast<std::size_t>(kind) < programs.size(), "a program for every kind");
  Numbering classes;
  if (options.exact) {
    for (std::int32_t rank = 0; rank < mesh.ranks(); ++rank) classes.push_back(rank);
  } else {
    classes = rank_classes(mesh, kinds);
  }
  const int workers = std::max(1, options.workers);
  std::vector<ProgramTasks> tables;
  for (const auto& program : programs) {
    WEFT_TRY(tasks, estimate_tasks(program, mesh, costs, options.overlap, workers));
    tables.push_back(std::move(tasks));
  }

  Prediction prediction;
  std::vector<const ProgramTasks*> ranks;
  std::size_t tasks = 0;
  for (std::int32_t rank = 0; rank < mesh.ranks(); ++rank) {
    const auto number = static_cast<std::size_t>(classes[static_cast<std::size_t>(rank)]);
    if (number == ranks.size()) {
      const ProgramTasks& table = tables[static_cast<std::size_t>(kinds[static_cast<std::size_t>(rank)])];
      ranks.push_back(&table);
      prediction.classes.push_back({{}, table.program, {}, {}});
      tasks += table.count();
      if (tasks > kMostTasks)
        return user_error(fmt::format("too much to simulate rank by rank: more than {} tasks", kMostTasks),
                          "without exact, equivalent ranks are simulated once");
    }
    prediction.classes[number].ranks.push_back(rank);
  }

  const Meetings meetings = find_meetings(mesh, classes);
  StepRun run(ranks, meetings, costs.wires, {options.overlap, workers});
  WEFT_TRY_STATUS(run.run());
  prediction.seconds = run.seconds();
  prediction.events = run.events();
  const std::size_t busiest = describe_busiest(prediction, run, ranks, mesh);
  if (!options.quick) {
    prediction.collectives = collectives_of(*ranks[busiest], mesh);
    prediction.critical = critical_path(run, ranks, meetings);
    prediction.bound = bound_of(run, ranks, prediction.critical, mesh);
  }
  const auto fullest =
      std::ranges::max_element(programs, {}, [](const auto& program) { return program->bytes(); });
  prediction.peak_bytes = static_cast<double>(
      options.quick ? (*fullest)->persistent_bytes + (*fullest)->work_lower_bound : (*fullest)->bytes());
  prediction.memory = memory_by_kind(**fullest, prediction.peak_bytes);
  if (options.timeline && !options.quick)
    for (std::size_t c = 0; c < ranks.size(); ++c) {
      prediction.classes[c].memory = memory_curve(*ranks[c]->program, run.times(c));
      prediction.classes[c].timeline = {run.take_times(c), run.seconds()};
    }
  return prediction;
}

Result<Prediction> predict(const plan::Graph& graph, const plan::Mesh& mesh,
                           std::span<const plan::Layout> layouts, const StepCosts& costs,
                           const PredictOptions& options) {
  WEFT_TRY_STATUS(plan::check(mesh));
  WEFT_CHECK(layouts.size() == graph.value_count(), "a layout for every value");
  const bool alike = options.quick || options.alike;
  const Numbering kinds =
      alike ? Numbering(static_cast<std::size_t>(mesh.ranks()), 0) : rank_kinds(graph, mesh, layouts);
  program::CompileOptions compile = costs.compile;
  compile.workers = std::max(1, options.workers);
  if (options.quick) {
    compile.pack = false;
    compile.tiles = compile.workers > 1;  // with one worker, a unit takes the time of its tasks
  }
  // The first rank of each kind. If later ranks have more work, the last, since all wait for it.
  const bool takes_last = spmd::later_ranks_attend_more(graph, layouts);
  std::vector<std::int32_t> firsts;
  for (std::int32_t rank = 0; rank < mesh.ranks(); ++rank) {
    const auto kind = static_cast<std::size_t>(kinds[static_cast<std::size_t>(rank)]);
    if (kind == firsts.size())
      firsts.push_back(rank);
    else if (takes_last)
      firsts[kind] = rank;
  }
  std::vector<Result<program::Program>> compiled(firsts.size(), program::Program());
  parallel_for(firsts.size(),
               [&](std::size_t k) { compiled[k] = compile_rank(graph, mesh, layouts, firsts[k], compile); });
  std::vector<program::Program> made;
  for (auto& program : compiled) {
    if (!program.ok()) return program.error();
    made.push_back(std::move(*program));
  }
  if (!options.quick) {
    WEFT_TRY(named, cost::choose_algorithms(std::move(made), mesh, costs));
    made = std::move(named);
  }
  Programs programs;
  for (program::Program& program : made)
    programs.push_back(std::make_shared<const program::Program>(std::move(program)));
  WEFT_TRY(prediction, predict(mesh, programs, kinds, costs, options));
  prediction.flops = model_flops(graph);
  return prediction;
}

}  // namespace weft::sim
