// Scans, and reductions with user-defined operations, compared with plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "on_ranks.h"
#include "weft/communication/comm/communicator.h"
#include "weft/device/element_access.h"

namespace weft::comm {
namespace {

class ScanOver : public testing::TestWithParam<TransportKind> {};
INSTANTIATE_TEST_SUITE_P(Transports, ScanOver, testing::Values(TransportKind::shm, TransportKind::tcp),
                         [](const auto& info) { return std::string(name(info.param)); });

using Numbers = std::vector<std::int64_t>;
using Memory = std::vector<std::byte>;

// 1, 2 or 3, so that products of five of them, and sums, fit every type.
std::int64_t given(std::int32_t rank, std::size_t i) {
  return 1 + static_cast<std::int64_t>((static_cast<std::size_t>(rank) * 5 + i * 3) % 3);
}

Memory stored(ElementType type, const Numbers& numbers) {
  const std::size_t size = device::size_of(type);
  Memory memory(numbers.size() * size);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto put = [&](auto number) { std::memcpy(memory.data() + i * size, &number, size); };
    switch (type) {
      case ElementType::f64: put(static_cast<double>(numbers[i])); break;
      case ElementType::f32: put(static_cast<float>(numbers[i])); break;
      case ElementType::f16: put(device::to_f16(static_cast<double>(numbers[i]))); break;
      case ElementType::bf16: put(device::to_bf16(static_cast<double>(numbers[i]))); break;
      default: put(numbers[i]);  // the low bytes
    }
  }
  return memory;
}

std::int64_t applied(ReduceOp op, std::int64_t a, std::int64_t b) {
  switch (op) {
    case ReduceOp::product: return a * b;
    case ReduceOp::min: return std::min(a, b);
    case ReduceOp::max: return std::max(a, b);
    case ReduceOp::bit_and: return a & b;
    case ReduceOp::bit_or: return a | b;
    case ReduceOp::bit_xor: return a ^ b;
    default: return a + b;
  }
}

// Over ranks 0 to `last`.
Memory expected(ElementType type, ReduceOp op, std::size_t count, std::int32_t last) {
  Numbers numbers(count);
  for (std::size_t i = 0; i < count; ++i) {
    numbers[i] = given(0, i);
    for (std::int32_t rank = 1; rank <= last; ++rank) numbers[i] = applied(op, numbers[i], given(rank, i));
  }
  return stored(type, numbers);
}

void expect_scans(Communicator& group, ElementType type, ReduceOp op, std::size_t count) {
  const auto n = static_cast<std::int64_t>(count);
  Numbers numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = given(group.rank(), i);
  const Memory input = stored(type, numbers);
  Memory output = input, untouched(input.size(), std::byte{0x5a});
  const auto what = [&] {
    return testing::Message() << device::name(op) << ' ' << device::name(type) << " x " << count << ", rank "
                              << group.rank() << " of " << group.size();
  };
  Status status = group.scan(output.data(), output.data(), n, type, op);  // in place
  ASSERT_TRUE(status.ok()) << what() << status.error().message;
  ASSERT_EQ(output, expected(type, op, count, group.rank())) << what();
  output = untouched;
  status = group.exclusive_scan(input.data(), output.data(), n, type, op);
  ASSERT_TRUE(status.ok()) << what() << status.error().message;
  ASSERT_EQ(output, group.rank() == 0 ? untouched : expected(type, op, count, group.rank() - 1)) << what();
}

TEST_P(ScanOver, SupportsEveryTypeAndOperation) {
  on_ranks(3, plain(GetParam()), [](Communicator& group) {
    for (std::size_t type = 0; type < device::kElementTypes; ++type)
      for (std::size_t op = 0; op < device::kReduceOps; ++op) {
        const auto of = static_cast<ElementType>(type);
        const auto by = static_cast<ReduceOp>(op);
        if (by == ReduceOp::avg || (device::is_bitwise(by) && !device::is_whole(of))) continue;
        ASSERT_NO_FATAL_FAILURE(expect_scans(group, of, by, 7));
      }
  });
}

TEST_P(ScanOver, SupportsAnyNumberOfRanksAndOddSizes) {
  for (std::int32_t ranks = 1; ranks <= 5; ++ranks)
    on_ranks(ranks, plain(GetParam()), [](Communicator& group) {
      for (const std::size_t count : {0u, 1u, 3u, 20u, 100'003u})
        ASSERT_NO_FATAL_FAILURE(expect_scans(group, ElementType::i32, ReduceOp::sum, count));
    });
}

TEST_P(ScanOver, SupportsEveryReductionOfEveryType) {
  on_ranks(4, plain(GetParam()), [](Communicator& group) {
    for (std::size_t type = 0; type < device::kElementTypes; ++type)
      for (std::size_t op = 0; op < device::kReduceOps; ++op) {
        const auto of = static_cast<ElementType>(type);
        const auto by = static_cast<ReduceOp>(op);
        if (by == ReduceOp::avg) continue;
        Numbers numbers(9);
        for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = given(group.rank(), i);
        Memory data = stored(of, numbers);
        const Status status = group.all_reduce(data.data(), data.data(), 9, of, by);
        if (device::is_bitwise(by) && !device::is_whole(of)) {
          ASSERT_FALSE(status.ok());
          continue;
        }
        ASSERT_TRUE(status.ok()) << status.error().message;
        ASSERT_EQ(data, expected(of, by, 9, 3)) << device::name(by) << ' ' << device::name(of);
      }
  });
}

// x -> a x + b, two elements per item: apply the lower rank's first, then the higher one's. Not
// commutative.
using Affine = std::pair<std::uint64_t, std::uint64_t>;
Affine after(Affine left, Affine right) {
  return {left.first * right.first, left.second * right.first + right.second};
}
const UserOperation kCompose{.combine =
                                 [](const void* right, void* left, std::int64_t items) {
                                   const auto* const from = static_cast<const std::uint64_t*>(right);
                                   auto* const to = static_cast<std::uint64_t*>(left);
                                   for (std::int64_t i = 0; i < 2 * items; i += 2) {
                                     const Affine both = after({to[i], to[i + 1]}, {from[i], from[i + 1]});
                                     to[i] = both.first;
                                     to[i + 1] = both.second;
                                   }
                                 },
                             .item = 2};

std::vector<std::uint64_t> affine_input(std::int32_t rank, std::size_t items) {
  std::vector<std::uint64_t> input;
  for (std::size_t i = 0; i < items; ++i) {
    input.push_back(3 + static_cast<std::uint64_t>(rank) * 7 + i);
    input.push_back(11 + static_cast<std::uint64_t>(rank) * 13 + 2 * i);
  }
  return input;
}

std::vector<std::uint64_t> composed(std::int32_t last, std::size_t items) {
  std::vector<std::uint64_t> result = affine_input(0, items);
  for (std::int32_t rank = 1; rank <= last; ++rank)
    kCompose.combine(affine_input(rank, items).data(), result.data(), static_cast<std::int64_t>(items));
  return result;
}

TEST_P(ScanOver, UserDefinedOperationsKeepRankOrder) {
  for (std::int32_t ranks = 1; ranks <= 5; ++ranks)
    on_ranks(ranks, plain(GetParam()), [](Communicator& group) {
      const std::int32_t rank = group.rank(), ranks = group.size();
      for (const std::size_t items : {0u, 1u, 4u, 7u, 3001u}) {
        const auto n = static_cast<std::int64_t>(2 * items);
        const std::vector<std::uint64_t> input = affine_input(rank, items);
        std::vector<std::uint64_t> output(input.size());
        ASSERT_TRUE(group.all_reduce(input.data(), output.data(), n, ElementType::u64, kCompose).ok());
        ASSERT_EQ(output, composed(ranks - 1, items));
        ASSERT_TRUE(group.scan(input.data(), output.data(), n, ElementType::u64, kCompose).ok());
        ASSERT_EQ(output, composed(rank, items));
        ASSERT_TRUE(group.exclusive_scan(input.data(), output.data(), n, ElementType::u64, kCompose).ok());
        ASSERT_EQ(output, composed(std::max(rank - 1, 0), items));
        void* const at_root = rank == ranks - 1 ? output.data() : nullptr;
        ASSERT_TRUE(group.reduce(input.data(), at_root, n, ElementType::u64, kCompose, ranks - 1).ok());
        if (rank == ranks - 1) ASSERT_EQ(output, composed(ranks - 1, items));

        const auto all = affine_input(rank, items * static_cast<std::size_t>(ranks));
        ASSERT_TRUE(group.reduce_scatter(all.data(), output.data(), n, ElementType::u64, kCompose).ok());
        const auto whole = composed(ranks - 1, items * static_cast<std::size_t>(ranks));
        ASSERT_TRUE(std::equal(
            output.begin(), output.end(),
            whole.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(rank) * 2 * items)));
      }
    });
}

TEST(Scan, RejectsWrongArgumentsWithoutEffect) {
  on_ranks(2, plain(TransportKind::inproc), [](Communicator& group) {
    std::uint64_t data[6] = {};
    const auto refused = [](const Status& status) { return status.ok() ? "" : status.error().message; };
    EXPECT_EQ(refused(group.scan(data, data, 2, ElementType::u64, ReduceOp::avg)),
              "avg is not defined for scan");
    EXPECT_EQ(refused(group.scan(data, data, 2, ElementType::f32, ReduceOp::bit_xor)),
              "xor needs an integer type, not f32");
    EXPECT_NE(refused(group.scan(nullptr, data, 2, ElementType::u64, ReduceOp::sum)), "");
    EXPECT_EQ(refused(group.scan(data, data + 1, 2, ElementType::u64, ReduceOp::sum)),
              "input and output of scan: all_reduce sum u64 x 2 overlap");
    EXPECT_EQ(refused(group.all_reduce(data, data, 3, ElementType::u64, kCompose)),
              "items of 2 elements do not divide a count of 3");
    EXPECT_NE(refused(group.all_reduce(data, data, 2, ElementType::u64, UserOperation())), "");
    EXPECT_TRUE(group.barrier().ok());
  });
}

// Both begin with an all_to_all of equal size.
TEST_P(ScanOver, DetectsMismatchedKindsOfScan) {
  on_ranks(2, plain(GetParam()), [](Communicator& group) {
    std::vector<float> data(8);
    const Status status =
        group.rank() == 0
            ? group.scan(data.data(), data.data(), 8, ElementType::f32, ReduceOp::sum)
            : group.exclusive_scan(data.data(), data.data(), 8, ElementType::f32, ReduceOp::sum);
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().message.find("exclusive_scan"), std::string::npos) << status.error().message;
  });
}

}  // namespace
}  // namespace weft::comm
