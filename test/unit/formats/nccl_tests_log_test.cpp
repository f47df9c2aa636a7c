// Logs of nccl-tests of every version, and every way in which they can be wrong.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include <fmt/format.h>

#include "weft/base/file.h"
#include "weft/formats/nccl_tests_log.h"

namespace weft::formats {
namespace {

using collective::Kind;

std::string error_of(std::string_view text) {
  const auto table = parse_collective_table(text, "run.log");
  return table.ok() ? "no error" : table.error().message;
}

CollectiveTable read(std::string_view text) {
  const auto table = parse_collective_table(text, "run.log");
  EXPECT_TRUE(table.ok()) << (table.ok() ? "" : table.error().message);
  return table.ok() ? *table : CollectiveTable{};
}

constexpr std::string_view kToday =
    "# Collective test starting: all_reduce_perf\n"
    "# nThread 1 nGpus 2 minBytes 1024 maxBytes 2097152 step: 2(factor) warmup iters: 5 iters: 20\n"
    "#\n"
    "# Using devices\n"
    "#  Rank  0 Group  0 Pid  11 on  somewhere device  0 [0000:05:00] A GPU\n"
    "#  Rank  1 Group  0 Pid  11 on  somewhere device  1 [0000:33:00] A GPU\n"
    "#\n"
    "#                                                              out-of-place                       "
    "in-place\n"
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   "
    "busbw "
    "#wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  "
    "(GB/s)\n"
    "        1024           256     float     sum      -1    11.88    0.09    0.15      0    11.50    0.09   "
    " 0.15  "
    "    0\n"
    "somewhere:11:12 [0] NCCL INFO a line of another program\n"
    "     2097152        524288     float     sum      -1    82.97   25.28   25.28      0    83.54   25.10   "
    "25.10  "
    "    0\n"
    "# Out of bounds values : 0 OK\n"
    "# Avg bus bandwidth    : 12.7\n";

TEST(NcclTestsLog, ReadsACurrentTable) {
  const CollectiveTable table = read(kToday);
  EXPECT_EQ(table.algorithm, "");
  EXPECT_EQ(table.kind, Kind::all_reduce);
  EXPECT_EQ(table.ranks, 2);
  EXPECT_EQ(table.rows, (std::vector<CollectiveRow>{{1024, 11.88, 11.5}, {2097152, 82.97, 83.54}}));
}

TEST(NcclTestsLog, ReadsOlderColumns) {
  // Without a root, and with the largest error instead of the number of wrong values.
  const CollectiveTable old = read(
      "#       size         count      type   redop     time   algbw   busbw  error     time   algbw   busbw "
      " error\n"
      "     1048576        262144     float     sum    61.90   16.94   29.64  2e-07    61.21   17.13   29.98 "
      " 2e-07\n");
  EXPECT_EQ(old.rows, (std::vector<CollectiveRow>{{1048576, 61.9, 61.21}}));
  EXPECT_EQ(old.kind, Kind::all_reduce);
  EXPECT_EQ(old.ranks, 0);
  // Without redop and root.
  EXPECT_EQ(read("#  size  count  type  time  algbw  busbw  error  time  algbw  busbw  error\n"
                 "   1024    256  float  11.9  0.09  0.15  0e+00  N/A  N/A  N/A  N/A\n")
                .rows,
            (std::vector<CollectiveRow>{{1024, 11.9, 0}}));
  // In-place columns first.
  EXPECT_EQ(read("#        in-place       out-of-place\n"
                 "#  size  count  time  algbw  busbw  #wrong  time  algbw  busbw  #wrong\n"
                 "   1024    256  1.5  0.09  0.15  0  2.5 0.1 0.1 0\n")
                .rows,
            (std::vector<CollectiveRow>{{1024, 2.5, 1.5}}));
}

TEST(NcclTestsLog, ReadsRowsWithoutAHeader) {
  const std::vector<CollectiveRow> both = {{1024, 11.9, 12.1}}, one = {{1024, 11.9, 0}};
  EXPECT_EQ(read("1024 256 float sum -1 11.9 0.09 0.15 0 12.1 0.09 0.15 0").rows, both);
  EXPECT_EQ(read("1024 256 float sum 11.9 0.09 0.15 0 12.1 0.09 0.15 0").rows, both);
  EXPECT_EQ(read("1024 256 float 11.9 0.09 0.15 0 12.1 0.09 0.15 0").rows, both);
  EXPECT_EQ(read("1024 256 float sum -1 11.9 0.09 0.15 0").rows, one);
  EXPECT_EQ(read("1024 256 float sum 11.9 0.09 0.15 0\r\n").rows, one);
  EXPECT_EQ(read("[1,0]<stdout>:   1024 256 float 11.9 0.09 0.15 0\n").rows, one);
}

TEST(NcclTestsLog, InfersTheCollectiveFromColumns) {
  EXPECT_EQ(read("1048576 1 float sum -1 50 20.0 35.0 0").kind, Kind::all_reduce);
  EXPECT_EQ(read("1048576 1 float sum -1 50 20.0 17.5 0").kind, Kind::reduce_scatter);
  EXPECT_EQ(read("1048576 1 float sum 0 50 20.0 20.0 0").kind, Kind::reduce);
  EXPECT_EQ(read("1048576 1 float none 3 50 20.0 20.0 0").kind, Kind::broadcast);
  EXPECT_EQ(read("1048576 1 float none -1 50 20.0 17.5 0").kind, Kind::custom);  // all_gather or all_to_all
}

TEST(NcclTestsLog, SkipsEmptyRows) {
  EXPECT_EQ(
      read("0 0 float sum -1 5.7 0 0 0\n0 0 float sum -1 5.9 0 0 0\n128 32 float sum -1 32 0 0 0\n").rows,
      (std::vector<CollectiveRow>{{128, 32, 0}}));
}

TEST(NcclTestsLog, NamesTheLineInErrors) {
  EXPECT_EQ(error_of(""), "run.log has no rows");
  EXPECT_EQ(error_of("# nothing\nhello\n\n"), "run.log has no rows");
  EXPECT_EQ(error_of("# x\n1024 256 float\n"), "run.log, line 2: expected 7 to 13 columns, found 3");
  EXPECT_EQ(error_of("# size count time algbw\n1024 256 12 0.1\n2048 512 13\n"),
            "run.log, line 3: expected the 4 columns of the header, found 3");
  EXPECT_EQ(error_of("1024 256 float sum -1 fast 0.09 0.15 0\n"),
            "run.log, line 1: expected a time in microseconds, found 'fast'");
  EXPECT_EQ(error_of("1024 256 float sum -1 -3 0.09 0.15 0\n"),
            "run.log, line 1: expected a time in microseconds, found '-3'");
  EXPECT_EQ(error_of("1024 256 float sum -1 nan 0.09 0.15 0\n"),
            "run.log, line 1: expected a time in microseconds, found 'nan'");
  EXPECT_EQ(
      error_of("99999999999999999999 256 float sum -1 1 0.09 0.15 0\n"),
      "run.log, line 1: expected a size of at most 1125899906842624 bytes, found '99999999999999999999'");
  EXPECT_EQ(error_of("1024 1 float sum -1 1 1 1 0\n\n512 1 float sum -1 1 1 1 0\n"),
            "run.log, line 3: expected ascending sizes, found 512 after 1024");
  std::string many;
  for (int i = 1; i <= 4097; ++i) many += fmt::format("{} 1 float sum -1 1 1 1 0\n", i);
  EXPECT_EQ(error_of(many), "run.log, line 4097: expected at most 4096 rows, found more");
}

TEST(NcclTestsLog, WritesLikeNcclTests) {
  const CollectiveTable table = {
      "ring", Kind::all_reduce, 8, {{1024, 11.88, 11.5}, {33554432, 497.52, 12345.6}}};
  EXPECT_EQ(print_nccl_tests_log(table),
            "# Weft algorithm: ring\n"
            "# Weft ranks: 8\n"
            "# Collective test starting: all_reduce_perf\n"
            "#\n"
            "#                                                              out-of-place                     "
            "  in-place\n"
            "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   "
            "algbw   busbw "
            "#wrong\n"
            "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  "
            "(GB/s)  "
            "(GB/s)       \n"
            "        1024           256     float     sum      -1    11.88    0.09    0.15      0    11.50   "
            " 0.09    0.16 "
            "     0\n"
            "    33554432       8388608     float     sum      -1    497.5   67.44  118.03      0    12346   "
            " 2.72    4.76 "
            "     0\n");
}

TEST(NcclTestsLog, ReadsWhatItWrites) {
  for (const Kind kind :
       {Kind::all_reduce, Kind::all_gather, Kind::all_to_all, Kind::broadcast, Kind::custom}) {
    const CollectiveTable table = {
        "a name, of words",
        kind,
        16,
        {{1, 0.002, 0}, {1024, 11.88, 11.5}, {1 << 20, 100.5, 99.25}, {1 << 30, 0, 123456}}};
    EXPECT_EQ(read(print_nccl_tests_log(table)), table) << name(kind);
  }
  // A name must not inject lines.
  EXPECT_EQ(read(print_nccl_tests_log({"x\n9 9", Kind::all_reduce, 2, {{8, 1, 1}}})).algorithm, "x 9 9");
}

TEST(NcclTestsLog, ReadsJsonTables) {
  const std::string path = WEFT_SOURCE_DIR "/test/data/nccl-tables/nccl_ring.json";
  const auto text = read_file(path, 1 << 20);
  ASSERT_TRUE(text.ok());
  const CollectiveTable table = read(*text);
  EXPECT_EQ(table.algorithm, "nccl_ring");
  EXPECT_EQ(table.kind, Kind::all_reduce);
  EXPECT_EQ(table.ranks, 8);
  ASSERT_EQ(table.rows.size(), 19u);
  EXPECT_EQ(table.rows[18], (CollectiveRow{33554432, 497.5, 497.8}));
  EXPECT_EQ(read(print_nccl_tests_log(table)).rows.size(), 19u);
}

TEST(NcclTestsLog, ReportsErrorsInJson) {
  EXPECT_EQ(error_of("{"), "run.log: expected JSON, found empty or truncated text");
  EXPECT_EQ(error_of("{}"), "run.log: expected rows: a list of 1 to 4096, found none");
  EXPECT_EQ(error_of(R"({"rows": []})"), "run.log: expected rows: a list of 1 to 4096, found 0");
  EXPECT_EQ(error_of(R"({"ranks": 1e99})"),
            "run.log: expected ranks: a whole number from 1 to 1048576, found 1e+99");
  EXPECT_EQ(error_of(R"({"ranks": -1})"),
            "run.log: expected ranks: a whole number from 1 to 1048576, found -1");
  EXPECT_EQ(error_of(R"({"collective": "juggle"})"),
            "run.log: expected collective: the name of one, such as all_reduce, found 'juggle'");
  EXPECT_EQ(error_of(R"({"algorithm": 3})"), "run.log: expected algorithm: a name, found number");
  EXPECT_EQ(error_of(R"({"rows": [{"bytes": 1}, 2]})"), "run.log: expected row 2: an object, found number");
  EXPECT_EQ(error_of(R"({"rows": [{"in_place_us": 1}]})"),
            "run.log: expected row 1: bytes from 1 to 1125899906842624, found none");
  EXPECT_EQ(error_of(R"({"rows": [{"bytes": 18446744073709551615}]})"),
            "run.log: expected row 1: bytes from 1 to 1125899906842624, found 18446744073709551615");
  EXPECT_EQ(error_of(R"({"rows": [{"bytes": 2}, {"bytes": 2}]})"),
            "run.log: expected row 2: ascending sizes, found 2 after 2");
  EXPECT_EQ(error_of(R"({"rows": [{"bytes": 2, "in_place_us": -1}]})"),
            "run.log: expected row 1: in_place_us in microseconds, found -1");
  EXPECT_EQ(read(R"({"rows": [{"bytes": 2, "in_place_us": null}]})").rows,
            (std::vector<CollectiveRow>{{2, 0, 0}}));
}

TEST(NcclTestsLog, ReadsDevicesOfRanks) {
  constexpr std::string_view kLog =
      "# Using devices\n"
      "#  Rank  0 Group  0 Pid  97083 on      node1 device  0 [0x1b] NVIDIA H100 80GB HBM3\n"
      "#  Rank  1 Group  0 Pid  97084 on      node1 device  1 [0x43] NVIDIA H100 80GB HBM3\n"
      "#   Rank  2 Pid  97085 on node2 device  0 [0x1b] NVIDIA H100 80GB HBM3\n"
      "1024 256 float sum -1 11.88 0.09 0.15 0 11.88 0.09 0.15 0\n";
  const auto table = parse_collective_table(kLog, "log");
  ASSERT_TRUE(table.ok()) << table.error().message;
  EXPECT_EQ(table->ranks, 3);
  EXPECT_EQ(table->hosts, 2);
  EXPECT_EQ(table->device, "NVIDIA H100 80GB HBM3");
}

}  // namespace
}  // namespace weft::formats
