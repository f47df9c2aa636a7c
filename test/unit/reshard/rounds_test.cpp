// Rounds: no host does two things at once, and the busiest host is never idle.
#include "weft/collectives/reshard/rounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "weft/base/random.h"

namespace weft::reshard {
namespace {

std::int64_t busiest_port(const std::vector<Traffic>& traffic) {
  std::map<std::int32_t, std::int64_t> sends, receives;
  std::int64_t most = 0;
  for (const Traffic& pair : traffic) {
    most = std::max(most, sends[pair.from] += pair.elements);
    most = std::max(most, receives[pair.to] += pair.elements);
  }
  return most;
}

void expect_schedule(const std::vector<Traffic>& traffic) {
  const std::vector<Stretch> stretches = make_rounds(traffic);
  std::map<std::int32_t, std::int64_t> sends_until, receives_until;
  std::vector<std::int64_t> done(traffic.size());
  std::int64_t now = 0, end = 0;
  for (const Stretch& stretch : stretches) {
    const Traffic& pair = traffic[stretch.traffic];
    EXPECT_GE(stretch.start, now);
    now = stretch.start;
    EXPECT_GE(stretch.start, sends_until[pair.from]);
    EXPECT_GE(stretch.start, receives_until[pair.to]);
    EXPECT_EQ(stretch.begin, done[stretch.traffic]);
    EXPECT_LT(stretch.begin, stretch.end);
    done[stretch.traffic] = stretch.end;
    sends_until[pair.from] = receives_until[pair.to] = stretch.start + stretch.end - stretch.begin;
    end = std::max(end, stretch.start + stretch.end - stretch.begin);
  }
  for (std::size_t t = 0; t < traffic.size(); ++t) EXPECT_EQ(done[t], traffic[t].elements);
  EXPECT_EQ(end, busiest_port(traffic));
}

TEST(Rounds, MatchesTheExampleInTheHeader) {
  expect_schedule({{0, 2, 3}, {0, 3, 1}, {1, 2, 1}, {1, 3, 3}});
  EXPECT_TRUE(make_rounds({}).empty());
}

TEST(Rounds, RandomTrafficEndsWithItsBusiestHost) {
  Random random(5);
  for (int round = 0; round < 200; ++round) {
    const std::int64_t hosts = random.between(1, 7);
    std::vector<Traffic> traffic;
    for (std::int32_t from = 0; from < hosts; ++from)
      for (std::int32_t to = 0; to < hosts; ++to)
        if (from != to && random.below(2) == 0) traffic.push_back({from, to, random.between(0, 30)});
    expect_schedule(traffic);
  }
}

TEST(Rounds, ManyPairsUseRoundRobin) {
  std::vector<Traffic> traffic;
  for (std::int32_t from = 0; from < 130; ++from)
    for (std::int32_t to = 0; to < 130; ++to) traffic.push_back({from, 200 + to, 1});
  ASSERT_GT(traffic.size(), kMostExactPairs);
  const std::vector<Stretch> stretches = make_rounds(traffic);
  ASSERT_EQ(stretches.size(), traffic.size());
  std::map<std::pair<std::int32_t, std::int64_t>, int> receives;  // in a round each receiver has one sender
  for (const Stretch& stretch : stretches)
    EXPECT_EQ(++receives[std::pair(traffic[stretch.traffic].to, stretch.start)], 1);
}

}  // namespace
}  // namespace weft::reshard
