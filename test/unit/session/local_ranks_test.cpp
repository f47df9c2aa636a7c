// A model trained on several ranks of this machine, compared with the same model on one.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "children.h"
#include "rank_parts.h"
#include "ranks_case.h"
#include "temporary_folder.h"
#include "weft/app/session/session.h"
#include "weft/formats/safetensors.h"
#include "weft/runtime/run/local_ranks_shares.h"

namespace weft::session {
namespace {

using comm::TransportKind;
using distribute::DistributedPlan;

Learner small_mlp(train::Optimizer optimizer = train::Optimizer::adam) {
  return learner("digits_mlp", {{"b", 12, {}}, {"p", 8, {}}, {"f", 12, {}}, {"c", 5, {}}}, optimizer);
}
// Adam takes a full step for a gradient that is pure rounding; plain SGD does not.
Learner small_gpt(train::Optimizer optimizer) {
  return learner("char_gpt",
                 {{"b", 4, {}}, {"s", 6, {}}, {"d", 8, {}}, {"h", 2, {}}, {"layers", 1, {}}, {"v", 12, {}}},
                 optimizer);
}

void expect_as_alone(const Learner& learner, const OneRank& alone, std::string_view distribution,
                     const run::LocalRanksOptions& options) {
  const run::DistributedOutcome outcome = train(learner, distribution, options);
  EXPECT_NEAR(outcome.training.last_loss, alone.training.last_loss, 1e-4 * std::abs(alone.training.last_loss))
      << distribution;
  EXPECT_LT(apart(alone.weights, outcome.weights).relative, 1e-4) << distribution;
}

TEST(LocalRanks, ShardsAreSlicedAndReassembled) {
  const plan::Graph graph = small_mlp().graph;
  const plan::Mesh mesh{{{"a", 2}, {"b", 3}}};
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const plan::Type type = graph.type(graph.result(plan::NodeId(n)));
    if (type.rank() == 0) continue;
    plan::Layout layout = plan::Layout::replicated(mesh);
    layout.axes[0] = plan::AxisLayout::sliced(type.dims.back().index);
    layout.axes[1] = plan::AxisLayout::sliced(type.dims.front().index);
    std::vector<std::byte> whole(static_cast<std::size_t>(type.bytes())), back(whole.size());
    for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = static_cast<std::byte>(i * 7);
    std::int64_t elements = 0;
    for (std::int32_t rank = 0; rank < 6; ++rank) {
      const auto shares = plan::shares_of(type, layout, mesh, rank);
      std::vector<std::byte> part(
          static_cast<std::size_t>(run::elements_of(shares) * plan::size_in_bytes(type.dtype)));
      run::cut_share(type, shares, whole, part);
      run::put_share(type, shares, part, back);
      elements += run::elements_of(shares);
    }
    EXPECT_EQ(elements, type.elements());
    EXPECT_EQ(back, whole);
  }
}

TEST(LocalRanks, AnMlpTrainsEquallyOnAnyNumberOfThreads) {
  const Learner mlp = small_mlp();
  const OneRank alone = train_alone(mlp);
  for (const std::int32_t ranks : {1, 2, 3, 4, 5}) {
    expect_as_alone(mlp, alone, fmt::format("rank={}: slice b", ranks), on(ranks));
    expect_as_alone(mlp, alone, fmt::format("rank={}: slice f, b", ranks), on(ranks));
  }
  expect_as_alone(mlp, alone, "rank=2: slice b, shard optimizer", on(2));
  expect_as_alone(mlp, alone, "rank=3: slice b, shard parameters", on(3));
  expect_as_alone(mlp, alone, "data=2: slice b; tensor=2: slice f", on(4));
}

TEST(LocalRanks, AGptTrainsEquallyOnAnyNumberOfThreads) {
  const Learner gpt = small_gpt(train::Optimizer::momentum);
  const OneRank alone = train_alone(gpt);
  for (const std::string_view distribution :
       {"rank=2: slice b", "rank=3: slice b", "rank=2: slice h, f", "rank=2: slice h, f, v",
        "rank=3: slice v", "rank=2: slice b, shard optimizer", "rank=2: slice b, shard parameters"})
    expect_as_alone(gpt, alone, distribution, on(distribution[5] - '0'));
}

TEST(LocalRanks, OverlapWorkersAndTransportDoNotChangeResults) {
  const Learner mlp = small_mlp();
  const run::DistributedOutcome first = train(mlp, "rank=2: slice b", on(2));
  for (const bool overlap : {false, true})
    for (const int workers : {1, 2}) {
      run::LocalRanksOptions options = on(2);
      options.overlap = overlap;
      options.workers = workers;
      const run::DistributedOutcome again = train(mlp, "rank=2: slice b", options);
      if (workers == 1) expect_same_bits(first.weights, again.weights);
      EXPECT_LT(apart(first.weights, again.weights).relative, 1e-5);
    }
}

TEST(LocalRanks, ProcessesAreBitwiseReproducible) {
  const Learner mlp = small_mlp();
  const OneRank alone = train_alone(mlp);
  for (const TransportKind transport : {TransportKind::automatic, TransportKind::tcp}) {
    const run::DistributedOutcome first = train(mlp, "rank=3: slice b", on(3, transport));
    const run::DistributedOutcome second = train(mlp, "rank=3: slice b", on(3, transport));
    expect_same_bits(first.weights, second.weights);
    EXPECT_EQ(first.training.last_loss, second.training.last_loss);
    EXPECT_LT(apart(alone.weights, first.weights).relative, 1e-4);
  }
}

TEST(LocalRanks, ReturnsTimelinesOfAllRanks) {
  const Learner mlp = small_mlp();
  const DistributedPlan plan = spread(mlp, "rank=3: slice b");
  run::DistributedRun run = steps(5);
  run.measure_from = 2;
  const auto outcome =
      run::run_distributed(plan, on(3, TransportKind::automatic), *mlp.feed, from_seed(7), run);
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  ASSERT_EQ(outcome->timelines.size(), 3u);
  for (std::int32_t rank = 0; rank < 3; ++rank) {
    const auto program = run::compile_for_rank(plan, rank, run::LocalRanksOptions());
    ASSERT_TRUE(program.ok());
    const auto& timelines = outcome->timelines[static_cast<std::size_t>(rank)];
    ASSERT_EQ(timelines.size(), 3u);
    for (const program::Timeline& timeline : timelines) {
      ASSERT_EQ(timeline.tasks.size(), program->tasks.size());
      EXPECT_GT(timeline.seconds, 0);
      for (std::size_t t = 0; t < timeline.tasks.size(); ++t) {
        const bool moves =
            std::holds_alternative<program::Exchange>(program->units[program->tasks[t].unit].kernel);
        EXPECT_EQ(timeline.tasks[t].worker, moves ? 1 : 0);
        EXPECT_LE(timeline.tasks[t].begin, timeline.tasks[t].end);
        for (const std::uint32_t wait : program->tasks[t].waits)
          EXPECT_LE(timeline.tasks[wait].end, timeline.tasks[t].begin);
      }
    }
  }
}

TEST(LocalRanks, ReturnsWeightsDuringTraining) {
  const Learner mlp = small_mlp();
  const DistributedPlan plan = spread(mlp, "rank=2: slice f");
  std::vector<run::Weights> kept;
  run::DistributedRun run = steps(6);
  run.is_due = [](std::int64_t step) { return step % 2 == 0; };
  run.on_weights = [&](std::int64_t step, const run::Weights& weights) -> Status {
    EXPECT_EQ(weights.step, step);
    kept.push_back(weights);
    return {};
  };
  const auto whole = run::run_distributed(plan, on(2), *mlp.feed, from_seed(7), run);
  ASSERT_TRUE(whole.ok()) << whole.error().message;
  ASSERT_EQ(kept.size(), 3u);
  expect_same_bits(kept.back(), whole->weights);

  // From there it continues as if it had not stopped.
  run::DistributedRun rest = steps(4);
  rest.training.first_step = 2;
  const auto resumed = run::run_distributed(plan, on(2), *mlp.feed, kept.front(), rest);
  ASSERT_TRUE(resumed.ok()) << resumed.error().message;
  expect_same_bits(resumed->weights, whole->weights);
  EXPECT_EQ(resumed->weights.step, 6);
}

TEST(LocalRanks, RankZeroCanStopAllRanks) {
  const Learner mlp = small_mlp();
  const DistributedPlan plan = spread(mlp, "rank=3: slice b");
  for (const TransportKind transport : {TransportKind::inproc, TransportKind::automatic}) {
    run::DistributedRun run = steps(1000);
    int asked = 0;
    run.training.interrupted = [&] { return ++asked > 4; };
    const auto stopped = run::run_distributed(plan, on(3, transport), *mlp.feed, from_seed(7), run);
    ASSERT_TRUE(stopped.ok()) << stopped.error().message;
    EXPECT_TRUE(stopped->training.interrupted);
    EXPECT_EQ(stopped->training.steps_done, 4);

    run.training.interrupted = {};
    run.training.on_step = [](const run::StepReport& report) -> Status {
      if (report.step < 3) return {};
      return user_error("enough");
    };
    const auto failed = run::run_distributed(plan, on(3, transport), *mlp.feed, from_seed(7), run);
    ASSERT_FALSE(failed.ok());
    EXPECT_EQ(failed.error().message, "enough");
  }
}

void expect_says(const std::string& text, const std::string& what) {
  EXPECT_NE(text.find(what), std::string::npos) << "expected: " << what << "\nfound: " << text;
}

TEST(LocalRanks, NamesAFailedRank) {
  const Learner mlp = small_mlp();
  const DistributedPlan plan = spread(mlp, "rank=4: slice b");
  run::DistributedRun run = steps(1'000'000);
  run.training.on_step = [&](const run::StepReport& report) -> Status {
    if (report.step != 5) return {};
    const std::vector<pid_t> ranks = children();
    if (ranks.size() != 3) return user_error("not three");
    kill(ranks[1], SIGKILL);
    return {};
  };
  const auto begun = std::chrono::steady_clock::now();
  const auto outcome =
      run::run_distributed(plan, on(4, TransportKind::automatic), *mlp.feed, from_seed(7), run);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().fault, Fault::world);
  expect_says(outcome.error().message, "rank 2 failed in step ");
  expect_says(outcome.error().message, "; the other ranks stopped: killed by signal 9");
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(60)) << "hung";
  EXPECT_TRUE(children().empty());
}

run::RankWork named(std::string part, std::string work = {}) {
  const auto bytes = std::as_bytes(std::span(work));
  return {std::move(part), [kept = std::vector(bytes.begin(), bytes.end())] { return Result(kept); }};
}

TEST(LocalRanks, ReportsWhyARankFailed) {
  for (const TransportKind transport : {TransportKind::inproc, TransportKind::automatic}) {
    const auto failure = run::on_local_ranks(
        on(3, transport), [](const auto& job) { return fail_as_rank_two(job, {}); },
        named("fail as rank two"));
    ASSERT_TRUE(failure.has_value());
    EXPECT_EQ(failure->rank, 2);
    EXPECT_FALSE(failure->died);
    EXPECT_EQ(failure->error.message, "no disk");
    EXPECT_EQ(failure->error.hint, "buy one");
  }
}

// Ranks have only the bytes that they are given, and no other state of the starting process.
TEST(LocalRanks, RanksStartWithFreshState) {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/rank";
  grown() = 7;
  const auto failure = run::on_local_ranks(
      on(3, TransportKind::automatic), [](const auto&) { return Status(); }, named("tell what it is", file));
  grown() = 0;
  ASSERT_FALSE(failure.has_value()) << failure->error.message;
  for (const std::string_view rank : {"1", "2"}) {
    std::ifstream reported(file + std::string(rank));
    std::string line;
    std::getline(reported, line);
    EXPECT_EQ(line, fmt::format("{} of 3, grown 0", rank));
  }
}

TEST(LocalRanks, NamesAMissingRankFunction) {
  const auto failure = run::on_local_ranks(
      on(2, TransportKind::automatic), [](const auto&) { return Status(); }, named("juggle"));
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->rank, 1);
  EXPECT_EQ(failure->error.message, "this program has no rank function named juggle");
}

const std::string kDigits = WEFT_SOURCE_DIR "/examples/digits.csv.gz";

std::string run(Session& session, const std::string& text) {
  const Reply reply = session.execute(text);
  EXPECT_EQ(reply.exit_code, ExitCode::ok) << text << "\n" << reply.complaint;
  return reply.output;
}

TEST(LocalRanks, TrainsOnLocalRanksByAStatement) {
  Session session;
  const std::string said = run(session, fmt::format("TRAIN digits_mlp ON LOCAL 3 FROM '{}' STEPS 20 "
                                                    "WITH (distribution = 'rank=3: slice b', holdout = 60)",
                                                    kDigits));
  expect_says(said, "trained digits_mlp from step 0 to 20");
  expect_says(said, "on 3 ranks of ");
  expect_says(said, "tested on the last 60 rows");
  EXPECT_EQ(said.find("proven"), std::string::npos) << said;
  expect_says(run(session, fmt::format("TRAIN digits_mlp ON LOCAL 3 FROM '{}' STEPS 1 WITH (distribution = "
                                       "'rank=3: slice b', prove = false, from_scratch = true)",
                                       kDigits)),
              "not proven: the setting prove is false");
  const Reply refused = session.execute("TRAIN digits_mlp ON LOCAL 100000 FROM 'x.csv' STEPS 1");
  EXPECT_EQ(refused.exit_code, ExitCode::user_error);
}

TEST(LocalRanks, AKilledRankLeavesAUsableCheckpoint) {
  const TemporaryFolder folder;
  const std::string kept = folder / "kept.safetensors", whole = folder / "whole.safetensors";
  const std::string train = fmt::format(
      "TRAIN digits_mlp ON LOCAL 2 FROM '{}' STEPS {{}} "
      "WITH (distribution = 'rank=2: slice b', checkpoint = '{{}}', "
      "checkpoint_every = 10)",
      kDigits);
  Session session;
  bool killed = false;
  session.on_progress = [&](const explain::Progress& progress) {
    if (progress.step < 15 || std::exchange(killed, true)) return;
    for (const pid_t rank : children()) kill(rank, SIGKILL);
  };
  const Reply reply = session.execute(fmt::format(fmt::runtime(train), 1'000'000, kept));
  EXPECT_EQ(reply.exit_code, ExitCode::environment_error);
  expect_says(reply.complaint, "rank 1 failed in step ");
  ASSERT_TRUE(killed);
  session.on_progress = {};

  run(session, fmt::format("LOAD digits_mlp FROM '{}'", kept));
  run(session, fmt::format(fmt::runtime(train), 10, kept));
  const auto resumed = formats::load(kept);
  ASSERT_TRUE(resumed.ok()) << resumed.error().message;
  const std::string steps_done = resumed->metadata.at("step");
  Session other;
  run(other, fmt::format(fmt::runtime(train), steps_done, whole));
  const auto never_stopped = formats::load(whole);
  ASSERT_TRUE(never_stopped.ok());
  ASSERT_EQ(resumed->tensors.size(), never_stopped->tensors.size());
  for (std::size_t i = 0; i < resumed->tensors.size(); ++i)
    EXPECT_TRUE(std::ranges::equal(resumed->tensors[i].data, never_stopped->tensors[i].data))
        << resumed->tensors[i].name;
}

}  // namespace
}  // namespace weft::session
