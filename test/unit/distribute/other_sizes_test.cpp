// Plans rewritten by rules, at other sizes: nodes in another order, sizes as attributes of other
// nodes, and numbers that merged because two sizes are equal.
#include "weft/parallel/distribute/other_sizes.h"

#include <gtest/gtest.h>

#include "weft/parallel/distribute/prove.h"
#include "weft/parallel/distribute/replay.h"
#include "weft/parallel/distribute/shrink.h"
#include "weft/parallel/distribute/trace_origins.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/ops/operators.h"
#include "weft/plan/spmd/layouts.h"

namespace weft::distribute {
namespace {

plan::Graph plan_of(std::string_view text) {
  auto graph = plan::read(text, ops::all());
  if (!graph.ok()) throw std::runtime_error(graph.error().message);
  return std::move(*graph);
}

DistributedPlan on_one_rank(std::string_view text, const plan::Graph& model) {
  DistributedPlan plan;
  plan.graph = plan_of(text);
  plan.mesh = {{{"rank", 1}}};
  plan.layouts = spmd::infer_layouts(plan.graph, plan.mesh).value();
  Origins origins = trace_origins(model, plan.graph).value();
  plan.opened = std::move(origins.opened);
  plan.origin = std::move(origins.origin);
  plan.own = std::move(origins.own);
  return plan;
}

// "" if the plan is proven at the other model's sizes; else the reason.
std::string at_sizes_of(const plan::Graph& small, const DistributedPlan& plan, const plan::Graph& model) {
  const auto replayed = replay(plan, model, small, plan.mesh);
  if (!replayed.ok()) return replayed.error().message;
  const auto proof = prove(small, *replayed, {.draws = 1});
  if (!proof.ok()) return proof.error().message;
  return proof->holds() ? "" : proof->wrong->what;
}

// Two means, over s and over d, with their counts.
std::string two_means(int s, int d) {
  const std::string type = "f32[s=" + std::to_string(s) + ",d=" + std::to_string(d) + "]";
  return "plan p\n%0 = input {name=x, type=" + type + "}\n%1 = constant {value=" + std::to_string(s) +
         ", dtype=f32} @over_s\n%2 = constant {value=" + std::to_string(d) +
         ", dtype=f32} @over_d\n%3 = div %0, %1 @over_s\n%4 = div %0, %2 @over_d\n%5 = add %3, %4 "
         "@sum\nreturn y=%5\n";
}

constexpr std::string_view kOneNumber = R"(plan p
%0 = input {name=x, type=f32[s=4096,d=4096]}
%1 = constant {value=4096, dtype=f32} @over_s
%2 = div %0, %1 @over_s
%3 = div %0, %1 @over_d
%4 = add %2, %3 @sum
return y=%4
)";

// A plan that is right because 4096 = 4096 is not wrong because 5 differs from 3: it is not proven
// at these sizes, but is at others.
TEST(OtherSizes, ANumberMergedFromTwoIsProvenWhereTheyAreEqual) {
  const plan::Graph model = plan_of(two_means(4096, 4096));
  const DistributedPlan plan = on_one_rank(kOneNumber, model);
  EXPECT_NE(at_sizes_of(plan_of(two_means(5, 3)), plan, model).find("reads one constant for several numbers"),
            std::string::npos);
  EXPECT_EQ(at_sizes_of(plan_of(two_means(5, 5)), plan, model), "");
}

TEST(OtherSizes, RejectsAWrongNumber) {
  const plan::Graph model = plan_of(two_means(4096, 2048)), small = plan_of(two_means(5, 3));
  const DistributedPlan plan = on_one_rank(R"(plan p
%0 = input {name=x, type=f32[s=4096,d=2048]}
%1 = constant {value=4096, dtype=f32} @over_s
%2 = div %0, %1 @over_s
%3 = div %0, %1 @over_d
%4 = add %2, %3 @sum
return y=%4
)",
                                           model);
  const std::string why = at_sizes_of(small, plan, model);
  EXPECT_FALSE(why.empty());
  EXPECT_EQ(why.find("reads one constant for several numbers"), std::string::npos) << why;
}

// Scores divided by the root of e, as products and a softmax.
plan::Graph attending_by_products(int s, int e, std::string_view root) {
  const auto type = [&](std::string_view place) {
    return "f32[" + std::string(place) + "=" + std::to_string(s) + ",e=" + std::to_string(e) + "]";
  };
  const auto square = "f32[s=" + std::to_string(s) + ",t=" + std::to_string(s) + "]";
  return plan_of("plan p\n%0 = input {name=q, type=" + type("s") +
                 "}\n%1 = input {name=k, type=" + type("t") + "}\n%2 = input {name=v, type=" + type("t") +
                 "}\n%3 = contract %0, %1 {to=[s,t]} : " + square +
                 "\n%4 = constant {value=" + std::string(root) + ", dtype=f32}\n%5 = div %3, %4 : " + square +
                 "\n%6 = softmax %5 {over=[t]} : " + square +
                 "\n%7 = contract %6, %2 {to=[s,e]} : " + type("s") + "\nreturn y=%7\n");
}

// Rules made one attention operator of it whose divisor was a constant: at other sizes the divisor
// follows that constant.
TEST(OtherSizes, AttributesFollowTheConstantsTheyReplaced) {
  const plan::Graph model = attending_by_products(64, 16, "4"), small = attending_by_products(5, 4, "2");
  const auto attending = [&](std::string_view divisor) {
    return on_one_rank(
        "plan p\n%0 = input {name=q, type=f32[s=64,e=16]}\n%1 = input {name=k, type=f32[t=64,e=16]}\n"
        "%2 = input {name=v, type=f32[t=64,e=16]}\n%3, %4 = attention %0, %1, %2 {over=t, along=s, "
        "inner=[e], divisor=" +
            std::string(divisor) + "} : f32[s=64,e=16], f32[s=64]\nreturn y=%3\n",
        model);
  };
  EXPECT_EQ(at_sizes_of(small, attending("4"), model), "");
  for (const std::string_view wrong : {"3", "5", "16"})
    EXPECT_NE(at_sizes_of(small, attending(wrong), model), "") << wrong;
}

// A default divisor follows no constant: a mean over one example also divides by 1, and by 3 at
// other sizes.
TEST(OtherSizes, DefaultAttributesStayUnchanged) {
  const auto model_at = [](int b) {
    const std::string size = std::to_string(b);
    return plan_of("plan p\n%0 = input {name=x, type=f32[b=" + size + ",d=4]}\n%1 = constant {value=" + size +
                   ", dtype=f32}\n%2 = div %0, %1\n%3 = softmax %2 {over=[d]}\nreturn y=%3\n");
  };
  const plan::Graph model = model_at(1), small = model_at(3);
  const OtherSizes sizes(model, small);
  const plan::Graph own = plan_of(
      "plan p\n%0 = input {name=q, type=f32[s=4,e=2]}\n%1 = input {name=k, type=f32[t=4,e=2]}\n"
      "%2, %3 = attention %0, %1, %1 {over=t, along=s, inner=[e]} : f32[s=4,e=2], f32[s=4]\nreturn y=%2\n");
  EXPECT_FALSE(sizes.change_number(own.view(plan::NodeId(2))));
}

// A node that rules moved still belongs to the model, and its slice changes with the model's.
TEST(OtherSizes, FindsMovedNodes) {
  const auto model_at = [](int s, int last) {
    return plan_of(
        "plan p\n%0 = input {name=x, type=f32[b=4,s=" + std::to_string(s) +
        "]}\n%1 = relu %0 @a\n%2 = slice %1 {along=s, begin=" + std::to_string(last) +
        ", end=" + std::to_string(last + 1) +
        "} @b\n%3 = neg %2 @c\n%4 = constant {value=2, dtype=f32} @d\n%5 = mul %3, %4 @d\nreturn y=%5\n");
  };
  const plan::Graph model = model_at(77, 76), small = model_at(5, 4);
  const DistributedPlan plan = on_one_rank(R"(plan p
%0 = input {name=x, type=f32[b=4,s=77]}
%1 = constant {value=2, dtype=f32} @d
%2 = slice %0 {along=s, begin=76, end=77} @b
%3 = relu %2 @a
%4 = mul %3, %1 @d
%5 = neg %4 @c
return y=%5
)",
                                           model);
  for (const bool own : plan.own) EXPECT_FALSE(own);
  EXPECT_EQ(at_sizes_of(small, plan, model), "");
}

// A slice that a rule added, without the label of the model's, and an added broadcast.
TEST(OtherSizes, SizesOfAddedNodesFollowTheModel) {
  const auto model_at = [](int s, int b) {
    const std::string last = std::to_string(s - 1), size = std::to_string(b);
    return plan_of(
        "plan p\n%0 = input {name=x, type=f32[b=" + size + ",s=" + std::to_string(s) +
        "]}\n%1 = constant {value=2, dtype=f32} @a\n%2 = relu %0 @a\n%3 = slice %2 {along=s, begin=" + last +
        ", end=" + std::to_string(s) + "} @b\n%4 = mul %3, %1 @c\nreturn y=%4\n");
  };
  const plan::Graph model = model_at(77, 64), small = model_at(5, 3);
  const DistributedPlan plan = on_one_rank(R"(plan p
%0 = input {name=x, type=f32[b=64,s=77]}
%1 = constant {value=2, dtype=f32} @a
%2 = slice %0 {along=s, begin=76, end=77}
%3 = relu %2
%4 = broadcast %1 {type=f32[b=64]}
%5 = mul %3, %4
%6 = transpose %5 {to=[b,s]}
return y=%6
)",
                                           model);
  EXPECT_EQ(at_sizes_of(small, plan, model), "");
}

TEST(OtherSizes, DoesNotGuessASizeThatBecomesSeveral) {
  const plan::Graph large = plan_of(R"(plan p
%0 = input {name=x, type=f32[o=64]}
%1 = input {name=y, type=f32[o=64]}
return x=%0, y=%1
)"),
                    small = plan_of(R"(plan p
%0 = input {name=x, type=f32[o=5]}
%1 = input {name=y, type=f32[o=3]}
return x=%0, y=%1
)");
  const OtherSizes sizes(large, small);
  EXPECT_FALSE(sizes.of("o", 64).ok());
  EXPECT_FALSE(sizes.of("d", 64).ok());
  EXPECT_EQ(OtherSizes(large, large).of("o", 64).value(), 64);
}

// A rotary index needs an even size, and a router one more than it picks; they are equal in the
// model.
TEST(OtherSizes, EqualSizesShrinkEqually) {
  const plan::Graph model = plan_of(R"(plan p
%0 = input {name=x, type=f32[b=64,s=4096,m=64]}
%1 = rotary %0 {along=s, pairs=m}
%2 = input {name=scores, type=f32[b=64,x=64]}
%3, %4 = top-k %2 {over=x, into=k, count=6}
return y=%1, z=%3
)");
  const auto small = shrink(model, {.alike = true});
  ASSERT_TRUE(small.ok()) << small.error().message;
  const plan::Type y = small->type(small->outputs()[0].value);
  EXPECT_EQ(y.dims[0].size, y.dims[2].size);
  EXPECT_EQ(y.dims[2].size % 2, 0);
  EXPECT_GE(y.dims[2].size, 7);
  EXPECT_NE(y.dims[0].size, y.dims[1].size);
  const auto apart = shrink(model, {});
  ASSERT_TRUE(apart.ok());
  const plan::Type other = apart->type(apart->outputs()[0].value);
  EXPECT_NE(other.dims[0].size, other.dims[2].size);
}

}  // namespace
}  // namespace weft::distribute
