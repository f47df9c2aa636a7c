// weft/planner/exchange/exchange_prices.h -- what collectives cost along a mesh axis: by the algorithm that would run.
//
//   mesh axis ──▶ its group's wires ──▶ the compiler's candidates, simulated on them ──▶ the fastest
//
//   prices.price(all_gather, node=8, 4 MiB)      97 us   all_gather_all_pairs x3 LL128   simulated
//   prices.price(all_reduce, gpu=8, 4 MiB)       71 us   all_reduce_ring                 fitted
//   prices.price(all_reduce, node=128, 4 MiB)    709 us  all_reduce_all_pairs_two_shot   carried (rank_growth.h)
//   prices.price(halo, gpu=8, 4 MiB)             25 us   to neighbours LL128             simulated, all groups at once
//   prices.price(all_reduce, rank=2, 4 MiB)      310 us  direct two-shot                 measured
//
// Times are simulated once each, when first asked for (group_times.h), among up to 32 ranks; of more, among
// 8, 16 and 32 of them. NCCL's all-reduce among the GPUs of a node was measured (exchange_seconds.h), and
// what was measured goes before what is simulated: there the fitted formula is the price, and other
// collectives on such wires are as much slower than their simulation as the all-reduce is.
//
// Of ranks of this machine the runtime's own table speaks (comm/choice/choice.h): what the algorithm that it will
// choose took when it was tuned, or should take.
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
#include "weft/planner/exchange/asked_algorithms.h"
#include "weft/predict/cost/mesh_links.h"
#include "weft/predict/cost/step_costs.h"

namespace weft::exchange {

class GroupTimes;

// May be asked from several threads at once.
class ExchangePrices {
 public:
  using Kind = program::Exchange::Kind;

  // `transport` is that of LOCAL ranks, `asked` what they are to run in place of what the table would choose.
  // `synthesize`: trees made for the wires (synthesis/named_trees.h) compete with the algorithms that ship.
  // `servers`: spare hosts that may add up (algorithm/summation_service.h). Of LOCAL ranks they do; between nodes
  // they compete, each with a network card like a device's, which all groups that sum at once share.
  ExchangePrices(cluster::Cluster cluster, std::string transport, std::vector<AskedAlgorithm> asked = {},
                 bool synthesize = false, std::int32_t servers = 0);
  ~ExchangePrices();

  // Nothing where the formulas must do: bandwidth that is not stated, hosts of a job, and groups of more than 32
  // ranks, or parts of a node, that are wired otherwise than through a switch. A permute goes to the next rank.
  // Of LOCAL ranks it is the price of `algorithm` where that has a name.
  std::optional<cost::ExchangePrice> price(Kind kind, const cost::MeshLink& link, std::int64_t bytes,
                                           const program::ChosenAlgorithm& algorithm = {});

 private:
  struct Curve;

  std::optional<cost::ExchangePrice> on_cluster(Kind kind, const cost::MeshLink& link, std::int64_t bytes);
  std::optional<cost::ExchangePrice> on_local(Kind kind, const cost::MeshLink& link, std::int64_t bytes,
                                              std::string algorithm);
  std::string or_trees(const comm::Setting& setting, std::int64_t bytes, std::string chosen) const;
  std::optional<cost::ExchangePrice> among_neighbours(Kind kind, const cost::MeshLink& link,
                                                      std::int64_t bytes);
  Curve* curve_of(collective::Kind kind, const cost::MeshLink& link);
  GroupTimes* times_of(collective::Kind kind, const cost::MeshLink& link);  // REQUIRES: mutex_ is held
  Curve* served_curve_of(const cost::MeshLink& link);
  bool was_measured(const cost::MeshLink& link) const;
  double slowdown(const cost::MeshLink& link, std::int64_t bytes);

  const cluster::Cluster cluster_;
  const std::string transport_;
  const std::vector<AskedAlgorithm> asked_;
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
  // Cluster axis, ranks and how far apart they are, bytes, algorithm.
  using Question = std::tuple<Kind, std::size_t, std::int32_t, std::int32_t, std::int64_t, std::string>;
  std::map<Question, std::optional<cost::ExchangePrice>> known_;
};

// What steps on the cluster cost, for any of its meshes, with what the statistics know. All that it hands out
// share one ExchangePrices, and so do later calls for the same cluster, unless that is LOCAL. `transport` is that of LOCAL ranks, as users name it.
using CostsOn = std::function<Result<cost::StepCosts>(const plan::Mesh&, const cost::Statistics*)>;
CostsOn costs_on(const cluster::Cluster& cluster, std::string_view transport, int workers,
                 std::vector<AskedAlgorithm> asked = {}, bool synthesize = false, std::int32_t servers = 0);

}  // namespace weft::exchange
