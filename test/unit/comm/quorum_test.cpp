#include "weft/communication/comm/quorum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace weft::comm {
namespace {

using Ranks = std::vector<std::int32_t>;
using transport::Death;

Death silent(std::int32_t rank) { return {rank, "no heartbeat for 30 s", false, true}; }
Death ended(std::int32_t rank) { return {rank, "its process ended"}; }

TEST(Quorum, RanksThatExitedDoNotCount) {
  EXPECT_TRUE(check_quorum(Ranks{0, 1, 2, 3}, Ranks{3}, std::vector{ended(0), ended(1), ended(2)}).ok());
  EXPECT_TRUE(check_quorum(Ranks{0, 1}, Ranks{1}, std::vector{ended(0)}).ok());
}

// However a network is partitioned, and whichever ranks have exited before, at most one partition
// continues.
TEST(Quorum, AtMostOnePartitionContinues) {
  for (std::int32_t ranks = 1; ranks <= 7; ++ranks) {
    Ranks all(static_cast<std::size_t>(ranks));
    std::iota(all.begin(), all.end(), 0);
    std::int64_t cases = 1;
    for (std::int32_t i = 0; i < ranks; ++i) cases *= 3;
    for (std::int64_t each = 0; each < cases; ++each) {
      Ranks here, there;
      std::vector<Death> seen_here, seen_there;
      std::int64_t rest = each;
      for (const std::int32_t rank : all) {
        const std::int64_t where = std::exchange(rest, rest / 3) % 3;
        if (where == 0) here.push_back(rank), seen_there.push_back(silent(rank));
        if (where == 1) there.push_back(rank), seen_here.push_back(silent(rank));
        if (where == 2) seen_here.push_back(ended(rank)), seen_there.push_back(ended(rank));
      }
      const bool first = !here.empty() && check_quorum(all, here, seen_here).ok();
      const bool second = !there.empty() && check_quorum(all, there, seen_there).ok();
      EXPECT_FALSE(first && second) << ranks << " ranks, case " << each;
      EXPECT_TRUE(first || second || (here.empty() && there.empty())) << ranks << " ranks, case " << each;
    }
  }
}

TEST(Quorum, AnIsolatedRankIsTold) {
  const Status status = check_quorum(Ranks{0, 1, 2}, Ranks{0}, std::vector{silent(1), silent(2)});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message,
            "only 1 of 3 ranks are left; rank 1 and rank 2 may be alive and continue without them");
}

}  // namespace
}  // namespace weft::comm
