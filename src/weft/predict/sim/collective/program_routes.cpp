#include "weft/predict/sim/collective/program_routes.h"

#include <map>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/base/hash.h"
#include "weft/plan/cluster/routes.h"

namespace weft::sim {
namespace {

using collective::Action;
using collective::Agent;
using collective::Cell;

// Target first: Routes is fastest for consecutive routes to one target.
struct Wish {
  std::int32_t to, from, spread;

  friend auto operator<=>(const Wish&, const Wish&) = default;
};

// Calls visit(from, to, index) for every cell that is stored on another rank than the agent that
// uses it.
template <class Visit>
void each_remote_cell(const collective::Actions& actions, const Agent& agent, const Action& action,
                      Visit visit) {
  for (std::int32_t i = 0; i < action.sources + action.targets; ++i) {
    const std::int32_t index = action.first_cell + i;
    const std::int32_t there = actions.cells[static_cast<std::size_t>(index)].rank;
    if (there == agent.rank) continue;
    if (i < action.sources)
      visit(there, agent.rank, index);
    else
      visit(agent.rank, there, index);
  }
}

// A program made for another topology may name links that do not exist or do not form the path.
Status check_route(const cluster::Topology& topology, const collective::Connection& connection) {
  std::int32_t node = connection.from;
  for (const std::int32_t link : connection.links) {
    const bool is_there = link >= 0 && static_cast<std::size_t>(link) < topology.links.size();
    if (is_there && topology.links[static_cast<std::size_t>(link)].from == node) {
      node = topology.links[static_cast<std::size_t>(link)].to;
      continue;
    }
    return user_error(
        fmt::format("rank {} sends to {} over links {}, which is not a path on {}", connection.from,
                    connection.to, fmt::join(connection.links, " "), topology.name),
        "the program was made for another topology");
  }
  if (node == connection.to) return {};
  return user_error(fmt::format("rank {} sends to {} over links {}, which lead to {} on {}", connection.from,
                                connection.to, fmt::join(connection.links, " "),
                                topology.nodes[static_cast<std::size_t>(node)].name, topology.name),
                    "the program was made for another topology");
}

}  // namespace

Result<Ways> find_ways(const collective::Actions& actions, const cluster::Topology& topology,
                       Network& network) {
  if (actions.collective.ranks > topology.devices)
    return user_error(fmt::format("the program has more ranks than {} has devices: {} and {}", topology.name,
                                  actions.collective.ranks, topology.devices),
                      "use a larger cluster");
  std::map<Wish, Way> ways;
  const auto each_action = [&](auto visit) {
    for (const Agent& agent : actions.agents)
      for (std::int32_t a = agent.first; a < agent.end; ++a)
        visit(agent, actions.actions[static_cast<std::size_t>(a)], static_cast<std::size_t>(a));
  };
  for (const collective::Connection& c : actions.connections)
    if (c.links.empty()) ways[{c.to, c.from, c.channel}];
  each_action([&](const Agent& agent, const Action& action, std::size_t) {
    each_remote_cell(actions, agent, action, [&](std::int32_t from, std::int32_t to, std::int32_t) {
      ways[{to, from, agent.block}];
    });
    if (action.raise >= 0)
      ways[{actions.counters[static_cast<std::size_t>(action.raise)].rank, agent.rank, 0}];
  });

  cluster::Routes routes(topology);
  for (auto& [wish, way] : ways) {
    const auto pair = static_cast<std::uint64_t>(wish.from) << 32 | static_cast<std::uint32_t>(wish.to);
    const auto links =
        routes.route(wish.from, wish.to, (mix(pair) >> 40) + static_cast<std::uint32_t>(wish.spread));
    if (!links)
      return user_error(
          fmt::format("{} has no path between ranks {} and {}", topology.name, wish.from, wish.to),
          "a program needs a path between any two ranks that communicate");
    way = {network.add_route(*links), cluster::latency(topology, *links)};
  }

  Ways found;
  for (const collective::Connection& c : actions.connections) {
    if (c.links.empty()) {
      found.connections.push_back(ways[{c.to, c.from, c.channel}]);
      continue;
    }
    WEFT_TRY_STATUS(check_route(topology, c));
    found.connections.push_back({network.add_route(c.links), cluster::latency(topology, c.links)});
  }
  found.cells.resize(actions.cells.size());
  found.signals.resize(actions.actions.size(), 0);
  each_action([&](const Agent& agent, const Action& action, std::size_t index) {
    each_remote_cell(actions, agent, action, [&](std::int32_t from, std::int32_t to, std::int32_t cell) {
      found.cells[static_cast<std::size_t>(cell)] = ways[{to, from, agent.block}];
    });
    if (action.raise < 0) return;
    const std::int32_t there = actions.counters[static_cast<std::size_t>(action.raise)].rank;
    found.signals[index] = ways[{there, agent.rank, 0}].latency_seconds;
  });
  return found;
}

}  // namespace weft::sim
