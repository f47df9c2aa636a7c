// Which algorithm wins at which size, how close the next ones are, and how the choice is explained.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "weft/base/file.h"
#include "weft/formats/nccl_tests_log.h"
#include "weft/planner/exchange/choose_collective.h"

namespace weft::exchange {
namespace {

using collective::Protocol;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

CollectiveCandidate affine(std::string name, double steps, double wire, double step_seconds = 1e-6,
                           double bandwidth = 100e9) {
  return {
      .name = std::move(name), .facts = {.steps = steps, .wire = wire}, .seconds = [=](std::int64_t bytes) {
        return steps * step_seconds + wire * static_cast<double>(bytes) / bandwidth;
      }};
}

CollectiveChoice choose(const std::vector<CollectiveCandidate>& candidates,
                        const std::vector<std::int64_t>& sizes) {
  const auto choice = choose_collective(candidates, sizes);
  EXPECT_TRUE(choice.ok()) << (choice.ok() ? "" : choice.error().message);
  return choice.ok() ? *choice : CollectiveChoice{};
}

// Powers of two from `min_bytes` on, and `max_bytes`.
std::vector<std::int64_t> doubling_sizes(std::int64_t min_bytes, std::int64_t max_bytes) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t bytes = min_bytes; bytes < max_bytes; bytes *= 2) sizes.push_back(bytes);
  sizes.push_back(max_bytes);
  return sizes;
}

TEST(ChooseCollective, PrefersFewStepsForSmallAndFewBytesForLarge) {
  const std::vector<CollectiveCandidate> candidates = {affine("ring", 14, 1.75), affine("all_pairs", 2, 7)};
  const CollectiveChoice choice = choose(candidates, doubling_sizes(128, 32 << 20));
  ASSERT_EQ(choice.ranges.size(), 2u);
  const CollectiveRange &small = choice.ranges[0], &large = choice.ranges[1];
  EXPECT_EQ(small.best, 1u);
  EXPECT_EQ(small.why, "latency-bound: 2 steps against 14");
  EXPECT_EQ(large.best, 0u);
  EXPECT_EQ(large.why, "bandwidth-bound: sends 1.75x the buffer against 7x");
  EXPECT_EQ(small.min_bytes, 128);
  EXPECT_EQ(large.max_bytes, 32 << 20);
  EXPECT_EQ(small.max_bytes + 1, large.min_bytes);
  // 12 us of steps equal 5.25 buffers at 1/100 ns per byte.
  EXPECT_NEAR(static_cast<double>(small.max_bytes), 12e-6 / (5.25 / 100e9), 2);
  ASSERT_EQ(small.runners_up.size(), 1u);
  EXPECT_EQ(small.runners_up[0].candidate, 0u);
  EXPECT_GT(small.runners_up[0].ratio, 1);
}

TEST(ChooseCollective, NamesTheNextTwoNearestFirst) {
  const std::vector<CollectiveCandidate> candidates = {affine("d", 8, 1), affine("b", 3, 1),
                                                       affine("a", 2, 1), affine("c", 4, 1)};
  const CollectiveChoice choice = choose(candidates, {1});
  ASSERT_EQ(choice.ranges.size(), 1u);
  EXPECT_EQ(choice.ranges[0].best, 2u);
  ASSERT_EQ(choice.ranges[0].runners_up.size(), 2u);
  EXPECT_EQ(choice.ranges[0].runners_up[0].candidate, 1u);
  EXPECT_NEAR(choice.ranges[0].runners_up[0].ratio, 1.5, 1e-3);
  EXPECT_EQ(choice.ranges[0].runners_up[1].candidate, 3u);
}

TEST(ChooseCollective, ExplainsByProtocolAndChannelsIfStepsAreEqual) {
  const auto with = [](std::string name, Protocol protocol, std::int32_t channels, double latency,
                       double rate) {
    return CollectiveCandidate{
        .name = std::move(name),
        .facts = {.steps = 14, .wire = 1.75, .channels = channels, .protocol = protocol},
        .seconds = [=](std::int64_t bytes) { return latency + static_cast<double>(bytes) / rate; }};
  };
  const std::vector<CollectiveCandidate> protocols = {with("simple", Protocol::simple, 8, 40e-6, 100e9),
                                                      with("ll", Protocol::ll, 8, 10e-6, 50e9)};
  const CollectiveChoice choice = choose(protocols, doubling_sizes(1024, 1 << 30));
  ASSERT_EQ(choice.ranges.size(), 2u);
  EXPECT_EQ(choice.ranges[0].why, "latency-bound: messages of LL arrive sooner than those of Simple");
  EXPECT_EQ(choice.ranges[1].why, "bandwidth-bound: Simple sends fewer flags with the data than LL");
  const std::vector<CollectiveCandidate> channels = {with("one", Protocol::simple, 1, 20e-6, 10e9),
                                                     with("four", Protocol::simple, 4, 20e-6, 40e9)};
  EXPECT_EQ(choose(channels, {1 << 28}).ranges[0].why, "bandwidth-bound: 4 channels against 1");
}

TEST(ChooseCollective, ExplainsTies) {
  const std::vector<CollectiveCandidate> same = {affine("a", 4, 2), affine("b", 4, 2)};
  EXPECT_EQ(choose(same, {1024}).ranges[0].why, "as good as b");
  EXPECT_EQ(choose(same, {1024}).ranges[0].best, 0u);  // the first of equals
  const std::vector<CollectiveCandidate> odd = {affine("a", 4, 2, 2e-6), affine("b", 4, 2)};
  EXPECT_EQ(choose(odd, {1024}).ranges[0].why,
            "it uses the links better: the two have equal steps and bytes sent");
  const std::vector<CollectiveCandidate> alone = {affine("a", 4, 2)};
  EXPECT_EQ(choose(alone, {1024}).ranges[0].why, "no other algorithm can run it");
}

TEST(ChooseCollective, LeavesGapsWhereNoAlgorithmRuns) {
  const std::vector<std::int64_t> small = {128, 1024}, large = {65536, 1 << 20};
  const std::vector<double> times = {1e-6, 2e-6};
  const std::vector<CollectiveCandidate> candidates = {tabled("small", {}, small, times),
                                                       tabled("large", {}, large, times)};
  const CollectiveChoice choice = choose(candidates, doubling_sizes(128, 1 << 20));
  ASSERT_EQ(choice.ranges.size(), 2u);
  EXPECT_EQ(choice.ranges[0].max_bytes, 1024);
  EXPECT_EQ(choice.ranges[1].min_bytes, 65536);
  EXPECT_TRUE(choice.ranges[0].runners_up.empty());
}

TEST(ChooseCollective, AgreesWithTheMeasuredTables) {
  std::vector<CollectiveCandidate> candidates;
  for (const char* name : {"nccl_ring", "nccl_tree", "msccl_allpairs"}) {
    const std::string path = std::string(WEFT_SOURCE_DIR "/test/data/nccl-tables/") + name + ".json";
    const auto text = read_file(path, 1 << 20);
    ASSERT_TRUE(text.ok());
    const auto table = formats::parse_collective_table(*text, path);
    ASSERT_TRUE(table.ok());
    std::vector<std::int64_t> sizes;
    std::vector<double> seconds;
    for (const auto& row : table->rows) {
      sizes.push_back(row.bytes);
      seconds.push_back(row.in_place_us * 1e-6);
    }
    candidates.push_back(tabled(name, {}, sizes, seconds));
  }
  const CollectiveChoice choice = choose(candidates, doubling_sizes(256, 32 << 20));
  ASSERT_EQ(choice.ranges.size(), 2u);
  EXPECT_EQ(candidates[choice.ranges[0].best].name, "msccl_allpairs");
  EXPECT_EQ(candidates[choice.ranges[1].best].name, "nccl_ring");
  EXPECT_GT(choice.ranges[0].max_bytes, 131072);
  EXPECT_LT(choice.ranges[0].max_bytes, 262144);
}

TEST(ChooseCollective, RejectsInvalidQueries) {
  const auto message = [](const std::vector<CollectiveCandidate>& candidates,
                          const std::vector<std::int64_t>& sizes) {
    const auto choice = choose_collective(candidates, sizes);
    return choice.ok() ? "no error" : choice.error().message;
  };
  EXPECT_EQ(message({}, {1}), "expected 1 to 4096 algorithms to choose from, found 0");
  EXPECT_EQ(message({affine("a", 1, 1)}, {}), "expected 1 to 65536 sizes, found 0");
  EXPECT_EQ(message({affine("a", 1, 1)}, {2, 1}), "expected ascending sizes, found 1 at position 1");
  const auto never = [](double seconds) {
    return CollectiveCandidate{
        .name = "never", .facts = {}, .seconds = [=](std::int64_t) { return seconds; }};
  };
  for (const double seconds : {kInfinity, std::nan(""), -1.0, 0.0})
    EXPECT_EQ(message({never(seconds)}, {1, 2}),
              "none of the algorithms can run any of the sizes: 1 to 2 bytes");
  EXPECT_EQ(message({{.name = "empty", .facts = {}, .seconds = nullptr}}, {1}),
            "none of the algorithms can run any of the sizes: 1 to 1 bytes");
}

}  // namespace
}  // namespace weft::exchange
