// Pipelined plans as text and as traces: written, parsed back, proven, and rejected if wrong.
#include <algorithm>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <tuple>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "chakra_case.h"
#include "session_case.h"
#include "temporary_folder.h"
#include "weft/app/command/plans.h"
#include "weft/formats/chakra.h"
#include "weft/predict/sim/trace/trace_run.h"

namespace weft::command {

using namespace session;
namespace {

const std::string kSizes = "b = 8, s = 4, d = 4, h = 2, layers = 2, v = 6";

class PipelinedPlans : public testing::Test {
 protected:
  std::string explain(const std::string& on, const std::string& with) {
    Session session;
    const Reply reply = session.execute(
        fmt::format("EXPLAIN (FORMAT plan) TRAIN char_gpt ON {} WITH ({}, {})", on, kSizes, with));
    EXPECT_EQ(reply.exit_code, ExitCode::ok) << reply.complaint;
    return reply.output;
  }
  std::string write(const std::string& text) {
    const std::string file = folder_ / "step.plan";
    std::ofstream(file) << text;
    return file;
  }
  // The output of the proof: that the plan is proven, or why not.
  std::string prove(const std::string& text) {
    const Reply reply = run(PlanProve{.what = {write(text)}});
    return reply.output + reply.complaint;
  }
  // Replaces one word of the text, in the first line that contains all of `in`.
  static std::string changed(std::string text, std::initializer_list<std::string_view> in,
                             std::string_view was, std::string_view now) {
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      const std::string_view line = std::string_view(text).substr(begin, end - begin);
      if (std::ranges::all_of(in, [&](std::string_view has) { return line.find(has) != line.npos; })) {
        const std::size_t at = text.find(was, begin);
        if (at != std::string::npos && at < end) return text.replace(at, was.size(), now);
      }
      begin = end + 1;
    }
    ADD_FAILURE() << "no line to change: " << was;
    return text;
  }

  const TemporaryFolder folder_;
};

// Gradient clipping takes a minimum of two numbers, so random values may exercise only one of them.
// A wrong constant in the other is found all the same, with and without stages.
TEST_F(PipelinedPlans, DetectsAWrongConstantInGradientClipping) {
  for (const std::string_view distribution :
       {"rank=2: slice s, ring attention", "rank=2: slice b", "rank=2: slice b; micro=2"}) {
    const std::string text =
        explain("LOCAL 2", fmt::format("clip_norm = 0.5, distribution = '{}'", distribution));
    EXPECT_NE(prove(text).find("proven equal"), std::string::npos) << distribution;
    for (const std::string_view other : {"1e-05", "2e-06", "0.0001"}) {
      const std::string said = prove(changed(text, {"constant", "1e-06"}, "1e-06", other));
      EXPECT_EQ(said.find("proven equal"), std::string::npos)
          << distribution << ", " << other << ": " << said;
    }
  }
}

TEST_F(PipelinedPlans, WrittenPlansParseBackAndAreProven) {
  for (const auto& [ranks, distribution] :
       {std::pair{"LOCAL 2", "stage=2: stage; micro=4; schedule zb_h1"},
        {"LOCAL 4", "stage=2: stage; data=2: slice b; micro=2"},
        {"LOCAL 2", "stage=2: stage, chunks=2; micro=2; schedule interleaved"},
        {"LOCAL 2", "rank=2: slice b; micro=2"},
        {"LOCAL 4", "stage=2: stage; gpu=2: slice b, in stage 1 slice h, f, v; micro=2"},
        {"LOCAL 2", "data=2: slice b, micro-batches 3:1; micro=2"}}) {
    const std::string text = explain(ranks, fmt::format("clip_norm = 1, distribution = '{}'", distribution));
    EXPECT_NE(text.find("clip_norm = 1"), std::string::npos);
    EXPECT_NE(text.find("# place 0"), std::string::npos) << text;
    const std::string said = prove(text);
    EXPECT_NE(said.find("proven equal to the plan of one device, over the field as every stage runs it"),
              std::string::npos)
        << distribution << "\n"
        << said;
  }
}

// Transfers between the meshes of stages are proven too: a missing or an extra gather is found.
TEST_F(PipelinedPlans, TransfersBetweenMeshesAreProven) {
  const std::string text = explain(
      "LOCAL 4", "distribution = 'stage=2: stage; gpu=2: slice b, in stage 1 slice h, f, v; micro=2'");
  ASSERT_NE(text.find("in stage 1 slice h, f, v"), std::string::npos) << text;
  EXPECT_NE(prove(text).find("proven equal"), std::string::npos);
  for (const auto& [line, was, now] : {std::tuple{"all-gather", "all-gather", "slice-across"},
                                       {"reduce-scatter", "# place 1", "# place 0"}}) {
    if (text.find(line) == std::string::npos) continue;
    EXPECT_EQ(prove(changed(text, {line, "# place 1"}, was, now)).find("proven equal"), std::string::npos)
        << line;
  }
}

TEST_F(PipelinedPlans, RejectsAnEmptyStage) {
  const std::string text = explain("LOCAL 2", "distribution = 'stage=2: stage; micro=2; schedule 1f1b'");
  const std::string said = prove(changed(text, {"# model"}, "stage=2: stage", "stage=7: stage"));
  EXPECT_EQ(said.find("proven equal"), std::string::npos) << said;
  EXPECT_NE(said.find("nothing is at place 2"), std::string::npos) << said;
}

TEST_F(PipelinedPlans, WritesRecomputation) {
  const std::string text =
      explain("LOCAL 2", "recompute = layers, distribution = 'stage=2: stage; micro=2; schedule 1f1b'");
  EXPECT_NE(prove(text).find("proven equal"), std::string::npos) << prove(text);
}

TEST_F(PipelinedPlans, RejectsWrongEdits) {
  const std::string text = explain("LOCAL 2", "distribution = 'stage=2: stage; micro=2; schedule 1f1b'");
  // Micro-batches whose gradients are not summed.
  std::string wrong =
      changed(text, {"all-reduce", "axis=micro", "in backward"}, "all-reduce", "slice-across");
  EXPECT_EQ(prove(wrong).find("proven equal"), std::string::npos);
  // Another operator, with the correct schedule.
  wrong = changed(text, {"= gelu-tanh %"}, "gelu-tanh", "tanh");
  EXPECT_NE(prove(wrong).find("not the plan of one device"), std::string::npos) << prove(wrong);
  // An unknown schedule.
  wrong = changed(text, {"# model"}, "schedule 1f1b", "schedule nobodys");
  EXPECT_NE(prove(wrong).find("nobodys"), std::string::npos) << prove(wrong);
}

// An all-reduce per micro-batch is valid if all ranks run equally many micro-batches; else a rank
// would wait forever.
TEST_F(PipelinedPlans, RejectsAllReducesPerMicroBatchIfTheirNumbersDiffer) {
  for (const bool unequal : {false, true}) {
    const std::string text = explain("LOCAL 2", fmt::format("distribution = 'data=2: slice b{}; micro=2'",
                                                            unequal ? ", micro-batches 3:1" : ""));
    std::string turned = changed(text, {"# place", "@loss", "axis=data"}, "axis=data", "axis=?");
    turned = changed(turned, {"# place", "@loss", "axis=micro"}, "axis=micro", "axis=data");
    turned = changed(turned, {"axis=?"}, "axis=?", "axis=micro");
    EXPECT_NE(
        prove(turned).find(
            unequal
                ? "is communicated along data for every micro-batch, but ranks have unequal numbers of them"
                : "proven equal to the plan of one device"),
        std::string::npos)
        << prove(turned);
  }
}

// Whichever operand of a select the random values choose, the other is proven as well: here a step
// that is never undone.
TEST_F(PipelinedPlans, BothOperandsOfASelectAreProven) {
  const std::string text = explain(
      "LOCAL 2",
      "clip_norm = 1, post_validation = true, distribution = 'stage=2: stage; micro=2; schedule zb_h1'");
  EXPECT_NE(prove(text).find("proven equal"), std::string::npos) << prove(text);
  const std::regex choice("= select (%[0-9]+), (%[0-9]+), (%[0-9]+) : f32\\[[a-z][^\n]* in update");
  int tried = 0;
  for (auto found = std::sregex_iterator(text.begin(), text.end(), choice);
       found != std::sregex_iterator() && tried < 6; ++found, ++tried) {
    std::string wrong = text;
    wrong.replace(static_cast<std::size_t>(found->position(3)), static_cast<std::size_t>(found->length(3)),
                  found->str(2));
    EXPECT_NE(prove(wrong).find("not the plan of one device"), std::string::npos) << found->str();
  }
  EXPECT_EQ(tried, 6);
}

TEST_F(PipelinedPlans, RejectsInvalidPlaces) {
  const std::string text = explain("LOCAL 2", "distribution = 'stage=2: stage; micro=2; schedule 1f1b'");
  // The first product of the last stage, moved to a place without a stage.
  EXPECT_NE(prove(changed(text, {"contract", "# place 1"}, "# place 1", "# place 7")).find("is at place 7"),
            std::string::npos);
  EXPECT_NE(prove(changed(text, {"contract", "# place 1"}, "# place 1", "# place first"))
                .find("expected the number of a place, found 'first'"),
            std::string::npos);
  // Backwards, against the order of the pipeline.
  const std::size_t last = text.find("cross-entropy %");
  ASSERT_NE(last, std::string::npos);
  const std::string back = changed(text, {"= cross-entropy %", "# place 1"}, "# place 1", "# place 0");
  EXPECT_NE(prove(back).find("cannot be at place 0"), std::string::npos) << prove(back);
  // Forwards: everything after it would have to move as well.
  const std::string on = changed(text, {"contract", "# place 0"}, "# place 0", "# place 1");
  EXPECT_NE(prove(on).find("cannot be at place 0"), std::string::npos) << prove(on);
  // Without a stated place, the parser infers one.
  const std::string none = changed(text, {"contract", "# place 1"}, "# place 1", "");
  EXPECT_NE(prove(none).find("proven equal"), std::string::npos) << prove(none);
  const std::string mesh = changed(text, {"# mesh: micro=2"}, "micro=2", "micro=4");
  EXPECT_NE(prove(mesh).find("# mesh: micro=2"), std::string::npos) << prove(mesh);
}

TEST_F(PipelinedPlans, DoesNotEstimatePipelinedPlans) {
  const std::string file = write(explain("LOCAL 2", "distribution = 'stage=2: stage; micro=2'"));
  EXPECT_NE(run(PlanEstimate{.file = file}).complaint.find("has stages or micro-batches"), std::string::npos);
}

// With a norm over all gradients: what stages receive at the end of a step depends on what they
// sent.
TEST_F(PipelinedPlans, EveryMessageOfATraceIsSentAndReceivedOnce) {
  Session session;
  const std::string prefix = folder_ / "step";
  const auto said = answer(
      session,
      fmt::format("EXPLAIN (CHAKRA '{}') TRAIN char_gpt ON LOCAL 4 WITH ({}, clip_norm = 1, distribution = "
                  "'stage=2: stage; data=2: slice b; micro=4; schedule zb_h1')",
                  prefix, kSizes));
  EXPECT_TRUE(said.at("proven").get<bool>());
  const sim::ExecutionTrace trace = formats::read_chakra(folder_.path()).value();
  ASSERT_EQ(trace.ranks.size(), 4u);
  using Message = std::tuple<std::int32_t, std::int32_t, std::int64_t, std::int64_t>;  // from, to, tag, bytes
  std::multiset<Message> sent, received;
  for (std::int32_t rank = 0; rank < 4; ++rank)
    for (const sim::TraceNode& node : trace.ranks[static_cast<std::size_t>(rank)].nodes) {
      if (node.kind == sim::TraceNode::Kind::send) sent.insert({rank, node.peer, node.tag, node.bytes});
      if (node.kind == sim::TraceNode::Kind::receive)
        received.insert({node.peer, rank, node.tag, node.bytes});
    }
  EXPECT_FALSE(sent.empty());
  EXPECT_EQ(sent, received);
  EXPECT_EQ(std::set(sent.begin(), sent.end()).size(), sent.size());
  // The trace runs to its end and takes at least the compute time of its busiest rank.
  sim::TraceSystem system;
  system.replay = true;
  system.communications = 4;
  const auto run = sim::run_trace(trace, sim::network_of({{sim::TraceDimension::Kind::switched, 4}}), system);
  ASSERT_TRUE(run.ok()) << run.error().message;
  double busiest = 0;
  for (const auto& rank : run->ranks) busiest = std::max(busiest, rank.compute_seconds);
  EXPECT_GE(run->seconds, busiest);
}

}  // namespace
}  // namespace weft::command
