// weft/planner/exchange/group_times.h -- what each algorithm of a collective takes on the wires of a group, by size.
//
//   GroupTimes   candidate x bytes ──▶ seconds, simulated once each      up to 32 ranks
//        │ └──── cost/rank_growth.h: the same among more                 64, 128, ... 1,024 ranks
//   PriceCurve   bytes ──▶ the fastest, at sizes four apart; straight lines in log bytes, log seconds between
//
// A candidate is an algorithm with its parameters and protocol. All groups of one collective on one kind of
// link have the same candidates, in the same order.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weft/collectives/chunks/collective.h"
#include "weft/plan/cluster/cluster.h"
#include "weft/planner/exchange/collective_price.h"
#include "weft/predict/cost/rank_growth.h"
#include "weft/predict/sim/collective/collective_cluster.h"

namespace weft::exchange {

struct GroupCandidate {
  std::string reference;  // "all_reduce_ring(channels=3)"
  collective::Protocol protocol = collective::Protocol::simple;
  std::int32_t instances = 1;
  std::optional<cost::Growth> growth;  // nothing: it follows no rule, and is not carried on to more ranks
};

// Who wins somewhere among all shipped algorithms where any two ranks of a group are equally near; elsewhere
// all that are shipped as well. Where asked for, also trees that are synthesized for the group's wires.
std::vector<GroupCandidate> candidates_for(collective::Kind kind, const sim::CollectiveCluster& wires,
                                           const cluster::Link& link, bool synthesize = false);

// May be asked from several threads at once.
class GroupTimes {
 public:
  GroupTimes(sim::CollectiveCluster wires, std::vector<GroupCandidate> candidates);

  const std::vector<GroupCandidate>& candidates() const { return candidates_; }
  // Infinite where the candidate is not made for these ranks or wires, or never wins at such a size.
  double seconds(std::size_t candidate, std::int64_t bytes);
  // "all_reduce_ring(channels=3)", "all_gather_all_pairs x3": what an Exchange names it, but for its protocol.
  std::string name_of(std::size_t candidate) const;

 private:
  const PricedProgram* program(std::size_t candidate);

  const sim::CollectiveCluster wires_;
  const std::vector<GroupCandidate> candidates_;
  std::mutex mutex_;
  std::map<std::size_t, std::optional<PricedProgram>> programs_;  // nothing: it does not run here
  std::map<std::pair<std::size_t, std::int64_t>, double> seconds_;
};

// The fastest of some candidates by size. May be asked from several threads at once.
class PriceCurve {
 public:
  static constexpr std::int64_t kLeastBytes = 1 << 10, kMostBytes = std::int64_t{1} << 32, kApart = 4;

  using Seconds = std::function<double(std::size_t candidate, std::int64_t bytes)>;
  PriceCurve(std::size_t candidates, Seconds seconds)
      : candidates_(candidates), seconds_(std::move(seconds)) {}

  struct Point {
    double seconds = 0;
    std::size_t candidate = 0;
  };
  // Nothing where no candidate runs.
  std::optional<Point> at(std::int64_t bytes);

 private:
  const Point& point(std::int64_t bytes);
  double least_at(std::size_t candidate, std::int64_t bytes) const;

  const std::size_t candidates_;
  const Seconds seconds_;
  std::mutex mutex_;
  std::map<std::int64_t, Point> points_;
  std::map<std::pair<std::size_t, std::int64_t>, double> simulated_;  // by candidate and bytes
};

}  // namespace weft::exchange
