// Plans of one device at smaller sizes.
#include "weft/distribute/shrink.h"

#include <gtest/gtest.h>

#include "weft/language/bind.h"
#include "weft/ops/operators.h"
#include "weft/plan/text.h"
#include "weft/plan/verify.h"
#include "weft/language/shipped.h"

namespace weft::distribute {
namespace {

plan::Graph shipped(std::string_view model) {
  language::Catalog catalog;
  language::load_shipped(catalog);
  language::syntax::Name name;
  name.text = model;
  language::BindOptions options;
  options.mode = language::Mode::train;
  options.sizes = {{"b", 64, {}}};
  return std::move(language::bind(catalog, name, options).value().graph);
}

std::string type_of(const plan::Graph& graph, std::string_view source) {
  for (std::size_t n = 0; n < graph.node_count(); ++n)
    if (const plan::NodeView node = graph.view(plan::NodeId(n));
        ops::is_source(node.op()) && node.word(0) == source)
      return print(node.result_type(0), graph.symbols());
  return "none";
}

TEST(Shrink, KeepsTheStructureOfConvolutionalModels) {
  for (const std::string_view model : {"alexnet", "vgg16", "resnet50", "digits_conv"}) {
    SCOPED_TRACE(model);
    const plan::Graph whole = shipped(model);
    const auto small = shrink(whole, {.image = 64});
    ASSERT_TRUE(small.ok()) << small.error().message;
    ASSERT_EQ(small->node_count(), whole.node_count());
    for (std::size_t n = 0; n < whole.node_count(); ++n)
      EXPECT_EQ(small->node(plan::NodeId(n)).op, whole.node(plan::NodeId(n)).op);
    EXPECT_TRUE(plan::verify(*small).ok());
    EXPECT_EQ(small->outputs().size(), whole.outputs().size());
  }
}

TEST(Shrink, ASourceTakesItsSizeFromWhatItMeets) {
  const auto small = shrink(shipped("alexnet"), {.image = 64});
  ASSERT_TRUE(small.ok()) << small.error().message;
  EXPECT_EQ(type_of(*small, "image"), "f32[b=5,c=3,h=64,w=72]");
  EXPECT_EQ(type_of(*small, "conv1.kernel"), "f32[o=7,c=3,r=11,q=11]");
  EXPECT_EQ(type_of(*small, "fc1.weight"), "f32[d=4,o=4]");
}

TEST(Shrink, AnImageMustOutlastTheWindows) { EXPECT_FALSE(shrink(shipped("alexnet"), {.image = 8}).ok()); }

TEST(Shrink, AMeanCountsWhatItTakesTogether) {
  const auto whole = plan::read(R"(plan p
%0 = input {name=x, type=f32[b=64,d=32]}
%1 = reduce %0 {kind=mean, to=[], count=2048}
return y=%1
)",
                                ops::all());
  ASSERT_TRUE(whole.ok());
  const auto small = shrink(*whole, {});
  ASSERT_TRUE(small.ok()) << small.error().message;
  EXPECT_EQ(small->view(plan::NodeId(1u)).integer(2), 16);
}

}  // namespace
}  // namespace weft::distribute
