// Resharding cases: read, planned, timed and replayed.
#include "weft/formats/reshard_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <string>

#include <nlohmann/json.hpp>

#include "weft/base/file.h"
#include "weft/collectives/reshard/replay.h"
#include "weft/collectives/reshard/timing.h"

namespace weft::formats {
namespace {

constexpr std::string_view kOneCase = R"([{"name": "six", "src_mesh": [2, 4], "dst_mesh": [3, 4],
  "shape": [24, 8], "dtype_bytes": 4, "src_spec": [[0], []], "dst_spec": [[0, 1], []]}])";

std::string refused_case(std::string text) {
  const auto cases = read_reshard_cases(text, "c.json");
  return cases.ok() ? "accepted" : cases.error().message;
}

// The error of the case after one replacement in its text.
std::string refused_with(std::string_view old, std::string_view changed) {
  std::string text(kOneCase);
  text.replace(text.find(old), old.size(), changed);
  return refused_case(text);
}

// A tensor of the same layout, small enough to be traced element by element.
ReshardCase scaled_down(ReshardCase one) {
  for (std::size_t dim = 0; dim < one.sizes.size(); ++dim) {
    std::int64_t parts = 1;
    for (const ReshardSide* side : {&one.source, &one.destination}) {
      std::int64_t along = 1;
      for (const std::int32_t axis : side->slicing[dim]) along *= axis == 0 ? side->hosts : side->devices;
      parts = std::lcm(parts, along);
    }
    one.sizes[dim] = std::min(one.sizes[dim], parts * (one.sizes.size() == 1 ? 1000 : dim == 0 ? 6 : 5));
  }
  return one;
}

TEST(ReshardCases, AreReadAndPlaced) {
  const auto cases = read_reshard_cases(kOneCase, "c.json");
  ASSERT_TRUE(cases.ok()) << cases.error().message;
  ASSERT_EQ(cases->size(), 1u);
  const auto made = reshard_of(cases->front());
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->sources.size(), 8u);
  EXPECT_EQ(made->destinations.size(), 12u);
  EXPECT_EQ(made->sources[5].box, (reshard::Box{{12, 12}, {0, 8}}));
  EXPECT_EQ(made->destinations[5].device, 13);
  EXPECT_EQ(made->destinations[5].box, (reshard::Box{{10, 2}, {0, 8}}));
  EXPECT_EQ(made->hosts[7], 1);
  EXPECT_EQ(made->hosts[13], 3);
}

TEST(ReshardCases, ReportErrorsWithTheirLocation) {
  EXPECT_EQ(refused_with("[24, 8]", "[25, 8]"),
            "c.json: cases[0].src_spec[0]: the mesh does not divide the dim: 2 parts, 25 elements");
  EXPECT_EQ(
      refused_with("[[0, 1], []]", "[[0, 2], []]"),
      "c.json: cases[0].dst_spec[0][1]: no such mesh axis: expected 0, the hosts, or 1, the devices of each");
  EXPECT_EQ(refused_with("[[0, 1], []]", "[[0], [0]]"),
            "c.json: cases[0].dst_spec[1][0]: a mesh axis may slice only one dim, once: axis 0");
  EXPECT_EQ(
      refused_with("[[0, 1], []]", "[[0, 1]]"),
      "c.json: cases[0].dst_spec: expected one list of mesh axes per dim of the shape: 1 lists, 2 dims");
  EXPECT_EQ(refused_with("[[0, 1], []]", "[0, []]"),
            "c.json: cases[0].dst_spec[0]: expected a list, found 0");
  EXPECT_EQ(
      refused_with("[3, 4]", "[65536, 65536]"),
      "c.json: cases[0].dst_mesh: the mesh is too large: expected at most 65536 devices, found 4294967296");
  EXPECT_EQ(refused_with("[3, 4]", "[3, 0]"), "c.json: cases[0].dst_mesh[1]: expected 1 to 65536, found 0");
  EXPECT_EQ(refused_with("[3, 4]", "[3]"),
            "c.json: cases[0].dst_mesh: expected two numbers, hosts and the devices of each, found 1");
  EXPECT_EQ(refused_with("[24, 8]", "[24, -8]"),
            "c.json: cases[0].shape[1]: expected 1 to 2147483647, found -8");
  EXPECT_EQ(refused_with("\"dtype_bytes\": 4, ", ""), "c.json: cases[0]: expected dtype_bytes, found none");
  EXPECT_EQ(refused_case("{}"), "c.json: expected cases, found none");
}

TEST(ReshardCases, RejectEveryTruncatedText) {
  for (std::size_t length = 0; length < kOneCase.size(); ++length)
    EXPECT_NE(refused_case(std::string(kOneCase.substr(0, length))), "accepted") << length;
}

// Zhuang et al., "On Optimizing the Communication of Model Parallelism", MLSys'23: their cases,
// with bounds.
TEST(ReshardCases, PublishedCasesAreCorrectAndNearTheirBounds) {
  const std::filesystem::path file =
      std::filesystem::path(WEFT_SOURCE_DIR) / "../shared/corpus/resharding-cases/cases.json";
  if (!std::filesystem::is_regular_file(file)) GTEST_SKIP() << "no cases in " << file;
  const auto text = read_file(file.string(), 1 << 20);
  ASSERT_TRUE(text.ok());
  const auto published = nlohmann::json::parse(*text);
  const auto cases = read_reshard_cases(*text, "cases.json");
  ASSERT_TRUE(cases.ok()) << cases.error().message;
  ASSERT_EQ(cases->size(), published.size());
  for (std::size_t c = 0; c < cases->size(); ++c) {
    const ReshardCase& one = (*cases)[c];
    SCOPED_TRACE(one.name);
    const auto whole = reshard_of(one);
    ASSERT_TRUE(whole.ok()) << whole.error().message;
    const auto plan = reshard::plan_moves(*whole);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_NEAR(plan->lower_bound_seconds, published[c]["lower_bound_s_at_10Gbps"].get<double>(), 1e-6);
    EXPECT_LE(reshard::time_moves(*whole, plan->moves, {}).seconds, 1.05 * plan->lower_bound_seconds);

    const auto small = reshard_of(scaled_down(one));
    ASSERT_TRUE(small.ok()) << small.error().message;
    const auto small_plan = reshard::plan_moves(*small, {}, {.least_chunk_bytes = 1});
    ASSERT_TRUE(small_plan.ok()) << small_plan.error().message;
    const Status judged = reshard::replay(*small, small_plan->moves);
    EXPECT_TRUE(judged.ok()) << judged.error().message;
  }
}

}  // namespace
}  // namespace weft::formats
