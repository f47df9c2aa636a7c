// weft/planner/exchange/group_times.h -- times of collective algorithms on the links of a group.
//
//   GroupTimes   candidate x bytes ──▶ seconds, simulated once each      up to 32 ranks
//        │ └──── cost/rank_extrapolation.h: extrapolated to more ranks          64, 128, ... 1,024 ranks
//   CostCurve   bytes ──▶ the fastest, at sizes a factor of 4 apart; interpolated in log bytes, log seconds
//
// A candidate is an algorithm with its parameters and protocol. All groups of one collective on one
// kind of link have the same candidates, in the same order.
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
#include "weft/planner/exchange/collective_estimate.h"
#include "weft/predict/cost/rank_extrapolation.h"
#include "weft/predict/sim/collective/collective_cluster.h"

namespace weft::exchange {

struct GroupCandidate {
  std::string reference;  // "all_reduce_ring(channels=3)"
  collective::Protocol protocol = collective::Protocol::simple;
  std::int32_t instances = 1;
  std::optional<cost::Growth> growth;  // nothing: follows no rule and is not extrapolated
};

// If all ranks of a group are equally near: the shipped algorithms that win at some size. Otherwise
// all shipped algorithms. `synthesize`: also trees synthesized for the group's links.
std::vector<GroupCandidate> candidates_for(collective::Kind kind, const sim::CollectiveCluster& wires,
                                           const cluster::Link& link, bool synthesize = false);

// Thread-safe.
class GroupTimes {
 public:
  GroupTimes(sim::CollectiveCluster wires, std::vector<GroupCandidate> candidates);

  const std::vector<GroupCandidate>& candidates() const { return candidates_; }
  // Infinite if the candidate cannot run on these ranks or links, or never wins at such a size.
  double seconds(std::size_t candidate, std::int64_t bytes);
  // The name in an Exchange, without the protocol: "all_reduce_ring(channels=3)",
  // "all_gather_all_pairs x3".
  std::string name_of(std::size_t candidate) const;

 private:
  const EstimatedProgram* program(std::size_t candidate);

  const sim::CollectiveCluster wires_;
  const std::vector<GroupCandidate> candidates_;
  std::mutex mutex_;
  std::map<std::size_t, std::optional<EstimatedProgram>> programs_;  // nothing: cannot run here
  std::map<std::pair<std::size_t, std::int64_t>, double> seconds_;
};

// The fastest candidate by size. Thread-safe.
class CostCurve {
 public:
  static constexpr std::int64_t kLeastBytes = 1 << 10, kMostBytes = std::int64_t{1} << 32, kApart = 4;

  using Seconds = std::function<double(std::size_t candidate, std::int64_t bytes)>;
  CostCurve(std::size_t candidates, Seconds seconds)
      : candidates_(candidates), seconds_(std::move(seconds)) {}

  struct Point {
    double seconds = 0;
    std::size_t candidate = 0;
  };
  // Nothing if no candidate can run.
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
