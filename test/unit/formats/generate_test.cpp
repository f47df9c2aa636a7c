// The rule generator and its components. Operator sets are small, so that a case takes
// milliseconds; bench measures the presets.
#include "weft/rules/equation/generate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "weft/base/file.h"
#include "weft/formats/rules_jsonl.h"
#include "weft/rules/equation/canonical.h"
#include "weft/rules/equation/coverage.h"
#include "weft/rules/equation/enumerate.h"
#include "weft/rules/equation/follows.h"
#include "weft/rules/equation/rank.h"
#include "weft/rules/equation/term_rules.h"

namespace weft::equation {
namespace {

// A preset reduced to these operations, and at most `inputs` inputs of each of these kinds.
OperatorSet part_of(std::string_view name, const std::vector<Verb>& verbs, const std::string& letters,
                    std::int32_t inputs) {
  OperatorSet whole = *preset(name), part = whole;
  part.operations.clear();
  for (const OperationKind& kind : whole.operations)
    if (std::find(verbs.begin(), verbs.end(), kind.verb) != verbs.end()) part.operations.push_back(kind);
  part.inputs.clear();
  for (InputKind kind : whole.inputs) {
    if (letters.find(kind.letter) == std::string::npos) continue;
    kind.count = std::min(kind.count, inputs);
    part.inputs.push_back(kind);
  }
  return part;
}

GenerateOptions options_for(OperatorSet set, std::int32_t most_operators) {
  GenerateOptions options;
  options.operators = std::move(set);
  options.most_operators = most_operators;
  options.prove.shapes = 6;
  return options;
}

Generated generated(OperatorSet set, std::int32_t most_operators) {
  auto result = generate(options_for(std::move(set), most_operators));
  EXPECT_TRUE(result.ok()) << result.error().message;
  return std::move(*result);
}

std::vector<std::string> texts(const Generated& generated) {
  std::vector<std::string> texts;
  for (const GeneratedRule& rule : generated.rules) texts.push_back(print(rule.equation));
  return texts;
}

// i1, i2, .. of one shape; `lines` are "verb operand operand", where an operand is an input or %k.
Equation equation_of_text(std::string_view line) {
  auto equation = formats::read_rule(line);
  EXPECT_TRUE(equation.ok()) << equation.error().message;
  return std::move(*equation);
}

const std::string kInputs =
    R"("inputs": {"i1": {"template_shape": [2,4]}, "i2": {"template_shape": [2,4]}, "i3": {"template_shape": [2,4]}, "i20": {"template_shape": []}})";

Equation rule_of(const std::string& source, const std::string& target, const std::string& outputs) {
  return equation_of_text(R"({"id": "A", )" + kInputs + R"(, "source": [)" + source + R"(], "target": [)" +
                          target + R"(], "outputs": [)" + outputs + "]}");
}

const std::string kOnePointOne = R"({"source": "%1.0", "target": "%1.0"})";

Equation relu_of_sum(const char* first, const char* second) {
  return rule_of(std::string(R"({"op": "ewadd", "in": [")") + first + R"(", ")" + second +
                     R"("]}, {"op": "relu", "in": ["%0.0"]})",
                 R"({"op": "ewadd", "in": ["i1", "i3"]}, {"op": "relu", "in": ["%0.0"]})", kOnePointOne);
}

TEST(Canonical, IgnoresNamesAndOrder) {
  const auto one =
      rule_of(R"({"op": "smul", "in": ["i1", "i20"]}, {"op": "relu", "in": ["%0.0"]})",
              R"({"op": "relu", "in": ["i1"]}, {"op": "smul", "in": ["%0.0", "i20"]})", kOnePointOne);
  const auto renamed =
      rule_of(R"({"op": "relu", "in": ["i3"]}, {"op": "smul", "in": ["%0.0", "i20"]})",
              R"({"op": "smul", "in": ["i3", "i20"]}, {"op": "relu", "in": ["%0.0"]})", kOnePointOne);
  EXPECT_EQ(canonical_key(one), canonical_key(renamed));
  EXPECT_EQ(canonical_key(relu_of_sum("i1", "i2")), canonical_key(relu_of_sum("i2", "i1")));
  EXPECT_NE(canonical_key(relu_of_sum("i1", "i2")), canonical_key(relu_of_sum("i2", "i2")));
  EXPECT_NE(canonical_key(one), canonical_key(relu_of_sum("i1", "i2")));
}

TEST(Generate, FindsRulesOfSumsAndScalings) {
  const Generated found = generated(part_of("taso", {Verb::ewadd, Verb::smul, Verb::relu}, "ac", 2), 3);
  const auto all = texts(found);
  const std::set<std::string> rules(all.begin(), all.end());
  EXPECT_TRUE(rules.contains("relu(relu(a1)) = relu(a1)"));
  EXPECT_TRUE(rules.contains("ewadd(a1, a2) = ewadd(a2, a1)"));
  EXPECT_TRUE(rules.contains("ewadd(smul(a1, c1), smul(a2, c1)) = smul(ewadd(a1, a2), c1)"));
  EXPECT_TRUE(rules.contains("ewadd(smul(a1, c1), smul(a1, c2)) = smul(a1, ewadd(c1, c2))"));
  for (const GeneratedRule& rule : found.rules)
    EXPECT_EQ(rule.verdict.judgement, rule::Judgement::proven) << print(rule.equation);
  EXPECT_GT(found.counts.graphs, found.counts.evaluated);
  EXPECT_EQ(found.counts.passes, 1);
}

// relu(c x) = c relu(x) fails for negative c, and small tensors must not hide that.
TEST(Generate, IsNotFooledByChance) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    GenerateOptions options = options_for(part_of("taso", {Verb::smul, Verb::relu}, "ac", 1), 2);
    options.seed = seed;
    const auto found = generate(options);
    ASSERT_TRUE(found.ok());
    for (const std::string& text : texts(*found))
      EXPECT_EQ(text.find("relu(smul("), std::string::npos) << text;
  }
}

TEST(Generate, SplitsGiveRulesWithTwoOutputs) {
  OperatorSet set = part_of("taso", {Verb::concat, Verb::split, Verb::relu}, "a", 2);
  std::erase_if(set.operations, [](const OperationKind& kind) { return kind.details.axis == 1; });
  const auto all = texts(generated(set, 3));
  const std::set<std::string> rules(all.begin(), all.end());
  EXPECT_TRUE(rules.contains(
      "split{axis=0}(concat{axis=0}(a1, a2)).0 = a1, split{axis=0}(concat{axis=0}(a1, a2)).1 = a2"));
  EXPECT_TRUE(rules.contains("concat{axis=0}(relu(a1), relu(a2)) = relu(concat{axis=0}(a1, a2))"));
}

TEST(Generate, IsDeterministic) {
  const OperatorSet set = part_of("taso", {Verb::ewmul, Verb::transpose, Verb::relu}, "ab", 2);
  EXPECT_EQ(texts(generated(set, 2)), texts(generated(set, 2)));
}

// With little memory, the last level is enumerated several times. Rules are then found in another
// order, so others may be kept, but either set implies the other.
TEST(Generate, LimitsMemory) {
  const OperatorSet set = part_of("taso", {Verb::ewadd, Verb::relu}, "ab", 2);
  GenerateOptions options = options_for(set, 3);
  options.most_bytes = 0;
  const auto several = generate(options);
  ASSERT_TRUE(several.ok());
  EXPECT_GT(several->counts.passes, 1);
  const Generated once = generated(set, 3);
  const CoverageBy by_several(several->rules), by_once(once.rules);
  for (const GeneratedRule& rule : once.rules)
    EXPECT_NE(by_several.cover(rule.equation).how, Coverage::missing) << print(rule.equation);
  for (const GeneratedRule& rule : several->rules)
    EXPECT_NE(by_once.cover(rule.equation).how, Coverage::missing) << print(rule.equation);
}

TEST(Generate, FindsRulesOfCollectives) {
  const std::vector<Verb> verbs = {Verb::all_reduce, Verb::all_gather, Verb::reduce_scatter, Verb::shard};
  const Generated found = generated(part_of("collectives", verbs, "lpr", 1), 2);
  const auto all = texts(found);
  const std::set<std::string> rules(all.begin(), all.end());
  EXPECT_TRUE(rules.contains("all_gather{dim=0}(reduce_scatter{dim=0}(l1)) = all_reduce(l1)"));
  EXPECT_TRUE(rules.contains("shard{dim=0}(all_reduce(l1)) = reduce_scatter{dim=0}(l1)"));
  EXPECT_TRUE(rules.contains("all_gather{dim=0}(shard{dim=0}(r1)) = r1"));
  // Each rank would gather the blocks of all others and sum them once per rank.
  EXPECT_FALSE(rules.contains("reduce_scatter{dim=0}(all_gather{dim=0}(l1)) = l1"));
  // The most useful rules avoid communication altogether.
  const auto best = most_useful(found.rules, Theory(), 2);
  ASSERT_EQ(best.size(), 2u);
  EXPECT_GT(cost_of(found.rules[best[0]].equation, found.rules[best[0]].equation.source).sent, 0);
}

TEST(Generate, EnumeratesEveryGraphOnce) {
  struct Once final : TermSink {
    std::set<std::vector<std::uint32_t>> seen;
    bool twice = false;
    void take(std::uint16_t head, std::array<TermId, 2> operands, const Signature&) override {
      twice = !seen.insert({head, operands[0], operands[1]}).second || twice;
    }
    void progress(double) override {}
  };
  const OperatorSet set = part_of("taso", {Verb::ewadd, Verb::concat, Verb::split, Verb::relu}, "a", 2);
  Meaning meaning(set);
  const std::vector<TypeId> types = {meaning.type_of(set.inputs[0])};
  TermTable terms(set, types);
  Shelf shelf(terms, meaning);
  for (std::int32_t level = 1; level <= 3; ++level) {
    Once once;
    shelf.enumerate(level, false, once);
    EXPECT_FALSE(once.twice) << "level " << level;
    for (const auto& taken : once.seen) {
      Term term;
      std::array<TypeId, 2> result_types{};
      ASSERT_TRUE(build(terms, meaning, static_cast<std::uint16_t>(taken[0]), 0, {taken[1], taken[2]}, term,
                        result_types));
      EXPECT_EQ(term.reached, level);
      if (level == 3) continue;
      const TermId id = terms.add(term, result_types);
      for (std::int32_t k = 0; k < terms.operation(term.head).results; ++k)
        shelf.put(id + static_cast<TermId>(k));
    }
  }
}

TEST(Generate, RejectsInvalidOperatorSets) {
  EXPECT_EQ(preset("taco").error().message,
            "expected an operator set taso, unity or collectives, found taco");
  GenerateOptions options = options_for({}, 2);
  EXPECT_FALSE(generate(options).ok());
  options = options_for(*preset("taso"), 0);
  EXPECT_EQ(generate(options).error().message, "expected 1 to 6 operators in a graph, found 0");
  options = options_for(part_of("taso", {Verb::matmul}, "b", 2), 1);
  options.operators.operations[0].commutative = true;
  EXPECT_EQ(generate(options).error().message, "matmul is declared commutative but is not");
}

TEST(Follows, DerivesRulesFromSeveralOthers) {
  const auto distribute = rule_of(
      R"({"op": "smul", "in": ["i1", "i20"]}, {"op": "smul", "in": ["i2", "i20"]}, {"op": "ewadd", "in": ["%0.0", "%1.0"]})",
      R"({"op": "ewadd", "in": ["i1", "i2"]}, {"op": "smul", "in": ["%0.0", "i20"]})",
      R"({"source": "%2.0", "target": "%1.0"})");
  const auto twice = rule_of(R"({"op": "relu", "in": ["i1"]}, {"op": "relu", "in": ["%0.0"]})",
                             R"({"op": "relu", "in": ["i1"]})", R"({"source": "%1.0", "target": "%0.0"})");
  // c relu(relu(x)) + c y = c (y + relu(x))
  const auto asked = rule_of(
      R"({"op": "relu", "in": ["i1"]}, {"op": "relu", "in": ["%0.0"]}, {"op": "smul", "in": ["%1.0", "i20"]}, {"op": "smul", "in": ["i2", "i20"]}, {"op": "ewadd", "in": ["%2.0", "%3.0"]})",
      R"({"op": "relu", "in": ["i1"]}, {"op": "ewadd", "in": ["i2", "%0.0"]}, {"op": "smul", "in": ["%1.0", "i20"]})",
      R"({"source": "%4.0", "target": "%2.0"})");
  Theory theory;
  EXPECT_FALSE(theory.derive(asked).has_value());
  theory.add(distribute, true, true);
  EXPECT_FALSE(theory.derive(asked).has_value());
  theory.add(twice, true, true);
  EXPECT_EQ(theory.derive_minimal(asked, {}), (std::vector<std::size_t>{0, 1}));
  EXPECT_FALSE(theory.derive(relu_of_sum("i1", "i2")).has_value());
}

TEST(Rank, SmallerTargetsGain) {
  const auto twice = rule_of(R"({"op": "relu", "in": ["i1"]}, {"op": "relu", "in": ["%0.0"]})",
                             R"({"op": "relu", "in": ["i1"]})", R"({"source": "%1.0", "target": "%0.0"})");
  EXPECT_DOUBLE_EQ(gain(twice), 0.5);
  EXPECT_EQ(cost_of(twice, twice.source).launches, 2);
}

// No published rule over these operations may be missing, and no wrong one may be found.
TEST(Coverage, OfPublishedRules) {
  const std::filesystem::path corpus = std::filesystem::path(WEFT_SOURCE_DIR) / "../shared/corpus/taso-rules";
  if (!std::filesystem::exists(corpus)) GTEST_SKIP() << "the corpus of rules is not installed";
  const std::vector<Verb> verbs = {Verb::ewadd, Verb::ewmul, Verb::smul, Verb::relu};
  const Generated found = generated(part_of("taso", verbs, "ac", 3), 3);
  const CoverageBy coverage(found.rules);
  const auto has_only = [&](const Equation& equation) {
    for (const auto* side : {&equation.source, &equation.target})
      for (const Operation& operation : *side)
        if (std::find(verbs.begin(), verbs.end(), operation.verb) == verbs.end()) return false;
    return true;
  };
  int asked = 0;
  for (const bool wrong : {false, true}) {
    const auto text = read_file((corpus / (wrong ? "wrong.jsonl" : "rules_taso.jsonl")).string(), 1 << 24);
    ASSERT_TRUE(text.ok());
    formats::RuleLines lines(*text);
    while (const auto line = lines.next()) {
      ASSERT_TRUE(line->equation.ok());
      const Equation& equation = *line->equation;
      if (!has_only(equation)) continue;
      ++asked;
      EXPECT_EQ(coverage.cover(equation).how == Coverage::missing, wrong) << print(equation);
    }
  }
  EXPECT_GT(asked, 20);
}

}  // namespace
}  // namespace weft::equation
