#include "weft/collectives/reshard/routes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "weft/collectives/reshard/senders.h"

namespace weft::reshard {
namespace {

std::vector<std::int32_t> hosts_of(const std::vector<std::int32_t>& devices,
                                   std::span<const std::int32_t> host_of_device) {
  std::vector<std::int32_t> hosts;
  for (const std::int32_t device : devices) hosts.push_back(host_of_device[device]);
  hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
  return hosts;
}

std::vector<CellGroup> find_cell_groups(std::span<const Cell> cells,
                                        std::span<const std::int32_t> host_of_device) {
  std::vector<CellGroup> cell_groups;
  std::map<std::pair<std::vector<std::int32_t>, std::vector<std::int32_t>>, std::size_t> known;
  for (std::size_t c = 0; c < cells.size(); ++c) {
    const std::vector<std::int32_t> holders = hosts_of(cells[c].holders, host_of_device),
                                    all = hosts_of(cells[c].needers, host_of_device);
    std::vector<std::int32_t> needers;
    std::ranges::set_difference(all, holders, std::back_inserter(needers));
    if (needers.empty()) continue;
    const auto [at, is_new] = known.try_emplace({holders, needers}, cell_groups.size());
    if (is_new) cell_groups.push_back({{}, {0}, holders, needers});
    CellGroup& cell_group = cell_groups[at->second];
    cell_group.cells.push_back(c);
    cell_group.begins.push_back(cell_group.begins.back() + elements_of(cells[c].box));
  }
  return cell_groups;
}

// Limit on senders times the hosts that each reaches.
constexpr std::size_t kMostHops = std::size_t{1} << 21;
// A chain to more hosts would need more chunks than two trees do.
constexpr std::size_t kLongestChain = 4;

std::vector<Hop> chain(std::int32_t sender, const std::vector<std::int32_t>& receivers) {
  std::vector<Hop> hops;
  for (const std::int32_t receiver : receivers) {
    hops.push_back({sender, receiver, static_cast<std::int32_t>(hops.size())});
    sender = receiver;
  }
  return hops;
}

// A tree over places 1 to n, numbered from left to right. The children of place p are p - b/2 and
// p + b/2, where b is the lowest set bit of p; while the right one exceeds n, b is halved. Odd
// places are leaves. `moved`: place p belongs to receiver p + 1.
std::vector<Hop> tree(std::int32_t sender, const std::vector<std::int32_t>& receivers, bool moved) {
  const std::size_t n = receivers.size();
  const auto host = [&](std::size_t place) { return receivers[(moved ? place : place - 1) % n]; };
  std::vector<Hop> hops;
  std::vector<std::size_t> places = {std::bit_floor(n)};  // hops[i] leads to places[i]
  hops.push_back({sender, host(places[0]), 0});
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::size_t place = places[i], bit = place & (~place + 1);
    const auto add = [&](std::size_t below) {
      hops.push_back({host(place), host(below), hops[i].after + 1});
      places.push_back(below);
    };
    if (bit == 1) continue;
    add(place - bit / 2);
    std::size_t right = bit / 2;
    while (right > 0 && place + right > n) right /= 2;
    if (right > 0) add(place + right);
  }
  return hops;
}

// Appends the routes for a range of a group and adds what their hosts forward to `sends`.
void send(std::size_t cell_group, std::int64_t begin, std::int64_t end, std::int32_t sender,
          std::vector<std::int32_t> receivers, std::map<std::int32_t, std::int64_t>& sends,
          std::vector<Route>& routes) {
  const auto add = [&](std::int64_t from, std::int64_t to, std::vector<Hop> hops) {
    if (from == to) return;
    for (const Hop& hop : hops)
      if (hop.after > 0) sends[hop.from] += to - from;
    routes.push_back({cell_group, from, to, std::move(hops)});
  };
  // The host that already sends most becomes a leaf: last in a chain, first in the trees.
  std::ranges::stable_sort(receivers, {}, [&](std::int32_t host) { return sends[host]; });
  if (receivers.size() <= kLongestChain) return add(begin, end, chain(sender, receivers));
  std::ranges::reverse(receivers);
  const std::int64_t middle = begin + (end - begin) / 2;
  add(begin, middle, tree(sender, receivers, false));
  add(middle, end, tree(sender, receivers, true));
}

}  // namespace

Result<Routes> find_routes(std::span<const Cell> cells, std::span<const std::int32_t> hosts,
                           std::size_t wanted_hops) {
  Routes found;
  found.cell_groups = find_cell_groups(cells, hosts);
  std::vector<Demand> demands;
  std::map<std::int32_t, std::int64_t> sends, receives;
  for (const CellGroup& cell_group : found.cell_groups) {
    demands.push_back({cell_group.elements(), cell_group.holders});
    for (const std::int32_t host : cell_group.needers) receives[host] += cell_group.elements();
  }
  Balance balance = balance_senders(demands);
  found.lower_bound = balance.least;
  for (const auto& [host, elements] : receives)
    found.lower_bound = std::max(found.lower_bound, static_cast<double>(elements));

  const auto for_each_sender = [&](const auto& visit) {
    for (std::size_t l = 0; l < found.cell_groups.size(); ++l)
      for (std::size_t i = 0; i < found.cell_groups[l].holders.size(); ++i)
        if (balance.sent[l][i] > 0) visit(l, found.cell_groups[l].holders[i], balance.sent[l][i]);
  };
  const auto count_hops = [&] {
    std::size_t hops = 0;
    for_each_sender([&](std::size_t cell_group, std::int32_t, std::int64_t) {
      hops += found.cell_groups[cell_group].needers.size();
    });
    return hops;
  };
  if (count_hops() > wanted_hops)
    balance = balance_senders(demands, static_cast<std::int64_t>(std::ceil(found.lower_bound)));
  if (const std::size_t hops = count_hops(); hops > kMostHops)
    return user_error(
        fmt::format("too many pairs of sending and receiving hosts: expected at most {} pairs, found {}",
                    kMostHops, hops));

  for_each_sender([&](std::size_t, std::int32_t sender, std::int64_t sent) { sends[sender] += sent; });
  std::vector<std::int64_t> ends(found.cell_groups.size());
  for_each_sender([&](std::size_t cell_group, std::int32_t sender, std::int64_t sent) {
    send(cell_group, ends[cell_group], ends[cell_group] + sent, sender, found.cell_groups[cell_group].needers,
         sends, found.routes);
    ends[cell_group] += sent;
  });
  return found;
}

}  // namespace weft::reshard
