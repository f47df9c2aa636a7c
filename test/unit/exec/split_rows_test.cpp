// Tables with split rows, the layout that expert products need: one product for all sequences, no
// copies, equal results.
#include <memory>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "distant_device.h"
#include "execution_case.h"
#include "weft/parallel/train/training_plan.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/ops/operators.h"
#include "weft/program/tasks/program.h"

namespace weft::exec {
namespace {

constexpr program::CompileOptions kAccelerated{.workers = 1, .accelerated = true, .tiles = false};

// Compiles as for an accelerator and runs on a fake one.
std::unique_ptr<Rank> start_apart(const plan::Graph& graph) {
  auto program = program::compile(std::make_shared<plan::Graph>(graph.clone()), kAccelerated).value();
  return Rank::start(std::move(program), {.device = std::make_shared<device::DistantDevice>()}).value();
}

// Tokens choose two of `x` experts with `c` slots each per sequence: some find no slot, some name
// no expert.
plan::Graph routed(int b, int s, int x, int c, int d) {
  const std::string text = fmt::format(R"(plan routed
%0 = input {{name=z, type=f32[b={0},s={1},d={4}]}}
%1 = input {{name=expert, type=i32[b={0},s={1},k=2]}}
%2 = parameter {{name=up, type=f32[x={2},d={4},f=6]}}
%3 = parameter {{name=down, type=f32[x={2},f=6,d={4}]}}
%4 = parameter {{name=gain, type=f32[d={4}]}}
%5 = mul %0, %4
%6 = slot %1 {{experts={2}, capacity={3}, over=[s,k]}}
%7 = scatter-add %6, %5 {{along=n, size={5}, to=[b,n,d]}}
%8 = split %7 {{along=n, into=f32[x={2},c={3}]}}
%9 = contract %8, %2 {{to=[b,x,c,f]}}
%10 = relu %9
%11 = contract %10, %3 {{to=[b,x,c,d]}}
%12 = merge %11 {{along=[x,c], into=n}}
%13 = gather %6, %12 {{along=n}}
%14 = mul %13, %13
%15 = reduce %14 {{kind=mean, to=[]}}
return loss=%15
)",
                                       b, s, x, c, d, x * c);
  auto read = plan::read(text, ops::all());
  EXPECT_TRUE(read.ok()) << read.error().message;
  return std::move(read).value();
}

TEST(SplitRows, OneExpertProductForAllSequences) {
  const auto graph = std::make_shared<plan::Graph>(
      train::make_training_plan(routed(3, 16, 4, 8, 8), {}).value().graph.clone());
  for (const bool accelerated : {false, true}) {
    const auto program = program::compile(graph, {.accelerated = accelerated, .tiles = false});
    ASSERT_TRUE(program.ok()) << program.error().message;
    std::size_t copies = 0, of_sequences = 0;
    for (const program::Unit& unit : program->units) {
      if (const auto* copy = std::get_if<program::Copy>(&unit.kernel)) copies += copy->to.elements() > 1;
      if (const auto* product = std::get_if<program::MatrixProduct>(&unit.kernel))
        of_sequences += std::max({product->m, product->n, product->k}) < 3 * 8 || product->calls() > 4;
    }
    if (accelerated) {
      EXPECT_EQ(copies, 0u);
      EXPECT_EQ(of_sequences, 0u);
    } else {
      EXPECT_GT(of_sequences, 0u);
    }
  }
}

TEST(SplitRows, ResultsEqualThoseOfThePlainLayout) {
  struct Sizes {
    int b, s, x, c, d;
  };
  for (const Sizes& of : {Sizes{3, 16, 4, 8, 8}, {1, 7, 3, 5, 3}, {2, 33, 5, 2, 12}, {5, 40, 2, 31, 16}}) {
    const plan::Graph graph =
        train::make_training_plan(routed(of.b, of.s, of.x, of.c, of.d), {}).value().graph.clone();
    Random random(31);
    const Tensors sources = random_sources(graph, of.x + 1, random);
    const std::string what = fmt::format("{} {} {} {} {}", of.b, of.s, of.x, of.c, of.d);
    const Tensors expected = interpreted(graph, sources);
    // On the device that WEFT_TEST_DEVICE names, or on the CPU with its usual layout; and with
    // split rows.
    const auto own = start(graph, 2), apart = start_apart(graph);
    for (const auto* const rank : {&own, &apart}) {
      fill(**rank, sources);
      ASSERT_TRUE((*rank)->step().ok());
      expect_near(contents(**rank), expected, 1e-4, 1e-4, what);
    }
  }
}

// A table that has another reader keeps its plain layout, and so does one whose parts have other
// indices.
TEST(SplitRows, OnlyIfEveryReaderSupportsIt) {
  Random random(32);
  for (const std::string_view results : {"y=%5, n=%2", "y=%5, m=%6", "y=%5, s=%7"}) {
    const std::string text = fmt::format(R"(plan shared
%0 = input {{name=z, type=f32[b=3,s=20,d=4]}}
%1 = input {{name=at, type=i32[b=3,s=20]}}
%2 = scatter-add %1, %0 {{along=n, size=12, to=[b,n,d]}}
%3 = split %2 {{along=n, into=f32[x=4,c=3]}}
%4 = parameter {{name=w, type=f32[x=4,d=4,f=5]}}
%5 = contract %3, %4 {{to=[b,x,c,f]}}
%6 = merge %5 {{along=[x,c], into=n}}
%7 = reduce %2 {{kind=sum, to=[n]}}
%8 = gather %1, %6 {{along=n}}
return {}, g=%8
)",
                                         results);
    auto graph = plan::read(text, ops::all());
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    const Tensors sources = random_sources(*graph, 13, random);
    const auto rank = start_apart(*graph);
    fill(*rank, sources);
    ASSERT_TRUE(rank->step().ok());
    expect_near(contents(*rank), interpreted(*graph, sources), 1e-4, 1e-4, std::string(results));
  }
}

}  // namespace
}  // namespace weft::exec
