// Times of collectives in executed steps: their own duration and the time that ranks waited,
// recorded and reused.
#include "weft/predict/cost/exchange_times.h"

#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "temporary_folder.h"

namespace weft::cost {
namespace {

using Kind = program::Exchange::Kind;

// One computing task and one collective after it, per count of elements.
program::Program program_of(std::span<const std::int64_t> counts) {
  program::Program program;
  program.graph = std::make_shared<const plan::Graph>();
  for (const std::int64_t count : counts) {
    program::Exchange exchange;
    exchange.axis = "rank";
    exchange.counts = {count};
    exchange.operand.dtype = exchange.result.dtype = plan::DType::f32;
    const auto unit = static_cast<std::uint32_t>(program.units.size());
    program.units.resize(unit + 2);
    program.units[unit].kernel = program::Copy();
    program.units[unit + 1].kernel = exchange;
    program.tasks.push_back({.unit = unit, .begin = 0, .end = 1});
    program.tasks.push_back({.unit = unit + 1, .begin = 0, .end = 1});
  }
  return program;
}

// The rank reaches collective i at comes[i], and all ranks leave it at leaves[i].
program::Timeline timeline_of(std::span<const double> comes, std::span<const double> leaves) {
  program::Timeline timeline;
  for (std::size_t i = 0; i < comes.size(); ++i) {
    timeline.tasks.push_back({i == 0 ? 0 : leaves[i - 1], comes[i], 0});
    timeline.tasks.push_back({comes[i], leaves[i], 0});
  }
  timeline.seconds = leaves.back();
  return timeline;
}

double by_the_byte(Kind, std::int32_t, double bytes) { return 1e-3 * bytes; }

class ExchangeTimesTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = Statistics::open(file_, Access::write, "m");
    if (!opened.ok() && opened.error().message.find("without SQLite") != std::string::npos)
      GTEST_SKIP() << opened.error().message;
  }

  // Two ranks, each of which is last in one of the two steps.
  void learn_two_ranks(std::string_view transport = "shm") {
    const std::int64_t counts[] = {4, 64};
    const program::Program program = program_of(counts);
    const double leaves[] = {3, 9};
    const std::vector<program::Timeline> first = {timeline_of(std::array{1.0, 5.0}, leaves),
                                                  timeline_of(std::array{2.0, 5.0}, leaves)};
    const std::vector<program::Timeline> second = {timeline_of(std::array{2.0, 5.0}, leaves),
                                                   timeline_of(std::array{1.0, 5.0}, leaves)};
    auto statistics = Statistics::open(file_, Access::write, "m");
    const std::vector<RankSteps> ranks = {{&program, first}, {&program, second}};
    const Status kept =
        record_exchanges(*statistics, plan::read_mesh("rank=2").value(), ranks, transport, concurrency_);
    ASSERT_TRUE(kept.ok()) << kept.error().message;
  }

  ExchangeTimes read(std::string_view transport = "shm", Concurrency concurrency = {.ranks = 2}) {
    const auto statistics = Statistics::open(file_, Access::read, "m");
    return ExchangeTimes(*statistics->operator_times(), transport, concurrency);
  }

  const Concurrency concurrency_{.ranks = 2};
  TemporaryFolder folder_;
  std::string file_ = folder_ / "statistics.sqlite";
};

TEST_F(ExchangeTimesTest, RecordsDurationAndWaits) {
  learn_two_ranks();
  const ExchangeTimes times = read();
  const auto small = times.price(Kind::all_reduce, 2, 16, by_the_byte);
  ASSERT_TRUE(small.has_value());
  EXPECT_DOUBLE_EQ(small->own, 1);     // from the arrival of the last rank, in either step
  EXPECT_DOUBLE_EQ(small->late, 0.5);  // each waited one second in one of the two steps
  EXPECT_EQ(small->source, Source::measured);
  const auto large = times.price(Kind::all_reduce, 2, 256, by_the_byte);
  EXPECT_DOUBLE_EQ(large->own, 4);
  EXPECT_NEAR(large->late, 0, 1e-9);
}

// Reductions with servers take another time than those of ranks alone or with another number of
// servers.
TEST_F(ExchangeTimesTest, DistinguishesReductionsWithServers) {
  EXPECT_EQ(transport_with_servers("shm", 0), "shm");
  EXPECT_EQ(transport_without_servers(transport_with_servers("tcp", 3)), "tcp");
  EXPECT_EQ(transport_without_servers("shm"), "shm");
  learn_two_ranks(transport_with_servers("shm", 2));
  const auto knows = [&](std::int64_t servers) {
    return read(transport_with_servers("shm", servers))
        .price(Kind::all_reduce, 2, 16, by_the_byte)
        .has_value();
  };
  EXPECT_TRUE(knows(2));
  EXPECT_FALSE(knows(0));
  EXPECT_FALSE(knows(1));
}

TEST_F(ExchangeTimesTest, ScalesTheFormulaForOtherSizes) {
  learn_two_ranks();
  const ExchangeTimes times = read();
  // 16 bytes took 1 s where the formula predicts 0.016 s, 256 bytes 4 s where it predicts 0.256 s.
  EXPECT_DOUBLE_EQ(times.price(Kind::all_reduce, 2, 8, by_the_byte)->own, 0.5);
  EXPECT_DOUBLE_EQ(times.price(Kind::all_reduce, 2, 512, by_the_byte)->own, 8);
  const double between = times.price(Kind::all_reduce, 2, 64, by_the_byte)->own;
  EXPECT_GT(between, 1);
  EXPECT_LT(between, 4);
  EXPECT_NEAR(times.price(Kind::all_reduce, 2, 64, by_the_byte)->late, 0.25, 1e-9);
  const auto other = times.price(Kind::all_gather, 2, 64, by_the_byte);
  ASSERT_TRUE(other.has_value());
  EXPECT_EQ(other->source, Source::calibrated);
}

TEST_F(ExchangeTimesTest, DistinguishesConcurrencyAndTransport) {
  learn_two_ranks();
  EXPECT_FALSE(read("tcp").price(Kind::all_reduce, 2, 16, by_the_byte).has_value());
  EXPECT_FALSE(read("shm", {.ranks = 4}).price(Kind::all_reduce, 2, 16, by_the_byte).has_value());
  EXPECT_FALSE(read("shm", {.ranks = 2, .workers = 2}).price(Kind::all_reduce, 2, 16, by_the_byte));
  EXPECT_FALSE(ExchangeTimes().price(Kind::all_reduce, 2, 16, by_the_byte).has_value());
}

// A rank that always arrives early has less work: its wait is no property of the collective.
TEST_F(ExchangeTimesTest, IgnoresWaitsDueToImbalance) {
  if (is_oversubscribed(concurrency_))
    GTEST_SKIP() << "this machine has one processor, where ranks take turns";
  const std::int64_t counts[] = {4};
  const program::Program program = program_of(counts);
  const double leaves[] = {3};
  const std::vector<program::Timeline> early = {timeline_of(std::array{0.5}, leaves)};
  const std::vector<program::Timeline> late = {timeline_of(std::array{2.0}, leaves)};
  auto statistics = Statistics::open(file_, Access::write, "m");
  const std::vector<RankSteps> ranks = {{&program, early}, {&program, late}};
  ASSERT_TRUE(
      record_exchanges(*statistics, plan::read_mesh("rank=2").value(), ranks, "shm", concurrency_).ok());
  const auto price = read().price(Kind::all_reduce, 2, 16, by_the_byte);
  EXPECT_DOUBLE_EQ(price->own, 1);
  EXPECT_NEAR(price->late, 0, 1e-9);
}

TEST_F(ExchangeTimesTest, StepCostsUseThem) {
  learn_two_ranks();
  cluster::Device core{.name = "cpu_core"};
  core.memory_bytes_per_second = 1e10;
  const cluster::Cluster local{"LOCAL 2", core, {{"rank", 2, {}}}};
  const auto statistics = Statistics::open(file_, Access::read, "m");
  const StepCosts costs =
      step_costs(local, plan::read_mesh("rank=2").value(), {.statistics = &*statistics, .processors = 2})
          .value();
  const ExchangeCost price = costs.exchange({}, 0, 16);
  EXPECT_DOUBLE_EQ(price.seconds(), 1.5);
  EXPECT_EQ(price.source, Source::measured);
}

TEST(ExchangeTimesRowsTest, IgnoresInvalidRows) {
  const std::vector<OperatorTime> rows = {{"exchange all-reduce 2 shm ranks=2", 1, 0},
                                          {"exchange all-reduce x 16 shm ranks=2", 1, 0},
                                          {"exchange all-reduce 2 99999999999999999999999 shm ranks=2", 1, 0},
                                          {"exchange all-reduce -2 16 shm ranks=2", 1, 0},
                                          {"exchange all-reduce 9 16 shm ranks=2", 1, 0},
                                          {"late all-reduce 2 16 shm ranks=2", 1, 0},
                                          {"exchange dance 2 16 shm ranks=2", 1, 0}};
  EXPECT_FALSE(ExchangeTimes(rows, "shm", {.ranks = 2}).price(Kind::all_reduce, 2, 16, by_the_byte));
}

}  // namespace
}  // namespace weft::cost
