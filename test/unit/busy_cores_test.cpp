// Which cores are kept busy: what /proc/stat says, and a core that this test keeps busy.
#include "weft/comm/busy_cores.h"

#include <thread>

#include <gtest/gtest.h>

namespace weft::comm {
namespace {

TEST(BusyCores, ReadsIdleTicksOfEachCore) {
  const std::vector<long> idle = parse_idle_ticks(
      "cpu  4705 356 584 3699 23 23 0 0 0 0\n"
      "cpu0 1393280 32966 572056 13343292 6130 0 17875 0 23933 0\n"
      "cpu2 1 2 3 4\n"
      "intr 114930548 113199788\n"
      "cpux 1 2 3 4\ncpu99999999 1 2 3 4\ncpu3 1 2\ncpu");
  EXPECT_EQ(idle, (std::vector<long>{13349422, -1, 4}));
  EXPECT_TRUE(parse_idle_ticks("").empty());
}

TEST(BusyCores, KnowNothingBeforeTheSecondLook) {
  BusyCores cores;
  EXPECT_EQ(cores.busy(0), std::nullopt);
  EXPECT_EQ(cores.busy(-1), std::nullopt);
  std::this_thread::sleep_for(BusyCores::kBetweenLooks + std::chrono::milliseconds(10));
  cores.busy(0);
  EXPECT_EQ(cores.busy(1 << 20), std::nullopt);
}

}  // namespace
}  // namespace weft::comm
