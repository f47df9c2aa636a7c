// A program within a memory limit: spilled tensors give equal bits and use no memory meanwhile.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "distant_device.h"
#include "distribute_case.h"
#include "weft/parallel/train/recompute.h"
#include "weft/program/tasks/spill.h"
#include "weft/runtime/exec/rank.h"
#include "weft/runtime/run/fit_program.h"
#include "weft/runtime/run/weights.h"

namespace weft::run {
namespace {

const train::TrainingPlan& gpt() {
  static const train::TrainingPlan plan = distribute::training_plan(
      "char_gpt",
      {{"b", 4, {}}, {"s", 64, {}}, {"d", 64, {}}, {"h", 2, {}}, {"layers", 3, {}}, {"v", 64, {}}});
  return plan;
}

FittedProgram fitted(const plan::Graph& graph, std::int64_t limit) {
  auto made = fit_program(std::make_shared<plan::Graph>(graph.clone()), {.workers = 2}, limit);
  EXPECT_TRUE(made.ok()) << made.error().message;
  return std::move(*made);
}

// The result of two steps: the loss and every parameter, bit for bit.
std::string two_steps(program::Program program, std::shared_ptr<device::Device> device = nullptr) {
  auto rank = exec::Rank::start(std::move(program), {.device = std::move(device), .workers = 2});
  EXPECT_TRUE(rank.ok()) << rank.error().message;
  if (!rank.ok()) return {};
  EXPECT_TRUE(write_initial(**rank, 7).ok());
  std::string left;
  for (int step = 0; step < 2; ++step) {
    for (const program::Port& port : (*rank)->program().inputs) {
      const std::span<std::byte> room = (*rank)->input(port);
      std::vector<std::int32_t> tokens(room.size() / sizeof(std::int32_t));
      for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>((7 * i + 1) % 61);
      std::memcpy(room.data(), tokens.data(), room.size());
    }
    EXPECT_TRUE((*rank)->step().ok());
  }
  const auto add = [&](const program::Port& port) {
    const auto held = (*rank)->read(port);
    EXPECT_TRUE(held.ok());
    left.append(reinterpret_cast<const char*>(held->bytes().data()), held->bytes().size());
  };
  add((*rank)->program().outputs.front());
  for (const program::Port& port : (*rank)->program().parameters) add(port);
  for (const program::Port& port : (*rank)->program().states) add(port);
  return left;
}

TEST(FitProgram, WithoutALimitNothingIsSpilled) {
  const FittedProgram whole = fitted(gpt().graph, 0);
  EXPECT_EQ(whole.spilled(), 0);
  EXPECT_EQ(fitted(gpt().graph, std::int64_t{1} << 40).spilled(), 0);
}

TEST(FitProgram, SpilledAndRecomputedStepsAreBitwiseEqual) {
  FittedProgram whole = fitted(gpt().graph, 0);
  const std::int64_t all = whole.resident();
  const std::string kept = two_steps(std::move(whole.program));
  ASSERT_FALSE(kept.empty());
  const auto again = train::recompute(gpt().graph, {.layers = true});
  ASSERT_TRUE(again.ok());
  FittedProgram layers = fitted(again->graph, 0);
  EXPECT_LT(layers.program.work_bytes, all);
  EXPECT_EQ(two_steps(std::move(layers.program)), kept);
  for (const std::int64_t limit : {all * 3 / 4, all * 2 / 3}) {
    FittedProgram tight = fitted(gpt().graph, limit);
    EXPECT_GT(tight.spilled(), 0);
    EXPECT_LE(tight.resident(), limit);
    EXPECT_EQ(two_steps(std::move(tight.program)), kept) << limit;
  }
}

// A device with its own memory uses no file: spilled tensors are kept in host memory.
TEST(FitProgram, ADeviceSpillsToTheHost) {
  const auto device = std::make_shared<device::DistantDevice>();
  const auto fit = [&](std::int64_t limit) {
    return fit_program(std::make_shared<plan::Graph>(gpt().graph.clone()),
                       {.accelerated = true, .tiles = false}, limit, device)
        .value();
  };
  FittedProgram whole = fit(0), tight = fit(1);  // so little that everything possible is spilled
  EXPECT_GT(tight.spilled(), whole.resident() / 4);
  EXPECT_EQ(tight.program.spill_window, program::kHostPages);
  const std::string kept = two_steps(std::move(whole.program), device);
  EXPECT_EQ(two_steps(std::move(tight.program), device), kept);
}

// The resident size is reported even if it exceeds the limit.
TEST(FitProgram, ReportsTheLeastResidentSize) {
  const FittedProgram least = fitted(gpt().graph, 1);
  EXPECT_GT(least.resident(), 1);
  EXPECT_LT(least.resident(), fitted(gpt().graph, 0).resident());
}

}  // namespace
}  // namespace weft::run
