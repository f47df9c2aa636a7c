// weft collective through its command: real files of other projects where they are installed, our
// own everywhere.
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "temporary_folder.h"
#include "weft/app/command/collective.h"
#include "weft/planner/exchange/collective_choice.h"

namespace weft::command {

using namespace session;
namespace {

namespace fs = std::filesystem;

const std::string kRoot = WEFT_SOURCE_DIR;
const std::string kCorpus = kRoot + "/../shared/corpus/";

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

nlohmann::json check(std::vector<std::string> programs, std::string as = "", std::string target = "") {
  CollectiveCheck request;
  request.programs = std::move(programs);
  request.as = std::move(as);
  request.target = std::move(target);
  request.format = Format::json;
  return nlohmann::json::parse(run(request).output);
}

nlohmann::json manifest(const std::string& folder) {
  return nlohmann::json::parse(read(kCorpus + folder + "/manifest.json"));
}

TEST(CollectiveCheck, AcceptsMscclPrograms) {
  if (!fs::exists(kCorpus + "msccl-xml")) GTEST_SKIP() << "the corpus of MSCCL programs is not installed";
  for (const auto& entry : manifest("msccl-xml")) {
    const std::string file = entry["file"];
    const auto judged = check({kCorpus + "msccl-xml/" + file})[0];
    EXPECT_EQ(judged["verdict"], "ok") << file << ": " << judged.value("text", "");
    if (judged["verdict"] != "ok") continue;
    // The manifest tried 1, 2, 4, 8 and 16 slots.
    const int slots = judged["slots"], tried = entry["fifo_slots_needed"];
    EXPECT_LE(slots, tried) << file;
    EXPECT_GT(slots, tried / 2) << file;
  }
}

TEST(CollectiveCheck, RejectsBrokenProgramsForTheRightReason) {
  if (!fs::exists(kCorpus + "msccl-xml-broken")) GTEST_SKIP() << "the corpus of broken programs is missing";
  for (const auto& entry : manifest("msccl-xml-broken")) {
    const std::string file = entry["file"];
    const auto judged = check({kCorpus + "msccl-xml-broken/" + file})[0];
    const std::string verdict = judged["verdict"];
    bool fine = verdict == entry["verdict"].get<std::string>();
    for (const auto& other : entry["also_acceptable"]) fine |= verdict == other.get<std::string>();
    EXPECT_TRUE(fine) << file << ": " << verdict << ", expected " << entry["verdict"];
  }
}

TEST(CollectiveCheck, AcceptsVerifiedMscclppPlans) {
  const std::string folder = kCorpus + "mscclpp-json/";
  if (!fs::exists(folder)) GTEST_SKIP() << "the corpus of MSCCL++ plans is not installed";
  std::istringstream lines(read(folder + "README.md"));
  int seen = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("| result verified |") == std::string::npos) continue;
    const std::string file = line.substr(0, line.find(' '));
    const auto judged = check({folder + file})[0];
    EXPECT_EQ(judged["verdict"], "ok") << file << ": " << judged.value("text", "");
    ++seen;
  }
  EXPECT_EQ(seen, 26);
  EXPECT_EQ(check({folder + "dialect_old_switch_channel.json"})[0]["verdict"], "malformed");
}

TEST(CollectiveCheck, ReportsVerdictsAndLocations) {
  const auto all =
      check({kRoot + "/examples/collectives/ring.xml", kRoot + "/examples/collectives/broken_ring.xml",
             "all_gather_bruck(ranks=5)", "/no/such/file.xml"});
  EXPECT_EQ(all[0]["verdict"], "ok");
  EXPECT_EQ(all[0]["slots"], 2);
  EXPECT_EQ(all[1]["verdict"], "wrong-result");
  EXPECT_EQ(all[1]["gpu"], 0);
  EXPECT_EQ(all[1]["step"], 3);
  EXPECT_EQ(all[2]["collective"], "allgather");
  EXPECT_EQ(all[3]["verdict"], "unreadable");
}

TEST(CollectiveCheck, ChecksTheRequestedCollectiveAndDialect) {
  const std::string ring = kRoot + "/examples/collectives/ring.xml";
  EXPECT_EQ(check({ring}, "allreduce")[0]["verdict"], "ok");
  EXPECT_EQ(check({ring}, "broadcast")[0]["verdict"], "wrong-result");
  EXPECT_EQ(check({ring}, "out[r]=in[r+1]")[0]["verdict"], "wrong-result");
  EXPECT_EQ(check({ring}, "brodcast")[0]["verdict"], "malformed");
  EXPECT_EQ(check({ring}, "", "msccl")[0]["verdict"], "ok");
  EXPECT_EQ(check({ring}, "", "azure")[0]["verdict"],
            "malformed");  // it lacks outofplace, minBytes, maxBytes
}

// The behaviour of a named runtime counts: this one hangs here once a chunk fills a slot.
TEST(CollectiveCheck, AppliesTheRulesOfANamedRuntime) {
  const fs::path file = fs::temp_directory_path() / "weft_three_ahead.program";
  std::ofstream(file) << R"(program three_ahead
collective all_gather, 2 ranks, 3 chunks, in place
protocol Simple, 1 channel

rank 0: input 3, output 6, scratch 0
  block 0: send to 1, receive from 1, channel 0
    0  send output[0..2]
    1  receive output[3..5]

rank 1: input 3, output 6, scratch 0
  block 0: send to 0, receive from 0, channel 0
    0  send output[3..5]
    1  receive output[0..2]
)";
  CollectiveCheck request;
  request.programs = {file.string()};
  EXPECT_EQ(run(request).exit_code, ExitCode::ok);
  EXPECT_NE(run(request).complaint.find("deadlocks from"), std::string::npos);
  request.target = "msccl";
  const Reply reply = run(request);
  EXPECT_EQ(reply.exit_code, ExitCode::user_error);
  EXPECT_NE(reply.output.find("deadlock: a connection needs 3 slots; msccl has 2"), std::string::npos)
      << reply.output;
  fs::remove(file);
}

TEST(CollectiveCheck, RejectsFalseClaims) {
  const fs::path file = fs::temp_directory_path() / "weft_boast.algorithm";
  const auto check_claims = [&](const std::string& steps, const std::string& wire) {
    std::ofstream(file)
        << "ALGORITHM boast (ranks)\n  COLLECTIVE all_gather (chunks => 1) IN PLACE\n  STEPS " << steps
        << "\n  WIRE " << wire
        << "\nBEGIN\n  FOR step IN 0 TO ranks - 2\n    FOR block IN 0 TO ranks - 1\n"
           "      LET from = (block + step) MOD ranks\n"
           "      COPY data[block] AT from TO data[block] AT (from + 1) MOD ranks\n    END\n  END\nEND\n";
    return check({file.string() + "(ranks=4)"})[0];
  };
  EXPECT_EQ(check_claims("ranks - 1", "ranks - 1")["verdict"], "ok");
  EXPECT_EQ(check_claims("2", "ranks - 1")["text"], "boast claims STEPS 2, but its moves take 3");
  EXPECT_EQ(check_claims("ranks - 1", "1")["text"], "boast claims WIRE 1, but its moves take 3");
  fs::remove(file);
}

// Small files that demand much work are rejected at once, with a hint how to raise the limit.
TEST(CollectiveCheck, RejectsExcessiveWorkAtOnce) {
  const fs::path program = fs::temp_directory_path() / "weft_vast.program";
  std::ofstream(program)
      << "program vast\ncollective all_gather, 2 ranks, 1 chunk, in place\nprotocol Simple, 1 channel\n\n"
         "rank 0: input 1, output 2, scratch 16777216\n  block 0: channel 0\n"
         "    0  copy scratch[0..8388607] -> scratch[8388608..16777215]\n"
         "rank 1: input 1, output 2, scratch 0\n";
  const auto judged = check({program.string()})[0];
  EXPECT_EQ(judged["verdict"], "malformed");
  EXPECT_EQ(judged["notes"][0], "weft collective check --effort 16 asks for more time and memory");
  const fs::path endless = fs::temp_directory_path() / "weft_endless.algorithm";
  std::ofstream(endless)
      << "ALGORITHM endless (ranks)\n  COLLECTIVE all_gather (chunks => 1) IN PLACE\nBEGIN\n"
         "  LET x = 1\n  WHILE x > 0\n    x := x MOD 7 + 1\n  END\nEND\n";
  const auto stopped = check({endless.string() + "(ranks=2)"})[0];
  EXPECT_EQ(stopped["text"], "endless runs too long");
  fs::remove(program);
  fs::remove(endless);
}

// The result is right, but the caller's input is overwritten.
TEST(CollectiveCheck, ReportsOverwrittenInput) {
  const fs::path file = fs::temp_directory_path() / "weft_overwrites.program";
  std::ofstream(file) << R"(program overwrites
collective all_reduce, 2 ranks, 1 chunk, out of place
protocol Simple, 1 channel

rank 0: input 1, output 1, scratch 0
  block 0: send to 1, receive from 1, channel 0
    0  send input[0]
    1  receive_reduce_copy input[0]
    2  copy input[0] -> output[0]

rank 1: input 1, output 1, scratch 0
  block 0: send to 0, receive from 0, channel 0
    0  send input[0]
    1  receive_reduce_copy input[0]
    2  copy input[0] -> output[0]
)";
  const auto judged = check({file.string()})[0];
  EXPECT_EQ(judged["verdict"], "ok") << judged.value("text", "");
  EXPECT_EQ(judged["notes"][0],
            "gpu 0 tb 0 step 1: overwrites input[0], although the program is declared out of place");
  fs::remove(file);
}

TEST(CollectiveConvert, RoundTripsWithTheSameMeaning) {
  const TemporaryFolder folder;
  const auto path = [&](const std::string& name) { return folder / name; };
  const auto convert = [&](const std::string& from, const std::string& to, std::string dialect = "") {
    CollectiveConvert request;
    request.from = from;
    request.to = to;
    request.dialect = std::move(dialect);
    const Reply reply = run(request);
    EXPECT_EQ(reply.exit_code, ExitCode::ok) << reply.complaint;
  };
  const std::string ring = kRoot + "/examples/collectives/ring.xml";
  convert(ring, path("a.program"));
  convert(path("a.program"), path("a.xml"));
  EXPECT_EQ(read(path("a.xml")), read(ring));
  convert(ring, path("azure.xml"), "azure");
  convert(ring, path("a.json"));
  convert(path("a.json"), path("b.json"));
  EXPECT_EQ(read(path("a.json")), read(path("b.json")));
  convert(path("a.json"), path("c.xml"));  // converted to moves and back
  convert(ring, path("a.graph.xml"));
  EXPECT_NE(read(path("a.graph.xml")).find("pattern=\"4\""), std::string::npos);
  for (const char* name : {"a.program", "a.xml", "azure.xml", "a.json", "c.xml"})
    EXPECT_EQ(check({path(name)})[0]["verdict"], "ok") << name;
  EXPECT_EQ(check({path("azure.xml")}, "", "rccl")[0]["verdict"], "ok");
}

TEST(CollectiveConvert, DoesNotWriteWrongPrograms) {
  const TemporaryFolder folder;
  CollectiveConvert request;
  request.from = kRoot + "/examples/collectives/broken_ring.xml";
  request.to = folder / "out.xml";
  const Reply reply = run(request);
  EXPECT_EQ(reply.exit_code, ExitCode::user_error);
  EXPECT_NE(reply.complaint.find("not written, because it is incorrect"), std::string::npos) << reply.complaint;
  EXPECT_FALSE(fs::exists(request.to));
}

TEST(CollectiveChoose, WritesAPlotAndATunerTable) {
  const TemporaryFolder folder;
  CollectiveChoose request;
  request.collective = "allreduce";
  request.cluster = "dgx1";
  request.sizes = "1KiB..16MiB";
  request.candidates = {"all_reduce_ring", "all_reduce_double_binary_tree", "all_reduce_all_pairs_one_shot"};
  for (const char* name : {"choice.svg", "choice.csv", "choice.json"}) {
    request.to = folder / name;
    const Reply reply = run(request);
    ASSERT_EQ(reply.exit_code, ExitCode::ok) << reply.complaint;
    EXPECT_FALSE(read(request.to).empty()) << name;
  }
  EXPECT_NE(read(folder / "choice.csv").find("allreduce,0,"), std::string::npos);
  EXPECT_NE(read(folder / "choice.svg").find("</svg>"), std::string::npos);
}

TEST(CollectiveChoose, KeepsRequestedCandidates) {
  CollectiveChoose request;
  request.collective = "allreduce";
  request.cluster = "dgx1";
  request.sizes = "1KiB..4KiB";
  request.candidates = {"all_reduce_chain", "all_reduce_all_pairs_one_shot"};
  request.format = Format::json;
  const auto chosen = nlohmann::json::parse(run(request).output);
  EXPECT_EQ(chosen["candidates"].size(), 6u);  // each with three protocols, although the chain is far behind
  ASSERT_EQ(chosen["ranges"].size(), 1u);
  EXPECT_EQ(chosen["ranges"][0]["runners_up"][0]["name"], "all_reduce_chain LL");
  EXPECT_GT(chosen["ranges"][0]["runners_up"][0]["ratio"], 2);
}

// Eight channels do not saturate NVLink: the choice is no slower than a ring with enough channels.
TEST(CollectiveChoose, TriesEnoughChannelsToSaturateTheLinks) {
  CollectiveChoose request;
  request.collective = "allreduce";
  request.cluster = "dgx_h100";
  request.sizes = "1GiB";
  request.format = Format::json;
  const auto seconds_of_best = [](const nlohmann::json& chosen) {
    for (const auto& candidate : chosen["candidates"])
      if (candidate["name"] == chosen["ranges"][0]["best"]) return candidate["seconds"][0][1].get<double>();
    return 0.0;
  };
  const double best = seconds_of_best(nlohmann::json::parse(run(request).output));
  request.candidates = {"all_reduce_ring(channels=23)"};
  const double asked = seconds_of_best(nlohmann::json::parse(run(request).output));
  request.candidates = {"all_reduce_ring"};
  const double unasked = seconds_of_best(nlohmann::json::parse(run(request).output));
  request.candidates = {"all_reduce_ring(channels=8)"};
  const double eight = seconds_of_best(nlohmann::json::parse(run(request).output));
  EXPECT_GT(best, 0);
  EXPECT_LE(best, asked);
  EXPECT_EQ(unasked, asked);  // the channels with which it would run here
  EXPECT_LT(asked, eight);
}

// NCCL's own algorithms are far behind the best one here, but its tuner supports no others.
TEST(CollectiveChoose, TunerTableHasTheBestNcclAlgorithm) {
  const TemporaryFolder folder;
  CollectiveChoose request;
  request.collective = "allreduce";
  request.cluster = "mi300x_node";
  request.sizes = "1KiB";
  request.to = folder / "choice.csv";
  const Reply reply = run(request);
  ASSERT_EQ(reply.exit_code, ExitCode::ok) << reply.complaint;
  EXPECT_NE(read(request.to).find("allreduce,0,9223372036854775807,tree,ll,"), std::string::npos)
      << read(request.to);
}

TEST(CollectiveChoose, MapsOnlyMatchingAlgorithmsToNccl) {
  EXPECT_EQ(exchange::nccl_algorithm(collective::Kind::all_reduce, "all_reduce_ring"), "ring");
  EXPECT_EQ(exchange::nccl_algorithm(collective::Kind::all_reduce, "all_reduce_double_binary_tree"), "tree");
  EXPECT_EQ(exchange::nccl_algorithm(collective::Kind::reduce_scatter, "reduce_scatter_pat"), "pat");
  for (const char* other : {"all_reduce_binomial_tree", "all_reduce_ring_bidirectional", "all_gather_ring",
                            "all_reduce_", "ring", "spring.xml", ""})
    EXPECT_EQ(exchange::nccl_algorithm(collective::Kind::all_reduce, other), "") << other;
}

TEST(CollectiveChoose, AcceptsNamesThatAreNotUtf8) {
  CollectiveChoose request;
  request.collective = "allreduce";
  request.cluster = "dgx1";
  request.sizes = "1KiB";
  request.candidates = {"all_reduce_ring", "\xff"};
  request.format = Format::json;
  const Reply reply = run(request);
  EXPECT_EQ(reply.exit_code, ExitCode::ok) << reply.complaint;
  EXPECT_EQ(nlohmann::json::parse(reply.output)["left_out"].size(), 1u);
}

TEST(CollectiveShow, DrawsOverTime) {
  const TemporaryFolder folder;
  CollectiveShow request;
  request.program = "all_reduce_ring(ranks=4)";
  request.cluster = "dgx_h100";
  request.to = folder / "ring.svg";
  const Reply reply = run(request);
  ASSERT_EQ(reply.exit_code, ExitCode::ok) << reply.complaint;
  EXPECT_NE(read(request.to).find("rank 3"), std::string::npos);
}

}  // namespace
}  // namespace weft::command
