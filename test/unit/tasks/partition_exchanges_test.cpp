// Partitioned all-reduces: where partitions end, what each waits for, and which tasks wait for it.
#include <gtest/gtest.h>

#include <numeric>

#include "weft/plan/graph/text.h"
#include "weft/plan/ops/operators.h"
#include "weft/program/tasks/partition_exchanges.h"

namespace weft::program {
namespace {

using Ends = std::vector<std::int64_t>;

TEST(PartEnds, AreEvenAndOnCacheLines) {
  EXPECT_EQ(part_ends(160, 16, {}, 1), (Ends{160}));
  EXPECT_EQ(part_ends(160, 16, {}, 3), (Ends{64, 112, 160}));
  EXPECT_EQ(part_ends(161, 16, {}, 2), (Ends{80, 161}));
}

// Tensors of 860 and 690 numbers, each starting on its own cache line.
TEST(PartEnds, SnapToTensorsNearby) {
  const Ends tensors = {860, 1554};
  EXPECT_EQ(part_ends(1554, 16, {}, 2), (Ends{784, 1554}));
  EXPECT_EQ(part_ends(1554, 16, tensors, 2), (Ends{784, 1554}));  // too far: 87 of 777
  EXPECT_EQ(part_ends(1554, 16, Ends{800, 1554}, 2), (Ends{800, 1554}));
}

// All ranks must make the same number of calls.
TEST(PartEnds, HaveTheRequestedNumberAtAnySize) {
  EXPECT_EQ(part_ends(0, 16, {}, 3), (Ends{0, 0, 0}));
  EXPECT_EQ(part_ends(5, 16, {}, 3), (Ends{5, 5, 5}));
  for (std::int64_t elements = 0; elements < 6000; elements += 997)
    for (std::int64_t parts = 1; parts < 9; ++parts) {
      const Ends tensors = {elements / 3, elements / 2, elements};
      const Ends ends = part_ends(elements, 16, tensors, parts);
      ASSERT_EQ(ends.size(), static_cast<std::size_t>(parts));
      EXPECT_TRUE(std::ranges::is_sorted(ends));
      EXPECT_EQ(ends.back(), elements);
      std::int64_t begin = 0;
      for (const std::int64_t end : ends) {
        EXPECT_LE(end - begin, std::max<std::int64_t>(elements / parts * 5 / 4, elements / parts + 32));
        begin = end;
      }
    }
}

Program compiled(std::string_view text) {
  auto graph = std::make_shared<const plan::Graph>(plan::read(text, ops::all()).value());
  return compile(std::move(graph)).value();
}

std::vector<std::uint32_t> exchange_tasks(const Program& program) {
  std::vector<std::uint32_t> found;
  for (std::uint32_t t = 0; t < program.tasks.size(); ++t)
    if (std::holds_alternative<Exchange>(program.units[program.tasks[t].unit].kernel)) found.push_back(t);
  return found;
}

constexpr std::string_view kBucket = R"(plan p
%0 = input {name=x, type=f32[p=64]}
%1 = input {name=y, type=f32[q=64]}
%2 = add %0, %0
%3 = add %1, %1
%4, %5 = exchange %2, %3 {kind="all-reduce", axis=gpu, ranks=2, type=f32[p=64]PARTS}
%6 = exp %4
%7 = exp %5
return a=%6, b=%7
)";

std::string bucket(const std::string& parts) {
  std::string text(kBucket);
  return text.replace(text.find("PARTS"), 5, parts);
}

TEST(ExchangeParts, TensorsAreReadWhenTheirPartitionHasArrived) {
  const Program whole = compiled(bucket("")), parts = compiled(bucket(", parts=2"));
  ASSERT_EQ(exchange_tasks(whole).size(), 1u);
  const std::vector<std::uint32_t> moves = exchange_tasks(parts);
  ASSERT_EQ(moves.size(), 2u);
  std::vector<std::uint32_t> waits;  // of tasks that read a sum
  for (const Task& task : parts.tasks)
    for (const std::uint32_t wait : task.waits)
      if (std::ranges::find(moves, wait) != moves.end()) waits.push_back(wait);
  EXPECT_EQ(waits, moves);
  // Each starts when its own data is ready.
  for (const std::uint32_t move : moves) EXPECT_EQ(parts.tasks[move].waits.size(), 1u);
  EXPECT_EQ(parts.bytes(), whole.bytes());
  std::int64_t sent = 0;
  for (const std::uint32_t move : moves)
    sent += std::get<Exchange>(parts.units[parts.tasks[move].unit].kernel).counts.at(0);
  EXPECT_EQ(sent,
            std::get<Exchange>(whole.units[whole.tasks[exchange_tasks(whole)[0]].unit].kernel).counts.at(0));
}

TEST(ExchangeParts, EmptyPartitionsAreStillCalls) {
  const Program parts = compiled(bucket(", parts=20"));
  EXPECT_EQ(exchange_tasks(parts).size(), 20u);
}

TEST(ExchangeParts, OnlyAllReducesCanBePartitioned) {
  const auto gather = plan::read(R"(plan p
%0 = input {name=x, type=f32[b=2]}
%1 = exchange %0 {kind="all-gather", axis=gpu, ranks=2, type=f32[b=4], along=b, parts=2}
return y=%1
)",
                                 ops::all());
  ASSERT_FALSE(gather.ok());
  EXPECT_NE(gather.error().message.find("only an all-reduce may have parts"), std::string::npos)
      << gather.error().message;
  EXPECT_FALSE(plan::read(bucket(", parts=0"), ops::all()).ok());
}

}  // namespace
}  // namespace weft::program
