// Spare memory of neighbours: against all placements of a DGX-1, and swaps that cost nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "weft/base/random.h"
#include "weft/program/memory/spare.h"

namespace weft::memory {
namespace {

constexpr double kLink = 25e9;  // bytes a second of one NVLink

// A DGX-1 with V100: a hybrid cube mesh, six links a device, some pairs joined twice.
LinkRates dgx1() {
  LinkRates links{8, std::vector<double>(64)};
  const auto join = [&](std::size_t a, std::size_t b, double count) {
    links.rates[a * 8 + b] = links.rates[b * 8 + a] = count * kLink;
  };
  for (const std::size_t quad : {0, 4}) {
    join(quad + 0, quad + 1, 1), join(quad + 0, quad + 2, 1), join(quad + 0, quad + 3, 2);
    join(quad + 1, quad + 2, 2), join(quad + 1, quad + 3, 1), join(quad + 2, quad + 3, 2);
  }
  for (const std::size_t device : {0, 1}) join(device, device + 4, 2);
  for (const std::size_t device : {2, 3}) join(device, device + 4, 1);
  return links;
}

// The least time by bisection over flows, written without cuts: a time is enough when all bytes find a way.
bool fits(const std::vector<StageMemory>& stages, const LinkRates& links,
          const std::vector<std::int32_t>& device_of, double seconds) {
  const std::size_t n = stages.size();
  std::vector<double> left(n), room(n), flow(n * n);
  for (std::size_t s = 0; s < n; ++s)
    left[s] = static_cast<double>(stages[s].overflow), room[s] = static_cast<double>(stages[s].room);
  const auto carries = [&](std::size_t s, std::size_t r) {
    return seconds *
           links.rate(static_cast<std::size_t>(device_of[s]), static_cast<std::size_t>(device_of[r]));
  };
  // Ways of any length, depth first.
  for (std::size_t s = 0; s < n; ++s) {
    for (int tries = 0; left[s] > 1e-3 && tries < 1000; ++tries) {
      std::vector<bool> seen(n), taken(n);
      const auto walk = [&](const auto& self, std::size_t at, double bytes) -> double {
        seen[at] = true;
        for (std::size_t r = 0; r < n; ++r) {
          if (stages[r].room == 0 || taken[r]) continue;
          const double more = std::min(bytes, carries(at, r) - flow[at * n + r]);
          if (more <= 1e-6) continue;
          taken[r] = true;
          if (room[r] > 1e-6) {
            const double sent = std::min(more, room[r]);
            room[r] -= sent, flow[at * n + r] += sent;
            return sent;
          }
          for (std::size_t other = 0; other < n; ++other) {
            if (seen[other] || flow[other * n + r] <= 1e-6) continue;
            const double sent = self(self, other, std::min(more, flow[other * n + r]));
            if (sent <= 0) continue;
            flow[other * n + r] -= sent, flow[at * n + r] += sent;
            return sent;
          }
        }
        return 0;
      };
      const double sent = walk(walk, s, left[s]);
      if (sent <= 0) return false;
      left[s] -= sent;
    }
    if (left[s] > 1e-3) return false;
  }
  return true;
}

std::vector<StageMemory> random_stages(Random& random) {
  std::vector<StageMemory> stages(8);
  const std::uint64_t senders = 1 + random.below(4);
  for (std::size_t s = 0; s < stages.size(); ++s) {
    if (s < senders)
      stages[s].overflow = random.between(1, 8) << 30;
    else
      stages[s].room = random.between(2, 12) << 30;
  }
  return stages;
}

TEST(Spare, IsTheBestOfAllPlacementsOnADgx1) {
  Random random(3);
  const LinkRates links = dgx1();
  for (int i = 0; i < 3; ++i) {
    const std::vector<StageMemory> stages = random_stages(random);
    const auto plan = place_in_spare_memory(stages, links);
    if (!plan.ok()) continue;
    // No placement of all 8! gets its bytes away in less.
    std::vector<std::int32_t> order(8);
    std::iota(order.begin(), order.end(), 0);
    std::size_t better = 0;
    do better += fits(stages, links, order, plan->seconds * (1 - 1e-6));
    while (std::next_permutation(order.begin(), order.end()));
    EXPECT_EQ(better, 0u);
    EXPECT_TRUE(fits(stages, links, plan->device_of, plan->seconds * (1 + 1e-6)));
    EXPECT_EQ(spare_seconds(stages, links, plan->device_of), plan->seconds);
  }
}

TEST(Spare, StripesHoldAllAndNoMore) {
  Random random(5);
  const LinkRates links = dgx1();
  int placed = 0;
  for (int i = 0; i < 10; ++i) {
    const std::vector<StageMemory> stages = random_stages(random);
    const auto plan = place_in_spare_memory(stages, links);
    if (!plan.ok()) continue;
    ++placed;
    std::map<std::int32_t, std::int64_t> sent, held;
    for (const Stripe& stripe : plan->stripes) {
      sent[stripe.from] += stripe.bytes;
      held[stripe.to] += stripe.bytes;
      const double rate =
          links.rate(static_cast<std::size_t>(plan->device_of[static_cast<std::size_t>(stripe.from)]),
                     static_cast<std::size_t>(plan->device_of[static_cast<std::size_t>(stripe.to)]));
      EXPECT_LE(static_cast<double>(stripe.bytes - 2), rate * plan->seconds * (1 + 1e-9));
    }
    for (std::size_t s = 0; s < stages.size(); ++s) {
      EXPECT_EQ(sent[static_cast<std::int32_t>(s)], stages[s].overflow);
      EXPECT_LE(held[static_cast<std::int32_t>(s)], stages[s].room);
    }
  }
  EXPECT_GT(placed, 3);
}

// With room everywhere, one stage sends over all six links at once, twice as much over two as over one.
TEST(Spare, CutsInProportionToLinks) {
  std::vector<StageMemory> stages(8, StageMemory{0, std::int64_t{32} << 30});
  stages[0] = {std::int64_t{6} << 30, 0};
  const auto plan = place_in_spare_memory(stages, dgx1());
  ASSERT_TRUE(plan.ok());
  EXPECT_DOUBLE_EQ(plan->seconds, static_cast<double>(std::int64_t{6} << 30) / (6 * kLink));
  ASSERT_EQ(plan->stripes.size(), 4u);
  for (const Stripe& stripe : plan->stripes) {
    const double count =
        dgx1().rate(static_cast<std::size_t>(plan->device_of[0]),
                    static_cast<std::size_t>(plan->device_of[static_cast<std::size_t>(stripe.to)])) /
        kLink;
    EXPECT_NEAR(static_cast<double>(stripe.bytes), count * static_cast<double>(1 << 30), 16);
  }
}

TEST(Spare, SaysWhatDoesNotFit) {
  std::vector<StageMemory> stages(8);
  stages[0].overflow = 2;
  stages[1].room = 1;
  const auto plan = place_in_spare_memory(stages, dgx1());
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().message, "the stages overflow by 2 B, and there is room for 1 B");
  stages[1].room = 2;
  EXPECT_FALSE(place_in_spare_memory(stages, {8, std::vector<double>(64)}).ok());
  EXPECT_FALSE(place_in_spare_memory(stages, {7, std::vector<double>(49)}).ok());
  stages[1].overflow = 1;
  EXPECT_FALSE(place_in_spare_memory(stages, dgx1()).ok());
}

TEST(Spare, SwapsAreFreeBetweenForwardAndBackward) {
  // 1F1B's second stage of four: B of a micro-batch comes five passes after its F.
  EXPECT_EQ(free_swaps(std::vector<SwapWindow>{{1, 6}}, 2, 2), std::vector<bool>{true});
  EXPECT_EQ(free_swaps(std::vector<SwapWindow>{{1, 6}}, 2, 3.5), std::vector<bool>{false});
  EXPECT_EQ(free_swaps(std::vector<SwapWindow>{{1, 1}}, 0, 0), std::vector<bool>{true});
  // The link takes them in turns: the second comes a second later and would have to be back as early.
  EXPECT_EQ(free_swaps(std::vector<SwapWindow>{{0, 4}, {0, 4}}, 1, 1), (std::vector<bool>{true, true}));
  EXPECT_EQ(std::ranges::count(free_swaps(std::vector<SwapWindow>{{0, 3}, {0, 3}}, 1, 1), true), 1);
  // The last stage has no window at all, and nothing that it leaves out hinders the others.
  EXPECT_EQ(free_swaps(std::vector<SwapWindow>{{0, 10}, {5, 5}, {6, 20}}, 2, 2),
            (std::vector<bool>{true, false, true}));
}

}  // namespace
}  // namespace weft::memory
