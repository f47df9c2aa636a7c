// Ranks that share this machine's GPU: collectives and training compared with the CPU. Skipped
// without a GPU.
#include <chrono>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ranks_case.h"
#include "weft/collectives/check/check.h"
#include "weft/device/device.h"
#include "weft/formats/collective_source.h"
#include "weft/runtime/run/collective_trial.h"

namespace weft::session {
namespace {

std::shared_ptr<device::Device> gpu_of_this_machine() {
  auto gpu = device::open_device("cuda:0 exact");
  return gpu.ok() ? *gpu : nullptr;
}

#define REQUIRE_GPU()                     \
  const auto gpu = gpu_of_this_machine(); \
  if (gpu == nullptr) GTEST_SKIP() << "this machine has no GPU"

run::CollectiveTrial trial_of(const std::string& program, std::int64_t bytes, device::ElementType type,
                              device::ReduceOp op, bool in_place) {
  const auto source = formats::read_collective(program);
  EXPECT_TRUE(source.ok()) << program;
  auto compiled = formats::to_program(*source);
  EXPECT_TRUE(compiled.ok()) << program;
  const collective::Report report = collective::check(*compiled);
  run::CollectiveTrial trial;
  trial.slots = std::max(report.slots, report.slots_small);
  trial.program = std::make_shared<const collective::Program>(std::move(*compiled));
  trial.type = type;
  trial.op = op;
  trial.in_place = in_place;
  trial.verify = true;
  trial.repeat = 2;
  return run::with_bytes(std::move(trial), bytes);
}

void expect_correct(const run::CollectiveTrial& trial, const std::string& what, bool same_bits = true) {
  const auto here = run::run_trial_on_threads(trial, std::chrono::seconds(20));
  ASSERT_TRUE(here.ok()) << what;
  for (const bool directly : {false, true}) {
    if (directly && trial.program->collective.kind == collective::Kind::custom) continue;
    const auto there = run::run_trial_on_gpu(trial, directly);
    ASSERT_TRUE(there.ok()) << what << ": " << there.error().message;
    for (std::size_t rank = 0; rank < there->size(); ++rank) {
      EXPECT_EQ((*there)[rank].wrong, 0) << what << ": " << (*there)[rank].first_wrong;
      // Chunk programs combine in their prescribed order on any device.
      if (!directly && same_bits) EXPECT_EQ((*there)[rank].checksum, (*here)[rank].checksum) << what;
    }
  }
}

TEST(GpuCollectives, ShippedProgramsAreBitwiseEqualToTheCpu) {
  REQUIRE_GPU();
  for (const std::string program :
       {"all_reduce_ring(ranks=3)", "all_reduce_ring(ranks=4, channels=4)",
        "all_reduce_halving_doubling(ranks=8)", "all_reduce_all_pairs_two_shot(ranks=5)",
        "all_reduce_double_binary_tree(ranks=6, chunks=4)", "all_gather_bruck(ranks=5)",
        "all_gather_ring(ranks=4)", "reduce_scatter_ring(ranks=7)", "all_to_all_direct(ranks=4)",
        "all_to_all_bruck(ranks=5)", "broadcast_binomial(ranks=6, root=2)"})
    for (const std::int64_t bytes :
         {std::int64_t{4}, std::int64_t{1000}, std::int64_t{100'004}, std::int64_t{3} << 20})
      for (const bool in_place : {false, true})
        expect_correct(trial_of(program, bytes, device::ElementType::f32, device::ReduceOp::sum, in_place),
                       fmt::format("{} of {} bytes{}", program, bytes, in_place ? " in place" : ""));
}

TEST(GpuCollectives, SupportEveryTypeAndOperation) {
  REQUIRE_GPU();
  for (std::size_t type = 0; type < device::kElementTypes; ++type)
    for (std::size_t op = 0; op < device::kReduceOps; ++op) {
      const auto element = static_cast<device::ElementType>(type);
      const auto reduce = static_cast<device::ReduceOp>(op);
      if (device::is_bitwise(reduce) && !device::is_whole(element)) continue;
      expect_correct(trial_of("all_reduce_ring(ranks=3)", 30'006, element, reduce, false),
                     fmt::format("{} of {}", device::name(reduce), device::name(element)));
    }
}

void expect_as_on_processor(const Learner& learner, std::string_view distribution, std::int32_t ranks,
                            const std::shared_ptr<device::Device>& gpu) {
  const OneRank alone = train_alone(learner);
  run::LocalRanksOptions options = on(ranks);
  options.gpu = gpu;
  const run::DistributedOutcome outcome = train(learner, distribution, options);
  EXPECT_NEAR(outcome.training.last_loss, alone.training.last_loss, 2e-4 * std::abs(alone.training.last_loss))
      << distribution;
  EXPECT_LT(apart(alone.weights, outcome.weights).relative, 5e-4) << distribution;
  const run::DistributedOutcome again = train(learner, distribution, options);
  expect_same_bits(outcome.weights, again.weights);
}

TEST(GpuRanks, AnMlpTrainsAsOnTheCpu) {
  REQUIRE_GPU();
  const Learner mlp = learner("digits_mlp", {{"b", 12, {}}, {"p", 8, {}}, {"f", 12, {}}, {"c", 5, {}}},
                              train::Optimizer::momentum);
  expect_as_on_processor(mlp, "rank=2: slice b", 2, gpu);
  expect_as_on_processor(mlp, "rank=3: slice f, b", 3, gpu);
  expect_as_on_processor(mlp, "rank=2: slice b, shard optimizer", 2, gpu);
  expect_as_on_processor(mlp, "rank=3: slice b, shard parameters", 3, gpu);
  expect_as_on_processor(mlp, "data=2: slice b; tensor=2: slice f", 4, gpu);
}

TEST(GpuRanks, AGptTrainsAsOnTheCpu) {
  REQUIRE_GPU();
  const Learner gpt = learner(
      "char_gpt", {{"b", 4, {}}, {"s", 6, {}}, {"d", 8, {}}, {"h", 2, {}}, {"layers", 1, {}}, {"v", 12, {}}},
      train::Optimizer::momentum);
  for (const std::string_view distribution :
       {"rank=2: slice b", "rank=2: slice h, f", "rank=3: slice v", "rank=2: slice b, shard parameters"})
    expect_as_on_processor(gpt, distribution, distribution[5] - '0', gpu);
}

}  // namespace
}  // namespace weft::session
