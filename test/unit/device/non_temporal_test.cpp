// With and without non-temporal stores: the same bytes, wherever ranges start and end.
#include "weft/device/cpu/non_temporal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace weft::device::cpu {
namespace {

// Empty, less than a line, lines with a remainder, and several groups of pages with a remainder.
constexpr std::size_t kLengths[] = {0, 5, 64, 77, 4096, 40000, (1 << 17) + 77};

std::vector<std::byte> numbered(std::size_t bytes) {
  std::vector<std::byte> all(bytes);
  for (std::size_t i = 0; i < bytes; ++i) all[i] = static_cast<std::byte>(i * 7 + i / 251);
  return all;
}

TEST(NonTemporal, Copies) {
  for (const std::size_t bytes : kLengths) {
    for (const std::size_t skip : {0, 3, 64}) {
      const std::vector<std::byte> source = numbered(bytes + 1);
      std::vector<std::byte> non_temporal(bytes + skip + 1), cached = non_temporal;
      copy_non_temporal(non_temporal.data() + skip, source.data() + 1, bytes);
      copy_into_caches(cached.data() + skip, source.data() + 1, bytes);
      std::vector<std::byte> expected(bytes + skip + 1);
      std::copy(source.begin() + 1, source.end(), expected.begin() + static_cast<std::ptrdiff_t>(skip));
      EXPECT_EQ(non_temporal, expected) << bytes;
      EXPECT_EQ(cached, expected) << bytes;
    }
  }
}

TEST(NonTemporal, SumsEqualThoseOfReduce) {
  for (const std::size_t elements : {std::size_t{0}, std::size_t{3}, std::size_t{16}, std::size_t{70001}}) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max, ReduceOp::avg}) {
      for (const std::size_t skip : {0, 1, 16}) {
        std::vector<std::vector<float>> inputs(3, std::vector<float>(elements));
        for (std::size_t k = 0; k < inputs.size(); ++k)
          for (std::size_t i = 0; i < elements; ++i)
            inputs[k][i] = 0.1f * static_cast<float>((i * 13 + k * 5) % 97);
        std::vector<const void*> sources;
        for (const auto& input : inputs) sources.push_back(input.data());
        std::vector<float> expected(elements + skip), first = expected, second = expected, kept = expected;
        reduce(ElementType::f32, op, expected.data() + skip, sources, elements);
        if (op == ReduceOp::avg) finish_average(ElementType::f32, expected.data() + skip, elements, 3);
        void* const targets[] = {first.data() + skip, second.data() + skip};
        reduce_non_temporal(ElementType::f32, op, targets, kept.data() + skip, sources, elements);
        EXPECT_EQ(first, expected);
        EXPECT_EQ(second, expected);
        EXPECT_EQ(kept, expected);
        // Into one of the sources, without an extra copy.
        void* const own[] = {inputs[1].data()};
        reduce_non_temporal(ElementType::f32, op, own, nullptr, sources, elements);
        EXPECT_TRUE(std::equal(inputs[1].begin(), inputs[1].end(),
                               expected.begin() + static_cast<std::ptrdiff_t>(skip)));
      }
    }
  }
}

}  // namespace
}  // namespace weft::device::cpu
