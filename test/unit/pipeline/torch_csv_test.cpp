// Schedules as PyTorch's CSV: round trips of the shipped ones, and errors in files.
#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "weft/parallel/pipeline/library.h"
#include "weft/parallel/pipeline/torch_csv.h"
#include "weft/parallel/pipeline/verify.h"

namespace weft::pipeline {
namespace {

Schedule shipped(std::string_view name, int stages, int micro_batches) {
  const auto found = find_schedule(name);
  EXPECT_TRUE(found.ok());
  auto schedule = unfold(**found, {{"stages", stages}, {"micro_batches", micro_batches}});
  EXPECT_TRUE(schedule.ok()) << schedule.error().message;
  return schedule.ok() ? *std::move(schedule) : Schedule();
}

std::string csv_of(std::string_view name, int stages, int micro_batches, TorchFormat format) {
  const auto csv = print_torch_csv(shipped(name, stages, micro_batches), format);
  EXPECT_TRUE(csv.ok()) << name << ": " << csv.error().message;
  return csv.ok() ? *csv : "";
}

std::string refusal(std::string_view csv) {
  const auto read = parse_torch_csv(csv);
  EXPECT_FALSE(read.ok()) << csv;
  return read.ok() ? "" : read.error().message;
}

TEST(TorchCsv, PrintsPasses) {
  EXPECT_EQ(csv_of("one_f_one_b", 2, 3, TorchFormat::compute_only),
            "0F0,0F1,0B0,0F2,0B1,0B2\n"
            "1F0,1B0,1F1,1B1,1F2,1B2\n");
}

TEST(TorchCsv, AddsMessages) {
  EXPECT_EQ(csv_of("gpipe", 2, 1, TorchFormat::compute_comms),
            "0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD,0RESHARD\n"
            "1UNSHARD,1RECV_F0,1F0,1B0,1SEND_B0,1REDUCE_GRAD,1RESHARD\n");
}

// In a V, neighbouring stages on one rank exchange no messages.
TEST(TorchCsv, SendsNothingWithinARank) {
  const std::string csv = csv_of("zb_v", 2, 4, TorchFormat::compute_comms);
  EXPECT_NE(csv.find("0SEND_F0"), std::string::npos);
  EXPECT_EQ(csv.find("1SEND_F"), std::string::npos);
  EXPECT_EQ(csv.find("2RECV_F"), std::string::npos);
  EXPECT_EQ(csv.find("2SEND_B"), std::string::npos);
}

TEST(TorchCsv, ReadsWhatItPrints) {
  for (const ScheduleText& text : shipped_schedules())
    for (const auto& [stages, micro_batches] :
         {std::pair(2, 4), std::pair(3, 6), std::pair(4, 8), std::pair(8, 16)})
      for (const TorchFormat format : {TorchFormat::compute_only, TorchFormat::compute_comms}) {
        const Schedule schedule = shipped(text.name, stages, micro_batches);
        const auto csv = print_torch_csv(schedule, format);
        // Two copies of each stage have no CSV.
        ASSERT_EQ(csv.ok(), schedule.route != Route::both_ways) << text.name;
        if (!csv.ok()) continue;
        const auto read = parse_torch_csv(*csv);
        ASSERT_TRUE(read.ok()) << text.name << ": " << read.error().message;
        EXPECT_EQ(read->format, format);
        EXPECT_EQ(read->schedule.orders, schedule.orders) << text.name;
        EXPECT_EQ(read->schedule.route, schedule.route) << text.name;
        EXPECT_TRUE(verify(read->schedule).ok());
        const auto again = print_torch_csv(read->schedule, format);
        ASSERT_TRUE(again.ok()) << again.error().message;
        EXPECT_EQ(*again, *csv) << text.name;
      }
}

TEST(TorchCsv, ReadsWaitsBlanksAndQuotes) {
  const auto read = parse_torch_csv("0F0, 0F1 ,,\"0B0\",0B1\r\n,1F0,1B0,1F1,1B1\r\n\r\n");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->schedule.stages, 2);
  EXPECT_EQ(read->schedule.micro_batches, 2);
  EXPECT_EQ(read->format, TorchFormat::compute_only);
}

TEST(TorchCsv, NamesTheCellOfAnError) {
  EXPECT_EQ(refusal(""), "expected one row per rank, found an empty file");
  EXPECT_EQ(refusal("0F0,0B0,0X1\n"),
            "row 1, cell 3: expected a stage, an action and a micro-batch, found '0X1'");
  EXPECT_EQ(refusal("0F,0B0\n"), "row 1, cell 1: expected a stage, an action and a micro-batch, found '0F'");
  EXPECT_EQ(refusal("0F0,0B0\n1F0,-1B0\n"),
            "row 2, cell 2: expected a stage, an action and a micro-batch, found '-1B0'");
  EXPECT_EQ(refusal("0F99999999999999999999,0B0\n"),
            "row 1, cell 1: expected a stage, an action and a micro-batch, found '0F99999999999999999999'");
  EXPECT_EQ(refusal("(0F0;0B0)OVERLAP_F_B\n"),
            "row 1, cell 1: expected an F and an I or B of another micro-batch in parentheses, found "
            "'(0F0;0B0)OVERLAP_F_B'");
  EXPECT_EQ(refusal("0B0,0F0\n"), "row 1, cell 1: expected 0F0 before it, found 0B0");
  EXPECT_EQ(refusal("0F0,0B0,0B0\n"), "row 1, cell 3: expected each pass once, found 0B0");
  EXPECT_EQ(refusal("0F0,0I0\n"), "expected 0W0, found none in any row");
  EXPECT_EQ(refusal("0F0,0F1,0B0,0B1\n1F1,1F0,1B0,1B1\n"), "row 2, cell 1: expected 1F0, found 1F1");
}

TEST(TorchCsv, ChecksStagesAndSizes) {
  EXPECT_NE(refusal("0F0,0B0\n2F0,2B0\n").find("stage"), std::string::npos);
  EXPECT_NE(
      refusal("0F0,0B0,1F0,1B0\n2F0,2B0\n").find("PyTorch needs the same number of stages on each rank"),
      std::string::npos);
  // Sizes that only a few cells name take no memory.
  EXPECT_EQ(refusal("0F999998,0B999998\n"),
            "expected passes of 1 stages and 999999 micro-batches, found 2 cells");
}

// Stages 0 and 1 wait for each other: 0B0 needs 1B0, which is after 1F1, which needs 0F1 after 0B0.
TEST(TorchCsv, FindsRanksThatWaitForEachOther) {
  const std::string why = refusal("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n");
  EXPECT_NE(why.find("row 1, cell 2"), std::string::npos) << why;
}

struct Change {
  std::string_view from, to, why;
};

// PyTorch executes compute_comms without checks, so each kind of fault is one that would hang or
// compute something else.
TEST(TorchCsv, ChecksMessages) {
  const std::string right = csv_of("one_f_one_b", 2, 2, TorchFormat::compute_comms);
  ASSERT_TRUE(parse_torch_csv(right).ok());
  const Change kChanges[] = {
      {"0SEND_F0,", "", "expected 0SEND_F0 after this pass"},
      {"1RECV_F0,", "", "expected 1RECV_F0 before this pass"},
      {"0SEND_F0,", "0SEND_F0,0SEND_F0,", "expected each message once"},
      {"0SEND_F0,", "0SEND_F0,0SEND_B0,", "expected a message between two stages"},
      {"0UNSHARD,", "0UNSHARD,0UNSHARD,", "0RESHARD before it"},
      {",0REDUCE_GRAD", ",0REDUCE_GRAD,0REDUCE_GRAD", "expected it once"},
      {"1B0,1SEND_B0,", "1SEND_B0,1B0,", "expected the pass that makes this message before it"},
  };
  for (const Change& change : kChanges) {
    std::string wrong = right;
    const std::size_t at = wrong.find(change.from);
    ASSERT_NE(at, std::string::npos) << change.from << " in\n" << right;
    wrong.replace(at, change.from.size(), change.to);
    const std::string why = refusal(wrong);
    EXPECT_NE(why.find(change.why), std::string::npos) << change.from << " -> " << change.to << ": " << why;
    EXPECT_TRUE(why.starts_with("row ")) << why;
  }
}

// Point-to-point operations of two ranks match in the order of both.
TEST(TorchCsv, NeedsMessagesInTheSameOrderOnBothRanks) {
  const std::string why = refusal(
      "0UNSHARD,0F0,0F1,0SEND_F1,0SEND_F0,0RECV_B0,0B0,0RECV_B1,0B1,0RESHARD,0REDUCE_GRAD\n"
      "1UNSHARD,1RECV_F0,1F0,1RECV_F1,1F1,1B0,1SEND_B0,1B1,1SEND_B1,1RESHARD,1REDUCE_GRAD\n");
  EXPECT_NE(why.find("expected the same messages in the same order in rows 1 and 2"), std::string::npos)
      << why;
}

TEST(TorchCsv, RefusesDualPipe) {
  const auto csv = print_torch_csv(shipped("dualpipe", 4, 8), TorchFormat::compute_only);
  ASSERT_FALSE(csv.ok());
  EXPECT_NE(csv.error().message.find("two copies of each"), std::string::npos) << csv.error().message;
}

}  // namespace
}  // namespace weft::pipeline
