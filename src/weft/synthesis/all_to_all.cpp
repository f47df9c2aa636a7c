#include "weft/synthesis/all_to_all.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "weft/synthesis/time_schedule.h"

namespace weft::synthesis {
namespace {

constexpr double kFlowGap = 0.01;
constexpr std::int32_t kDeals = 4;  // times that every chunk's path is chosen again

// Which path every chunk takes.
class Dealer {
 public:
  Dealer(const FlowNetwork& network, const ConcurrentFlow& flow)
      : network_(network), flow_(flow), load_(network.capacities.size(), 0) {
    for (std::size_t p = 0; p < flow.paths.size(); ++p)
      of_pair_[{flow.paths[p].from, flow.paths[p].to}].push_back(p);
  }

  // By chunk, as step_problem() numbers them.
  std::vector<std::size_t> deal(std::int32_t devices, std::int32_t cut) {
    const auto chunk_of = [&](std::int32_t from, std::int32_t to, std::int32_t copy) {
      return at((from * devices + to) * cut + copy);
    };
    std::vector<std::size_t> chosen(at(devices * devices * cut), flow_.paths.size());
    // First by the flow's shares, then each where it weighs least.
    for (std::int32_t pass = 0; pass <= kDeals; ++pass)
      for (const auto& [pair, paths] : of_pair_)
        for (std::int32_t copy = 0; copy < cut; ++copy) {
          std::size_t& choice = chosen[chunk_of(pair.first, pair.second, copy)];
          if (pass > 0) add(choice, -1);
          choice = pass == 0 ? by_share(paths, copy, cut) : lightest(paths);
          add(choice, 1);
        }
    return chosen;
  }

 private:
  std::size_t by_share(const std::vector<std::size_t>& paths, std::int32_t copy, std::int32_t cut) const {
    double point = (copy + 0.5) / cut;
    for (const std::size_t path : paths) {
      point -= flow_.paths[path].share;
      if (point <= 0) return path;
    }
    return paths.back();
  }

  void add(std::size_t path, double amount) {
    for (const std::int32_t arc : flow_.paths[path].arcs)
      for (const std::int32_t use : network_.arcs[at(arc)].uses)
        load_[at(use)] += amount / network_.capacities[at(use)];
    most_ = *std::ranges::max_element(load_);
  }

  // A load that is near the greatest weighs far more than others.
  std::size_t lightest(const std::vector<std::size_t>& paths) const {
    std::size_t best = paths.front();
    double least = kNever;
    for (const std::size_t path : paths) {
      double weight = 0;
      for (const std::int32_t arc : flow_.paths[path].arcs)
        for (const std::int32_t use : network_.arcs[at(arc)].uses) {
          const double share = load_[at(use)] / most_;
          weight += std::exp(24 * (share - 1)) / network_.capacities[at(use)];
        }
      if (weight < least) least = weight, best = path;
    }
    return best;
  }

  const FlowNetwork& network_;
  const ConcurrentFlow& flow_;
  std::vector<double> load_;
  double most_ = 1;
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<std::size_t>> of_pair_;
};

}  // namespace

Result<AllToAll> bound_all_to_all(const cluster::Topology& topology, const Deadline& deadline) {
  WEFT_TRY(wires, wires_of(topology));
  const ConcurrentFlow flow = find_concurrent_flow(flow_network(wires), kFlowGap, deadline, FlowPaths::no);
  if (!(flow.rate > 0))
    return user_error("time ran out before an all_to_all was bounded", "give it more time");
  return AllToAll{flow.bound * wires.gpus, flow.rate * wires.gpus};
}

std::vector<std::size_t> deal_paths(const StepNetwork& network, const ConcurrentFlow& flow,
                                    std::int32_t cut) {
  const FlowNetwork graph = flow_network(network);
  return Dealer(graph, flow).deal(network.devices, cut);
}

}  // namespace weft::synthesis
