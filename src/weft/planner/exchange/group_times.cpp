#include "weft/planner/exchange/group_times.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "weft/collectives/synthesis/named_trees.h"
#include "weft/planner/exchange/collective_choice.h"

namespace weft::exchange {
namespace {

using collective::Protocol;
using cost::Growth;

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr std::int32_t kMostGroupSlices = 8;  // as in `weft collective choose`

struct Usual {
  Variant variant;
  std::optional<Growth> growth = {};
};

std::vector<Usual> usual_winners(collective::Kind kind, std::int32_t threadblocks) {
  switch (kind) {
    case collective::Kind::all_reduce:
      return {{{"all_reduce_all_pairs_two_shot"}, Growth::blocks},
              {{"all_reduce_recursive_doubling", threadblocks}, Growth::rounds},
              {{"all_reduce_halving_doubling", threadblocks}},  // halves overlap differently by rank count
              {{"all_reduce_double_binary_tree(chunks=8)"}, Growth::rounds},
              {{fmt::format("all_reduce_ring(channels={})", threadblocks)}, Growth::blocks}};
    case collective::Kind::all_gather:
      return {{{"all_gather_all_pairs", threadblocks}, Growth::blocks},
              {{"all_gather_recursive_doubling", threadblocks}, Growth::halves},
              {{"all_gather_ring", threadblocks}, Growth::blocks}};
    case collective::Kind::reduce_scatter:
      return {{{"reduce_scatter_all_pairs", threadblocks}, Growth::blocks},
              {{"reduce_scatter_recursive_halving", threadblocks}, Growth::halves},
              {{"reduce_scatter_ring", threadblocks}, Growth::blocks}};
    case collective::Kind::all_to_all: return {{{"all_to_all_direct", threadblocks}, Growth::blocks}};
    case collective::Kind::broadcast:
      return {{{"broadcast_binomial"}, Growth::rounds},
              {{"broadcast_chain", threadblocks}, Growth::hops},
              {{"broadcast_scatter_all_gather", threadblocks}, Growth::blocks}};
    default: return {};
  }
}

// LL sends a flag with every word, so it is slow for long messages. Simple has the most latency.
bool may_win(Protocol protocol, std::int64_t bytes) {
  switch (protocol) {
    case Protocol::ll: return bytes <= 1 << 20;
    case Protocol::ll128: return true;
    case Protocol::simple: return bytes >= 1 << 16;
  }
  return true;
}

bool is_even_group(const cluster::Link& link) {
  using enum cluster::Shape;
  return link.shape == unstated || link.shape == switched || link.shape == full;
}

}  // namespace

std::vector<GroupCandidate> candidates_for(collective::Kind kind, const sim::CollectiveCluster& wires,
                                           const cluster::Link& link, bool synthesize) {
  std::vector<Usual> variants = usual_winners(kind, sim::threadblocks_for(link.bytes_per_second));
  if (!is_even_group(link))
    for (Variant& variant : shipped_variants(kind, wires)) variants.push_back({std::move(variant)});
  // One chunk for short messages, several to keep the trees busy for long ones.
  if (synthesize)
    for (const std::int32_t pieces : {1, 4})
      if (const auto trees = synthesis::name_of_trees(kind, link, pieces))
        for (const std::int32_t instances : {1, sim::threadblocks_for(link.bytes_per_second)})
          variants.push_back({{*trees, instances}});
  std::vector<GroupCandidate> candidates;
  for (const Usual& one : variants)
    for (const Protocol protocol : {Protocol::simple, Protocol::ll, Protocol::ll128})
      candidates.push_back({one.variant.reference, protocol, one.variant.instances, one.growth});
  return candidates;
}

GroupTimes::GroupTimes(sim::CollectiveCluster wires, std::vector<GroupCandidate> candidates)
    : wires_(std::move(wires)), candidates_(std::move(candidates)) {}

const EstimatedProgram* GroupTimes::program(std::size_t candidate) {
  const auto [found, fresh] = programs_.try_emplace(candidate);
  if (fresh) {
    const GroupCandidate& wanted = candidates_[candidate];
    if (auto made = prepare(wanted.reference, wires_, wanted.protocol, wanted.instances); made.ok()) {
      made->parameters.max_slices = kMostGroupSlices;
      found->second = std::move(*made);
    }
  }
  return found->second ? &*found->second : nullptr;
}

double GroupTimes::seconds(std::size_t candidate, std::int64_t bytes) {
  if (!may_win(candidates_[candidate].protocol, bytes)) return kNever;
  const std::lock_guard lock(mutex_);
  const auto [found, fresh] = seconds_.try_emplace({candidate, bytes}, kNever);
  if (!fresh) return found->second;
  const EstimatedProgram* const made = program(candidate);
  if (made == nullptr) return kNever;
  if (const auto rows = price_at(*made, wires_, {&bytes, 1}); rows.ok())
    found->second = rows->front().seconds;
  return found->second;
}

std::string GroupTimes::name_of(std::size_t candidate) const {
  const GroupCandidate& one = candidates_[candidate];
  return one.reference + (one.instances > 1 ? fmt::format(" x{}", one.instances) : "");
}

const CostCurve::Point& CostCurve::point(std::int64_t bytes) {
  const auto [found, fresh] = points_.try_emplace(bytes, Point{kNever, 0});
  if (!fresh) return found->second;
  // The winner at the nearest size is tried first, since it is likely to win here too. Candidates
  // that took longer for fewer bytes are skipped, so most are not simulated.
  std::vector<std::size_t> order(candidates_);
  std::iota(order.begin(), order.end(), 0);
  if (const auto next = std::next(found); next != points_.end())
    std::swap(order[0], order[next->second.candidate]);
  else if (found != points_.begin())
    std::swap(order[0], order[std::prev(found)->second.candidate]);
  Point best = found->second;
  for (const std::size_t candidate : order) {
    if (least_at(candidate, bytes) > best.seconds) continue;
    const double seconds = seconds_(candidate, bytes);
    simulated_[{candidate, bytes}] = seconds;
    if (seconds < best.seconds || (seconds == best.seconds && candidate < best.candidate))
      best = {seconds, candidate};
  }
  return found->second = best;
}

// Lower bound: the time at the next smaller simulated size.
double CostCurve::least_at(std::size_t candidate, std::int64_t bytes) const {
  auto after = simulated_.lower_bound({candidate, bytes});
  while (after != simulated_.begin() && (--after)->first.first == candidate)
    if (std::isfinite(after->second)) return after->second;  // infinite: excluded at that size by may_win
  return 0;
}

std::optional<CostCurve::Point> CostCurve::at(std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  const std::int64_t size = std::clamp<std::int64_t>(bytes, kLeastBytes, kMostBytes);
  std::int64_t below = kLeastBytes;
  while (below * kApart <= size && below < kMostBytes) below *= kApart;
  const Point& first = point(below);
  if (!std::isfinite(first.seconds)) return std::nullopt;
  if (below == size) {
    const double longer = bytes > kMostBytes ? static_cast<double>(bytes) / kMostBytes : 1;
    return Point{first.seconds * longer, first.candidate};
  }
  const Point& second = point(below * kApart);
  if (!std::isfinite(second.seconds)) return std::nullopt;
  const double part = std::log(static_cast<double>(size) / static_cast<double>(below)) /
                      std::log(static_cast<double>(kApart));
  return Point{first.seconds * std::pow(second.seconds / first.seconds, part),
               part < 0.5 ? first.candidate : second.candidate};
}

}  // namespace weft::exchange
