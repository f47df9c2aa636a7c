// Rules in JSON that were written to fool the prover, as for rules in text.
#include <gtest/gtest.h>

#include "weft/formats/rules_jsonl.h"
#include "weft/rules/equation/prove_equation.h"

namespace weft::formats {
namespace {

rule::Verdict judge(std::string_view line) {
  const auto equation = read_rule(line);
  EXPECT_TRUE(equation.ok()) << line << equation.error().message;
  return equation.ok() ? equation::prove(*equation) : rule::Verdict();
}

TEST(AdversaryEquations, RefutesRulesThatHoldForIntegersOnly) {
  // relu(x^2 - x) = x^2 - x is false between 0 and 1.
  const rule::Verdict verdict = judge(
      R"({"id":"a","inputs":{"x":{"template_shape":[2,2]}},"source":[{"op":"ewmul","in":["x","x"]},{"op":"sub","in":["%0.0","x"]},{"op":"relu","in":["%1.0"]}],"target":[{"op":"ewmul","in":["x","x"]},{"op":"sub","in":["%0.0","x"]}],"outputs":[{"source":"%2.0","target":"%1.0"}]})");
  EXPECT_EQ(verdict.judgement, rule::Judgement::refuted);
  ASSERT_EQ(verdict.counterexamples.size(), 1u);
  EXPECT_FALSE(verdict.counterexamples[0].inputs[0].values.empty());
}

TEST(AdversaryEquations, ProvesAnOrderLawUpToRounding) {
  const rule::Verdict verdict = judge(
      R"({"id":"b","inputs":{"x":{"template_shape":[2,2]}},"source":[{"op":"ewmul","in":["x","x"]},{"op":"relu","in":["%0.0"]}],"target":[{"op":"ewmul","in":["x","x"]}],"outputs":[{"source":"%1.0","target":"%0.0"}]})");
  EXPECT_EQ(verdict.judgement, rule::Judgement::rounded) << verdict.reason;
  EXPECT_LE(verdict.error_probability, 1e-3);
}

TEST(AdversaryEquations, DistinguishesTheFieldFromTheReals) {
  // 2^61 is 1 in the field.
  EXPECT_EQ(
      judge(
          R"({"id":"c","inputs":{"x":{"template_shape":[2,2]}},"source":[{"op":"scale","in":["x"],"attrs":{"factor":2305843009213693952}}],"target":[{"op":"identity","in":["x"]}],"outputs":[{"source":"%0.0","target":"%0.0"}]})")
          .judgement,
      rule::Judgement::refuted);
}

TEST(AdversaryEquations, TriesRanksThatAreNotPowersOfTwo) {
  // A shift by twelve is the identity on 2, 3 and 4 ranks.
  const rule::Verdict verdict = judge(
      R"({"id":"d","inputs":{"x":{"global_shape":[2,2],"layout":"local"}},"source":[{"op":"permute","in":["x"],"attrs":{"shift":12}}],"target":[{"op":"identity","in":["x"]}],"outputs":[{"source":"%0.0","target":"%0.0"}],"ranks":[2,4]})");
  EXPECT_FALSE(rule::holds(verdict)) << verdict.guard;
}

TEST(AdversaryEquations, TestsTies) {
  // relu(x) + relu(-x) is |x|; the square of a maximum is not the maximum of squares.
  const rule::Verdict verdict = judge(
      R"({"id":"e","inputs":{"x":{"template_shape":[1,1,3,3]}},"source":[{"op":"pool_max","in":["x"],"attrs":{"kernel":[2,2],"stride":[1,1],"pad":"valid"}},{"op":"ewmul","in":["%0.0","%0.0"]}],"target":[{"op":"ewmul","in":["x","x"]},{"op":"pool_max","in":["%0.0"],"attrs":{"kernel":[2,2],"stride":[1,1],"pad":"valid"}}],"outputs":[{"source":"%1.0","target":"%1.0"}]})");
  EXPECT_EQ(verdict.judgement, rule::Judgement::refuted);
}

}  // namespace
}  // namespace weft::formats
