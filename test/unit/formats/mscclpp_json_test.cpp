// Execution plans of MSCCL++ as files: both layouts, every kind of error, and the verdicts on plans
// that run.
#include "weft/formats/mscclpp_json.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include <fmt/format.h>

#include "weft/base/file.h"

namespace weft::formats {
namespace {

using namespace collective;

// Each of two ranks puts its block on the other.
std::string all_gather() {
  const auto gpu = [](int id) {
    return fmt::format(R"({{"id": {0}, "input_chunks": 1, "output_chunks": 2, "scratch_chunks": 0,
      "threadblocks": [{{"id": 0, "ops": [
          {{"name": "rlxsignal", "channel_ids": [0], "channel_type": "memory"}},
          {{"name": "rlxwait", "channel_ids": [0], "channel_type": "memory"}},
          {{"name": "nop"}},
          {{"name": "put", "src_buff": [{{"type": "i", "index": 0, "size": 1}}],
            "dst_buff": [{{"buffer_id": 0, "index": {0}, "size": 1}}], "channel_type": "memory"}},
          {{"name": "nop"}},
          {{"name": "signal", "channel_ids": [0], "channel_type": "memory"}},
          {{"name": "wait", "channel_ids": [0], "channel_type": "memory"}}],
        "channels": [{{"channel_type": "memory", "channel_ids": [0]}}],
        "remote_buffer_refs": [{{"access_channel_type": "memory", "remote_buffer_ids": [0]}}]}}],
      "channels": [{{"channel_type": "memory", "connected_to": [{1}]}}],
      "remote_buffers": [{{"rank": {1}, "type": "o", "access_channel_types": ["memory"]}}],
      "semaphores": []}})",
                       id, 1 - id);
  };
  return fmt::format(R"({{"name": "pair", "collective": "allgather", "protocol": "Simple", "inplace": true,
    "reuse_resources": false, "gpus": [{}, {}], "num_threads_per_block": 512,
    "use_double_scratch_buffer": false, "buffer_alignment": 16, "min_message_size": 0,
    "max_message_size": 18446744073709551615}})",
                     gpu(0), gpu(1));
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string error_of(const std::string& text) {
  const auto plan = read_mscclpp_json(text);
  return plan.ok() ? "no error" : plan.error().message;
}

std::string finding_text(const Report& report) { return report.finding ? print(*report.finding) : "right"; }

TEST(MscclppJson, ReadsAndChecksAPlan) {
  const auto plan = read_mscclpp_json(all_gather());
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(plan->collective.kind, Kind::all_gather);
  EXPECT_EQ(plan->collective.chunks, 1);
  EXPECT_EQ(plan->threads_per_block, 512);
  const OneSidedStep& put = plan->ranks[1].blocks[0][3];
  EXPECT_EQ(put.verb, Verb::put);
  EXPECT_EQ(put.targets[0], (Operand{Operand::Where::remote, 0, Buffer::output, 1, 1}));
  EXPECT_EQ(finding_text(check(*plan)), "right");
}

TEST(MscclppJson, FindsErrorsInPlans) {
  const auto verdict = [](const std::string& text) {
    const auto plan = read_mscclpp_json(text);
    EXPECT_TRUE(plan.ok()) << plan.error().message;
    return check(*plan).verdict();
  };
  const std::string signal = R"({"name": "signal", "channel_ids": [0], "channel_type": "memory"},)";
  EXPECT_EQ(verdict(replaced(all_gather(), signal, "")), Verdict::deadlock);
  EXPECT_EQ(verdict(replaced(all_gather(), R"("buffer_id": 0, "index": 0)", R"("buffer_id": 0, "index": 1)")),
            Verdict::race);
  EXPECT_EQ(verdict(replaced(all_gather(), R"("buffer_id": 0, "index": 0)", R"("buffer_id": 0, "index": 2)")),
            Verdict::malformed);
  EXPECT_EQ(verdict(replaced(all_gather(), R"("inplace": true)", R"("inplace": false)")),
            Verdict::wrong_result)
      << "no rank copies its own block";
}

TEST(MscclppJson, ReportsErrorsWithTheirLocation) {
  const std::string good = all_gather();
  EXPECT_EQ(error_of(good), "no error");
  EXPECT_EQ(error_of(replaced(good, R"("name": "put")", R"("name": "putt")")),
            "gpus[0].threadblocks[0].ops[3].name: expected an operation of MSCCL++, found 'putt'");
  EXPECT_EQ(read_mscclpp_json(replaced(good, R"("name": "put")", R"("name": "putt")")).error().hint,
            "did you mean 'put'?");
  EXPECT_EQ(error_of(replaced(good, R"("buffer_id": 0)", R"("buffer_id": 1)")),
            "gpus[0].threadblocks[0].ops[3].dst_buff[0].buffer_id: expected 0, found 1");
  EXPECT_EQ(error_of(replaced(good, R"("index": 0, "size": 1)", R"("index": -1, "size": 1)")),
            "gpus[0].threadblocks[0].ops[3].src_buff[0].index: expected 0 to 16777216, found -1");
  EXPECT_EQ(error_of(replaced(good, R"("type": "i")", R"("type": "x")")),
            "gpus[0].threadblocks[0].ops[3].src_buff[0].type: expected i, o or s, found 'x'");
  EXPECT_EQ(error_of(replaced(good, R"("channel_ids": [0], "channel_type": "memory")",
                              R"("channel_ids": [3], "channel_type": "memory")")),
            "gpus[0].threadblocks[0].ops[0].channel_ids[0]: expected 0, found 3");
  EXPECT_EQ(error_of(replaced(good, R"("channel_type": "memory")", R"("channel_type": "wire")")),
            "gpus[0].threadblocks[0].ops[0].channel_type: expected memory, port or switch, found 'wire'");
  EXPECT_EQ(error_of(replaced(good, R"("connected_to": [1])", R"("connected_to": [2])")),
            "gpus[0].channels[0].connected_to[0]: expected 0 to 1, found 2");
  EXPECT_EQ(error_of(replaced(good, R"("id": 1)", R"("id": 0)")),
            "gpus[1].id: expected 1, its place in the list, found 0");
  EXPECT_EQ(error_of(replaced(good, R"("input_chunks": 1)", R"("input_chunks": 1000000000)")),
            "gpus[0].input_chunks: expected 0 to 16777216, found 1000000000");
  EXPECT_EQ(error_of(replaced(good, R"("output_chunks": 2)", R"("output_chunks": 3)")),
            "gpus[0]: expected 1 chunks of input and 2 of output for all_gather of 2 ranks, found 1 and 3");
  EXPECT_EQ(error_of(replaced(good, R"("protocol": "Simple")", R"("protocol": "LL128")")),
            "protocol: expected Simple or LL, found 'LL128'");
  EXPECT_EQ(error_of(replaced(good, R"("inplace": true)", R"("inplace": 1)")),
            "inplace: expected true or false, found 1");
  EXPECT_EQ(error_of(replaced(good, R"("name": "pair", )", "")), "expected name, found none");
  EXPECT_EQ(error_of(replaced(good, R"("name": "nop")", R"("name": "nop", "reduce_op": "max")")),
            "gpus[0].threadblocks[0].ops[2].reduce_op: expected sum, found 'max'");
  EXPECT_EQ(error_of(replaced(good, R"({"name": "nop"})", "7")),
            "gpus[0].threadblocks[0].ops[2]: expected an object, found 7");
  EXPECT_EQ(error_of(replaced(good, R"("semaphores": [])", R"("semaphores": [{"init_value": -1}])")),
            "gpus[0].semaphores[0].init_value: expected 0 to 2147483647, found -1");
  EXPECT_EQ(error_of(R"({"gpus": 3})"), "gpus: expected a list, found 3");
  EXPECT_EQ(error_of(R"({"gpus": []})"), "gpus: expected 1 to 65536, found 0");
  EXPECT_EQ(error_of("[]"), "expected an object, found a list");
}

TEST(MscclppJson, RejectsHostileText) {
  EXPECT_EQ(error_of(""), "expected JSON, found an error at byte 1");
  EXPECT_EQ(error_of(std::string("{}\0{}", 5)), "expected JSON, found an error at byte 3");
  EXPECT_EQ(error_of(std::string(100'000, '[')), "expected at most 64 levels of nesting, found more");
  EXPECT_EQ(error_of(R"({"name": 1, "name": 2})"),
            "expected every key once in an object, found 'name' twice");
  EXPECT_EQ(error_of(replaced(all_gather(), R"({"name": "nop"})",
                              R"({"name": "pipeline", "iter_context": {"unit_size": 1, "num_chunks": 1},
                                  "ops": [{"name": "pipeline", "ops": []}]})")),
            "gpus[0].threadblocks[0].ops[2].ops[0]: expected no pipeline inside a pipeline, found one");
}

TEST(MscclppJson, RejectsAnOlderSwitchChannelByName) {
  const auto plan =
      read_mscclpp_json(replaced(all_gather(), R"("channels": [{"channel_type": "memory", "connected_to")",
                                 R"("channels": [{"channel_type": "switch", "buff": "s", "rank_groups": []},
                      {"channel_type": "memory", "connected_to")"));
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(
      plan.error().message,
      "gpus[0].channels[0]: expected buffer_type, found an older layout of switch channels, without it");
  EXPECT_EQ(plan.error().hint, "regenerate it with MSCCL++ 0.8 or later");
}

// The layout before 2025-08: each of two ranks reads the other's half, adds it to its own and then
// gets the rest.
std::string old_all_reduce() {
  const auto gpu = [](int id) {
    return fmt::format(
        R"({{"id": {0}, "inputChunks": 2, "outputChunks": 0, "scratchChunks": 0, "chunkGroups": 2,
      "threadblocks": [{{"id": 0, "ops": [
          {{"name": "signal", "o_buff": {{"src": "i", "dst": "i"}}, "o_cids": [{{"id": 0, "off": {1}}}], "ctype": "sm", "cnt": 1}},
          {{"name": "wait", "i_buff": {{"src": "i", "dst": "i"}}, "i_cids": [{{"id": 0, "off": {0}}}], "ctype": "sm", "cnt": 1}},
          {{"name": "nop", "deps": [{{"tb": 0, "step": 1}}]}},
          {{"name": "rrc", "i_buff": {{"src": "i", "dst": "i"}}, "i_cids": [{{"id": 0, "off": {0}}}], "src": {0},
            "srcbuff": "i", "srcoff": {0}, "dst": {0}, "dstbuff": "i", "dstoff": {0}, "ctype": "sm", "cnt": 1}},
          {{"name": "nop"}},
          {{"name": "signal", "o_buff": {{"src": "i", "dst": "i"}}, "o_cids": [{{"id": 0, "off": {0}}}], "ctype": "sm", "cnt": 1}},
          {{"name": "wait", "i_buff": {{"src": "i", "dst": "i"}}, "i_cids": [{{"id": 0, "off": {1}}}], "ctype": "sm", "cnt": 1}},
          {{"name": "nop"}},
          {{"name": "get", "i_buff": {{"src": "i", "dst": "i"}}, "i_cids": [{{"id": 0, "off": {1}}}],
            "dsts": [{{"buff": "i", "off": {1}}}], "ctype": "sm", "cnt": 1}},
          {{"name": "nop"}},
          {{"name": "signal", "o_buff": {{"src": "i", "dst": "i"}}, "o_cids": [{{"id": 0, "off": {0}}}], "ctype": "sm", "cnt": 1}},
          {{"name": "wait", "i_buff": {{"src": "i", "dst": "i"}}, "i_cids": [{{"id": 0, "off": {1}}}], "ctype": "sm", "cnt": 1}}],
        "channels": [{{"src": "i", "dst": "i", "ctype": "sm", "cids": [0]}}]}}],
      "channels": [{{"srcbuff": "i", "dstbuff": "i", "type": "sm", "connectedTo": [{1}]}}]}})",
        id, 1 - id);
  };
  return fmt::format(
      R"({{"name": "pairs", "collective": "allreduce", "protocol": "Simple", "inplace": true, "gpus": [{}, {}]}})",
      gpu(0), gpu(1));
}

TEST(MscclppJson, ReadsTheOlderLayout) {
  const auto plan = read_mscclpp_json(old_all_reduce());
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(finding_text(check(*plan)), "right");
  const auto text = write_mscclpp_json(*plan);
  const auto now = read_mscclpp_json(*text);
  ASSERT_TRUE(now.ok()) << now.error().message;
  EXPECT_EQ(*now, *plan);
  EXPECT_EQ(error_of(replaced(old_all_reduce(), R"("id": 0, "off": 1)", R"("id": 4, "off": 1)")),
            "gpus[0].threadblocks[0].ops[0].o_cids[0].id: expected 0, found 4");
  EXPECT_EQ(error_of(replaced(old_all_reduce(), R"("rrc")", R"("rrx")")),
            "gpus[0].threadblocks[0].ops[3].name: expected an operation of MSCCL++, found 'rrx'");
  const auto unsignalled =
      read_mscclpp_json(replaced(old_all_reduce(), R"("name": "signal")", R"("name": "nop")"));
  ASSERT_TRUE(unsignalled.ok()) << unsignalled.error().message;
  EXPECT_EQ(check(*unsignalled).verdict(), Verdict::deadlock);
}

TEST(MscclppJson, WrittenPlansReadBack) {
  const auto plan = read_mscclpp_json(all_gather());
  ASSERT_TRUE(plan.ok());
  const auto text = write_mscclpp_json(*plan);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(text->substr(0, 132),
            "{\n  \"name\": \"pair\",\n  \"collective\": \"allgather\",\n  \"protocol\": \"Simple\",\n"
            "  \"inplace\": true,\n  \"reuse_resources\": false,\n  \"gpus\": [\n");
  const auto again = read_mscclpp_json(*text);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(*again, *plan);
  EXPECT_EQ(*write_mscclpp_json(*again), *text);
}

class MscclppCorpus : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(folder())) GTEST_SKIP() << "the corpus of MSCCL++ plans is not installed";
  }
  static std::filesystem::path folder() { return WEFT_SOURCE_DIR "/../shared/corpus/mscclpp-json"; }
  static std::map<std::string, std::string> files() {
    std::map<std::string, std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder()))
      if (entry.path().extension() == ".json")
        found[entry.path().stem().string()] = read_file(entry.path().string(), 1 << 20).value();
    found.erase("manifest");
    return found;
  }
};

TEST_F(MscclppCorpus, AcceptsPlansThatRun) {
  // Unit tests of single operations: they read packets that no rank writes.
  const std::set<std::string> stuck = {"ut_reduce_packet_reduce_packets",
                                       "ut_reduce_packet_reduce_packets_fuse", "ut_reduce_send_packet"};
  int right = 0;
  for (const auto& [name, text] : files()) {
    const auto plan = read_mscclpp_json(text);
    if (name == "dialect_old_switch_channel") {
      EXPECT_FALSE(plan.ok());
      continue;
    }
    ASSERT_TRUE(plan.ok()) << name << ": " << plan.error().message;
    const Report report = check(*plan);
    if (stuck.contains(name)) {
      EXPECT_EQ(report.verdict(), Verdict::deadlock) << name << ": " << finding_text(report);
    } else if (name == "v1_allreduce_get_r2") {
      // Rank 1 reads rank 0's input last, and nothing prevents rank 0 from being called again
      // before that.
      EXPECT_EQ(report.verdict(), Verdict::race) << finding_text(report);
    } else if (!name.starts_with("ut_")) {
      EXPECT_EQ(finding_text(report), "right") << name;
    }
    right += report.verdict() == Verdict::ok ? 1 : 0;
    EXPECT_TRUE(check_limits(*plan).ok()) << name;
  }
  EXPECT_GE(right, 29);
}

TEST_F(MscclppCorpus, RoundTripsPlans) {
  int identical = 0;
  for (const auto& [name, text] : files()) {
    if (text.size() > 20'000) continue;  // larger ones are slow and add nothing
    const auto plan = read_mscclpp_json(text);
    if (!plan.ok()) continue;
    const auto written = write_mscclpp_json(*plan);
    const auto again = read_mscclpp_json(*written);
    ASSERT_TRUE(again.ok()) << name << ": " << again.error().message;
    EXPECT_EQ(*again, *plan) << name;
    EXPECT_EQ(*write_mscclpp_json(*again), *written) << name;
    identical += *written == text ? 1 : 0;
  }
  EXPECT_GE(identical, 20) << "most files of the shipped generator round-trip exactly";
}

}  // namespace
}  // namespace weft::formats
