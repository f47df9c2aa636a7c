// Copies between layouts compared with a plain loop over the box.
#include <algorithm>
#include <array>
#include <numeric>

#include <gtest/gtest.h>

#include "weft/base/random.h"
#include "weft/device/cpu/strided_copy.h"

namespace weft::device::cpu {
namespace {

using List = std::vector<std::int64_t>;

// Calls visit(offset in from, offset in to) for every element.
template <class Visit>
void walk(const List& sizes, const List& from, const List& to, Visit visit) {
  const auto step = [&](auto&& self, std::size_t axis, std::int64_t in_from, std::int64_t in_to) -> void {
    if (axis == sizes.size()) return visit(in_from, in_to);
    for (std::int64_t i = 0; i < sizes[axis]; ++i)
      self(self, axis + 1, in_from + i * from[axis], in_to + i * to[axis]);
  };
  step(step, 0, 0, 0);
}

template <class T>
void expect_copy(const List& sizes, const List& from, const List& to, std::int64_t from_start = 0) {
  std::int64_t from_end = from_start, to_end = 0;
  walk(sizes, from, to, [&](std::int64_t in_from, std::int64_t in_to) {
    from_end = std::max(from_end, from_start + in_from);
    to_end = std::max(to_end, in_to);
  });
  std::vector<T> source(static_cast<std::size_t>(from_end + 1)),
      target(static_cast<std::size_t>(to_end + 1), T(7));
  std::iota(source.begin(), source.end(), T(1));
  std::vector<T> expected = target;
  walk(sizes, from, to,
       [&](std::int64_t in_from, std::int64_t in_to) { expected[in_to] = source[from_start + in_from]; });
  strided_copy(sizes, source.data() + from_start, from, target.data(), to, sizeof(T));
  EXPECT_EQ(target, expected);
}

template <class T>
class KernelsStridedCopy : public ::testing::Test {};
using Elements = ::testing::Types<std::uint8_t, float, std::int32_t, double, std::int64_t>;
TYPED_TEST_SUITE(KernelsStridedCopy, Elements);

TYPED_TEST(KernelsStridedCopy, CopiesTypicalBoxes) {
  expect_copy<TypeParam>({}, {}, {});                                                 // a scalar
  expect_copy<TypeParam>({5}, {1}, {1});                                              // contiguous
  expect_copy<TypeParam>({3, 40}, {40, 1}, {40, 1});                                  // the same, as two axes
  expect_copy<TypeParam>({40, 3}, {1, 40}, {3, 1});                                   // transpose
  expect_copy<TypeParam>({37, 70}, {1, 37}, {70, 1});                                 // transpose, odd sizes
  expect_copy<TypeParam>({2, 9, 35, 34}, {10710, 1190, 1, 35}, {10710, 34, 306, 1});  // heads to the front
  expect_copy<TypeParam>({5, 33, 6}, {1, 30, 5}, {198, 6, 1});                        // unit step far outside
  expect_copy<TypeParam>({8, 3}, {10, 1}, {3, 1}, 2);                                 // slice
  expect_copy<TypeParam>({8, 3}, {3, 1}, {10, 1});           // into a region: concat, pad
  expect_copy<TypeParam>({8, 30}, {0, 1}, {30, 1});          // broadcast rows
  expect_copy<TypeParam>({8, 30}, {1, 0}, {30, 1});          // broadcast columns
  expect_copy<TypeParam>({4, 8, 5}, {1, 0, 4}, {40, 5, 1});  // broadcast inside
  expect_copy<TypeParam>({9}, {-1}, {1}, 8);                 // backwards
  expect_copy<TypeParam>({3, 0, 2}, {1, 1, 1}, {1, 1, 1});   // empty
  expect_copy<TypeParam>({1, 2, 1, 3, 1, 2, 1, 2}, {9, 1, 9, 2, 9, 6, 9, 12}, {9, 12, 9, 4, 9, 2, 9, 1});
}

TYPED_TEST(KernelsStridedCopy, CopiesRandomBoxes) {
  Random random(15);
  for (int round = 0; round < 300; ++round) {
    const auto rank = static_cast<std::size_t>(random.between(1, 5));
    List sizes(rank), from(rank), to(rank);
    for (std::int64_t& size : sizes) size = random.between(1, random.below(4) == 0 ? 40 : 6);
    const auto lay_out = [&](List& strides, bool repeats) {
      std::vector<std::size_t> order(rank);
      std::iota(order.begin(), order.end(), std::size_t{0});
      for (std::size_t i = rank; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
      std::int64_t stride = random.between(1, 2);
      for (const std::size_t axis : order) {
        strides[axis] = repeats && random.below(6) == 0 ? 0 : stride;
        if (strides[axis] != 0) stride *= sizes[axis] + random.between(0, 1);
      }
    };
    lay_out(from, true);
    lay_out(to, false);
    expect_copy<TypeParam>(sizes, from, to);
  }
}

TYPED_TEST(KernelsStridedCopy, Fills) {
  for (const std::size_t n : {0u, 1u, 5u, 100u}) {
    std::vector<TypeParam> values(n + 1, TypeParam(1));
    const TypeParam value(42);
    fill(values.data(), static_cast<std::int64_t>(n), &value, sizeof value);
    EXPECT_EQ(std::ranges::count(values, value), static_cast<std::ptrdiff_t>(n));
    EXPECT_EQ(values[n], TypeParam(1));
  }
}

}  // namespace
}  // namespace weft::device::cpu
