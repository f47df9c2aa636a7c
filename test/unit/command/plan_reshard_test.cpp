// `weft plan reshard`: its output as text and as JSON.
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "temporary_folder.h"
#include "weft/app/command/plans.h"

namespace weft::command {

using namespace session;
namespace {

// 1,000 floats from one host to two devices of another; and rows to columns.
constexpr std::string_view kCases = R"([
  {"name": "copy", "src_mesh": [1, 1], "dst_mesh": [1, 2], "shape": [1000], "dtype_bytes": 4,
   "src_spec": [[]], "dst_spec": [[]]},
  {"name": "turn", "src_mesh": [2, 1], "dst_mesh": [2, 1], "shape": [20, 10], "dtype_bytes": 4,
   "src_spec": [[0], []], "dst_spec": [[], [0]]}])";

class PlanReshardCommand : public testing::Test {
 protected:
  PlanReshardCommand() { std::ofstream(file_) << kCases; }

  Reply ask(const std::string& name, Format format = Format::text, const std::string& bandwidth = {}) const {
    return run(PlanReshard{.file = file_, .name = name, .bandwidth = bandwidth, .format = format});
  }

  TemporaryFolder folder_;
  std::string file_ = folder_ / "cases.json";
};

TEST_F(PlanReshardCommand, ListsEveryMoveOfACase) {
  const Reply reply = ask("turn", Format::json);
  ASSERT_EQ(reply.exit_code, ExitCode::ok) << reply.complaint;
  const auto json = nlohmann::json::parse(reply.output);
  EXPECT_DOUBLE_EQ(json["lower_bound_seconds"].get<double>(), 100 * 4 / 1.25e9);
  EXPECT_DOUBLE_EQ(json["seconds"].get<double>(), 100 * 4 / 1.25e9);
  ASSERT_EQ(json["moves"].size(), 4u);
  const auto& move = json["moves"][0];
  EXPECT_EQ(move["from_mesh"], "src");
  EXPECT_EQ(move["from"], 0);
  EXPECT_EQ(move["to"], 0);
  EXPECT_EQ(move["begin"], (nlohmann::json{0, 0}));
  EXPECT_EQ(move["end"], (nlohmann::json{10, 5}));
  EXPECT_EQ(move["bytes"], 200);
}

TEST_F(PlanReshardCommand, ForwardingWithinAHostIsFree) {
  EXPECT_EQ(ask("copy").output,
            " start     end  from   to        bytes  elements\n"
            "  0 ns  3.2 us  src 0  dst 0  3.91 KiB  [0:1000]\n"
            "3.2 us  3.2 us  dst 0  dst 1  3.91 KiB  [0:1000]\n"
            "copy: 3.2 us, 1.000 of the lower bound 3.2 us\n");
}

TEST_F(PlanReshardCommand, PrintsALinePerCase) {
  EXPECT_EQ(ask("").output,
            "case    time  lower bound  ratio  moves\n"
            "copy  3.2 us       3.2 us  1.000      2\n"
            "turn  320 ns       320 ns  1.000      4\n");
  const auto json = nlohmann::json::parse(ask("", Format::json).output);
  ASSERT_EQ(json["cases"].size(), 2u);
  EXPECT_EQ(json["cases"][1]["case"], "turn");
  EXPECT_EQ(json["cases"][1]["moves"], 4);
}

TEST_F(PlanReshardCommand, AcceptsABandwidth) {
  const auto json = nlohmann::json::parse(ask("copy", Format::json, "4 GB/s").output);
  EXPECT_DOUBLE_EQ(json["seconds"].get<double>(), 1e-6);
}

TEST_F(PlanReshardCommand, ReportsErrors) {
  EXPECT_EQ(ask("trun").exit_code, ExitCode::user_error);
  EXPECT_NE(ask("trun").complaint.find("has no case trun\n  did you mean 'turn'?"), std::string::npos)
      << ask("trun").complaint;
  EXPECT_NE(
      ask("turn", Format::text, "4 GB").complaint.find("--bandwidth: expected a rate above 0, found 4 GB"),
      std::string::npos);
}

}  // namespace
}  // namespace weft::command
