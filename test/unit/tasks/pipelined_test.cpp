// Pipelined steps: the unrolled programs of all ranks compute the step of one device.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "distribute_case.h"
#include "weft/parallel/pipeline/cut_parts.h"
#include "weft/parallel/pipeline/library.h"
#include "weft/parallel/pipeline/pipelined_plan.h"
#include "weft/parallel/pipeline/prove_pipelined.h"
#include "weft/parallel/pipeline/unroll.h"
#include "weft/parallel/train/recompute.h"
#include "weft/plan/ops/local_exchange.h"
#include "weft/program/tasks/program.h"

namespace weft::pipeline {
namespace {

using distribute::DistributedPlan;
using language::SizeOverride;

const train::TrainingPlan& mlp() {
  static const train::TrainingPlan plan =
      distribute::training_plan("digits_mlp", {{"b", 8, {}}, {"p", 3, {}}, {"f", 4, {}}, {"c", 5, {}}});
  return plan;
}

// Four blocks, and an embedding tied to the head.
const train::TrainingPlan& gpt() {
  static const train::TrainingPlan plan = distribute::training_plan(
      "char_gpt", {{"b", 8, {}}, {"s", 3, {}}, {"d", 4, {}}, {"h", 2, {}}, {"layers", 4, {}}, {"v", 4, {}}});
  return plan;
}

Result<DistributedPlan> in_time(const plan::Graph& graph, std::string_view text) {
  WEFT_TRY(distribution, distribute::read_distribution(text));
  return distribute_pipelined(graph, distribution, {.smallest_share = 1});
}

// "" if it is proven.
std::string why_not(const plan::Graph& graph, std::string_view text) {
  const auto plan = in_time(graph, text);
  if (!plan.ok()) return plan.error().message;
  for (std::int32_t rank = 0; rank < plan->whole_mesh().ranks(); ++rank) {
    const auto made = unroll(*plan, rank);
    if (!made.ok()) return made.error().message;
    if (const Status sound = plan::verify(made->graph); !sound.ok()) return sound.error().message;
    EXPECT_EQ(made->turns.size(), made->graph.node_count());
    EXPECT_EQ(made->work.size(), made->graph.node_count());
  }
  const auto proof = prove_pipelined(graph, *plan);
  if (!proof.ok()) return proof.error().message;
  return proof->wrong ? proof->wrong->what : "";
}

TEST(Pipelined, MicroBatchesOnOneRank) {
  EXPECT_EQ(why_not(mlp().graph, "rank=1; micro=4"), "");
  EXPECT_EQ(why_not(gpt().graph, "rank=1; micro=2"), "");
}

TEST(Pipelined, MicroBatchesOnRanks) {
  EXPECT_EQ(why_not(mlp().graph, "data=2: slice b; micro=2"), "");
  EXPECT_EQ(why_not(mlp().graph, "data=2: slice b, shard parameters; micro=4"), "");
  EXPECT_EQ(why_not(mlp().graph, "data=2: slice b, shard optimizer; gpu=2: slice f; micro=2"), "");
}

TEST(Pipelined, SupportsEverySchedule) {
  for (const ScheduleText& schedule : shipped_schedules())
    EXPECT_EQ(why_not(gpt().graph, fmt::format("stage=2: stage; micro=4; schedule {}", schedule.name)), "")
        << schedule.name;
}

TEST(Pipelined, StagesWithDataAndTensorParallel) {
  EXPECT_EQ(why_not(mlp().graph, "stage=2: stage; data=2: slice b; micro=4; schedule 1f1b"), "");
  EXPECT_EQ(
      why_not(gpt().graph, "data=2: slice b; stage=2: stage; gpu=2: slice h, f, v; micro=2; schedule zb_h1"),
      "");
  EXPECT_EQ(why_not(gpt().graph, "stage=4: stage; micro=4; schedule zb_h2"), "");
  EXPECT_EQ(why_not(mlp().graph, "stage=2: stage"), "");
}

TEST(Pipelined, StagesWithTheirOwnMeshes) {
  // The tied embedding is on both stages, one of which slices it.
  for (const std::string_view schedule : {"1f1b", "zb_h1", "gpipe"})
    EXPECT_EQ(why_not(gpt().graph,
                      fmt::format("stage=2: stage; stage 0 on data=4: slice b; stage 1 on data=2: slice "
                                  "b; stage 1 on gpu=2: slice h, f, v; micro=2; schedule {}",
                                  schedule)),
              "")
        << schedule;
  EXPECT_EQ(why_not(gpt().graph,
                    "stage=2: stage; gpu=2: slice h, f, v, in stage 1 slice b, shard optimizer; micro=2"),
            "");
  EXPECT_EQ(why_not(gpt().graph,
                    "stage=3: stage; gpu=2: slice h, f, s, in stage 1 nothing, in stage 2 slice b, shard "
                    "parameters; micro=2; schedule 1f1b"),
            "");
  // Every chunk of a stage has its own mesh.
  EXPECT_EQ(why_not(gpt().graph,
                    "stage=2: stage, chunks=2; gpu=2: slice b, in stage 0 slice h, f, v; micro=2; "
                    "schedule interleaved"),
            "");
  EXPECT_EQ(why_not(mlp().graph, "stage=2: stage; gpu=2: slice f, in stage 1 slice b"), "");
}

// A boundary value is sent once: operators that shrink it run before the send, those that enlarge
// it after.
TEST(Pipelined, StagesWithTheirOwnMeshesSendNothingTwice) {
  const auto sent = [](std::string_view text) {
    const auto plan = in_time(gpt().graph, text);
    EXPECT_TRUE(plan.ok()) << plan.error().message;
    std::map<std::pair<std::int32_t, bool>, std::int64_t> bytes;  // by stage and whether per micro-batch
    for (std::int32_t rank = 0; rank < plan->whole_mesh().ranks(); ++rank) {
      const auto made = unroll(*plan, rank);
      EXPECT_TRUE(made.ok());
      for (std::size_t n = 0; n < made->graph.node_count(); ++n) {
        const plan::NodeView node = made->graph.view(plan::NodeId(n));
        if (&node.op() != &ops::local_exchange() || ops::exchange_kind(node) != ops::ExchangeKind::send)
          continue;
        bytes[{stage_of(plan->time->distribution, rank), made->turns[n] < made->passes.size()}] +=
            node.input_type(0).bytes();
      }
    }
    return bytes;
  };
  const auto both = sent("stage=2: stage; gpu=4: slice b; micro=2"),
             other = sent("stage=2: stage; gpu=4: slice b, in stage 1 slice h, f, v; micro=2"),
             whole = sent("stage=2: stage; gpu=4: slice h, f, v, in stage 1 slice b; micro=2");
  for (const std::int32_t stage : {0, 1}) {
    EXPECT_EQ((other.at({stage, true})), (both.at({stage, true}))) << stage;
    EXPECT_EQ((whole.at({stage, true})), (both.at({stage, true}))) << stage;
  }
}

TEST(Pipelined, RejectsInvalidStageMeshes) {
  EXPECT_EQ(why_not(gpt().graph, "stage=2: stage; gpu=4: slice b, in stage 1 slice h; micro=4"),
            "b = 8 cannot be split into 4 micro-batches on each of 4 ranks");
  EXPECT_EQ(why_not(gpt().graph, "stage=2: stage; gpu=4: slice h, in stage 1 slice b; micro=4"),
            "b = 8 cannot be split into 4 micro-batches on each of 4 ranks");
  EXPECT_EQ(why_not(gpt().graph,
                    "stage=2: stage; data=2: slice b, micro-batches 3:1; gpu=2: slice h, in stage 1 slice b; "
                    "micro=2"),
            "stages have their own meshes, and ranks along data take unequal numbers of micro-batches");
  EXPECT_EQ(
      why_not(gpt().graph, "stage=2: stage; gpu=2: slice h, in stage 1 slice b; micro=4; schedule dualpipe"),
      "dualpipe has the same layers on stages 0 and 1, which have different meshes: gpu=2: slice h, gpu=2: "
      "slice "
      "b");
  EXPECT_EQ(why_not(gpt().graph, "stage=2: stage; gpu=2: slice h, in stage 1 slice nobody; micro=2"),
            "no tensor of the plan has an index nobody");
}

plan::Graph recomputed(const train::TrainingPlan& plan, std::string_view what) {
  auto made = train::recompute(plan.graph, *train::read_recompute(what));
  EXPECT_TRUE(made.ok()) << made.error().message;
  return std::move(made->graph);
}

TEST(Pipelined, RecomputedValuesAreProvenLikeKeptOnes) {
  for (const std::string_view what : {"layers", "selective"})
    for (const std::string_view how :
         {"data=2: slice b; gpu=2: slice h, f, v, s", "stage=2: stage; micro=4; schedule zb_h1",
          "stage=2: stage, chunks=2; micro=4; schedule interleaved"}) {
      const plan::Graph graph = recomputed(gpt(), what);
      const auto distribution = distribute::read_distribution(how);
      ASSERT_TRUE(distribution.ok());
      if (distribute::is_pipelined(*distribution)) {
        EXPECT_EQ(why_not(graph, how), "") << what << " on " << how;
        continue;
      }
      const auto plan = distribute::distribute(graph, *distribution, {.smallest_share = 1});
      ASSERT_TRUE(plan.ok()) << plan.error().message;
      EXPECT_EQ(distribute::difference<ops::Field>(gpt().graph, *plan), "") << what << " on " << how;
    }
}

// The originals are freed early: the packed memory of the step is smaller, on each stage and for
// each of its micro-batches in flight.
TEST(Pipelined, RecomputationNeedsLessMemory) {
  static const train::TrainingPlan deep = distribute::training_plan(
      "char_gpt",
      {{"b", 8, {}}, {"s", 32, {}}, {"d", 16, {}}, {"h", 2, {}}, {"layers", 6, {}}, {"v", 16, {}}});
  const auto work = [](const plan::Graph& graph, std::string_view how, std::int32_t rank) {
    auto plan = in_time(graph, how);
    EXPECT_TRUE(plan.ok());
    auto made = unroll(*plan, rank);
    EXPECT_TRUE(made.ok());
    auto program =
        program::compile(std::make_shared<plan::Graph>(std::move(made->graph)), {.turns = made->turns});
    EXPECT_TRUE(program.ok());
    return program->work_bytes;
  };
  const plan::Graph layers = recomputed(deep, "layers"), selective = recomputed(deep, "selective");
  for (const std::string_view how : {"rank=1; micro=2", "stage=2: stage; micro=4"}) {
    EXPECT_LT(static_cast<double>(work(layers, how, 0)), 0.7 * static_cast<double>(work(deep.graph, how, 0)))
        << how;
    EXPECT_LT(work(selective, how, 0), work(deep.graph, how, 0)) << how;
  }
  const auto whole = [](const plan::Graph& graph) {
    auto program = program::compile(std::make_shared<plan::Graph>(graph.clone()), {});
    EXPECT_TRUE(program.ok());
    return static_cast<double>(program->work_bytes);
  };
  EXPECT_LT(whole(layers), 0.5 * whole(deep.graph));
  EXPECT_LT(whole(selective), whole(deep.graph));
}

TEST(Pipelined, SharedGradientsAreSentOncePerStep) {
  const auto plan = in_time(gpt().graph, "stage=2: stage; micro=4");
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  const auto made = unroll(*plan, 0);
  ASSERT_TRUE(made.ok());
  // One micro-batch's activations, and the accumulated gradient of wte once, not four times.
  int sends = 0;
  for (std::size_t n = 0; n < made->graph.node_count(); ++n) {
    const plan::NodeView node = made->graph.view(plan::NodeId(n));
    if (node.op().name() == "exchange" && node.word(0) == "send") ++sends;
  }
  EXPECT_EQ(sends, 4 + 1);
}

TEST(Pipelined, RejectsWrongPlans) {
  const auto plan = in_time(mlp().graph, "stage=2: stage; micro=2; schedule gpipe");
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  std::vector<plan::Graph> ranks;
  for (std::int32_t rank = 0; rank < 2; ++rank) ranks.push_back(std::move(unroll(*plan, rank)->graph));
  const auto proven = [&] {
    const std::vector<const plan::Graph*> both = {&ranks[0], &ranks[1]};
    const auto proof = prove_ranks(mlp().graph, *plan, both, 1);
    EXPECT_TRUE(proof.ok());
    return proof->wrong ? proof->wrong->what : std::string();
  };
  EXPECT_EQ(proven(), "");
  // Each sum of gradients, one at a time, counts one operand twice and the other not at all.
  const plan::Graph sound = ranks[0].clone();
  int changed = 0, found = 0;
  for (std::size_t n = 0; n < sound.node_count(); ++n) {
    plan::Graph other;
    bool is_changed = false;
    std::string text = plan::print(sound);
    // Doubles a sum: `add a, b` becomes `add a, a`.
    const plan::NodeView node = sound.view(plan::NodeId(n));
    if (node.op().name() != "add" || node.input_count() != 2 || node.input(0) == node.input(1)) continue;
    if (sound.value(node.input(0)).type != sound.value(node.input(1)).type) continue;
    if (node.result_type(0).rank() == 0) continue;  // step + 1 equals step + step if step is 1
    const std::string was = fmt::format("%{} = add %{}, %{}", node.result(0).value, node.input(0).value,
                                        node.input(1).value),
                      now = fmt::format("%{} = add %{}, %{}", node.result(0).value, node.input(0).value,
                                        node.input(0).value);
    if (const auto at = text.find(was); at != std::string::npos) {
      text.replace(at, was.size(), now);
      is_changed = true;
    }
    auto read = plan::read(text, ops::all());
    if (!is_changed || !read.ok()) continue;
    ranks[0] = std::move(*read);
    ++changed;
    found += proven().empty() ? 0 : 1;
  }
  EXPECT_GE(changed, 2);
  EXPECT_EQ(found, changed);
  // A message that is not sent.
  std::string text = plan::print(sound);
  const auto tag = text.find("kind=send");
  ASSERT_NE(tag, std::string::npos);
  const auto begin = text.rfind('\n', tag) + 1, end = text.find('\n', tag) + 1;
  const std::string line = text.substr(begin, end - begin);
  const auto by = line.find(", tag=");
  if (by != std::string::npos) {
    const auto stop = line.find_first_of(",}", by + 6);
    text.replace(begin + by, stop - by, ", tag=99999");
    auto read = plan::read(text, ops::all());
    ASSERT_TRUE(read.ok()) << read.error().message;
    ranks[0] = std::move(*read);
    EXPECT_NE(proven().find("wait for each other"), std::string::npos) << proven();
  }
}

// Both encoder and decoder are split; every decoder layer reads the encoder's result.
TEST(Pipelined, AnEncoderAndADecoder) {
  const train::TrainingPlan plan = distribute::training_plan("t5_small", {{"b", 2, {}},
                                                                          {"r", 3, {}},
                                                                          {"s", 2, {}},
                                                                          {"d", 4, {}},
                                                                          {"h", 2, {}},
                                                                          {"e", 2, {}},
                                                                          {"f", 4, {}},
                                                                          {"layers", 2, {}},
                                                                          {"v", 5, {}}});
  EXPECT_EQ(why_not(plan.graph, "stage=4: stage; micro=2; schedule 1f1b"), "");
  const auto made = in_time(plan.graph, "stage=4: stage; micro=2");
  ASSERT_TRUE(made.ok()) << made.error().message;
  std::set<std::int32_t> places(made->time->position.begin(), made->time->position.end());
  for (std::int32_t place = 0; place < 4; ++place) EXPECT_TRUE(places.contains(place)) << place;
}

// By the work of the parts, if known.
TEST(Pipelined, PartitionsByGivenWork) {
  const std::size_t parts = flops_of_parts(gpt().graph).size();
  const auto distribution = distribute::read_distribution("stage=2: stage; micro=2").value();
  const auto last_place = [&](const std::vector<double>& work) {
    const auto plan = distribute_pipelined(gpt().graph, distribution, {.smallest_share = 1}, work);
    EXPECT_TRUE(plan.ok());
    return plan.ok() ? std::ranges::count(plan->time->position, 1) : 0;
  };
  std::vector<double> early(parts, 1), late(parts, 1);
  early.front() = late.back() = 100;
  EXPECT_GT(last_place(early), last_place({}));
  EXPECT_LT(last_place(late), last_place({}));
  EXPECT_EQ(last_place(flops_of_parts(gpt().graph)), last_place({}));
}

TEST(Pipelined, ReportsInvalidCombinations) {
  EXPECT_EQ(why_not(mlp().graph, "rank=1; micro=3"), "b = 8 cannot be split into 3 micro-batches");
  EXPECT_EQ(why_not(mlp().graph, "data=2: slice b; micro=8"),
            "b = 8 cannot be split into 8 micro-batches on each of 2 ranks");
  EXPECT_NE(why_not(mlp().graph, "stage=8: stage; micro=8").find("parts in a row, but its stages need 8"),
            std::string::npos);
  EXPECT_EQ(why_not(mlp().graph, "stage=2: stage; micro=2; schedule zb_h3"), "unknown schedule: zb_h3");
  EXPECT_EQ(why_not(mlp().graph, "stage=2: stage, chunks=2; micro=2; schedule gpipe"),
            "schedule gpipe has one chunk per stage, found 2");
}

}  // namespace
}  // namespace weft::pipeline
