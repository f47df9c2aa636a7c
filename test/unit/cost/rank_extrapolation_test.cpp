// Times for many ranks extrapolated from few: exact if the algorithm scales as assumed.
#include "weft/predict/cost/rank_extrapolation.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace weft::cost {
namespace {

constexpr double kCall = 4e-6, kLatency = 5e-6, kRate = 25e9;

double message(double bytes) { return kLatency + bytes / kRate; }

double ring(std::int32_t ranks, double bytes) { return kCall + (ranks - 1) * message(bytes / ranks); }
double chain(std::int32_t ranks, double bytes) { return kCall + (ranks - 1) * message(bytes); }
double doubling(std::int32_t ranks, double bytes) { return kCall + std::log2(ranks) * message(bytes); }
double halving(std::int32_t ranks, double bytes) {
  double seconds = kCall;
  for (std::int32_t blocks = 1; blocks < ranks; blocks *= 2) seconds += message(blocks * bytes / ranks);
  return seconds;
}

TEST(RankExtrapolationTest, ExtrapolatesRegularAlgorithmsExactly) {
  const struct {
    Growth growth;
    KnownSeconds seconds;
  } algorithms[] = {
      {Growth::blocks, ring}, {Growth::hops, chain}, {Growth::rounds, doubling}, {Growth::halves, halving}};
  for (const auto& algorithm : algorithms)
    for (const std::int32_t ranks : {16, 64, 128, 1024})
      for (const double bytes : {1e3, 1e6, 1e9}) {
        const double carried =
            extrapolated_seconds(algorithm.growth, ranks, bytes, 8, [&](auto among, double size) {
              EXPECT_LE(among, 16);
              return algorithm.seconds(among, size);
            });
        EXPECT_NEAR(carried, algorithm.seconds(ranks, bytes), 1e-9 * carried) << ranks << " " << bytes;
      }
}

TEST(RankExtrapolationTest, RingsTakeAnyNumberAndHalvingAPowerOfTwo) {
  EXPECT_NEAR(extrapolated_seconds(Growth::blocks, 100, 1e6, 8, ring), ring(100, 1e6), 1e-12);
  EXPECT_TRUE(std::isinf(extrapolated_seconds(Growth::rounds, 100, 1e6, 8, doubling)));
  EXPECT_TRUE(std::isinf(extrapolated_seconds(Growth::halves, 100, 1e6, 8, halving)));
}

TEST(RankExtrapolationTest, UnknownTimesStayUnknown) {
  for (const Growth growth : {Growth::blocks, Growth::hops, Growth::rounds, Growth::halves})
    for (const std::int32_t lacks : {8, 16}) {
      const double carried = extrapolated_seconds(growth, 64, 1e6, 8, [&](std::int32_t among, double) {
        return among == lacks ? std::numeric_limits<double>::infinity() : 1e-3;
      });
      EXPECT_TRUE(std::isinf(carried)) << lacks;
    }
}

TEST(RankExtrapolationTest, MoreRanksAreNeverFaster) {
  const auto falling = [](std::int32_t among, double) { return 1.0 / among; };
  for (const Growth growth : {Growth::blocks, Growth::hops, Growth::rounds, Growth::halves})
    EXPECT_GE(extrapolated_seconds(growth, 1024, 1e6, 8, falling), 1.0 / 16);
}

}  // namespace
}  // namespace weft::cost
