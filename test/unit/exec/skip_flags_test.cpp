// Speculative work of an update is skipped where it is not needed, and is right where it is.
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "execution_case.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/ops/operators.h"
#include "weft/program/tasks/program.h"

namespace weft::exec {
namespace {

// A step by g that is kept if `limit` is at least 10 and else is redone by half of g.
constexpr std::string_view kStep = R"(plan step
%0 = input {{name=limit, type=f32[]}}
%1 = input {{name=g, type=f32[n={0}]}}
%2 = parameter {{name=w, type=f32[n={0}]}}
%3 = sgd %2, %1 {{lr=1}} in update
%4 = constant {{value=10, dtype=f32}} in update
%5 = greater-equal %0, %4 in update
%6 = constant {{value=0.5, dtype=f32}} in update
%7 = mul %1, %6 in update
%8 = sgd %2, %7 {{lr=1}} in update
%9 = select %5, %3, %8 in update
return "next w"=%9
)";

struct Stepped {
  std::vector<float> weight, again;  // the updated parameter, and what the second optimizer wrote
  std::size_t left_out = 0;          // units that a flag may skip
};

Stepped step(std::int64_t n, float limit, int workers) {
  const auto graph = std::make_shared<plan::Graph>(plan::read(fmt::format(kStep, n), ops::all()).value());
  program::Program program = program::compile(graph, {.workers = workers, .pack = false}).value();
  Stepped stepped;
  program::BufferId again;
  for (const program::Unit& unit : program.units) {
    if (unit.unless) ++stepped.left_out;
    if (!unit.nodes.empty() && unit.nodes.front() == plan::NodeId(8u)) again = unit.writes.front().buffer;
  }
  // Without shared memory, so that writes stay visible.
  std::int64_t next = program.persistent_bytes;
  for (program::Buffer& buffer : program.buffers)
    if (!program::is_persistent(buffer.role)) {
      buffer.offset = next;
      next += (buffer.bytes + 63) / 64 * 64;
    }
  program.work_bytes = next - program.persistent_bytes;
  const auto rank = Rank::start(std::move(program), {.workers = workers}).value();
  Tensors sources;
  sources["limit"] = {{}, {static_cast<double>(limit)}};
  sources["g"] = {{n}, std::vector<double>(static_cast<std::size_t>(n), 4.0)};
  sources["w"] = {{n}, std::vector<double>(static_cast<std::size_t>(n), 1.0)};
  fill(*rank, sources);
  EXPECT_TRUE(rank->step().ok());
  const auto numbers = [](const HostBytes& bytes) {
    std::vector<float> found(bytes.bytes().size() / sizeof(float));
    std::memcpy(found.data(), bytes.data(), bytes.bytes().size());
    return found;
  };
  stepped.weight = numbers(rank->read(rank->program().parameters.front()).value());
  stepped.again = numbers(rank->read(again).value());
  return stepped;
}

TEST(SkippedUnits, SkipsUnneededWork) {
  for (const int workers : {1, 3})
    for (const std::int64_t n : {1, 7, 200'000}) {
      const Stepped stands = step(n, 11, workers), taken_back = step(n, 9, workers);
      EXPECT_EQ(stands.left_out, 1u) << n;  // its inputs could be computed before the flag is known
      const auto size = static_cast<std::size_t>(n);
      EXPECT_EQ(stands.weight, std::vector<float>(size, -3)) << n;
      EXPECT_EQ(stands.again, std::vector<float>(size, 0)) << n << ": it was computed";
      EXPECT_EQ(taken_back.weight, std::vector<float>(size, -1)) << n;
      EXPECT_EQ(taken_back.again, std::vector<float>(size, -1)) << n;
    }
}

}  // namespace
}  // namespace weft::exec
