#include "weft/planner/exchange/exchange_costs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <mutex>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "weft/collectives/algorithm/summation_service.h"
#include "weft/collectives/synthesis/named_trees.h"
#include "weft/communication/comm/communicator.h"
#include "weft/plan/cluster/digest.h"
#include "weft/planner/exchange/group_times.h"
#include "weft/predict/cost/exchange_seconds.h"
#include "weft/predict/cost/exchange_times.h"
#include "weft/predict/sim/collective/neighbours.h"

namespace weft::exchange {
namespace {

// A ring of 64 over eight channels takes a tenth of a second to simulate at one size, so larger
// groups are extrapolated from these.
constexpr std::array<std::int32_t, 3> kKnownRanks = {8, 16, 32};
constexpr std::int32_t kMostPricedRanks = kKnownRanks.back();
constexpr std::int64_t kMostWired = 1024;  // most devices for which every link is modelled

bool is_switched(const cluster::Link& link) {
  return link.shape == cluster::Shape::unstated || link.shape == cluster::Shape::switched;
}

// Whether all pairs of devices are equally near.
bool is_even(const cluster::Link& link) { return is_switched(link) || link.shape == cluster::Shape::full; }

// A group of the axis as a separate cluster. Nothing if its links cannot be told from the others'.
std::optional<cluster::Cluster> group_of(const cluster::Cluster& cluster, const cost::MeshLink& link) {
  const cluster::Axis& axis = cluster.axes[link.cluster_axis];
  cluster::Cluster group{"group", cluster.device, {}};
  cluster::Axis alone{axis.name, link.ranks, axis.link};
  if (link.ranks != axis.size) {
    if (!is_even(axis.link)) return std::nullopt;
    // In a node with a cable per pair of devices: only the cables within the group.
    if (!link.across_nodes) alone.link.bytes_per_second = link.bytes_per_second;
  }
  if (link.across_nodes) {
    group.axes = {alone, {"device", 1, {}}};
  } else {
    group.axes = {{"node", 1, {}}, alone};
  }
  return group;
}

// Blocks repeat from the start; rounds are regular once there are more messages than FIFO slots.
double carried_seconds(std::span<GroupTimes* const> known, std::int32_t ranks, std::size_t candidate,
                       std::int64_t bytes) {
  using enum cost::Growth;
  const auto growth = known.back()->candidates()[candidate].growth;
  if (!growth) return std::numeric_limits<double>::infinity();
  const std::int32_t few = *growth == blocks || *growth == hops ? kKnownRanks[0] : kKnownRanks[1];
  const auto seconds = [&](std::int32_t among, double size) {
    const auto group = std::ranges::find(kKnownRanks, among) - kKnownRanks.begin();
    return known[static_cast<std::size_t>(group)]->seconds(candidate,
                                                           std::max<std::int64_t>(1, std::llround(size)));
  };
  return cost::extrapolated_seconds(*growth, ranks, static_cast<double>(bytes), few, seconds);
}

// A group with its summation servers appended as nodes. `shared_by` groups share a server's card.
std::optional<sim::CollectiveCluster> wires_with_servers(cluster::Cluster group, std::int32_t servers,
                                                         std::int64_t shared_by) {
  const std::int64_t ranks = group.axes.front().size;
  group.axes.front().size += servers;
  auto wires = sim::wires_of(group);
  if (!wires.ok()) return std::nullopt;
  for (cluster::DirectedLink& link : wires->topology.links)
    for (const std::int32_t end : {link.from, link.to})
      if (end >= ranks && end < ranks + servers) link.bytes_per_second /= static_cast<double>(shared_by);
  return std::move(*wires);
}

// A coarse split is further from the optimum, but has fewer and longer messages.
std::vector<collective::SummationService> splits_for(std::int32_t ranks, std::int32_t servers, double rate) {
  std::vector<collective::SummationService> splits;
  for (const std::int32_t most : {1, 2, 4, collective::kMostSplitChunks})
    if (const auto split = collective::best_split(ranks, servers, rate, most);
        std::ranges::find(splits, split) == splits.end())
      splits.push_back(split);
  return splits;
}

// Excludes times that were scaled from another number of ranks.
bool is_measured(const comm::Candidate& candidate) {
  return !candidate.times.empty() && !candidate.source.starts_with("scaled");
}

}  // namespace

// Times of one collective on the links of one group, by size.
struct ExchangeCosts::Curve {
  CostCurve seconds;
  GroupTimes* names = nullptr;  // holds the candidates
};

ExchangeCosts::ExchangeCosts(cluster::Cluster cluster, std::string transport,
                             std::vector<RequestedAlgorithm> asked, bool synthesize, std::int32_t servers)
    : cluster_(std::move(cluster)),
      transport_(std::move(transport)),
      asked_(std::move(asked)),
      synthesize_(synthesize),
      servers_(servers) {
  if (!cost::is_local(cluster_)) return;
  // Ranks of a plan choose only by the shipped table, so that every run has bitwise equal results.
  local_ = Local{comm::ChoiceTable::defaults(), comm::load_choices({}).table};
}

ExchangeCosts::~ExchangeCosts() = default;

std::optional<cost::ExchangeCost> ExchangeCosts::price(program::Exchange::Kind kind,
                                                       const cost::MeshLink& link, std::int64_t bytes,
                                                       const program::ChosenAlgorithm& algorithm) {
  if (link.ranks < 2 || bytes <= 0) return std::nullopt;
  if (local_ && link.link == cost::kNetwork) return std::nullopt;
  const Question question{
      kind, link.cluster_axis, link.ranks, link.stride, bytes, local_ ? algorithm.name : std::string()};
  {
    const std::shared_lock lock(mutex_);
    if (const auto found = known_.find(question); found != known_.end()) return found->second;
  }
  const auto price = local_ ? on_local(kind, link, bytes, algorithm.name) : on_cluster(kind, link, bytes);
  const std::unique_lock lock(mutex_);
  return known_.emplace(question, price).first->second;
}

GroupTimes* ExchangeCosts::times_of(collective::Kind kind, const cost::MeshLink& link) {
  const auto [found, fresh] = times_.try_emplace({kind, link.cluster_axis, link.ranks});
  if (!fresh) return found->second.get();
  const auto group = group_of(cluster_, link);
  if (!group) return nullptr;
  if (auto wires = sim::wires_of(*group); wires.ok()) {
    auto candidates = candidates_for(kind, *wires, cluster_.axes[link.cluster_axis].link, synthesize_);
    found->second = std::make_unique<GroupTimes>(std::move(*wires), std::move(candidates));
  }
  return found->second.get();
}

ExchangeCosts::Curve* ExchangeCosts::curve_of(collective::Kind kind, const cost::MeshLink& link) {
  const std::unique_lock lock(mutex_);
  const auto [found, fresh] = curves_.try_emplace({kind, link.cluster_axis, link.ranks});
  if (!fresh) return found->second.get();
  std::array<GroupTimes*, kKnownRanks.size()> known{};
  if (link.ranks > kMostPricedRanks) {
    if (!is_switched(cluster_.axes[link.cluster_axis].link)) return nullptr;
    cost::MeshLink group = link;
    for (std::size_t i = 0; i < known.size(); ++i) {
      group.ranks = kKnownRanks[i];
      if ((known[i] = times_of(kind, group)) == nullptr) return nullptr;
    }
  } else if ((known.back() = times_of(kind, link)) == nullptr) {
    return nullptr;
  }
  GroupTimes* const most = known.back();
  found->second.reset(new Curve{CostCurve(most->candidates().size(),
                                          [=, ranks = link.ranks](std::size_t candidate, std::int64_t bytes) {
                                            return ranks > kMostPricedRanks
                                                       ? carried_seconds(known, ranks, candidate, bytes)
                                                       : most->seconds(candidate, bytes);
                                          }),
                                most});
  return found->second.get();
}

// Null if there are no summation servers for the group.
ExchangeCosts::Curve* ExchangeCosts::served_curve_of(const cost::MeshLink& link) {
  if (servers_ == 0 || !link.across_nodes || link.ranks > kMostPricedRanks) return nullptr;
  const std::unique_lock lock(mutex_);
  const auto [found, fresh] =
      served_curves_.try_emplace({collective::Kind::all_reduce, link.cluster_axis, link.ranks});
  if (!fresh) return found->second.get();
  const auto group = group_of(cluster_, link);
  if (!group) return nullptr;
  const std::int64_t groups = cluster_.devices() / link.ranks;
  auto wires = wires_with_servers(*group, servers_, groups);
  if (!wires) return nullptr;
  std::vector<GroupCandidate> candidates;
  for (const auto& service : splits_for(link.ranks, servers_, 1 / static_cast<double>(groups)))
    for (const auto protocol :
         {collective::Protocol::simple, collective::Protocol::ll, collective::Protocol::ll128})
      candidates.push_back({collective::print(service), protocol, 1, {}});
  GroupTimes* const times =
      served_times_.emplace_back(std::make_unique<GroupTimes>(std::move(*wires), std::move(candidates)))
          .get();
  found->second.reset(new Curve{
      CostCurve(times->candidates().size(),
                [=](std::size_t candidate, std::int64_t bytes) { return times->seconds(candidate, bytes); }),
      times});
  return found->second.get();
}

// Ratio of measured to simulated time within a node, from the collective that was measured.
double ExchangeCosts::slowdown(const cost::MeshLink& link, std::int64_t bytes) {
  if (!was_measured(link)) return 1;
  Curve* const all_reduce = curve_of(collective::Kind::all_reduce, link);
  const auto simulated = all_reduce != nullptr ? all_reduce->seconds.at(bytes) : std::nullopt;
  if (!simulated) return 1;
  return cost::exchange_seconds(program::Exchange::Kind::all_reduce, link, static_cast<double>(bytes))
             .seconds() /
         simulated->seconds;
}

bool ExchangeCosts::was_measured(const cost::MeshLink& link) const {
  return !link.across_nodes && is_switched(cluster_.axes[link.cluster_axis].link);
}

std::optional<cost::ExchangeCost> ExchangeCosts::on_cluster(program::Exchange::Kind kind,
                                                            const cost::MeshLink& link, std::int64_t bytes) {
  if (!(link.bytes_per_second > 0)) return std::nullopt;
  if (kind == program::Exchange::Kind::permute_ranks || kind == program::Exchange::Kind::halo)
    return among_neighbours(kind, link, bytes);
  if (is_switched(cluster_.axes[link.cluster_axis].link))
    if (auto measured = cost::measured_exchange(cluster_.device, kind, link, static_cast<double>(bytes)))
      return measured;
  if (kind == program::Exchange::Kind::all_reduce && was_measured(link)) {
    cost::ExchangeCost fitted = cost::exchange_seconds(kind, link, static_cast<double>(bytes));
    fitted.source = cost::Source::fitted;
    return fitted;
  }
  Curve* curve = curve_of(cost::collective_kind(kind), link);
  if (Curve* const served = kind == program::Exchange::Kind::all_reduce ? served_curve_of(link) : nullptr;
      served != nullptr) {
    const auto by_servers = served->seconds.at(bytes);
    const auto among_ranks = curve != nullptr ? curve->seconds.at(bytes) : std::nullopt;
    if (by_servers && (!among_ranks || by_servers->seconds < among_ranks->seconds)) curve = served;
  }
  const auto at = curve != nullptr ? curve->seconds.at(bytes) : std::nullopt;
  const auto least = curve != nullptr ? curve->seconds.at(CostCurve::kLeastBytes) : std::nullopt;
  if (!at || !least) return std::nullopt;
  const double slower = slowdown(link, bytes), latency = std::min(least->seconds, at->seconds);
  return cost::ExchangeCost{latency * slower, (at->seconds - latency) * slower,
                            curve->names->name_of(at->candidate),
                            link.ranks > kMostPricedRanks ? cost::Source::carried : cost::Source::simulated,
                            curve->names->candidates()[at->candidate].protocol};
}

std::optional<cost::ExchangeCost> ExchangeCosts::among_neighbours(program::Exchange::Kind kind,
                                                                  const cost::MeshLink& link,
                                                                  std::int64_t bytes) {
  const cluster::Axis& axis = cluster_.axes[link.cluster_axis];
  const bool halo = kind == program::Exchange::Kind::halo;
  sim::Neighbours neighbours{link.ranks, link.stride, /*both_ways=*/halo, /*closed=*/!halo};
  cost::MeshLink wired = link;
  wired.ranks = static_cast<std::int32_t>(axis.size);
  if (is_switched(axis.link)) {
    // Every rank has its own port, so four ranks suffice for one to have all its neighbours.
    constexpr std::int32_t kEnough = 4;
    wired.ranks = neighbours.ranks = std::min(link.ranks, kEnough);
    neighbours.stride = 1;
  } else if (axis.size > kMostWired) {
    return std::nullopt;
  }
  const auto group = group_of(cluster_, wired);
  if (!group) return std::nullopt;
  const auto wires = sim::wires_of(*group);
  if (!wires.ok()) return std::nullopt;
  std::optional<cost::ExchangeCost> best;
  for (const auto protocol :
       {collective::Protocol::simple, collective::Protocol::ll, collective::Protocol::ll128}) {
    const auto time =
        sim::simulate(neighbours, wires->topology, static_cast<double>(bytes),
                      sim::threadblocks_for(axis.link.bytes_per_second), sim::run_parameters(protocol));
    if (!time.ok()) return std::nullopt;
    if (best && best->seconds() <= time->latency_seconds + time->transfer_seconds) continue;
    best = {time->latency_seconds, time->transfer_seconds, "to neighbours", cost::Source::simulated,
            protocol};
  }
  const double slower = slowdown(link, bytes);
  best->latency_seconds *= slower;
  best->transfer_seconds *= slower;
  return best;
}

// All pairs of ranks on one machine are equally near.
std::string ExchangeCosts::or_trees(const comm::Setting& setting, std::int64_t bytes,
                                    std::string chosen) const {
  cluster::Link all_to_all;
  all_to_all.shape = cluster::Shape::full;
  const auto trees = synthesis::name_of_trees(setting.kind, all_to_all, 1);
  if (!trees || setting.ranks > kMostPricedRanks) return chosen;
  const bool wins = chosen.empty() || local_->chooses.expect(setting, *trees).seconds(bytes) <
                                          local_->chooses.expect(setting, chosen).seconds(bytes);
  return wins ? *trees : chosen;
}

std::optional<cost::ExchangeCost> ExchangeCosts::on_local(program::Exchange::Kind kind,
                                                          const cost::MeshLink& link, std::int64_t bytes,
                                                          std::string algorithm) {
  // Exchanges between neighbours run as an all-to-all in which most ranks send nothing.
  const bool few = kind == program::Exchange::Kind::permute_ranks || kind == program::Exchange::Kind::halo;
  comm::Setting setting{.kind = few ? comm::Kind::all_to_all : cost::collective_kind(kind),
                        .ranks = link.ranks,
                        .transport = transport_,
                        .allocated = true};
  if (algorithm.empty() && servers_ > 0 && kind == program::Exchange::Kind::all_reduce)
    algorithm = collective::print(collective::best_split(link.ranks, servers_, 1));
  if (const auto service = collective::find_summation_service(algorithm)) {
    setting.kind = comm::Kind::custom;
    setting.ranks += service->servers;
  }
  if (algorithm.empty())
    if (const RequestedAlgorithm* const asked = find_requested(asked_, setting.kind)) algorithm = asked->name;
  if (algorithm.empty()) {
    algorithm = local_->chooses.choose_for_group(setting, bytes).algorithm;
    if (synthesize_) algorithm = or_trees(setting, bytes, std::move(algorithm));
  }
  if (algorithm.empty()) return std::nullopt;
  const comm::Candidate expected = local_->knows.expect(setting, algorithm);
  const double all = expected.seconds(bytes), latency = std::min(all, expected.seconds(1));
  return cost::ExchangeCost{latency, all - latency, std::move(algorithm),
                            is_measured(expected)                  ? cost::Source::measured
                            : expected.source == "default figures" ? cost::Source::datasheet
                                                                   : cost::Source::calibrated};
}

namespace {

// Collective costs depend only on the cluster and take about a second to compute, so a process
// caches them per cluster. LOCAL ranks are not cached: their tables may be tuned meanwhile.
std::shared_ptr<ExchangeCosts> exchange_costs_for(const cluster::Cluster& cluster,
                                                  const std::string& transport,
                                                  std::vector<RequestedAlgorithm> asked, bool synthesize,
                                                  std::int32_t servers) {
  if (cost::is_local(cluster))
    return std::make_shared<ExchangeCosts>(cluster, transport, std::move(asked), synthesize, servers);
  constexpr std::size_t kMostKept = 8;
  static std::mutex mutex;
  static std::map<std::tuple<Digest, bool, std::int32_t>, std::shared_ptr<ExchangeCosts>> known;
  const std::lock_guard lock(mutex);
  const std::tuple key(cluster::digest_of(cluster), synthesize, servers);
  if (const auto found = known.find(key); found != known.end()) return found->second;
  if (known.size() >= kMostKept) known.clear();
  auto made = std::make_shared<ExchangeCosts>(cluster, transport, std::vector<RequestedAlgorithm>{},
                                              synthesize, servers);
  return known.emplace(key, std::move(made)).first->second;
}

}  // namespace

CostsOn costs_on(const cluster::Cluster& cluster, std::string_view transport, int workers,
                 std::vector<RequestedAlgorithm> asked, bool synthesize, std::int32_t servers) {
  auto carrier = comm::find_transport(transport);
  if (!carrier || *carrier == comm::TransportKind::automatic) carrier = comm::TransportKind::shm;
  const std::string over(comm::name(*carrier));
  auto prices = exchange_costs_for(cluster, over, std::move(asked), synthesize, servers);
  return [=](const plan::Mesh& mesh, const cost::Statistics* statistics) {
    cost::StepCostOptions options;
    options.statistics = statistics;
    options.workers = workers;
    options.transport = cost::transport_with_servers(over, servers);
    options.exchange = [prices](program::Exchange::Kind kind, const cost::MeshLink& link, std::int64_t bytes,
                                const program::ChosenAlgorithm& algorithm) {
      return prices->price(kind, link, bytes, algorithm);
    };
    return cost::step_costs(cluster, mesh, options);
  };
}

}  // namespace weft::exchange
