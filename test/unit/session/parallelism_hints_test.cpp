// HINT TP 8, PP 4, ZERO 1: the plan has these degrees, and EXPLAIN reports them.
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "session_case.h"
#include "thorough.h"

namespace weft::session {
namespace {

constexpr std::string_view kOnPod =
    "EXPLAIN (FORMAT json) TRAIN gpt2 ON pod WITH (b = 64, layers = 8, v = 5000, prove = false)";

nlohmann::json planned(std::string_view hints, std::string_view explain) {
  Session session;
  return answer(session, fmt::format("HINT {}; {}", hints, explain));
}

TEST(ParallelismHints, TheSummaryHasTheirDegrees) {
  WEFT_LONG_TEST();
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {"TP 8 WITHIN node", {"TP 8"}},
      {"TP 2 ON gpu, PP 4, ZERO 1", {"TP 2", "PP 4", "DP 4 (ZeRO-1)"}},
      {"DP 32, ZERO 3", {"DP 32 (ZeRO-3)"}},
      {"DP 32, ZERO 0", {"DP 32"}},
      {"CP 2", {"CP 2 (ring attention)"}}};
  for (const auto& [hints, degrees] : cases) {
    const nlohmann::json plan = planned(hints, kOnPod);
    const auto summary = plan.at("parallelism").get<std::string>();
    for (const std::string& degree : degrees)
      EXPECT_NE(summary.find(degree), std::string::npos) << hints << ": " << summary;
    EXPECT_EQ(plan.at("hints").back().get<std::string>(),
              hints.find(", ") == std::string::npos ? hints : hints.substr(hints.rfind(", ") + 2));
  }
  EXPECT_EQ(planned("DP 32, ZERO 0", kOnPod).at("parallelism").get<std::string>().find("ZeRO"),
            std::string::npos);
}

TEST(ParallelismHints, KeepsShardingAcrossAPod) {
  const auto summary =
      planned("DP 32, ZERO 3", "EXPLAIN (FORMAT json) TRAIN digits_mlp ON pod WITH (b = 4096, prove = false)")
          .at("parallelism")
          .get<std::string>();
  EXPECT_EQ(summary, "DP 32 (ZeRO-3)");
}

TEST(ParallelismHints, PlacesGroupsOnTheHintedAxis) {
  WEFT_LONG_TEST();
  const auto mesh = planned("TP 4 ON node", kOnPod).at("plan").get<std::string>();
  EXPECT_NE(mesh.find("node=4: slice "), std::string::npos) << mesh;
  EXPECT_EQ(mesh.find("node=4: slice b"), std::string::npos) << mesh;
}

TEST(ParallelismHints, RanksOfThisMachineFollowThem) {
  for (const auto& [hint, summary] : {std::pair("TP 2", "TP 2"), std::pair("DP 2", "DP 2")})
    EXPECT_NE(planned(hint, "EXPLAIN (FORMAT json) TRAIN digits_mlp ON LOCAL 2")
                  .at("parallelism")
                  .get<std::string>()
                  .find(summary),
              std::string::npos)
        << hint;
}

TEST(ParallelismHints, RejectsInfeasibleHints) {
  const auto refused = [](std::string_view hints, std::string_view explain) {
    Session session;
    return complaint(session, fmt::format("HINT {}; EXPLAIN {}", hints, explain));
  };
  EXPECT_NE(refused("TP 3", "TRAIN digits_mlp ON LOCAL 4").find("needs a multiple of 3 ranks"),
            std::string::npos);
  EXPECT_NE(refused("PP 2", "TRAIN digits_mlp ON LOCAL 4").find("stages are searched for TRAIN on a cluster"),
            std::string::npos);
  EXPECT_NE(refused("PP 2, ZERO 3", "TRAIN digits_mlp ON pod").find("no search combines PP with"),
            std::string::npos);
  EXPECT_NE(refused("CP 2", "TRAIN digits_mlp ON LOCAL 2").find("keeps HINT CP 2"), std::string::npos);
  EXPECT_NE(refused("TP 2", "TRAIN digits_mlp ON LOCAL 2 WITH (distribution = 'rank=2: slice b')")
                .find("the distribution does not keep HINT TP 2"),
            std::string::npos);
  EXPECT_NE(refused("TP 2 ON rank", "TRAIN digits_mlp ON pod").find("a hint names axis rank"),
            std::string::npos);
}

// Settings under former names work, and each prints its current name once.
TEST(FormerNames, WorkWithOneNote) {
  Session session;
  Reply first = session.execute("SET gives_way = true");
  EXPECT_EQ(first.output, "yield = true\n");
  EXPECT_NE(first.complaint.find("note: gives_way is now called yield"), std::string::npos);
  EXPECT_EQ(session.execute("SET gives_way = false").complaint, "");
  first = session.execute("EXPLAIN (SUMMARY) TRAIN digits_mlp WITH (seconds = 9)");
  EXPECT_NE(first.complaint.find("note: seconds is now called planning_seconds"), std::string::npos);
  EXPECT_NE(complaint(session, "EXPLAIN TRAIN digits_mlp WITH (seconds = 9, planning_seconds = 8)")
                .find("planning_seconds is given twice"),
            std::string::npos);
  EXPECT_EQ(session.execute("SET optimizer_off = 'decompose, credit'").output,
            "disabled_stages = 'tile collectives, partition all-reduces'\n");
}

}  // namespace
}  // namespace weft::session
