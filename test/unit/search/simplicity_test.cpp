// Which of two plans of about the same speed is the simpler one.
#include "weft/planner/search/distribution/simplicity.h"

#include <gtest/gtest.h>

namespace weft::search {
namespace {

int complexity(std::string_view distribution) {
  const distribute::IndexRoles roles{{"b"}, {"s"}, {"h", "f", "v"}, {"x"}, {}};
  const auto read = distribute::read_distribution(distribution);
  EXPECT_TRUE(read.ok()) << distribution;
  return read.ok() ? complexity_of(*read, roles) : -1;
}

TEST(Simplicity, OrdersFamilies) {
  const char* const from_simple[] = {"rank=2: slice b",
                                     "rank=2: slice b, shard optimizer",
                                     "rank=2: slice b, shard parameters",
                                     "rank=2: slice h, f, v",
                                     "rank=2: slice h, b",
                                     "rank=2: slice f, b, shard parameters"};
  for (std::size_t i = 1; i < std::size(from_simple); ++i)
    EXPECT_LT(complexity(from_simple[i - 1]), complexity(from_simple[i])) << from_simple[i];
  EXPECT_EQ(complexity(from_simple[0]), 0);
}

TEST(Simplicity, CountsEachAxisAndException) {
  EXPECT_GT(complexity("node=2: slice b; gpu=2: slice h, f"), complexity("node=2: slice b; gpu=2: slice b"));
  EXPECT_GT(complexity("node=2: stage; gpu=2: slice b; micro=4"),
            complexity("node=2: slice b; gpu=2: slice b"));
  auto apart = distribute::read_distribution("rank=2: slice b").value();
  apart.exceptions.push_back({"w", "rank", "d"});
  EXPECT_EQ(complexity_of(apart, {{"b"}, {}, {}, {}, {}}), 1);
  // Axes with one rank do not count, and axes with the same use count once.
  EXPECT_EQ(complexity("node=1: slice h; gpu=2: slice b"), 0);
  EXPECT_EQ(complexity("node=4: slice b, shard parameters; gpu=8: slice b, shard parameters"),
            complexity("gpu=8: slice b, shard parameters"));
}

}  // namespace
}  // namespace weft::search
