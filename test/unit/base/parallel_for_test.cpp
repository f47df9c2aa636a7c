// Parallel loops over all processors.
#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <vector>

#include "weft/base/parallel_for.h"

namespace weft {
namespace {

TEST(ParallelFor, RunsEveryJobOnce) {
  std::vector<std::atomic<int>> done(1000);
  parallel_for(done.size(), [&](std::size_t j) { ++done[j]; });
  for (const auto& times : done) EXPECT_EQ(times, 1);
}

// Any job may run out of memory: the caller gets the error, and the program continues.
TEST(ParallelFor, RethrowsExceptionsOfJobs) {
  for (std::size_t culprit = 0; culprit < 20; ++culprit) {
    std::atomic<int> done = 0;
    EXPECT_THROW(parallel_for(20,
                              [&](std::size_t j) {
                                if (j == culprit) throw std::bad_alloc();
                                ++done;
                              }),
                 std::bad_alloc);
    EXPECT_LT(done, 20);
  }
}

}  // namespace
}  // namespace weft
