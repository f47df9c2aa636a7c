// How `weft top` evaluates the reports of ranks.
#include "weft/app/explain/rank_activity.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace weft::explain {
namespace {

using std::chrono::steady_clock;

transport::RankReport patient(std::int32_t rank, std::string figures) {
  return {.process = 4711 + rank, .rank = rank, .ranks = 2, .answer = "rank", .figures = std::move(figures)};
}

const steady_clock::time_point kBegin{};

TEST(RankActivity, RatesAreSinceTheLastSnapshot) {
  const auto before = snapshot_of({patient(0, "tallies 1\nall_reduce 100 4096 0 0 0.5\n")}, kBegin);
  const auto now = snapshot_of({patient(0, "tallies 1\nall_reduce 120 2004096 1 0 1.0\nbarrier 4 0 0 1 0\n"),
                                patient(1, "tallies 1\n")},
                               kBegin + std::chrono::seconds(2));
  EXPECT_EQ(print_text(now, before, 100),
            "rank  process  calls     bytes  in calls  waits  faults  calls/s    rate  busy\n"
            "   0     4711    124  1.91 MiB       1 s      1       1       12  1 MB/s   25%\n"
            "   1     4712      0       0 B                0       0\n"
            "\n"
            "collective  calls     bytes  in calls  waits  faults\n"
            "all_reduce    120  1.91 MiB       1 s      1       0\n"
            "barrier         4       0 B                0       1\n");
  const auto json = nlohmann::json::parse(print_json(now, before));
  EXPECT_EQ(json["ranks"][0]["bytes_per_second"], 1e6);
  EXPECT_EQ(json["ranks"][0]["collectives"]["barrier"]["faults"], 1);
  EXPECT_FALSE(json["ranks"][1].contains("busy")) << "it was not there before";
}

TEST(RankActivity, ARankThatDoesNotAnswerShowsItsState) {
  transport::RankReport stopped{.process = 7};
  stopped.state = "stopped (T)";
  const auto picture = snapshot_of({stopped, patient(1, "")}, kBegin);
  EXPECT_EQ(print_text(picture, {}, 100),
            "rank  process  state\n"
            "            7  stopped (T)\n"
            "   1     4712  without a communicator\n");
  EXPECT_EQ(print_text({}, {}, 100), "no rank of a job runs on this machine\n");
}

// A process that was restarted under the same number has lower counters than before.
TEST(RankActivity, DecreasedCountersHaveNoRate) {
  const auto before = snapshot_of({patient(0, "tallies 1\nall_reduce 100 4096 0 0 0.5\n")}, kBegin);
  const auto now =
      snapshot_of({patient(0, "tallies 1\nall_reduce 1 40 0 0 0\n")}, kBegin + std::chrono::seconds(1));
  EXPECT_EQ(print_text(now, before, 100).find("calls/s"), std::string::npos);
}

}  // namespace
}  // namespace weft::explain
