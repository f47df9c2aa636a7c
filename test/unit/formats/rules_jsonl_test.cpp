// Rules as JSON lines: what is read, what is rejected with which message, and the answers.
#include "weft/formats/rules_jsonl.h"

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "weft/rules/equation/prove_equation.h"

namespace weft::formats {
namespace {

constexpr const char* kGood =
    R"({"id": "T1", "inputs": {"i1": {"template_shape": [2, 4]}, "i4": {"template_shape": [4, 4]}}, )"
    R"("source": [{"op": "matmul", "in": ["i1", "i4"], "attrs": {"act": "none"}}, {"op": "relu", "in": ["%0.0"]}], )"
    R"("target": [{"op": "matmul", "in": ["i1", "i4"], "attrs": {"act": "relu"}}], )"
    R"("outputs": [{"source": "%1.0", "target": "%0.0"}]})";

std::string changed(std::string_view from, std::string_view to) {
  std::string text = kGood;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string refusal(const std::string& line) {
  const auto equation = read_rule(line);
  return equation.ok() ? "read" : equation.error().message;
}

TEST(RulesJsonl, ReadsARule) {
  const auto equation = read_rule(kGood);
  ASSERT_TRUE(equation.ok()) << equation.error().message;
  EXPECT_EQ(print(*equation), "relu(matmul(i1, i4)) = matmul{act=relu}(i1, i4)");
  EXPECT_FALSE(equation->distributed());
}

TEST(RulesJsonl, ReadsRulesOnAMesh) {
  const auto equation = read_rule(
      R"({"id": "C1", "inputs": {"i1": {"layout": "sharded:1", "global_shape": [8, 8]}}, "source": [{"op": )"
      R"("all_to_all", "in": ["i1"], "attrs": {"split": 0, "concat": 1}}, {"op": "scale", "in": ["%0.0"], "attrs": )"
      R"({"factor": "1/N"}}], "target": [{"op": "all_gather", "in": ["i1"], "attrs": {"dim": 1, "groups": )"
      R"([[0, 1], [2, 3]]}}], "outputs": [{"source": "%1.0", "target": "%0.0"}], "ranks": [4]})");
  ASSERT_TRUE(equation.ok()) << equation.error().message;
  EXPECT_EQ(print(*equation),
            "scale{factor=1/N}(all_to_all{split=0, concat=1}(i1)) = all_gather{dim=1, groups=[[0, 1], [2, "
            "3]]}(i1)");
  EXPECT_EQ(equation->inputs[0].holding, equation::Holding::sharded);
  EXPECT_EQ(equation->ranks, (std::vector<std::int32_t>{4}));
}

TEST(RulesJsonl, ReportsErrorsWithTheirLocation) {
  EXPECT_EQ(refusal("{"), "expected JSON, found an error at byte 2");
  EXPECT_EQ(refusal("[]"), "expected an object, found a list");
  EXPECT_EQ(refusal(changed("\"i1\", \"i4\"], \"attrs\": {\"act\": \"none\"}", "\"i1\", \"i9\"]")),
            "source[0]: no input is called 'i9'");
  EXPECT_EQ(refusal(changed("\"op\": \"relu\"", "\"op\": \"rleu\"")),
            "source[1]: no operation is called 'rleu'");
  EXPECT_EQ(refusal(changed("\"%0.0\"]", "\"%1.0\"]")), "operation 1 is used before it is made");
  EXPECT_EQ(refusal(changed("\"%0.0\"]", "\"%0.7\"]")), "operation 0 has no result 7: it has 1");
  EXPECT_EQ(refusal(changed("\"%0.0\"]", "\"%x\"]")),
            "source[1]: expected an input or a result such as %0.0, found '%x'");
  EXPECT_EQ(refusal(changed("[\"%0.0\"]", "[\"%0.0\", \"i1\"]")), "relu takes 1 operand, found 2");
  EXPECT_EQ(refusal(changed("[2, 4]", "[2, 4000000000000]")),
            "inputs.i1.template_shape[1]: expected 1 to 65536, found 4000000000000");
  EXPECT_EQ(refusal(changed("\"none\"", "\"tanh\"")),
            "source[0].attrs: expected act to be none or relu, found 'tanh'");
  EXPECT_EQ(refusal(changed("\"act\": \"none\"", "\"colour\": 1")),
            "source[0].attrs: expected no attribute 'colour'");
  EXPECT_EQ(
      refusal(changed("\"outputs\": [{\"source\": \"%1.0\", \"target\": \"%0.0\"}]", "\"outputs\": []")),
      "an equation needs at least one output");
  const auto slip = read_rule(changed("\"op\": \"relu\"", "\"op\": \"rleu\""));
  EXPECT_EQ(slip.error().hint, "did you mean 'relu'?");
}

TEST(RulesJsonl, EveryTruncationIsAnError) {
  const std::string whole = kGood;
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_FALSE(read_rule(std::string_view(whole).substr(0, length)).ok()) << length;
}

TEST(RulesJsonl, ContinuesAfterABadLine) {
  const std::string text = std::string(kGood) + "\n\nnot a rule\r\n" + kGood;
  RuleLines lines(text);
  const auto first = lines.next(), second = lines.next(), third = lines.next();
  ASSERT_TRUE(first && second && third);
  EXPECT_TRUE(first->equation.ok());
  EXPECT_EQ(second->number, 3u);
  EXPECT_FALSE(second->equation.ok());
  EXPECT_EQ(third->number, 4u);
  EXPECT_TRUE(third->equation.ok());
  EXPECT_FALSE(lines.next());
  EXPECT_EQ(write_bad_line(*second),
            R"({"id":null,"verdict":null,"line":3,"error":"expected JSON, found an error at byte 2"})");
}

TEST(RulesJsonl, WritesAVerdict) {
  const auto holds =
      nlohmann::json::parse(write_verdict("T1", equation::prove(*read_rule(kGood), {.shapes = 8}), 0.25));
  EXPECT_EQ(holds["verdict"], "proven");
  EXPECT_EQ(holds["guard"], nullptr);
  EXPECT_EQ(holds["counterexample"], nullptr);
  EXPECT_EQ(holds["seconds"], 0.25);
  EXPECT_EQ(holds["rounding"], "exact");
  const auto fails = nlohmann::json::parse(write_verdict(
      "T1", equation::prove(*read_rule(changed("\"act\": \"relu\"", "\"act\": \"none\"")), {.shapes = 8}),
      0));
  EXPECT_EQ(fails["verdict"], "refuted");
  EXPECT_EQ(fails["error_probability"], nullptr);
  EXPECT_EQ(fails["counterexample"]["inputs"]["i1"]["shape"], (std::vector<int>{1, 1}));
  EXPECT_NE(fails["counterexample"]["left"], fails["counterexample"]["right"]);
}

// A chain that doubles a size in every step must be rejected, not computed.
TEST(RulesJsonl, JudgesHostileRulesQuickly) {
  std::string chain;
  for (int k = 0; k < 60; ++k)
    chain += R"(, {"op": "replicate", "in": ["%)" + std::to_string(k) +
             R"(.0"], "attrs": {"dim": 0, "degree": 16}})";
  const std::string line =
      R"({"id": "h", "inputs": {"a": {"template_shape": [2]}}, "source": [{"op": "relu", "in": ["a"]})" +
      chain + R"(], "target": [{"op": "relu", "in": ["a"]}], "outputs": [{"source": "%60.0", "target": )" +
      R"("%0.0"}]})";
  const auto equation = read_rule(line);
  ASSERT_TRUE(equation.ok()) << equation.error().message;
  EXPECT_EQ(equation::prove(*equation, {.shapes = 8}).judgement, rule::Judgement::ill_typed);
}

}  // namespace
}  // namespace weft::formats
