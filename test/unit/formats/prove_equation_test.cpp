// Verdicts on rules of every kind: which hold, which hold under a guard, and which fail and where.
#include "weft/rules/equation/prove_equation.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "weft/formats/rules_jsonl.h"

namespace weft::equation {
namespace {

// {shapes of the inputs}, source, target, outputs, with single quotes.
Equation rule_of(std::string text) {
  std::ranges::replace(text, '\'', '"');
  auto equation = formats::read_rule(text);
  if (!equation.ok()) throw std::runtime_error(equation.error().message);
  return *equation;
}

rule::Verdict judge(std::string text, std::int32_t shapes = 24) {
  return prove(rule_of(std::move(text)), {.shapes = shapes, .max_order_runs = 64});
}

constexpr const char* kImages =
    "{'id': 'r', 'inputs': {'x': {'template_shape': [2,4,5,5]}, 'v': {'template_shape': [4,4,3,3]}, "
    "'w': {'template_shape': [4,4,3,3]}}, ";
constexpr const char* kMatrices =
    "{'id': 'r', 'inputs': {'a': {'template_shape': [2,4]}, 'b': {'template_shape': [4,4]}, 'c': "
    "{'template_shape': [4,4]}}, ";
constexpr const char* kOne = "'outputs': [{'source': '%1.0', 'target': '%1.0'}]}";

TEST(ProveEquation, ProvesProductsAssociative) {
  const rule::Verdict verdict =
      judge(std::string(kMatrices) +
            "'source': [{'op': 'matmul', 'in': ['a','b']}, {'op': 'matmul', 'in': ['%0.0','c']}], "
            "'target': [{'op': 'matmul', 'in': ['b','c']}, {'op': 'matmul', 'in': ['a','%0.0']}], " +
            kOne);
  EXPECT_EQ(verdict.judgement, rule::Judgement::proven);
  EXPECT_GT(verdict.error_probability, 0);
  EXPECT_LT(verdict.error_probability, 1e-15);
  EXPECT_EQ(verdict.rounding, rule::Rounding::changes);
}

TEST(ProveEquation, RefutesSwappedOperandsWithASmallCase) {
  const rule::Verdict verdict =
      judge(std::string(kMatrices) +
            "'source': [{'op': 'matmul', 'in': ['b','c']}, {'op': 'relu', 'in': ['%0.0']}], "
            "'target': [{'op': 'matmul', 'in': ['c','b']}, {'op': 'relu', 'in': ['%0.0']}], " +
            kOne);
  ASSERT_EQ(verdict.judgement, rule::Judgement::refuted);
  ASSERT_EQ(verdict.counterexamples.size(), 1u);
  const rule::Counterexample& example = verdict.counterexamples[0];
  EXPECT_NE(example.left, example.right);
  EXPECT_EQ(example.inputs[1].values.size(), 4u);  // two by two is enough
  for (const double value : example.inputs[1].values) EXPECT_EQ(value, std::trunc(value));
}

TEST(ProveEquation, GuardsMergedConvolutionsAgainstGroups) {
  const rule::Verdict verdict = judge(
      std::string(kImages) +
          "'source': [{'op': 'conv2d', 'in': ['x','v'], 'attrs': {'kernel': [3,3]}}, {'op': 'conv2d', 'in': "
          "['x','w'], 'attrs': {'kernel': [3,3]}}, {'op': 'concat', 'in': ['%0.0','%1.0'], 'attrs': {'axis': "
          "1}}],"
          "'target': [{'op': 'concat', 'in': ['v','w'], 'attrs': {'axis': 0}}, {'op': 'conv2d', 'in': "
          "['x','%0.0'],"
          " 'attrs': {'kernel': [3,3]}}], 'outputs': [{'source': '%2.0', 'target': '%1.0'}]}",
      64);
  EXPECT_EQ(verdict.judgement, rule::Judgement::guarded);
  EXPECT_EQ(verdict.guard, "groups(v) = 1 and groups(w) = 1");
  ASSERT_EQ(verdict.counterexamples.size(), 1u);  // outside the guard
}

TEST(ProveEquation, GuardsATargetWithMoreRequirements) {
  const rule::Verdict verdict = judge(
      "{'id': 'r', 'inputs': {'a': {'template_shape': [2,4]}, 'b': {'template_shape': [2,4]}}, "
      "'source': [{'op': 'relu', 'in': ['a']}, {'op': 'relu', 'in': ['b']}], "
      "'target': [{'op': 'concat', 'in': ['a','b'], 'attrs': {'axis': 1}}, {'op': 'relu', 'in': ['%0.0']}, "
      "{'op': 'split', 'in': ['%1.0'], 'attrs': {'axis': 1}}], 'outputs': [{'source': '%0.0', 'target': "
      "'%2.0'}, "
      "{'source': '%1.0', 'target': '%2.1'}]}");
  EXPECT_EQ(verdict.judgement, rule::Judgement::guarded);
  EXPECT_EQ(verdict.guard, "size(a, 0) = size(b, 0)");
  EXPECT_EQ(verdict.rounding, rule::Rounding::exact);
}

TEST(ProveEquation, RefutesRulesThatHoldForTrivialSizesOnly) {
  // Holds if a is one by one.
  const rule::Verdict verdict = judge(
      "{'id': 'r', 'inputs': {'a': {'template_shape': [3,3]}}, 'source': [{'op': 'transpose', 'in': ['a'], "
      "'attrs': {'perm': [1,0]}}], 'target': [{'op': 'identity', 'in': ['a']}], "
      "'outputs': [{'source': '%0.0', 'target': '%0.0'}]}");
  EXPECT_EQ(verdict.judgement, rule::Judgement::refuted);
}

TEST(ProveEquation, TreatsOrderAsUninterpreted) {
  const std::string inputs =
      "{'id': 'r', 'inputs': {'a': {'template_shape': [2,4]}, 'b': {'template_shape': [2,4]}}, ";
  EXPECT_EQ(
      judge(inputs +
            "'source': [{'op': 'relu', 'in': ['a']}, {'op': 'relu', 'in': ['%0.0']}], 'target': [{'op': "
            "'relu', 'in': ['a']}], 'outputs': [{'source': '%1.0', 'target': '%0.0'}]}")
          .judgement,
      rule::Judgement::proven);
  EXPECT_EQ(judge(inputs +
                  "'source': [{'op': 'ewadd', 'in': ['a','b']}, {'op': 'relu', 'in': ['%0.0']}], 'target': "
                  "[{'op': 'relu', 'in': ['a']}, {'op': 'relu', 'in': ['b']}, {'op': 'ewadd', 'in': ['%0.0', "
                  "'%1.0']}], 'outputs': [{'source': '%1.0', 'target': '%2.0'}]}")
                .judgement,
            rule::Judgement::refuted);
}

TEST(ProveEquation, ProvesAnAverageIsAConvolutionWithOtherRounding) {
  const rule::Verdict verdict = judge(
      "{'id': 'r', 'inputs': {'x': {'template_shape': [2,4,5,5]}}, 'source': [{'op': 'pool_avg', 'in': "
      "['x'], "
      "'attrs': {'kernel': [3,3]}}], 'target': [{'op': 'const_pool', 'in': [], 'attrs': {'kernel': [3,3]}}, "
      "{'op': 'conv2d', 'in': ['x','%0.0'], 'attrs': {'kernel': [3,3]}}], "
      "'outputs': [{'source': '%0.0', 'target': '%1.0'}]}");
  EXPECT_EQ(verdict.judgement, rule::Judgement::proven);
  EXPECT_EQ(verdict.rounding, rule::Rounding::changes);
}

constexpr const char* kLocal =
    "{'id': 'r', 'ranks': [2,4], 'inputs': {'x': {'layout': 'local', 'global_shape': [8,8]}}, ";

TEST(ProveEquation, SplitsAllReduceAtAnySize) {
  const rule::Verdict verdict =
      judge(std::string(kLocal) +
            "'source': [{'op': 'all_reduce', 'in': ['x']}], 'target': [{'op': 'reduce_scatter', 'in': "
            "['x'], 'attrs': {'dim': 0}}, {'op': 'all_gather', 'in': ['%0.0'], 'attrs': {'dim': 0}}], "
            "'outputs': [{'source': '%0.0', 'target': '%1.0'}]}");
  EXPECT_EQ(verdict.judgement, rule::Judgement::proven);
  EXPECT_EQ(verdict.rounding, rule::Rounding::exact);
}

TEST(ProveEquation, RefutesReducingTwice) {
  const rule::Verdict verdict =
      judge(std::string(kLocal) +
            "'source': [{'op': 'all_reduce', 'in': ['x']}], 'target': [{'op': 'all_reduce', 'in': "
            "['x']}, {'op': 'all_reduce', 'in': ['%0.0']}], "
            "'outputs': [{'source': '%0.0', 'target': '%1.0'}]}");
  ASSERT_EQ(verdict.judgement, rule::Judgement::refuted);
  EXPECT_EQ(verdict.counterexamples[0].ranks, 2);
}

TEST(ProveEquation, ProvesThatAPositiveFactorKeepsOrder) {
  // True of numbers, but not of every ordered field, so the proof is only by sampling.
  const rule::Verdict verdict =
      judge(std::string(kLocal) +
            "'source': [{'op': 'scale', 'in': ['x'], 'attrs': {'factor': 0.5}}, {'op': 'relu', 'in': "
            "['%0.0']}], 'target': [{'op': 'relu', 'in': ['x']}, {'op': 'scale', 'in': ['%0.0'], "
            "'attrs': {'factor': 0.5}}], 'outputs': [{'source': '%1.0', 'target': '%1.0'}]}");
  EXPECT_EQ(verdict.judgement, rule::Judgement::rounded);
  EXPECT_LE(verdict.error_probability, 1e-3);
  EXPECT_FALSE(verdict.reason.empty());
}

TEST(ProveEquation, ReportsIllTypedRules) {
  const std::string inputs = "{'id': 'r', 'inputs': {'a': {'template_shape': [2,4]}}, ";
  const rule::Verdict source =
      judge(inputs +
            "'source': [{'op': 'split', 'in': ['a'], 'attrs': {'axis': 0}}], 'target': "
            "[{'op': 'relu', 'in': ['a']}], 'outputs': [{'source': '%0.0', 'target': '%0.0'}]}");
  EXPECT_EQ(source.judgement, rule::Judgement::ill_typed);
  EXPECT_EQ(source.reason, "source: split: no concat along axis 0 to cut at");
  const rule::Verdict target =
      judge(inputs +
            "'source': [{'op': 'relu', 'in': ['a']}], 'target': [{'op': 'conv2d', 'in': "
            "['a','a']}], 'outputs': [{'source': '%0.0', 'target': '%0.0'}]}");
  EXPECT_EQ(target.judgement, rule::Judgement::ill_typed);
  EXPECT_EQ(target.reason, "target: conv2d: operand 0 must have rank 4, found 2");
}

TEST(ProveEquation, IsDeterministic) {
  const Equation equation = rule_of(
      "{'id': 'r', 'inputs': {'a': {'template_shape': [2,4]}, 'b': {'template_shape': [4,4]}}, 'source': "
      "[{'op': "
      "'matmul', 'in': ['a','b']}], 'target': [{'op': 'ewadd', 'in': ['a','a']}], 'outputs': [{'source': "
      "'%0.0', "
      "'target': '%0.0'}]}");
  Prover prover;
  const std::string first = formats::write_verdict("r", prover.prove(equation), 0);
  EXPECT_EQ(formats::write_verdict("r", prover.prove(equation), 0), first);
  EXPECT_EQ(formats::write_verdict("r", prove(equation), 0), first);
}

// A sample of each corpus file, where installed, compared with the labels.
class Corpus : public testing::TestWithParam<const char*> {};

TEST_P(Corpus, AgreesWithTheLabels) {
  const std::filesystem::path folder = std::filesystem::path(WEFT_SOURCE_DIR) / "../shared/corpus/taso-rules";
  std::ifstream labels(folder / "labels.jsonl"), rules(folder / GetParam());
  if (!labels || !rules) GTEST_SKIP() << "the corpus of rules is not installed";
  std::map<std::string, std::string> classes;
  for (std::string line; std::getline(labels, line);) {
    const auto label = nlohmann::json::parse(line);
    classes[label["id"]] = label.value("class", "holds");
  }
  const std::map<std::string, std::vector<rule::Judgement>> accepted = {
      {"unconditional", {rule::Judgement::proven}},
      {"needs_shape_guard", {rule::Judgement::guarded}},
      {"shape_conditional", {rule::Judgement::guarded, rule::Judgement::refuted}},
      {"wrong", {rule::Judgement::refuted}},
      {"valid", {rule::Judgement::proven, rule::Judgement::guarded}},
      {"holds", {rule::Judgement::proven, rule::Judgement::guarded}}};
#ifdef NDEBUG
  constexpr int kEvery = 1;
#else
  constexpr int kEvery = 16;  // slow without optimization
#endif
  Prover prover({.shapes = kEvery == 1 ? 96 : 32, .max_order_runs = 64});
  std::stringstream text;
  text << rules.rdbuf();
  const std::string all = text.str();
  formats::RuleLines lines(all);
  int judged = 0;
  while (const auto line = lines.next()) {
    ASSERT_TRUE(line->equation.ok()) << line->equation.error().message;
    if (line->number % kEvery != 0) continue;
    const rule::Verdict verdict = prover.prove(*line->equation);
    const std::string& expected = classes.at(line->equation->id);
    // With fewer runs than the prover makes by default, its bound may be too large to call a rule
    // proven.
    if (kEvery != 1 && expected != "wrong" && verdict.judgement == rule::Judgement::undecided) continue;
    EXPECT_NE(std::ranges::find(accepted.at(expected), verdict.judgement), accepted.at(expected).end())
        << line->equation->id << " is " << expected << " but was said to be " << name(verdict.judgement)
        << ": " << print(*line->equation);
    ++judged;
  }
  EXPECT_GT(judged, 0);
}

INSTANTIATE_TEST_SUITE_P(Files, Corpus,
                         testing::Values("rules_taso.jsonl", "rules_tensat.jsonl", "rules_unity.jsonl",
                                         "rules_comm.jsonl", "wrong.jsonl"));

}  // namespace
}  // namespace weft::equation
