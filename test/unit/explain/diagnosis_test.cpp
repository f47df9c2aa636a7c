// The reports of ranks, and the summary above them.
#include <algorithm>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "weft/app/explain/diagnosis.h"

namespace weft::explain {
namespace {

using transport::RankReport;

TEST(Diagnosis, StartsWithASummary) {
  const RankReport patients[] = {
      {4711, 0, 3,
       "rank 0 of 3, process 4711\n  waits for rank 1 in an exchange for 4.2 s (group 0, number 7)\n", ""},
      {4712, 1, 3, "rank 1 of 3, process 4712\n  computes\n", ""},
      {4713, -1, 0, "", "stopped (T)"}};
  EXPECT_EQ(print_text(patients),
            "3 ranks here: 1 waits, 1 does not answer\n"
            "rank 0 waits for rank 1 in an exchange for 4.2 s (group 0, number 7)\n"
            "\n"
            "rank 0 of 3, process 4711\n  waits for rank 1 in an exchange for 4.2 s (group 0, number 7)\n"
            "\n"
            "rank 1 of 3, process 4712\n  computes\n"
            "\n"
            "process 4713 does not answer: it is stopped (T)\n");
  EXPECT_EQ(print_text(std::span(patients).subspan(1, 1)),
            "1 rank here: it is not waiting\n\nrank 1 of 3, process 4712\n  computes\n");
  EXPECT_TRUE(print_json(patients).starts_with(R"({"ranks":3,"waiting":1,"not_answering":1,"processes":[{)"))
      << print_json(patients);
}

std::string row(int call) {
  return fmt::format("{:>8}  all_reduce of 4 f32, sum   ring   done   1/1   rank 1   2 us\n", call);
}

// A healthy job: its table has a column "waits for", and its waits are short.
TEST(Diagnosis, DoesNotReportShortWaits) {
  const std::string heading =
      "    call  what                       algorithm  state  pieces  waits for  for\n";
  for (const std::string wait : {"", "  waits for rank 1 in an exchange for 20 us (group 0, number 7)\n",
                                 "  waits for rank 1 in all_reduce of 4 f32, sum for 999 ms\n"}) {
    const RankReport patients[] = {{1, 0, 2, "rank 0 of 2, process 1\n" + wait + heading + row(1), ""}};
    EXPECT_TRUE(print_text(patients).starts_with("1 rank here: it is not waiting\n\n"))
        << print_text(patients);
    EXPECT_NE(print_json(patients).find("\"waiting\":0"), std::string::npos);
  }
  for (const std::string time : {"1 s", "12.5 s", "3.1 min", "a time that nobody can read"}) {
    const std::string wait = fmt::format("  waits for rank 1 in all_reduce of 4 f32, sum for {}\n", time);
    const RankReport patients[] = {{1, 0, 2, "rank 0 of 2, process 1\n" + wait + heading + row(1), ""}};
    EXPECT_TRUE(
        print_text(patients).starts_with("1 rank here: 1 waits\nrank 0 waits for rank 1 in all_reduce"))
        << print_text(patients);
  }
}

TEST(Diagnosis, PrintsTheLastCallsOfEachTable) {
  std::string answer = "rank 0 of 2, process 1\n    call  what\n";
  for (int call = 0; call < 256; ++call) answer += row(call);
  answer += "  of the GPU\n    step  what\n" + row(7);
  const RankReport patients[] = {{1, 0, 2, answer, ""}};
  const std::string text = print_text(patients, 10);
  EXPECT_EQ(std::ranges::count(text, '\n'), 2 + 1 + 1 + 1 + 10 + 1 + 1 + 1) << text;
  EXPECT_NE(text.find("246 earlier: weft doctor --all\n" + row(246)), std::string::npos) << text;
  EXPECT_NE(text.find(row(255) + "  of the GPU\n    step  what\n" + row(7)), std::string::npos) << text;
  EXPECT_NE(print_text(patients).find(row(0)), std::string::npos);
}

}  // namespace
}  // namespace weft::explain
