// What a training plan recomputes, what it keeps for that, and that it otherwise stays the same
// plan.
#include <algorithm>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "weft/language/bind.h"
#include "weft/language/catalog.h"
#include "weft/language/shipped.h"
#include "weft/parallel/train/recompute.h"
#include "weft/plan/graph/hash.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/graph/verify.h"
#include "weft/plan/ops/operators.h"

namespace weft::train {
namespace {

TrainingPlan plan_of(std::string_view model, std::vector<language::SizeOverride> sizes) {
  language::Catalog catalog;
  language::load_shipped(catalog);
  language::BindOptions options;
  options.mode = language::Mode::train;
  options.sizes = std::move(sizes);
  language::syntax::Name name;
  name.text = model;
  auto bound = language::bind(catalog, name, options);
  EXPECT_TRUE(bound.ok()) << bound.error().message;
  auto plan = make_training_plan(std::move(bound->graph), {});
  EXPECT_TRUE(plan.ok());
  return std::move(*plan);
}

const TrainingPlan& gpt() {
  static const TrainingPlan plan =
      plan_of("char_gpt",
              {{"b", 8, {}}, {"s", 32, {}}, {"d", 16, {}}, {"h", 2, {}}, {"layers", 6, {}}, {"v", 16, {}}});
  return plan;
}

double kept_bytes(const plan::Graph& graph) {
  double bytes = 0;
  for (const plan::ValueId value : kept_values(graph))
    bytes += static_cast<double>(graph.type(value).bytes());
  return bytes;
}

Recomputed made(const TrainingPlan& plan, std::string_view what) {
  auto read = read_recompute(what);
  EXPECT_TRUE(read.ok()) << read.error().message;
  auto again = recompute(plan.graph, *read);
  EXPECT_TRUE(again.ok()) << again.error().message;
  EXPECT_TRUE(plan::verify(again->graph).ok());
  // The hash describes the computation from the sources, whether or not nodes are repeated.
  EXPECT_EQ(plan::structural_hash(again->graph), plan::structural_hash(plan.graph));
  return std::move(*again);
}

TEST(Recompute, PrintedTextParsesBack) {
  for (const std::string text : {"none", "layers", "selective", "layers, selective, h", "block.3, scores",
                                 "\"layers\"", "\"two words\""}) {
    const auto read = read_recompute(text);
    ASSERT_TRUE(read.ok()) << text << ": " << read.error().message;
    EXPECT_EQ(print(*read), text);
  }
  EXPECT_EQ(print(*read_recompute(" block.3 ,scores ")), "block.3, scores");
  for (const std::string text :
       {"", ",", "layers,", "layers, layers", "none, layers", "layers, none", "\"open", "\"a\" b"})
    EXPECT_FALSE(read_recompute(text).ok()) << text;
}

TEST(Recompute, NoneKeepsThePlan) {
  const Recomputed again = made(gpt(), "none");
  EXPECT_EQ(plan::print(again.graph), plan::print(gpt().graph));
}

TEST(Recompute, LayersKeepTheirInputs) {
  const Recomputed again = made(gpt(), "layers");
  // Six layers, with one value of b x s x d floats between every two; the rest belongs to the
  // embedding and the head.
  const double between = 8 * 32 * 16 * 4;
  double within = 0;
  for (const plan::ValueId value : kept_values(again.graph)) {
    const plan::Node& node = again.graph.node(again.graph.value(value).producer);
    if (node.scope.valid()) within += static_cast<double>(again.graph.type(value).bytes());
  }
  EXPECT_LE(within, 6 * between);
  EXPECT_LT(kept_bytes(again.graph), 0.4 * kept_bytes(gpt().graph));
}

TEST(Recompute, SelectiveRepeatsNoProductWithParameters) {
  const Recomputed again = made(gpt(), "selective"), layers = made(gpt(), "layers");
  EXPECT_LT(kept_bytes(again.graph), kept_bytes(gpt().graph));
  EXPECT_GT(kept_bytes(again.graph), kept_bytes(layers.graph));
  EXPECT_LT(again.flops, 0.5 * layers.flops);
  for (std::size_t n = 0; n < again.graph.node_count(); ++n) {
    if (!again.copy_of[n].valid()) continue;
    const plan::NodeView node = again.graph.view(plan::NodeId(n));
    if (node.op().name() != "contract") continue;
    for (std::size_t i = 0; i < node.input_count(); ++i)
      EXPECT_NE(again.graph.node(again.graph.value(node.input(i)).producer).op, &ops::parameter());
  }
}

TEST(Recompute, NamesAreEntriesAndScopes) {
  const double all = kept_bytes(gpt().graph), layers = kept_bytes(made(gpt(), "layers").graph);
  const double one = kept_bytes(made(gpt(), "gpt_block.3").graph),
               two = kept_bytes(made(gpt(), "gpt_block.3, gpt_block.4").graph);
  EXPECT_LT(one, all);
  EXPECT_LT(two, one);
  EXPECT_EQ(kept_bytes(made(gpt(), "gpt_block").graph), layers);
  const auto wrong = recompute(gpt().graph, *read_recompute("gpt_blok.3"));
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().message, "there is nothing named gpt_blok.3 to recompute");
  EXPECT_EQ(wrong.error().hint, "did you mean 'gpt_block.3'?");
}

TEST(Recompute, CopiesAreInTheBackwardPhaseAndAreFound) {
  const Recomputed again = made(gpt(), "layers");
  const std::vector<bool> found = find_copies(again.graph);
  int copies = 0;
  for (std::size_t n = 0; n < again.graph.node_count(); ++n) {
    const bool is_copy = again.copy_of[n].valid();
    if (!is_copy) continue;
    ++copies;
    EXPECT_EQ(again.graph.phase(plan::NodeId(n)), plan::Phase::backward);
    EXPECT_EQ(again.graph.phase(again.copy_of[n]), plan::Phase::forward);
    if (!again.graph.node(plan::NodeId(n)).inputs.empty()) EXPECT_TRUE(found[n]) << n;
  }
  EXPECT_GT(copies, 6 * 10);
  EXPECT_EQ(std::ranges::count(find_copies(gpt().graph), true), 0);
}

TEST(Recompute, SplitsChainsWithoutRepeat) {
  const TrainingPlan plan = plan_of("alexnet", {{"b", 2, {}}});
  const Recomputed again = made(plan, "layers");
  EXPECT_LT(kept_bytes(again.graph), 0.8 * kept_bytes(plan.graph));
}

// The narrowest value is kept, not the input: the backward phase needs t and u, and both follow
// from s.
TEST(Recompute, KeepsTheCheapestCut) {
  auto graph = plan::read(R"(plan narrow
%0 = input {name=x, type=f32[b=64,d=32]}
%1 = parameter {name=w, type=f32[d=32,f=2]}
%2 = exp %0 @x
%3 = contract %2, %1 {to=[b,f]} @s
%4 = exp %3 @t
%5 = sin %4 @u
%6 = reduce %5 {kind=sum, to=[]} @loss
return loss=%6
)",
                          ops::all());
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  auto plan = make_training_plan(std::move(*graph), {});
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  const Recomputed again = made(*plan, "x, s, t, u");
  std::string kept;
  for (const plan::ValueId value : kept_values(again.graph))
    kept += again.graph.text(again.graph.node(again.graph.value(value).producer).label);
  // x costs nothing to keep, as an input. s and t follow from it.
  EXPECT_EQ(kept, "");
  const Recomputed part = made(*plan, "t, u");
  kept.clear();
  for (const plan::ValueId value : kept_values(part.graph))
    kept += part.graph.text(part.graph.node(part.graph.value(value).producer).label);
  EXPECT_EQ(kept, "xt");  // exp's gradient needs its result: keeping t costs no more than keeping s
}

}  // namespace
}  // namespace weft::train
