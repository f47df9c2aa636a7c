// Positional rules become rules by index names, which the prover then checks.
#include <gtest/gtest.h>

#include "weft/formats/rules_jsonl.h"
#include "weft/plan/ops/operators.h"
#include "weft/rules/equation/rule_from_equation.h"
#include "weft/rules/rule/fire_rule.h"
#include "weft/rules/rule/prove_rule.h"

namespace weft::equation {
namespace {

Equation equation(std::string_view line) { return formats::read_rule(line).value(); }

rule::Rule translated(std::string_view line) {
  const std::string text = rule_from_equation(equation(line), "it", "because", "nobody").value().value();
  return rule::parse_rules(text, "text", ops::all()).value().at(0);
}

constexpr std::string_view kConcatOfProducts =
    R"({"id":"c","inputs":{"x":{"template_shape":[2,4]},"y":{"template_shape":[2,4]},"w":{"template_shape":[4,4]}},)"
    R"("source":[{"op":"matmul","in":["x","w"],"attrs":{}},{"op":"matmul","in":["y","w"],"attrs":{}},)"
    R"({"op":"concat","in":["%0.0","%1.0"],"attrs":{"axis":0,"rank":2,"n":2}}],)"
    R"("target":[{"op":"concat","in":["x","y"],"attrs":{"axis":0,"rank":2,"n":2}},{"op":"matmul","in":["%0.0","w"],"attrs":{}}],)"
    R"("outputs":[{"source":"%2.0","target":"%1.0"}]})";

TEST(RuleFromEquation, NamesCorrespondingDimsAlike) {
  EXPECT_EQ(rule_from_equation(equation(kConcatOfProducts), "it", "because", "nobody").value().value(),
            "rule it explore\n"
            "  why   because\n"
            "  cite  nobody\n"
            "  given w[A, B], x[a, A], y[a, A]\n"
            "  left  step0 = contract(x, w, to=[a, B])\n"
            "        step1 = contract(y, w, to=[a, B])\n"
            "        out0 = concat(step0, step1, along=a)\n"
            "  right made0 = concat(x, y, along=a)\n"
            "        out0 = contract(made0, w, to=[a, B])\n");
  const rule::Rule rule = translated(kConcatOfProducts);
  EXPECT_EQ(prove(rule).verdict.judgement, rule::Judgement::proven);
  EXPECT_EQ(fire_rule(rule, 5, 1).wrong, "");
}

// Two convolutions of one image, merged: weights are concatenated, and the result is split between
// them.
TEST(RuleFromEquation, SplitsWhereTheConcatJoined) {
  const rule::Rule rule = translated(
      R"({"id":"m","inputs":{"x":{"template_shape":[2,4,5,5]},"v":{"template_shape":[4,4,3,3]},"w":{"template_shape":[4,4,3,3]}},)"
      R"("source":[{"op":"conv2d","in":["x","v"],"attrs":{"kernel":[3,3],"stride":[1,1],"pad":"same","act":"none"}},)"
      R"({"op":"conv2d","in":["x","w"],"attrs":{"kernel":[3,3],"stride":[1,1],"pad":"same","act":"none"}}],)"
      R"("target":[{"op":"concat","in":["v","w"],"attrs":{"axis":0,"rank":4,"n":2}},)"
      R"({"op":"conv2d","in":["x","%0.0"],"attrs":{"kernel":[3,3],"stride":[1,1],"pad":"same","act":"none"}},)"
      R"({"op":"split","in":["%1.0"],"attrs":{"axis":1,"n":2}}],)"
      R"("outputs":[{"source":"%0.0","target":"%2.0"},{"source":"%1.0","target":"%2.1"}]})");
  EXPECT_EQ(rule.outputs.size(), 2u);
  EXPECT_EQ(prove(rule).verdict.judgement, rule::Judgement::proven);
}

TEST(RuleFromEquation, KeepsLayouts) {
  const rule::Rule rule = translated(
      R"({"id":"a","inputs":{"x":{"layout":"local","global_shape":[8,8]}},"source":[{"op":"all_reduce","in":["x"],"attrs":{}}],)"
      R"("target":[{"op":"reduce_scatter","in":["x"],"attrs":{"dim":0}},{"op":"all_gather","in":["%0.0"],"attrs":{"dim":0}}],)"
      R"("outputs":[{"source":"%0.0","target":"%1.0"}],"ranks":[2,4]})");
  // On a mesh of two axes, the other axis might slice the index that this one scatters.
  EXPECT_EQ(prove(rule).verdict.guard, "whole(x, a)");
}

// Transposes only change the order in memory.
TEST(RuleFromEquation, SkipsTransposes) {
  const auto nothing = rule_from_equation(
      equation(
          R"({"id":"t","inputs":{"x":{"template_shape":[2,4]}},"source":[{"op":"transpose","in":["x"],"attrs":{"perm":[1,0],"materialize":true}},)"
          R"({"op":"transpose","in":["%0.0"],"attrs":{"perm":[1,0],"materialize":true}}],"target":[{"op":"identity","in":["x"],"attrs":{}}],)"
          R"("outputs":[{"source":"%1.0","target":"%0.0"}]})"),
      "it", "", "");
  EXPECT_EQ(nothing.value(), std::nullopt);
}

TEST(RuleFromEquation, ReportsWhatPlansCannotExpress) {
  const auto refused = [](std::string_view line, std::string_view message) {
    const auto text = rule_from_equation(equation(line), "it", "", "");
    ASSERT_FALSE(text.ok());
    EXPECT_EQ(text.error().message, message);
  };
  refused(
      R"({"id":"s","inputs":{"x":{"template_shape":[4,4]}},"source":[{"op":"matmul","in":["x","x"],"attrs":{}},{"op":"relu","in":["%0.0"],"attrs":{}}],)"
      R"("target":[{"op":"matmul","in":["x","x"],"attrs":{"act":"relu"}}],"outputs":[{"source":"%1.0","target":"%0.0"}]})",
      "a value would have an index twice");
}

}  // namespace
}  // namespace weft::equation
