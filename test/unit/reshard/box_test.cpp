// Boxes: ranges of elements expressed as boxes.
#include "weft/collectives/reshard/box.h"

#include <gtest/gtest.h>

namespace weft::reshard {
namespace {

// The indices of a box's elements within `whole`, in order.
std::vector<std::int64_t> numbers_within(const Box& whole, const Box& box) {
  std::vector<std::int64_t> numbers = {0};
  for (std::size_t dim = 0; dim < whole.size(); ++dim) {
    std::vector<std::int64_t> next;
    for (const std::int64_t number : numbers)
      for (std::int64_t at = box[dim].begin; at < box[dim].end(); ++at)
        next.push_back(number * whole[dim].size + at - whole[dim].begin);
    numbers = std::move(next);
  }
  return numbers;
}

TEST(Box, EveryRangeSplitsIntoBoxesInOrder) {
  for (const Box& whole :
       {Box{{2, 7}}, Box{{1, 3}, {5, 4}}, Box{{0, 3}, {2, 1}, {4, 5}}, Box{{0, 2}, {0, 3}, {0, 4}}})
    for (std::int64_t begin = 0; begin <= elements_of(whole); ++begin)
      for (std::int64_t end = begin; end <= elements_of(whole); ++end) {
        const std::vector<Box> boxes = boxes_of_range(whole, begin, end);
        EXPECT_LE(boxes.size(), 2 * whole.size() - 1);
        std::vector<std::int64_t> expected, found;
        for (std::int64_t at = begin; at < end; ++at) expected.push_back(at);
        for (const Box& box : boxes)
          for (const std::int64_t number : numbers_within(whole, box)) found.push_back(number);
        EXPECT_EQ(found, expected) << begin << " to " << end;
      }
}

TEST(Box, AScalarIsABoxWithoutDims) {
  EXPECT_EQ(elements_of({}), 1);
  EXPECT_EQ(boxes_of_range({}, 0, 1), std::vector<Box>{{}});
  EXPECT_TRUE(boxes_of_range({}, 0, 0).empty());
}

TEST(Box, SplitsAtTheLargestRowThatIsShortEnough) {
  const Box box = {{0, 4}, {0, 10}, {0, 100}};
  EXPECT_EQ(whole_rows(box, 2345, 0), 2345);
  EXPECT_EQ(whole_rows(box, 2345, 99), 2345);
  EXPECT_EQ(whole_rows(box, 2345, 100), 2300);
  EXPECT_EQ(whole_rows(box, 2345, 1000), 2000);
  EXPECT_EQ(whole_rows(box, 2345, 5000), 0);
}

}  // namespace
}  // namespace weft::reshard
