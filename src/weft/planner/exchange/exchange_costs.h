// weft/planner/exchange/exchange_costs.h -- cost of collectives, by the algorithm that would run.
//
//   mesh axis ──▶ its group's links ──▶ the compiler's candidates, simulated on them ──▶ the fastest
//
//   prices.price(all_gather, node=8, 4 MiB)      97 us   all_gather_all_pairs x3 LL128   simulated
//   prices.price(all_reduce, gpu=8, 4 MiB)       71 us   all_reduce_ring                 fitted
//   prices.price(all_reduce, node=128, 4 MiB)    709 us  all_reduce_all_pairs_two_shot   carried
//   prices.price(halo, gpu=8, 4 MiB)             25 us   to neighbours LL128             all groups at once
//   prices.price(all_reduce, rank=2, 4 MiB)      310 us  direct two-shot                 measured
//
// Each time is simulated once, on first use (group_times.h), for up to 32 ranks. Larger groups are
// extrapolated from 8, 16 and 32 ranks (rank_extrapolation.h). NCCL's all-reduce among the GPUs of a node
// was measured (exchange_seconds.h), and measurements take precedence: its cost is the fitted
// formula. Simulated times of other collectives on such links are scaled by the ratio for the
// all-reduce. A device with rates of its own (cluster/rates.h)
// has NCCL's measured times of all four collectives instead.
//
// For ranks of this machine, the cost comes from the runtime's table (comm/choice/choice.h): the
// measured or expected time of the algorithm that the runtime will choose.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "weft/communication/comm/choice/choice.h"
#include "weft/plan/cluster/cluster.h"
#include "weft/planner/exchange/requested_algorithms.h"
#include "weft/predict/cost/mesh_links.h"
#include "weft/predict/cost/step_costs.h"

namespace weft::exchange {

class GroupTimes;

// Thread-safe.
class ExchangeCosts {
 public:
  using Kind = program::Exchange::Kind;

  // `transport`: of LOCAL ranks. `asked`: algorithms they run instead of those from the table.
  // `synthesize`: trees synthesized for the links (synthesis/named_trees.h) compete with shipped
  // algorithms. `servers`: hosts available as summation servers (algorithm/summation_service.h).
  // LOCAL ranks always use them. Between nodes they compete, each with a network card like a
  // device's, shared by all groups.
  ExchangeCosts(cluster::Cluster cluster, std::string transport, std::vector<RequestedAlgorithm> asked = {},
                bool synthesize = false, std::int32_t servers = 0);
  ~ExchangeCosts();

  // Nothing if formulas must be used: for unstated bandwidth, hosts of a job, and groups not
  // connected by a switch that are parts of a node or have more than 32 ranks. A permute sends to
  // the next rank. For LOCAL ranks: the cost of `algorithm` if it is named.
  std::optional<cost::ExchangeCost> price(Kind kind, const cost::MeshLink& link, std::int64_t bytes,
                                          const program::ChosenAlgorithm& algorithm = {});

 private:
  struct Curve;

  std::optional<cost::ExchangeCost> on_cluster(Kind kind, const cost::MeshLink& link, std::int64_t bytes);
  std::optional<cost::ExchangeCost> on_local(Kind kind, const cost::MeshLink& link, std::int64_t bytes,
                                             std::string algorithm);
  std::string or_trees(const comm::Setting& setting, std::int64_t bytes, std::string chosen) const;
  std::optional<cost::ExchangeCost> among_neighbours(Kind kind, const cost::MeshLink& link,
                                                     std::int64_t bytes);
  Curve* curve_of(collective::Kind kind, const cost::MeshLink& link);
  GroupTimes* times_of(collective::Kind kind, const cost::MeshLink& link);  // REQUIRES: holds mutex_
  Curve* served_curve_of(const cost::MeshLink& link);
  bool was_measured(const cost::MeshLink& link) const;
  double slowdown(const cost::MeshLink& link, std::int64_t bytes);

  const cluster::Cluster cluster_;
  const std::string transport_;
  const std::vector<RequestedAlgorithm> asked_;
  const bool synthesize_;
  const std::int32_t servers_;
  std::shared_mutex mutex_;
  using Group = std::tuple<collective::Kind, std::size_t, std::int32_t>;  // cluster axis, ranks
  std::map<Group, std::unique_ptr<GroupTimes>> times_;
  std::map<Group, std::unique_ptr<Curve>> curves_, served_curves_;
  std::vector<std::unique_ptr<GroupTimes>> served_times_;

  struct Local {
    comm::ChoiceTable chooses, knows;
  };
  std::optional<Local> local_;
  // Cluster axis, ranks and their stride, bytes, algorithm.
  using Question = std::tuple<Kind, std::size_t, std::int32_t, std::int32_t, std::int64_t, std::string>;
  std::map<Question, std::optional<cost::ExchangeCost>> known_;
};

// Costs of a step on the cluster, for any mesh, including the statistics. All results share one
// ExchangeCosts, as do later calls for the same cluster, except LOCAL. `transport`: of LOCAL
// ranks, as users name it.
using CostsOn = std::function<Result<cost::StepCosts>(const plan::Mesh&, const cost::Statistics*)>;
CostsOn costs_on(const cluster::Cluster& cluster, std::string_view transport, int workers,
                 std::vector<RequestedAlgorithm> asked = {}, bool synthesize = false,
                 std::int32_t servers = 0);

}  // namespace weft::exchange
