// Updates of many tensors as one unit: reads and writes keep an order that gives equal results.
#include "weft/program/tasks/updates.h"

#include <gtest/gtest.h>

#include <set>

#include "execution_case.h"

namespace weft::program {
namespace {

constexpr CompileOptions kAccelerated{.workers = 1, .any_float = true, .accelerated = true, .tiles = false};

Program compiled(const plan::Graph& graph) {
  auto made = compile(std::make_shared<plan::Graph>(graph.clone()), kAccelerated);
  EXPECT_TRUE(made.ok()) << made.error().message;
  return std::move(made).value();
}

TEST(Updates, AStepHasFewUnitsThatAlsoRoundTheParameters) {
  const Program program = compiled(
      exec::narrow_training_plan("char_gpt", {{"b", 2, {}}, {"s", 16, {}}, {"layers", 2, {}}}, "bf16"));
  std::size_t units = 0;
  std::set<plan::NodeId> updated;
  for (const Unit& unit : program.units) {
    const auto* const updates = std::get_if<Updates>(&unit.kernel);
    if (updates == nullptr) continue;
    ++units;
    for (const OperatorCall& call : updates->calls) {
      EXPECT_TRUE(updated.insert(call.node).second);
      ASSERT_EQ(call.results.size(), 4u) << "includes the parameter";
      for (const Place& place : call.results) EXPECT_TRUE(is_persistent(program.buffer(place.buffer).role));
      EXPECT_EQ(program.buffer(call.results.back().buffer).role, BufferRole::parameter);
      EXPECT_EQ(call.results.front().buffer, call.operands.front().buffer) << "updated in place";
    }
  }
  EXPECT_LE(units, 2u) << "one for narrow gradients, one for sums";
  EXPECT_EQ(updated.size(), program.parameters.size());
}

TEST(Updates, ReadFirstAndWriteParametersAfterTheirLastReader) {
  for (const std::string_view precision : {"bf16", "f16"}) {
    const Program program = compiled(
        exec::narrow_training_plan("char_gpt", {{"b", 2, {}}, {"s", 16, {}}, {"layers", 2, {}}}, precision));
    std::vector<std::uint32_t> last_read(program.buffers.size()), writes(program.buffers.size());
    std::vector<bool> written(program.buffers.size());
    for (std::size_t b = 0; b < program.buffers.size(); ++b)
      written[b] = is_persistent(program.buffers[b].role);
    for (std::uint32_t u = 0; u < program.units.size(); ++u) {
      for (const Place& place : program.units[u].reads) {
        EXPECT_TRUE(written[place.buffer.value]) << describe(program, program.units[u]);
        last_read[place.buffer.value] = u;
      }
      for (const Place& place : program.units[u].writes) written[place.buffer.value] = true;
    }
    for (std::uint32_t u = 0; u < program.units.size(); ++u)
      for (const Place& place : program.units[u].writes)
        if (const BufferRole role = program.buffer(place.buffer).role;
            role == BufferRole::parameter || role == BufferRole::state) {
          ++writes[place.buffer.value];
          EXPECT_GE(u, last_read[place.buffer.value]) << program.buffer(place.buffer).name;
        }
    for (const Port& port : program.parameters) EXPECT_EQ(writes[port.place.buffer.value], 1u) << port.name;
  }
}

TEST(Updates, UpdatesOfOneTensorAreNotMerged) {
  Program program =
      compiled(exec::training_plan("char_gpt", {{"b", 2, {}}, {"s", 16, {}}, {"layers", 2, {}}}));
  const auto count = [&] {
    std::size_t units = 0;
    for (const Unit& unit : program.units) units += std::holds_alternative<Updates>(unit.kernel);
    return units;
  };
  EXPECT_GE(count(), 1u);
  for (Unit& unit : program.units)
    if (auto* updates = std::get_if<Updates>(&unit.kernel)) {
      Unit alone = unit;
      const OperatorCall call = updates->calls.front();
      alone.kernel = call;
      alone.reads = call.operands;
      alone.writes = call.results;
      alone.nodes = {call.node};
      program.units = {alone, alone};
      break;
    }
  // The second updates what the first wrote, so they are not merged.
  join_updates(program);
  EXPECT_EQ(count(), 2u);
}

}  // namespace
}  // namespace weft::program
