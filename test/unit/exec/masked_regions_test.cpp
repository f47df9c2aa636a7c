// Masks over positions: which regions the analysis finds, which it does not, and that programs that
// skip them are bitwise equal to others.
#include "weft/program/tasks/masked_regions.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "execution_case.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/ops/operators.h"

namespace weft::program {
namespace {

// One head of attention, with variants of its mask.
struct Attention {
  std::string t = "along=t, size=6", s = "along=s, size=6";  // %4 and %5
  std::string mask = "less-equal %4, %5 : bool[t=6,s=6]", fill = "-inf", outputs = "y=%10";

  plan::Graph graph() const {
    const std::string text = fmt::format(R"(plan attention
%0 = input {{name=q, type=f32[b=2,s=6,e=4]}}
%1 = input {{name=k, type=f32[b=2,t=6,e=4]}}
%2 = input {{name=v, type=f32[b=2,t=6,e=4]}}
%3 = contract %0, %1 {{to=[b,s,t]}} : f32[b=2,s=6,t=6]
%4 = position {{{}}}
%5 = position {{{}}}
%6 = {}
%7 = constant {{value={}, dtype=f32}}
%8 = select %6, %3, %7 : f32[b=2,s=6,t=6]
%9 = softmax %8 {{over=[t]}} : f32[b=2,s=6,t=6]
%10 = contract %9, %2 {{to=[b,s,e]}} : f32[b=2,s=6,e=4]
return {}
)",
                                         t, s, mask, fill, outputs);
    Result<plan::Graph> read = plan::read(text, ops::all());
    EXPECT_TRUE(read.ok()) << (read.ok() ? "" : read.error().message) << "\n" << text;
    return read.ok() ? std::move(*read) : plan::Graph();
  }

  // The regions skipped by the products of scores and of values, "later > earlier + offset" or "".
  std::pair<std::string, std::string> regions() const {
    const plan::Graph made = graph();
    const MaskedRegions masked = find_masked_regions(made, std::vector<bool>(made.node_count(), true));
    std::vector<std::string> found;
    for (std::size_t n = 0; n < made.node_count(); ++n) {
      const plan::NodeView node = made.view(plan::NodeId(n));
      if (&node.op() != &ops::contract()) continue;
      const auto region = masked.of_product(node);
      found.push_back(region ? fmt::format("{} > {}{:+}", made.text(region->later),
                                           made.text(region->earlier), region->offset)
                             : "");
    }
    return found.size() == 2 ? std::pair{found[0], found[1]} : std::pair<std::string, std::string>{"?", "?"};
  }
};

using Pair = std::pair<std::string, std::string>;

TEST(MaskedRegions, FindsEveryComparisonOfPositions) {
  EXPECT_EQ((Attention{.mask = "less-equal %4, %5 : bool[t=6,s=6]"}.regions()), (Pair{"t > s+0", "t > s+0"}));
  EXPECT_EQ((Attention{.mask = "less %4, %5 : bool[t=6,s=6]"}.regions()), (Pair{"t > s-1", "t > s-1"}));
  EXPECT_EQ((Attention{.mask = "greater %4, %5 : bool[t=6,s=6]"}.regions()), (Pair{"s > t-1", "s > t-1"}));
  EXPECT_EQ((Attention{.mask = "greater-equal %4, %5 : bool[t=6,s=6]"}.regions()),
            (Pair{"s > t+0", "s > t+0"}));
  EXPECT_EQ((Attention{.mask = "greater-equal %5, %4 : bool[s=6,t=6]"}.regions()),
            (Pair{"t > s+0", "t > s+0"}));
}

// A rank that has rows 12 to 17 of the sequence.
TEST(MaskedRegions, SlicesUseTheirOffset) {
  EXPECT_EQ((Attention{.s = "along=s, size=6, begin=12"}.regions()), (Pair{"t > s+12", "t > s+12"}));
  EXPECT_EQ((Attention{.t = "along=t, size=6, begin=12"}.regions()), (Pair{"t > s-12", "t > s-12"}));
  // Floats do not represent integers that large exactly.
  EXPECT_EQ((Attention{.s = "along=s, size=6, begin=16777215"}.regions()), (Pair{"", ""}));
}

TEST(MaskedRegions, IgnoresOtherSelects) {
  EXPECT_EQ((Attention{.mask = "equal %4, %5 : bool[t=6,s=6]"}.regions()), (Pair{"", ""}));
  // The scores are skipped, but the weights of a large negative number need not be zero.
  EXPECT_EQ((Attention{.fill = "-1e9"}.regions()), (Pair{"t > s+0", ""}));
  // The scores have another reader.
  EXPECT_EQ((Attention{.outputs = "y=%10, scores=%3"}.regions()), (Pair{"", "t > s+0"}));
}

// Rows from the middle of a sequence, rows that are masked entirely, masks in the other direction.
TEST(MaskedRegions, SlicesMatchTheirDefinition) {
  Random random(12);
  for (const std::string s : {"along=s, size=6", "along=s, size=6, begin=3", "along=s, size=6, begin=12"})
    for (const std::string t : {"along=t, size=6", "along=t, size=6, begin=2", "along=t, size=6, begin=12"})
      for (const std::string mask : {"less-equal", "less", "greater", "greater-equal"}) {
        const plan::Graph graph = Attention{.t = t, .s = s, .mask = mask + " %4, %5 : bool[t=6,s=6]"}.graph();
        const exec::Tensors sources = exec::random_sources(graph, 2, random);
        const auto rank = exec::start(graph, 1);
        exec::fill(*rank, sources);
        ASSERT_TRUE(rank->step().ok());
        exec::expect_near(exec::contents(*rank), exec::interpreted(graph, sources), 1e-4, 1e-5,
                          fmt::format("{} of {} and {}", mask, t, s));
      }
}

const std::vector<language::SizeOverride> kSizes = {{"b", 2, {}}, {"s", 53, {}},     {"d", 48, {}},
                                                    {"h", 3, {}}, {"layers", 2, {}}, {"v", 40, {}}};

std::shared_ptr<const plan::Graph> small_gpt() {
  return std::make_shared<plan::Graph>(exec::training_plan("char_gpt", kSizes));
}

// Scores and values, and the gradients of both operands of both.
TEST(MaskedRegions, SixProductsPerAttentionSkipHalf) {
  const auto program = compile(small_gpt());
  ASSERT_TRUE(program.ok());
  std::map<std::pair<Side, Side>, int> found;
  for (const Unit& unit : program->units)
    if (const auto* product = std::get_if<MatrixProduct>(&unit.kernel); product && product->nothing) {
      EXPECT_EQ(product->nothing->offset, 0);
      ++found[{product->nothing->later, product->nothing->earlier}];
    }
  int products = 0, of_result = 0;
  for (const auto& [sides, count] : found) {
    products += count;
    if (sides.first != Side::k && sides.second != Side::k) of_result += count;
  }
  EXPECT_EQ(products, 12);
  EXPECT_EQ(of_result, 4);
}

// The softmax and its gradient.
TEST(MaskedRegions, TwoLoopsPerAttentionEndEarly) {
  const auto program = compile(small_gpt());
  ASSERT_TRUE(program.ok());
  int loops = 0;
  for (const Unit& unit : program->units)
    if (const auto* loop = std::get_if<RowLoop>(&unit.kernel); loop && loop->end) {
      EXPECT_EQ(loop->length, 53);
      EXPECT_EQ(loop->outer[loop->end->loop], 53);
      EXPECT_EQ(loop->end->offset, 0);
      ++loops;
    }
  EXPECT_EQ(loops, 4);
}

TEST(MaskedRegions, StepsAreBitwiseEqualWithAndWithout) {
  const auto graph = small_gpt();
  Random random(9);
  const exec::Tensors sources = exec::random_sources(*graph, 40, random);
  for (const int workers : {1, 3}) {
    std::vector<std::vector<std::byte>> memories;
    for (const bool masked : {false, true}) {
      auto program = compile(graph, {.workers = workers});
      ASSERT_TRUE(program.ok());
      for (Unit& unit : program->units) {
        if (masked) break;
        if (auto* product = std::get_if<MatrixProduct>(&unit.kernel)) product->nothing = {};
        if (auto* loop = std::get_if<RowLoop>(&unit.kernel)) loop->end = {};
      }
      auto rank = exec::Rank::start(std::move(*program), {.workers = workers});
      ASSERT_TRUE(rank.ok());
      exec::fill(**rank, sources);
      for (int step = 0; step < 3; ++step) ASSERT_TRUE((*rank)->step().ok());
      ASSERT_TRUE((*rank)->keep(memories.emplace_back()).ok());
    }
    EXPECT_EQ(memories[0], memories[1]) << workers << " workers";
  }
}

TEST(MaskedRegions, AStepMatchesItsDefinition) {
  const auto graph = small_gpt();
  Random random(10);
  const exec::Tensors sources = exec::random_sources(*graph, 40, random);
  const auto rank = exec::start(*graph, 2);
  exec::fill(*rank, sources);
  ASSERT_TRUE(rank->step().ok());
  exec::expect_near(exec::contents(*rank), exec::interpreted(*graph, sources), 1e-3, 1e-4, "char_gpt");
}

}  // namespace
}  // namespace weft::program
