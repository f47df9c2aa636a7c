#include "weft/collectives/reshard/senders.h"

#include <algorithm>
#include <map>

namespace weft::reshard {
namespace {

// Maximum flow from demands to hosts by shortest augmenting paths in levels (Dinic).
class SenderFlow {
 public:
  explicit SenderFlow(std::span<const Demand> demands) : demands_(demands) {
    std::map<std::int32_t, std::size_t> numbers;
    for (const Demand& demand : demands)
      for (const std::int32_t host : demand.hosts) numbers.emplace(host, 0);
    for (auto& [host, number] : numbers) number = load_.size(), load_.push_back(0);
    incoming_edges_.resize(load_.size());
    for (std::size_t d = 0; d < demands.size(); ++d) {
      left_.push_back(demands[d].elements);
      std::vector<Edge>& edges = edges_.emplace_back();
      for (const std::int32_t host : demands[d].hosts) {
        incoming_edges_[numbers[host]].push_back({d, edges.size()});
        edges.push_back({numbers[host], 0});
      }
    }
  }

  std::size_t hosts() const { return load_.size(); }

  // Sends as much as possible with at most `most` per host; earlier assignments stay or move.
  bool send_all(std::int64_t most) {
    while (make_levels(most)) {
      next_edge_.assign(edges_.size(), 0);
      next_incoming_.assign(incoming_edges_.size(), 0);
      for (std::size_t d = 0; d < edges_.size(); ++d)
        while (left_[d] > 0) {
          const std::int64_t sent = push_demand(d, left_[d], most);
          if (sent == 0) break;
          left_[d] -= sent;
        }
    }
    return std::ranges::all_of(left_, [](std::int64_t left) { return left == 0; });
  }

  // After send_all failed: the full hosts reachable from unsent demands, and the elements that only
  // they hold.
  void crowded(std::int64_t& elements, std::int64_t& hosts) const {
    hosts = std::ranges::count_if(host_level_, [](int level) { return level >= 0; });
    elements = 0;
    for (std::size_t d = 0; d < edges_.size(); ++d)
      if (std::ranges::all_of(edges_[d], [&](const Edge& edge) { return host_level_[edge.host] >= 0; }))
        elements += demands_[d].elements;
  }

  std::vector<std::vector<std::int64_t>> sent() const {
    std::vector<std::vector<std::int64_t>> sent;
    for (const std::vector<Edge>& edges : edges_)
      for (sent.emplace_back(); const Edge& edge : edges) sent.back().push_back(edge.sent);
    return sent;
  }

 private:
  struct Edge {
    std::size_t host;
    std::int64_t sent;
  };
  struct IncomingEdge {
    std::size_t demand, edge;
  };

  bool make_levels(std::int64_t most) {
    demand_level_.assign(edges_.size(), -1);
    host_level_.assign(load_.size(), -1);
    std::vector<std::size_t> front;
    for (std::size_t d = 0; d < left_.size(); ++d)
      if (left_[d] > 0) demand_level_[d] = 0, front.push_back(d);
    bool reached = false;
    for (int level = 1; !front.empty(); ++level) {
      std::vector<std::size_t> next;
      for (const std::size_t d : front)
        for (const Edge& edge : edges_[d]) {
          if (host_level_[edge.host] >= 0) continue;
          host_level_[edge.host] = level;
          reached = reached || load_[edge.host] < most;
          for (const IncomingEdge& giver : incoming_edges_[edge.host])
            if (demand_level_[giver.demand] < 0 && edges_[giver.demand][giver.edge].sent > 0)
              demand_level_[giver.demand] = level, next.push_back(giver.demand);
        }
      front = std::move(next);
    }
    return reached;
  }

  std::int64_t push_demand(std::size_t d, std::int64_t amount, std::int64_t most) {
    for (; next_edge_[d] < edges_[d].size(); ++next_edge_[d]) {
      Edge& edge = edges_[d][next_edge_[d]];
      if (host_level_[edge.host] != demand_level_[d] + 1) continue;
      const std::int64_t sent = push_host(edge.host, amount, most);
      if (sent > 0) {
        edge.sent += sent;
        return sent;
      }
    }
    return 0;
  }

  // Uses the host's free capacity first; then moves part of another demand to a different host.
  std::int64_t push_host(std::size_t host, std::int64_t amount, std::int64_t most) {
    if (load_[host] < most) {
      const std::int64_t sent = std::min(amount, most - load_[host]);
      load_[host] += sent;
      return sent;
    }
    for (; next_incoming_[host] < incoming_edges_[host].size(); ++next_incoming_[host]) {
      const IncomingEdge giver = incoming_edges_[host][next_incoming_[host]];
      const std::int64_t given = edges_[giver.demand][giver.edge].sent;
      if (given == 0 || demand_level_[giver.demand] != host_level_[host]) continue;
      const std::int64_t sent = push_demand(giver.demand, std::min(amount, given), most);
      if (sent > 0) {
        edges_[giver.demand][giver.edge].sent -= sent;
        return sent;
      }
    }
    return 0;
  }

  std::span<const Demand> demands_;
  std::vector<std::vector<Edge>> edges_;                   // per demand
  std::vector<std::vector<IncomingEdge>> incoming_edges_;  // per host: its incoming edges
  std::vector<std::int64_t> left_, load_;
  std::vector<int> demand_level_, host_level_;
  std::vector<std::size_t> next_edge_, next_incoming_;
};

}  // namespace

Balance balance_senders(std::span<const Demand> demands, std::int64_t allowed) {
  SenderFlow flow(demands);
  std::int64_t elements = 0, hosts = static_cast<std::int64_t>(flow.hosts());
  for (const Demand& demand : demands) elements += demand.elements;
  Balance balance;
  if (elements == 0) {
    balance.sent = flow.sent();
    return balance;
  }
  // Newton iteration: a load that does not suffice yields an overloaded set of hosts, whose mean is
  // the next load to try. The mean grows each time, and there are finitely many sets.
  std::int64_t most = 0;
  do {
    balance.least = std::max(balance.least, static_cast<double>(elements) / static_cast<double>(hosts));
    most = std::max({most + 1, allowed, (elements + hosts - 1) / hosts});
    if (flow.send_all(most)) break;
    flow.crowded(elements, hosts);
  } while (true);
  balance.sent = flow.sent();
  return balance;
}

}  // namespace weft::reshard
