// Weights that are loaded while a step begins: on the CPU, and on the device that WEFT_TEST_DEVICE
// names.
#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "distant_device.h"
#include "execution_case.h"
#include "weft/program/tasks/program.h"
#include "weft/runtime/exec/loading.h"

namespace weft::exec {
namespace {

// The saved state of a rank, in host memory.
struct KeptBytes {
  explicit KeptBytes(const Rank& rank) {
    const program::Program& program = rank.program();
    for (const auto* const ports : {&program.parameters, &program.states})
      for (const program::Port& port : *ports) {
        const auto held = rank.read(port);
        if (!held.ok()) throw std::runtime_error(held.error().message);
        bytes.emplace_back(held->bytes().begin(), held->bytes().end());
        ports_.push_back(&port);
      }
  }
  std::vector<Loaded> weights() const {
    std::vector<Loaded> all;
    for (std::size_t i = 0; i < bytes.size(); ++i) all.push_back({ports_[i], bytes[i]});
    return all;
  }
  std::vector<std::vector<std::byte>> bytes;

 private:
  std::vector<const program::Port*> ports_;
};

plan::Graph gpt() {
  return training_plan(
      "char_gpt", {{"b", 2, {}}, {"s", 6, {}}, {"d", 8, {}}, {"h", 2, {}}, {"layers", 3, {}}, {"v", 12, {}}});
}

TEST(OwnKernelsLoading, LoadingDuringAStepGivesEqualBits) {
  Random random(5);
  const plan::Graph graph = gpt();
  const Tensors sources = random_sources(graph, 10, random);
  const auto expected = start(graph, 2);
  fill(*expected, sources);
  const auto rank = start(graph, 2);
  fill(*rank, sources);
  const KeptBytes kept(*rank);
  ASSERT_TRUE(expected->step().ok());
  // Different numbers, so that a weight that arrives late or never is noticed.
  Tensors others = random_sources(graph, 10, random);
  fill(*rank, others);
  ASSERT_TRUE(rank->step().ok());
  fill(*rank, sources);  // inputs too
  for (const program::Port& port : rank->program().parameters)
    ASSERT_TRUE(rank->write(port, std::vector<std::byte>(static_cast<std::size_t>(
                                      port.place.elements() * plan::size_in_bytes(port.place.dtype))))
                    .ok());
  const std::vector<Loaded> weights = kept.weights();
  const LoadingGroups groups =
      loading_groups(rank->program(), weights, {.wire = {1e-6, 1e9}, .step_seconds = 1e-3});
  EXPECT_GT(groups.size(), 1u);
  ASSERT_TRUE(rank->load(weights, groups).ok());
  ASSERT_TRUE(rank->step().ok());
  const Tensors found = contents(*rank), wanted = contents(*expected);
  for (const auto& [name, tensor] : wanted) EXPECT_EQ(found.at(name).data, tensor.data) << name;
}

std::unique_ptr<Rank> on_distant(const plan::Graph& graph) {
  auto program = program::compile(std::make_shared<plan::Graph>(graph.clone())).value();
  return Rank::start(std::move(program), {.device = std::make_shared<device::DistantDevice>()}).value();
}

// Late copies: on a device whose streams run their work asynchronously.
TEST(OwnKernelsLoading, ADistantDeviceWaitsForEveryWeightItReads) {
  Random random(6);
  const plan::Graph graph = gpt();
  const Tensors sources = random_sources(graph, 10, random);
  const auto expected = on_distant(graph), rank = on_distant(graph);
  for (Rank* const one : {expected.get(), rank.get()}) fill(*one, sources);
  const KeptBytes kept(*rank);
  ASSERT_TRUE(expected->step().ok());
  for (const program::Port& port : rank->program().parameters)
    ASSERT_TRUE(
        rank->write(port, [](std::span<std::byte> bytes) { std::ranges::fill(bytes, std::byte{}); }).ok());
  const std::vector<Loaded> weights = kept.weights();
  // One group per tensor: the first tasks begin when most groups have not arrived.
  LoadingGroups groups;
  for (const auto& group : loading_groups(rank->program(), weights, {.wire = {1e-6, 1e9}, .step_seconds = 1}))
    for (const std::size_t i : group) groups.push_back({i});
  ASSERT_TRUE(rank->load(weights, groups).ok());
  ASSERT_TRUE(rank->step().ok());
  const Tensors found = contents(*rank), wanted = contents(*expected);
  for (const auto& [name, tensor] : wanted) EXPECT_EQ(found.at(name).data, tensor.data) << name;
}

// From memory that is not page-locked: through two staging buffers smaller than most tensors, in
// groups that are larger.
TEST(OwnKernelsLoading, StagesMemoryThatIsNotPageLocked) {
  Random random(7);
  const plan::Graph graph = gpt();
  const Tensors sources = random_sources(graph, 10, random);
  for (const std::size_t staged : {std::size_t{1}, std::size_t{40}, std::size_t{1 << 20}})
    for (const std::size_t together : {std::size_t{1}, std::size_t{300}, std::size_t{1 << 20}}) {
      const auto expected = on_distant(graph), rank = on_distant(graph);
      for (Rank* const one : {expected.get(), rank.get()}) fill(*one, sources);
      const KeptBytes kept(*rank);
      for (const program::Port& port : rank->program().parameters)
        ASSERT_TRUE(
            rank->write(port, [](std::span<std::byte> bytes) { std::ranges::fill(bytes, std::byte{}); })
                .ok());
      const std::vector<Loaded> weights = kept.weights();
      ASSERT_TRUE(rank->load(weights, groups_of_bytes(rank->program(), weights, together), staged).ok());
      for (int step = 0; step < 3; ++step) {  // while loading, recording, and as one launch
        ASSERT_TRUE(expected->step().ok());
        ASSERT_TRUE(rank->step().ok());
      }
      const Tensors found = contents(*rank), wanted = contents(*expected);
      for (const auto& [name, tensor] : wanted) EXPECT_EQ(found.at(name).data, tensor.data) << name;
    }
}

TEST(OwnKernelsLoading, GroupsHaveEveryTensorOnceInOrderOfUse) {
  const auto rank = start(gpt(), 1);
  const KeptBytes kept(*rank);
  const std::vector<Loaded> weights = kept.weights();
  std::size_t most = 0;
  for (const double seconds : {0.0, 1e-5, 1e-3, 1.0}) {
    const auto groups =
        loading_groups(rank->program(), weights, {.wire = {1e-6, 1e9}, .step_seconds = seconds});
    std::vector<std::size_t> all;
    for (const auto& group : groups) all.insert(all.end(), group.begin(), group.end());
    std::vector<std::size_t> sorted = all;
    std::ranges::sort(sorted);
    std::vector<std::size_t> each(weights.size());
    std::iota(each.begin(), each.end(), std::size_t{0});
    EXPECT_EQ(sorted, each);
    const auto first_use = [&](std::size_t i) {
      const auto& tasks = rank->program().tasks;
      return std::ranges::find_if(tasks,
                                  [&](const program::Task& task) {
                                    const auto of = [&](const program::Extent& e) {
                                      return e.buffer == weights[i].port->place.buffer;
                                    };
                                    return std::ranges::any_of(task.reads, of) ||
                                           std::ranges::any_of(task.writes, of);
                                  }) -
             tasks.begin();
    };
    EXPECT_TRUE(std::ranges::is_sorted(all, {}, first_use));
    if (seconds == 0) EXPECT_EQ(groups.size(), 1u);  // nothing to overlap with: one transfer
    most = std::max(most, groups.size());
  }
  EXPECT_GE(most, 3u);  // an accelerator reads the moments of many tensors at once
}

}  // namespace
}  // namespace weft::exec
