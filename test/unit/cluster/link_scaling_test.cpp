// The share of a link's bandwidth that collectives reach, by the number of nodes.
#include <cmath>

#include <gtest/gtest.h>

#include "weft/plan/cluster/cluster.h"

namespace weft::cluster {
namespace {

Link scaled() {
  Link link;
  link.scaling = {{4, 0.8}, {64, 0.2}};
  return link;
}

TEST(LinkScaling, AnIdealFabricLosesNothing) {
  EXPECT_EQ(share_among(Link{}, 2), 1);
  EXPECT_EQ(share_among(Link{}, 4096), 1);
}

TEST(LinkScaling, StatedNumbersOfNodesHaveTheirShare) {
  EXPECT_DOUBLE_EQ(share_among(scaled(), 4), 0.8);
  EXPECT_DOUBLE_EQ(share_among(scaled(), 64), 0.2);
}

TEST(LinkScaling, SharesBetweenAreInterpolatedOverLogarithms) {
  EXPECT_DOUBLE_EQ(share_among(scaled(), 16), std::sqrt(0.8 * 0.2));
  double last = 1;
  for (std::int64_t nodes = 4; nodes <= 64; ++nodes) {
    EXPECT_LE(share_among(scaled(), nodes), last);
    last = share_among(scaled(), nodes);
  }
}

TEST(LinkScaling, BeyondTheEndsTheEndsHold) {
  EXPECT_DOUBLE_EQ(share_among(scaled(), 2), 0.8);
  EXPECT_DOUBLE_EQ(share_among(scaled(), 1024), 0.2);
  EXPECT_EQ(share_among(scaled(), 1), 1);
}

}  // namespace
}  // namespace weft::cluster
