#include "weft/session/exchange_prices.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "weft/comm/communicator.h"
#include "weft/cost/exchange_seconds.h"
#include "weft/session/collective_choice.h"
#include "weft/session/collective_cluster.h"
#include "weft/session/collective_price.h"

namespace weft::session {
namespace {

using collective::Protocol;

// A ring of 64 over eight channels takes a tenth of a second to simulate at one size.
constexpr std::int32_t kMostRanks = 32;
constexpr std::int32_t kMostSlices = 8;  // as weft collective choose walks
constexpr std::int64_t kLeastBytes = 1 << 10, kMostBytes = std::int64_t{1} << 32, kApart = 4;

// How many blocks a device needs to fill its link: one moves 20 to 24 GB/s (sim/run_parameters.cpp).
std::int32_t lanes_for(double bytes_per_second) {
  constexpr double kBlockRate = 20e9, kMostLanes = 24;
  return static_cast<std::int32_t>(std::clamp(std::ceil(bytes_per_second / kBlockRate), 2.0, kMostLanes));
}

// Who wins somewhere among all shipped algorithms where any two ranks of a group are equally near.
std::vector<Variant> usual_winners(collective::Kind kind, std::int32_t lanes) {
  switch (kind) {
    case collective::Kind::all_reduce:
      return {{"all_reduce_all_pairs_two_shot"},
              {"all_reduce_recursive_doubling", lanes},
              {"all_reduce_halving_doubling", lanes},
              {"all_reduce_double_binary_tree(chunks=8)"},
              {fmt::format("all_reduce_ring(channels={})", lanes)}};
    case collective::Kind::all_gather:
      return {{"all_gather_all_pairs", lanes},
              {"all_gather_recursive_doubling", lanes},
              {"all_gather_ring", lanes}};
    case collective::Kind::reduce_scatter:
      return {{"reduce_scatter_all_pairs", lanes},
              {"reduce_scatter_recursive_halving", lanes},
              {"reduce_scatter_ring", lanes}};
    case collective::Kind::all_to_all: return {{"all_to_all_direct", lanes}};
    case collective::Kind::broadcast:
      return {{"broadcast_binomial"}, {"broadcast_chain", lanes}, {"broadcast_scatter_all_gather", lanes}};
    default: return {};
  }
}

// LL sends a flag with every word, so that it is never the fastest of long messages; Simple starts last.
bool may_win(Protocol protocol, std::int64_t bytes) {
  switch (protocol) {
    case Protocol::ll: return bytes <= 1 << 20;
    case Protocol::ll128: return true;
    case Protocol::simple: return bytes >= 1 << 16;
  }
  return true;
}

bool is_switched(const cluster::Link& link) {
  return link.shape == cluster::Shape::unstated || link.shape == cluster::Shape::switched;
}

// Whether any two devices of it are equally near.
bool is_even(const cluster::Link& link) { return is_switched(link) || link.shape == cluster::Shape::full; }

// A group of the axis as a cluster of its own, or nothing where its wires cannot be told from the others'.
std::optional<cluster::Cluster> group_of(const cluster::Cluster& cluster, const cost::MeshLink& link) {
  const cluster::Axis& axis = cluster.axes[link.cluster_axis];
  cluster::Cluster group{"group", cluster.device, {}};
  cluster::Axis alone{axis.name, link.ranks, axis.link};
  if (link.ranks != axis.size) {
    if (!is_even(axis.link)) return std::nullopt;
    // Of a node whose devices have a cable for each other, the cables within the group.
    if (!link.across_nodes) alone.link.bytes_per_second = link.bytes_per_second;
  }
  if (link.across_nodes) {
    group.axes = {alone, {"device", 1, {}}};
  } else {
    group.axes = {{"node", 1, {}}, alone};
  }
  return group;
}

// "all_gather_ring(channels=8) LL128" as people see it beside the collective's name: "ring(channels=8)
// LL128".
std::string short_name(const std::string& whole, collective::Kind kind) {
  const std::string prefix = std::string(name(kind)) + "_";
  return whole.starts_with(prefix) ? whole.substr(prefix.size()) : whole;
}

// Times of another number of ranks are scaled to this one.
bool is_measured(const comm::Candidate& candidate) {
  return !candidate.times.empty() && !candidate.source.starts_with("scaled");
}

}  // namespace

// One collective on the wires of one group, by size.
class ExchangePrices::Curve {
 public:
  Curve(collective::Kind kind, CollectiveCluster wires, const cluster::Link& link)
      : kind_(kind),
        wires_(std::move(wires)),
        variants_(usual_winners(kind, lanes_for(link.bytes_per_second))) {
    if (is_even(link)) return;
    for (Variant& variant : shipped_variants(kind, wires_)) variants_.push_back(std::move(variant));
  }

  struct Point {
    double seconds = std::numeric_limits<double>::infinity();
    std::string algorithm;
  };

  // Nothing where no algorithm runs on these wires.
  std::optional<Point> at(std::int64_t bytes) {
    const std::lock_guard lock(mutex_);
    const std::int64_t size = std::clamp<std::int64_t>(bytes, kLeastBytes, kMostBytes);
    std::int64_t below = kLeastBytes;
    while (below * kApart <= size && below < kMostBytes) below *= kApart;
    const Point& first = point(below);
    if (!std::isfinite(first.seconds)) return std::nullopt;
    if (below == size) {
      const double longer = bytes > kMostBytes ? static_cast<double>(bytes) / kMostBytes : 1;
      return Point{first.seconds * longer, first.algorithm};
    }
    const Point& second = point(below * kApart);
    if (!std::isfinite(second.seconds)) return std::nullopt;
    const double part = std::log(static_cast<double>(size) / static_cast<double>(below)) /
                        std::log(static_cast<double>(kApart));
    return Point{first.seconds * std::pow(second.seconds / first.seconds, part),
                 part < 0.5 ? first.algorithm : second.algorithm};
  }

 private:
  const Point& point(std::int64_t bytes) {
    const auto [found, fresh] = points_.try_emplace(bytes);
    if (!fresh) return found->second;
    for (const PricedProgram& program : programs()) {
      if (!may_win(program.facts.protocol, bytes)) continue;
      const auto rows = session::price(program, wires_, {&bytes, 1});
      if (!rows.ok() || !(rows->front().seconds < found->second.seconds)) continue;
      found->second = {rows->front().seconds, short_name(program.name, kind_)};
    }
    return found->second;
  }

  const std::vector<PricedProgram>& programs() {
    if (!programs_.empty()) return programs_;
    for (const Variant& variant : variants_)
      for (const Protocol protocol : {Protocol::simple, Protocol::ll, Protocol::ll128}) {
        auto program = prepare(variant.reference, wires_, protocol, variant.instances);
        if (!program.ok()) break;  // made for other numbers of ranks, or other wires
        program->parameters.most_slices = kMostSlices;
        programs_.push_back(std::move(*program));
      }
    return programs_;
  }

  const collective::Kind kind_;
  const CollectiveCluster wires_;
  std::vector<Variant> variants_;
  std::mutex mutex_;
  std::vector<PricedProgram> programs_;
  std::map<std::int64_t, Point> points_;
};

ExchangePrices::ExchangePrices(cluster::Cluster cluster, std::string transport)
    : cluster_(std::move(cluster)), transport_(std::move(transport)) {
  if (!cost::is_local(cluster_)) return;
  // Ranks of a plan choose by what ships alone, so that every run has the same bits.
  local_ = Local{comm::ChoiceTable::defaults(), comm::load_choices({}).table};
}

ExchangePrices::~ExchangePrices() = default;

std::optional<cost::ExchangePrice> ExchangePrices::price(Kind kind, const cost::MeshLink& link,
                                                         std::int64_t bytes) {
  if (link.ranks < 2 || bytes <= 0) return std::nullopt;
  const Question question{kind, link.cluster_axis, link.ranks, bytes};
  {
    const std::shared_lock lock(mutex_);
    if (const auto found = known_.find(question); found != known_.end()) return found->second;
  }
  const auto price = local_ ? on_local(kind, link, bytes) : on_cluster(kind, link, bytes);
  const std::unique_lock lock(mutex_);
  return known_.emplace(question, price).first->second;
}

ExchangePrices::Curve* ExchangePrices::curve_of(collective::Kind kind, const cost::MeshLink& link) {
  const std::unique_lock lock(mutex_);
  const auto [found, fresh] = curves_.try_emplace({kind, link.cluster_axis, link.ranks});
  if (!fresh) return found->second.get();
  const auto group = group_of(cluster_, link);
  if (!group) return nullptr;
  auto wires = wires_of(*group);
  if (wires.ok())
    found->second = std::make_unique<Curve>(kind, std::move(*wires), cluster_.axes[link.cluster_axis].link);
  return found->second.get();
}

std::optional<cost::ExchangePrice> ExchangePrices::on_cluster(Kind kind, const cost::MeshLink& link,
                                                              std::int64_t bytes) {
  if (link.ranks > kMostRanks || !(link.bytes_per_second > 0) || kind == Kind::permute || kind == Kind::halo)
    return std::nullopt;
  const bool measured = !link.across_nodes && is_switched(cluster_.axes[link.cluster_axis].link);
  const auto size = static_cast<double>(bytes);
  if (measured && kind == Kind::all_reduce) {
    cost::ExchangePrice fitted = cost::exchange_seconds(kind, link, size);
    fitted.source = cost::Source::fitted;
    return fitted;
  }
  Curve* const curve = curve_of(cost::collective_kind(kind), link);
  const auto at = curve != nullptr ? curve->at(bytes) : std::nullopt;
  const auto least = curve != nullptr ? curve->at(kLeastBytes) : std::nullopt;
  if (!at || !least) return std::nullopt;
  double slower = 1;
  if (measured) {
    Curve* const all_reduce = curve_of(collective::Kind::all_reduce, link);
    const auto simulated = all_reduce != nullptr ? all_reduce->at(bytes) : std::nullopt;
    if (simulated)
      slower = cost::exchange_seconds(Kind::all_reduce, link, size).seconds() / simulated->seconds;
  }
  const double latency = std::min(least->seconds, at->seconds);
  return cost::ExchangePrice{latency * slower, (at->seconds - latency) * slower, at->algorithm,
                             cost::Source::simulated};
}

std::optional<cost::ExchangePrice> ExchangePrices::on_local(Kind kind, const cost::MeshLink& link,
                                                            std::int64_t bytes) {
  // What only neighbours need runs as an all-to-all in which most give nothing.
  const bool few = kind == Kind::permute || kind == Kind::halo;
  const comm::Setting setting{.kind = few ? comm::Kind::all_to_all : cost::collective_kind(kind),
                              .ranks = link.ranks,
                              .transport = transport_,
                              .allocated = true};
  const comm::Choice choice = local_->chooses.choose_for_group(setting, bytes);
  if (choice.algorithm.empty()) return std::nullopt;
  const comm::Candidate expected = local_->knows.expect(setting, choice.algorithm);
  const double all = expected.seconds(bytes), latency = std::min(all, expected.seconds(1));
  return cost::ExchangePrice{latency, all - latency, choice.algorithm,
                             is_measured(expected)                  ? cost::Source::measured
                             : expected.source == "default figures" ? cost::Source::datasheet
                                                                    : cost::Source::calibrated};
}

CostsOn costs_on(const cluster::Cluster& cluster, const Settings& settings, int workers) {
  auto transport = comm::find_transport(settings.running.transport);
  if (!transport || *transport == comm::TransportKind::automatic) transport = comm::TransportKind::shm;
  const std::string over(comm::name(*transport));
  auto prices = std::make_shared<ExchangePrices>(cluster, over);
  return [=](const plan::Mesh& mesh, const cost::Statistics* statistics) {
    cost::StepCostOptions options{.statistics = statistics, .workers = workers, .transport = over};
    options.exchange = [prices](program::Exchange::Kind kind, const cost::MeshLink& link,
                                std::int64_t bytes) { return prices->price(kind, link, bytes); };
    return cost::step_costs(cluster, mesh, options);
  };
}

}  // namespace weft::session
