// Which tensors share a bucket: the solver compared with all partitions of small chains.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "weft/base/random.h"
#include "weft/parallel/partition/buckets.h"

namespace weft::partition {
namespace {

constexpr double kTolerance = 1e-9;
constexpr Release kReleases[] = {Release::together, Release::early};

double below(Random& random, std::uint64_t most) { return static_cast<double>(random.below(most + 1)); }

// The best of all partitions of the chain.
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
  // Produced only, read only, or both: gradients, loading, updates.
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

// Produced at 1, 2 and 10. One bucket ends at 10 + 2 + 3. The best: the last tensor alone begins at
// 10 and takes 2 + 1. The earlier two share a bucket: at 2 it takes 2 + 2, well before 10.
TEST(Buckets, EarlyTensorsShareABucketBeforeTheLast) {
  const std::vector<Tensor> chain = {{1, 1, 0}, {1, 1, 0}, {1, 8, 0}};
  const Buckets found = bucketise(chain, {.latency = 2, .bytes_per_second = 1});
  EXPECT_DOUBLE_EQ(found.seconds, 13);
  EXPECT_EQ(found.ends.back(), 3);
  EXPECT_EQ(found.ends[found.ends.size() - 2], 2);
  EXPECT_DOUBLE_EQ(seconds_of(chain, {2, 1}, std::vector{3}), 15);
}

// The bucket arrives at 2 + 4. The first reader may begin then, or when its own bytes arrive, at 2
// + 1.
TEST(Buckets, EarlyReleaseStartsWhenItsBytesHaveArrived) {
  const std::vector<Tensor> chain = {{1, 0, 10}, {3, 0, 1}};
  EXPECT_DOUBLE_EQ(seconds_of(chain, {2, 1}, std::vector{2}, Release::together), 6 + 11);
  EXPECT_DOUBLE_EQ(seconds_of(chain, {2, 1}, std::vector{2}, Release::early), 3 + 11);
}

TEST(Buckets, MatchesExhaustiveSearch) {
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

TEST(Buckets, SplitsTensorsWhereThatIsBetter) {
  Random random(12);
  int cut = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const std::vector<Tensor> chain = random_chain(random, 1 + random.below(4), 4);
    if (grain_count(chain) > 12) continue;
    const Wire wire{below(random, 5), 1 + below(random, 9)};
    for (const Release release : kReleases) {
      const Buckets found = bucketise(chain, wire, release);
      EXPECT_NEAR(found.seconds, best_of_all(chain, wire, release), kTolerance) << trial;
      // Whole tensors are among the partitions tried.
      std::vector<Tensor> whole = chain;
      for (Tensor& tensor : whole) tensor.grains = 1;
      const double uncut = bucketise(whole, wire, release).seconds;
      EXPECT_LE(found.seconds, uncut + kTolerance) << trial;
      cut += found.seconds < uncut - kTolerance;
    }
  }
  EXPECT_GT(cut, 20);
}

TEST(Buckets, IsNeverWorseThanFixedBuckets) {
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

}  // namespace
}  // namespace weft::partition
