// Senders: the flow compared with every subset of hosts and every distribution.
#include "weft/collectives/reshard/senders.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include "weft/base/random.h"

namespace weft::reshard {
namespace {

std::int64_t busiest(const std::vector<Demand>& demands, const Balance& balance) {
  std::map<std::int32_t, std::int64_t> loads;
  for (std::size_t d = 0; d < demands.size(); ++d)
    for (std::size_t i = 0; i < demands[d].hosts.size(); ++i)
      loads[demands[d].hosts[i]] += balance.sent[d][i];
  std::int64_t most = 0;
  for (const auto& [host, load] : loads) most = std::max(most, load);
  return most;
}

// The maximum, over sets of hosts, of what only they hold, per host in the set.
double densest_load(const std::vector<Demand>& demands, std::int32_t hosts) {
  double most = 0;
  for (std::uint32_t set = 1; set < (1u << hosts); ++set) {
    std::int64_t inside = 0;
    for (const Demand& demand : demands)
      if (std::ranges::all_of(demand.hosts, [&](std::int32_t host) { return (set >> host & 1) != 0; }))
        inside += demand.elements;
    most = std::max(most, static_cast<double>(inside) / __builtin_popcount(set));
  }
  return most;
}

// All distributions of whole elements.
std::int64_t least_busiest(const std::vector<Demand>& demands, std::int32_t hosts) {
  std::vector<std::int64_t> loads(static_cast<std::size_t>(hosts));
  std::int64_t best = INT64_MAX;
  const std::function<void(std::size_t, std::size_t, std::int64_t)> share = [&](std::size_t d, std::size_t i,
                                                                                std::int64_t left) {
    if (d == demands.size()) {
      best = std::min(best, *std::ranges::max_element(loads));
      return;
    }
    const Demand& demand = demands[d];
    const std::int64_t next = d + 1 < demands.size() ? demands[d + 1].elements : 0;
    std::int64_t& load = loads[static_cast<std::size_t>(demand.hosts[i])];
    const bool last = i + 1 == demand.hosts.size();
    for (std::int64_t sent = last ? left : 0; sent <= left; ++sent) {
      load += sent;
      if (last)
        share(d + 1, 0, next);
      else
        share(d, i + 1, left - sent);
      load -= sent;
    }
  };
  share(0, 0, demands[0].elements);
  return best;
}

TEST(Senders, MatchesTheExampleInTheHeader) {
  const std::vector<Demand> demands = {{6, {0, 1}}, {4, {0}}};
  const Balance balance = balance_senders(demands);
  EXPECT_EQ(balance.least, 5);
  EXPECT_EQ(balance.sent, (std::vector<std::vector<std::int64_t>>{{1, 5}, {4}}));
}

TEST(Senders, NothingToSend) {
  EXPECT_EQ(balance_senders({}).least, 0);
  const std::vector<Demand> demands = {{0, {3}}};
  EXPECT_EQ(balance_senders(demands).sent, (std::vector<std::vector<std::int64_t>>{{0}}));
}

TEST(Senders, UsesFewerSendersIfMoreIsAllowed) {
  const std::vector<Demand> demands = {{12, {0, 1, 2}}};
  EXPECT_EQ(balance_senders(demands).sent[0], (std::vector<std::int64_t>{4, 4, 4}));
  EXPECT_EQ(balance_senders(demands, 6).sent[0], (std::vector<std::int64_t>{6, 6, 0}));
  EXPECT_EQ(balance_senders(demands, 6).least, 4);
}

TEST(Senders, MatchesExhaustiveSearch) {
  Random random(11);
  for (int round = 0; round < 300; ++round) {
    const auto hosts = static_cast<std::int32_t>(random.between(1, 4));
    std::vector<Demand> demands(static_cast<std::size_t>(random.between(1, 4)));
    for (Demand& demand : demands) {
      demand.elements = random.between(0, 5);
      for (std::int32_t host = 0; host < hosts; ++host)
        if (random.below(2) == 0) demand.hosts.push_back(host);
      if (demand.hosts.empty()) demand.hosts = {0};
    }
    const Balance balance = balance_senders(demands);
    for (std::size_t d = 0; d < demands.size(); ++d)
      EXPECT_EQ(std::accumulate(balance.sent[d].begin(), balance.sent[d].end(), std::int64_t{0}),
                demands[d].elements);
    EXPECT_EQ(busiest(demands, balance), least_busiest(demands, hosts)) << round;
    EXPECT_LE(balance.least, densest_load(demands, hosts) + 1e-9);
    EXPECT_EQ(std::ceil(balance.least), std::ceil(densest_load(demands, hosts))) << round;
  }
}

}  // namespace
}  // namespace weft::reshard
