// weft collective run through its command: ranks as threads, and as processes that run this test
// program again.
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "temporary_folder.h"
#include "weft/app/command/collective.h"

namespace weft::command {

using namespace session;
namespace {

CollectiveRun ring(const std::string& transport) {
  CollectiveRun request;
  request.program = "all_reduce_ring";
  request.ranks = 3;
  request.transport = transport;
  request.bytes = "10 kB";
  request.verify = true;
  request.repeat = 2;
  request.timeout = "10 s";
  request.format = Format::json;
  request.rank_command = {"/proc/self/exe", "--gtest_filter=CollectiveRunRank.Part"};
  return request;
}

// The process of a rank.
TEST(CollectiveRunRank, Part) {
  if (std::getenv(kCollectiveRankVariable) == nullptr) GTEST_SKIP() << "not a rank's process";
  const Reply reply = run(ring(std::getenv("WEFT_TEST_TRANSPORT")));
  std::printf("\n%s", reply.output.c_str());
  std::fprintf(stderr, "%s", reply.complaint.c_str());
  std::fflush(stdout);
  ASSERT_EQ(reply.exit_code, ExitCode::ok);
}

TEST(CollectiveRun, EveryTransportGivesBitwiseEqualResults) {
  if (std::getenv(kCollectiveRankVariable) != nullptr) GTEST_SKIP() << "a rank's process";
  setenv("ASAN_OPTIONS", "detect_leaks=0", 1);  // for the processes of ranks: each leak search takes seconds
  std::string checksum;
  for (const std::string transport : {"inproc", "shm", "tcp"}) {
    setenv("WEFT_TEST_TRANSPORT", transport.c_str(), 1);
    const Reply reply = run(ring(transport));
    unsetenv("WEFT_TEST_TRANSPORT");
    ASSERT_EQ(reply.exit_code, ExitCode::ok) << transport << ": " << reply.complaint;
    const auto json = nlohmann::json::parse(reply.output);
    EXPECT_EQ(json["wrong"], 0);
    EXPECT_EQ(json["ranks"], 3);
    EXPECT_EQ(json["bytes"], 10'000);
    EXPECT_GT(json["microseconds"], 0.0);
    if (!checksum.empty()) {
      EXPECT_EQ(json["checksum"], checksum) << transport;
    }
    checksum = json["checksum"];
  }
}

TEST(CollectiveRun, PrintsARowInNcclTestsFormat) {
  CollectiveRun request = ring("inproc");
  request.format = Format::text;
  request.in_place = true;
  const std::string output = run(request).output;
  EXPECT_NE(output.find("# all_reduce, 3 ranks, inproc, in place\n"), std::string::npos) << output;
  EXPECT_NE(output.find("algbw   busbw #wrong\n"), std::string::npos) << output;
  EXPECT_NE(output.find("\nok, checksum "), std::string::npos) << output;
}

std::string refusal(const CollectiveRun& request) {
  const Reply reply = run(request);
  EXPECT_NE(reply.exit_code, ExitCode::ok);
  return reply.complaint;
}

TEST(CollectiveRun, RejectsInvalidRequests) {
  const auto with = [](auto change) {
    CollectiveRun request = ring("inproc");
    change(request);
    return refusal(request);
  };
  const auto expect = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect(with([](auto& r) { r.transport = "smh"; }), "unknown transport: smh");
  expect(with([](auto& r) { r.type = "f8"; }), "unknown type: f8");
  expect(with([](auto& r) { r.op = "nor"; }), "unknown operation: nor");
  expect(with([](auto& r) { r.op = "xor"; }), "xor needs an integer type, not f32");
  expect(with([](auto& r) { r.bytes = "7 s"; }), "--bytes takes a size in bytes: 7 s");
  expect(with([](auto& r) { r.ranks = 1000; }), "--ranks is 1 to 256: 1000");
  expect(with([](auto& r) { r.repeat = 0; }), "--repeat is 1 to 100000: 0");
  expect(with([](auto& r) { r.program = "all_reduce_ring(ranks=4)"; }),
         "all_reduce_ring(ranks=4) is for 4 ranks, not 3");
  expect(with([](auto& r) { r.program = "no_such_file.xml"; }), "no_such_file.xml");
}

// A program that the checker rejects does not run: here no rank receives what rank 0 sends.
TEST(CollectiveRun, RejectsWrongPrograms) {
  const TemporaryFolder folder;
  const std::string path = folder / "wrong.xml";
  std::ofstream(path)
      << R"(<algo name="wrong" proto="Simple" nchannels="1" nchunksperloop="1" ngpus="2" coll="allreduce" inplace="1">
  <gpu id="0" i_chunks="1" o_chunks="0" s_chunks="0"><tb id="0" send="1" recv="-1" chan="0">
    <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/></tb></gpu>
  <gpu id="1" i_chunks="1" o_chunks="0" s_chunks="0"></gpu>
</algo>)";
  CollectiveRun request = ring("inproc");
  request.program = path;
  request.ranks = 2;
  EXPECT_NE(refusal(request).find("the program is incorrect ("), std::string::npos);
}

}  // namespace
}  // namespace weft::command
