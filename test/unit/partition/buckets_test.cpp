// Which tensors travel together: the solvers against all buckets and all orders of small chains and graphs.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "weft/base/random.h"
#include "weft/parallel/partition/buckets.h"
#include "weft/parallel/partition/graph_buckets.h"

namespace weft::partition {
namespace {

constexpr double kTolerance = 1e-9;
constexpr Release kReleases[] = {Release::together, Release::early};

double below(Random& random, std::uint64_t most) { return static_cast<double>(random.below(most + 1)); }

// Every way to cut the chain.
double best_of_all(std::span<const Tensor> chain, const Wire& wire, Release release) {
  const std::int32_t grains = grain_count(chain);
  double best = std::numeric_limits<double>::infinity();
  for (std::uint32_t cuts = 0; cuts < std::uint32_t{1} << (grains - 1); ++cuts) {
    std::vector<std::int32_t> ends;
    for (std::int32_t g = 1; g < grains; ++g)
      if ((cuts >> (g - 1) & 1) != 0) ends.push_back(g);
    ends.push_back(grains);
    best = std::min(best, seconds_of(chain, wire, ends, release));
  }
  return best;
}

std::vector<Tensor> random_chain(Random& random, std::size_t tensors, std::uint64_t most_grains = 1) {
  // Made only, read only, or both: gradients, loading, updates.
  const std::uint64_t kind = random.below(3);
  std::vector<Tensor> chain(tensors);
  for (Tensor& tensor : chain) {
    tensor.bytes = random.below(4) == 0 ? 0 : below(random, 100);
    if (kind != 1) tensor.made_seconds = below(random, 20);
    if (kind != 0) tensor.read_seconds = below(random, 20);
    tensor.grains = static_cast<std::int32_t>(1 + random.below(most_grains));
  }
  return chain;
}

TEST(Buckets, AnEmptyChainTakesNoTime) {
  const Buckets none = bucketise(std::span<const Tensor>(), Wire{1, 1});
  EXPECT_EQ(none.seconds, 0);
  EXPECT_TRUE(none.ends.empty());
  EXPECT_TRUE(fixed_buckets(std::span<const Tensor>(), kUsualBucketBytes).empty());
}

// Made at 1, 2 and 10. One bucket: 10 + 2 + 3. Three: the last begins at 10 and takes 2 + 1. What is made early
// travels by itself, and together: at 2 it takes 2 + 2, and is over long before 10.
TEST(Buckets, WhatIsThereEarlyGoesTogetherBeforeTheLast) {
  const std::vector<Tensor> chain = {{1, 1, 0}, {1, 1, 0}, {1, 8, 0}};
  const Buckets found = bucketise(chain, {.latency = 2, .bytes_per_second = 1});
  EXPECT_DOUBLE_EQ(found.seconds, 13);
  EXPECT_EQ(found.ends.back(), 3);
  EXPECT_EQ(found.ends[found.ends.size() - 2], 2);
  EXPECT_DOUBLE_EQ(seconds_of(chain, {2, 1}, std::vector{3}), 15);
}

// All of it is loaded by 4 + 2 + 4; who reads the first may begin at 2 + 4, or at its own end, 2 + 1.
TEST(Buckets, EarlyReleaseBeginsWhenItsOwnBytesAreThere) {
  const std::vector<Tensor> chain = {{1, 0, 10}, {3, 0, 1}};
  EXPECT_DOUBLE_EQ(seconds_of(chain, {2, 1}, std::vector{2}, Release::together), 6 + 11);
  EXPECT_DOUBLE_EQ(seconds_of(chain, {2, 1}, std::vector{2}, Release::early), 3 + 11);
}

TEST(Buckets, NoOtherCutsAreBetter) {
  Random random(11);
  for (int trial = 0; trial < 400; ++trial) {
    const std::vector<Tensor> chain = random_chain(random, 1 + random.below(9));
    const Wire wire{below(random, 30), 1 + below(random, 9)};
    for (const Release release : kReleases) {
      const Buckets found = bucketise(chain, wire, release);
      EXPECT_NEAR(found.seconds, best_of_all(chain, wire, release), kTolerance) << trial;
      EXPECT_NEAR(found.seconds, seconds_of(chain, wire, found.ends, release), kTolerance) << trial;
    }
  }
}

TEST(Buckets, TensorsAreCutWhereThatIsBetter) {
  Random random(12);
  int cut = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const std::vector<Tensor> chain = random_chain(random, 1 + random.below(4), 4);
    if (grain_count(chain) > 12) continue;
    const Wire wire{below(random, 5), 1 + below(random, 9)};
    for (const Release release : kReleases) {
      const Buckets found = bucketise(chain, wire, release);
      EXPECT_NEAR(found.seconds, best_of_all(chain, wire, release), kTolerance) << trial;
      // Tensors as a whole are among what was looked at.
      std::vector<Tensor> whole = chain;
      for (Tensor& tensor : whole) tensor.grains = 1;
      const double uncut = bucketise(whole, wire, release).seconds;
      EXPECT_LE(found.seconds, uncut + kTolerance) << trial;
      cut += found.seconds < uncut - kTolerance;
    }
  }
  EXPECT_GT(cut, 20);
}

TEST(Buckets, FixedOnesAreNeverBetter) {
  Random random(13);
  for (int trial = 0; trial < 200; ++trial) {
    const std::vector<Tensor> chain = random_chain(random, 1 + random.below(60));
    const Wire wire{below(random, 30), 1 + below(random, 9)};
    for (const Release release : kReleases) {
      const double found = bucketise(chain, wire, release).seconds;
      for (const double bytes : {0.0, 50.0, 200.0, 1e9})
        EXPECT_LE(found, seconds_of(chain, wire, fixed_buckets(chain, bytes), release) + kTolerance) << trial;
    }
  }
}

TEST(Buckets, EarlyReleaseIsNeverLater) {
  Random random(14);
  int earlier = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const std::vector<Tensor> chain = random_chain(random, 2 + random.below(20));
    const Wire wire{below(random, 30), 1 + below(random, 9)};
    const double together = bucketise(chain, wire, Release::together).seconds;
    const double early = bucketise(chain, wire, Release::early).seconds;
    EXPECT_LE(early, together + kTolerance) << trial;
    earlier += early < together - kTolerance;
  }
  EXPECT_GT(earlier, 20);
}

// -- graphs ----------------------------------------------------------------------------------------

// Every order of computing that needs allow, with every list of buckets, in every order where it matters.
double best_of_all(std::span<const Operation> graph, const Wire& wire, Release release) {
  std::vector<std::int32_t> computing, transfers;
  for (std::size_t i = 0; i < graph.size(); ++i)
    (is_transfer(graph[i]) ? transfers : computing).push_back(static_cast<std::int32_t>(i));
  double best = std::numeric_limits<double>::infinity();
  GraphBuckets order;
  const auto cut = [&](const std::vector<std::int32_t>& sent) {
    const std::size_t gaps = sent.empty() ? 0 : sent.size() - 1;
    for (std::uint32_t cuts = 0; cuts < std::uint32_t{1} << gaps; ++cuts) {
      order.buckets.clear();
      for (std::size_t i = 0; i < sent.size(); ++i) {
        if (i == 0 || (cuts >> (i - 1) & 1) != 0) order.buckets.emplace_back();
        order.buckets.back().push_back(sent[i]);
      }
      best = std::min(best, seconds_of(graph, wire, order, release));
    }
  };
  do {
    order.computing = computing;
    std::vector<std::int32_t> sent = transfers;
    do cut(sent);
    while (std::ranges::next_permutation(sent).found);
  } while (std::ranges::next_permutation(computing).found);
  return best;
}

std::vector<Operation> random_graph(Random& random, std::size_t operations, std::size_t most_transfers) {
  std::vector<Operation> graph(operations);
  std::size_t transfers = 0;
  for (std::size_t i = 0; i < operations; ++i) {
    if (transfers < most_transfers && i > 0 && random.below(2) == 0) {
      graph[i].bytes = 1 + below(random, 30);
      ++transfers;
    } else {
      graph[i].seconds = below(random, 20);
    }
    for (std::size_t need = 0; need < i; ++need)
      if (random.below(3) == 0) graph[i].needs.push_back(static_cast<std::int32_t>(need));
  }
  return graph;
}

TEST(GraphBuckets, NothingTakesNoTime) {
  EXPECT_EQ(bucketise(std::span<const Operation>(), Wire{1, 1}).seconds, 0);
}

TEST(GraphBuckets, NoOtherOrderIsBetter) {
  Random random(21);
  for (int trial = 0; trial < 60; ++trial) {
    const std::vector<Operation> graph = random_graph(random, 2 + random.below(6), 3);
    const Wire wire{below(random, 20), 1 + below(random, 3)};
    for (const Release release : kReleases) {
      const GraphBuckets found = bucketise(graph, wire, release);
      EXPECT_NEAR(found.seconds, best_of_all(graph, wire, release), kTolerance) << trial;
      EXPECT_NEAR(found.seconds, seconds_of(graph, wire, found, release), kTolerance) << trial;
    }
  }
}

TEST(GraphBuckets, NorForTen) {
  Random random(22);
  for (int trial = 0; trial < 3; ++trial) {
    std::vector<Operation> graph = random_graph(random, 10, 4);
    const Wire wire{5, 2};
    for (const Release release : kReleases)
      EXPECT_NEAR(bucketise(graph, wire, release).seconds, best_of_all(graph, wire, release), kTolerance)
          << trial;
  }
}

// A backward pass of many layers: what is not searched to the end is still no worse than fixed buckets, and on a
// chain no worse than the chain's own buckets.
TEST(GraphBuckets, LargeOnesAreNoWorseThanFixed) {
  Random random(23);
  for (int trial = 0; trial < 20; ++trial) {
    const std::vector<Operation> graph = random_graph(random, 40, 20);
    const Wire wire{below(random, 20), 1 + below(random, 3)};
    for (const Release release : kReleases) {
      const GraphBuckets found = bucketise(graph, wire, release);
      EXPECT_NEAR(found.seconds, seconds_of(graph, wire, found, release), kTolerance) << trial;
      for (const double bytes : {0.0, 40.0, kUsualBucketBytes})
        EXPECT_LE(found.seconds, fixed_buckets(graph, wire, bytes, release).seconds + kTolerance) << trial;
    }
  }
}

TEST(GraphBuckets, AChainAsAGraph) {
  Random random(24);
  for (int trial = 0; trial < 20; ++trial) {
    std::vector<Operation> graph;
    std::vector<Tensor> chain;
    for (std::int32_t layer = 0; layer < 12; ++layer) {
      const double seconds = below(random, 20), bytes = 1 + below(random, 50);
      graph.push_back({.seconds = seconds});
      if (layer > 0) graph.back().needs = {2 * layer - 2};
      graph.push_back({.bytes = bytes, .needs = {2 * layer}});
      chain.push_back({.bytes = bytes, .made_seconds = seconds});
    }
    const Wire wire{below(random, 20), 1 + below(random, 3)};
    EXPECT_NEAR(bucketise(graph, wire).seconds, bucketise(chain, wire).seconds, kTolerance) << trial;
  }
}

TEST(GraphBuckets, BucketsThatWaitForThemselvesNeverEnd) {
  // 2 needs what 1 sends, and 3 sends what 2 makes: in one bucket they wait for each other.
  const std::vector<Operation> graph = {
      {.seconds = 1}, {.bytes = 1, .needs = {0}}, {.seconds = 1, .needs = {1}}, {.bytes = 1, .needs = {2}}};
  EXPECT_EQ(seconds_of(graph, {1, 1}, {.computing = {0, 2}, .buckets = {{1, 3}}}),
            std::numeric_limits<double>::infinity());
  EXPECT_DOUBLE_EQ(bucketise(graph, Wire{1, 1}).seconds, 6);
}

}  // namespace
}  // namespace weft::partition
