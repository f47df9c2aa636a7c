// How much of a device's memory plans may use.
#include <gtest/gtest.h>

#include "weft/planner/target/machine.h"

namespace weft::planner {
namespace {

constexpr double kGiB = 1 << 30;

cluster::Cluster pod() {
  cluster::Cluster made;
  made.name = "pod";
  made.device.name = "gpu";
  made.device.memory_bytes = 80 * kGiB;
  made.axes = {{"gpu", 8, {}}};
  return made;
}

TEST(MemoryReserve, IsLeftFreeOnClusters) {
  Settings settings;
  EXPECT_DOUBLE_EQ(memory_reserve(settings, pod()), kMemoryReserve);
  EXPECT_DOUBLE_EQ(memory_per_rank(settings, pod()), 80 * kGiB * (1 - kMemoryReserve));
  settings.memory_reserve = 0;
  EXPECT_DOUBLE_EQ(memory_per_rank(settings, pod()), 80 * kGiB);
}

TEST(MemoryReserve, FollowsTheStackUnlessItIsSet) {
  cluster::Cluster cluster = pod();
  cluster.stack.name = "ours";
  cluster.stack.reserve = 0.1;
  Settings settings;
  EXPECT_DOUBLE_EQ(memory_reserve(settings, cluster), 0.1);
  settings.memory_reserve = 0.02;
  EXPECT_DOUBLE_EQ(memory_reserve(settings, cluster), 0.02);
}

TEST(MemoryReserve, DoesNotReduceALimitThatIsSet) {
  Settings settings;
  settings.memory_limit = 40 * kGiB;
  EXPECT_DOUBLE_EQ(memory_per_rank(settings, pod()), 40 * kGiB);
  EXPECT_DOUBLE_EQ(memory_reserve(settings, pod()), 0);
}

}  // namespace
}  // namespace weft::planner
