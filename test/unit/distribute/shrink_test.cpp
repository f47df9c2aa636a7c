// Plans of one device at smaller sizes.
#include "weft/parallel/distribute/shrink.h"

#include <gtest/gtest.h>

#include "weft/language/bind.h"
#include "weft/language/shipped.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/graph/verify.h"
#include "weft/plan/ops/operators.h"

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
    const auto small = shrink(whole, {.rows = 64, .columns = 72});
    ASSERT_TRUE(small.ok()) << small.error().message;
    ASSERT_EQ(small->node_count(), whole.node_count());
    for (std::size_t n = 0; n < whole.node_count(); ++n)
      EXPECT_EQ(small->node(plan::NodeId(n)).op, whole.node(plan::NodeId(n)).op);
    EXPECT_TRUE(plan::verify(*small).ok());
    EXPECT_EQ(small->outputs().size(), whole.outputs().size());
  }
}

TEST(Shrink, SourcesTakeTheirSizesFromOtherOperands) {
  const auto small = shrink(shipped("alexnet"), {.rows = 64, .columns = 72});
  ASSERT_TRUE(small.ok()) << small.error().message;
  EXPECT_EQ(type_of(*small, "image"), "f32[b=5,c=3,h=64,w=72]");
  EXPECT_EQ(type_of(*small, "conv1.kernel"), "f32[o=3,c=3,r=11,q=11]");
  EXPECT_EQ(type_of(*small, "fc1.weight"), "f32[d=8,o=10]");
}

TEST(Shrink, ImagesMustStayLargerThanTheWindows) {
  EXPECT_FALSE(shrink(shipped("alexnet"), {.rows = 8, .columns = 8}).ok());
}

// A depthwise convolution has as many groups as channels; a split index equals the product of its
// factors; a position index has the size of what it is multiplied with.
TEST(Shrink, RelatedSizesShrinkTogether) {
  const auto whole = plan::read(R"(plan p
%0 = input {name=x, type=f32[b=64,p=3211264]}
%1 = split %0 {along=p, into=f32[c=64,h=224,w=224]}
%2 = parameter {name=k, type=f32[o=64,i=1,r=3,q=3]}
%3 = conv2d %1, %2 {padding=1, groups=64}
%4 = reduce %3 {kind=sum, to=[b,o]}
%5 = position {along=o, size=64}
%6 = cast %5 {to=f32}
%7 = mul %4, %6
%8 = slice %7 {along=o, begin=16, end=32}
return y=%8
)",
                                ops::all());
  ASSERT_TRUE(whole.ok()) << whole.error().message;
  const auto small = shrink(*whole, {});
  ASSERT_TRUE(small.ok()) << small.error().message;
  EXPECT_EQ(type_of(*small, "x"), "f32[b=5,p=13824]");
  EXPECT_EQ(type_of(*small, "k"), "f32[o=12,i=1,r=3,q=3]");
  EXPECT_EQ(small->view(plan::NodeId(3u)).integer(2), 12);
  EXPECT_EQ(print(small->type(small->outputs()[0].value), small->symbols()), "f32[b=5,o=3]");
}

TEST(Shrink, TheCountOfAMeanFollowsItsSizes) {
  const auto whole = plan::read(R"(plan p
%0 = input {name=x, type=f32[b=64,d=32]}
%1 = reduce %0 {kind=mean, to=[], count=2048}
return y=%1
)",
                                ops::all());
  ASSERT_TRUE(whole.ok());
  const auto small = shrink(*whole, {});
  ASSERT_TRUE(small.ok()) << small.error().message;
  EXPECT_EQ(small->view(plan::NodeId(1u)).integer(2), 15);
}

// A batch in shards, merged and split again: both splits have equal sizes.
TEST(Shrink, EqualSplitsStayEqual) {
  const auto whole = plan::read(R"(plan p
%0 = input {name=x, type=f32[b=1024]}
%1 = input {name=y, type=f32[d=512]}
%2 = split %0 {along=b, into=f32[b=32,b_share=32]}
%3 = neg %2
%4 = merge %3 {along=[b,b_share], into=b}
%5 = relu %4
%6 = split %5 {along=b, into=f32[b=32,b_share=32]}
%7 = neg %6
%8 = merge %7 {along=[b,b_share], into=b}
%9 = add %8, %4
return z=%9, y=%1
)",
                                ops::all());
  ASSERT_TRUE(whole.ok()) << whole.error().message;
  for (const std::int64_t multiple : {1, 6}) {
    const auto small = shrink(*whole, {.multiple = multiple});
    ASSERT_TRUE(small.ok()) << small.error().message;
    const plan::Type first = small->type(small->result(plan::NodeId(2u))),
                     second = small->type(small->result(plan::NodeId(6u)));
    EXPECT_LT(first.elements(), 1024);
    EXPECT_EQ(first.dims[0].size, second.dims[0].size);
    EXPECT_EQ(first.dims[1].size, second.dims[1].size);
  }
}

// No operator uses both as b: one is renamed to a before they meet.
TEST(Shrink, InputsHaveOneBatch) {
  const auto whole = plan::read(R"(plan p
%0 = input {name=image, type=f32[b=1024,o=512]}
%1 = input {name=text, type=f32[b=1024,o=512]}
%2 = rename %1 {from=[b], to=[a]}
%3 = contract %0, %2 {to=[b,a]}
return y=%3
)",
                                ops::all());
  ASSERT_TRUE(whole.ok());
  const auto small = shrink(*whole, {});
  ASSERT_TRUE(small.ok()) << small.error().message;
  const plan::Type y = small->type(small->outputs()[0].value);
  EXPECT_EQ(y.dims[0].size, y.dims[1].size);
  EXPECT_LT(y.dims[0].size, 1024);
}

}  // namespace
}  // namespace weft::distribute
