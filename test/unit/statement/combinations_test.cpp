// Unsupported combinations are rejected with the reason, and documented.
#include "weft/planner/statement/combinations.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "weft/base/file.h"
#include "weft/planner/search/requirements.h"

namespace weft::planner {
namespace {

Target cluster_of_two(bool network) {
  cluster::Axis axis{"node", 2, {}};
  axis.link.name = "wire";
  axis.link.bytes_per_second = network ? 1e9 : 0;
  return Target({"two", {}, {std::move(axis)}}, TargetKind::described);
}

std::string said(const Settings& settings, const Target& target) {
  const Status status = check_combinations(settings, target, /*learns=*/true);
  return status.ok() ? std::string() : status.error().message;
}

TEST(Combinations, EachOneAloneIsAccepted) {
  const auto with = [](auto change) {
    Settings settings;
    change(settings);
    return said(settings, cluster_of_two(/*network=*/true));
  };
  EXPECT_EQ(with([](Settings&) {}), "");
  EXPECT_EQ(with([](Settings& settings) { settings.sync_every = 4; }), "");
  EXPECT_EQ(with([](Settings& settings) { settings.delay = 1; }), "");
  EXPECT_EQ(with([](Settings& settings) { settings.servers = 2; }), "");
  EXPECT_EQ(with([](Settings& settings) {
              settings.delay = 1;
              settings.training.precision.compute = plan::DType::f64;
            }),
            "");
}

TEST(Combinations, AreRejectedWithTheReason) {
  Settings settings;
  settings.servers = 1;
  EXPECT_EQ(said(settings, cluster_of_two(/*network=*/false)),
            "parameter_servers cannot be combined with a cluster without a network: servers are hosts beside "
            "those of the "
            "cluster");
  settings = {};
  settings.delay = 1;
  settings.sync_every = 2;
  EXPECT_NE(said(settings, cluster_of_two(true)).find("gradient_delay cannot be combined with sync_every"),
            std::string::npos);
}

// The page lists all of them with their reasons, and nothing that is accepted.
TEST(Combinations, AreDocumented) {
  const auto page = read_file(WEFT_SOURCE_DIR "/docs/combinations.md", 1 << 20);
  ASSERT_TRUE(page.ok());
  std::size_t rows = 0;
  const auto is_listed = [&](std::string_view first, std::string_view second, std::string_view reason) {
    ++rows;
    const std::string row = fmt::format("| `{}` | {} | {} |", first, second, reason);
    EXPECT_NE(page->find(row), std::string::npos) << row;
  };
  for (const Combination& one : refused_combinations()) is_listed(one.first, one.second, one.reason);
  for (const search::Requirement& one : search::requirements())
    is_listed(one.setting, search::kStagesOrMicroBatches, one.reason);
  std::size_t listed = 0;
  for (std::size_t at = page->find("\n| `"); at != std::string::npos; at = page->find("\n| `", at + 1))
    ++listed;
  EXPECT_EQ(listed, rows);
}

}  // namespace
}  // namespace weft::planner
