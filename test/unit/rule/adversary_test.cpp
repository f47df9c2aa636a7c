// Rules that were written to fool the prover, and true rules that resemble them.
#include <cstdlib>
#include <map>
#include <sstream>

#include <gtest/gtest.h>

#include "thorough.h"
#include "weft/base/file.h"
#include "weft/plan/ops/operators.h"
#include "weft/rules/rule/library.h"
#include "weft/rules/rule/prove_rule.h"

namespace weft::rule {
namespace {

const std::string kAdversary = WEFT_SOURCE_DIR "/test/unit/rule/adversary/";

struct Remark {
  std::string kind;        // the heading above the rule
  std::string true_where;  // a guard that would make it true
};

std::map<std::string, Remark> remarks_in(const std::string& path) {
  std::map<std::string, Remark> remarks;
  std::istringstream lines(read_file(path, 1 << 20).value());
  Remark remark;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# kind: ")) remark.kind = line.substr(8);
    if (line.starts_with("# true where ")) remark.true_where = line.substr(13);
    if (!line.starts_with("rule ")) continue;
    remarks[line.substr(5, line.find(' ', 5) - 5)] = remark;
    remark.true_where.clear();
  }
  return remarks;
}

std::string case_of(const Verdict& verdict) {
  std::string text;
  for (const Counterexample& found : verdict.counterexamples) {
    if (found.ranks > 0) text += "on " + std::to_string(found.ranks) + " ranks ";
    for (const Counterexample::Input& input : found.inputs) {
      text += input.name + "[";
      for (const std::int64_t size : input.sizes) text += std::to_string(size) + " ";
      text += "] = ";
      for (std::size_t k = 0; k < std::min<std::size_t>(8, input.values.size()); ++k)
        text += std::to_string(input.values[k]) + " ";
    }
    text += "left " + found.left + " right " + found.right;
  }
  return text;
}

std::string describe_verdict(const Rule& rule, const Verdict& verdict) {
  return rule.name + ": " + std::string(name(verdict.judgement)) + " " + verdict.guard + " " +
         std::string(name(verdict.rounding)) + " " + verdict.reason + " " + case_of(verdict);
}

TEST(Adversary, ProvesNothingFalse) {
  const std::string path = kAdversary + "false.rules";
  const auto rules = load_rules(path);
  ASSERT_TRUE(rules.ok()) << rules.error().message;
  EXPECT_GE(rules->size(), 70u);
  const auto remarks = remarks_in(path);
  for (const Rule& rule : every(6, *rules)) {
    const Verdict verdict = prove(rule).verdict;
    if (std::getenv("WEFT_TELL") != nullptr) std::puts(describe_verdict(rule, verdict).c_str());
    // Rules that differ only by rounding may be proven with that remark.
    const Remark& remark = remarks.at(rule.name);
    const bool mended = verdict.judgement == Judgement::guarded && verdict.guard == remark.true_where;
    const bool by_rounding = remark.kind == "rounding" && verdict.judgement == Judgement::rounded &&
                             verdict.rounding != Rounding::exact && verdict.rounding_bound > 0;
    EXPECT_TRUE(by_rounding || mended || !holds(verdict)) << describe_verdict(rule, verdict);
    if (verdict.judgement == Judgement::refuted) EXPECT_EQ(verdict.counterexamples.size(), 1u) << rule.name;
  }
}

TEST(Adversary, ProvesTrueRules) {
  const auto rules = load_rules(kAdversary + "true.rules");
  ASSERT_TRUE(rules.ok()) << rules.error().message;
  EXPECT_GE(rules->size(), 30u);
  for (const Rule& rule : every(4, *rules)) {
    const Verdict verdict = prove(rule).verdict;
    if (std::getenv("WEFT_TELL") != nullptr) std::puts(describe_verdict(rule, verdict).c_str());
    EXPECT_TRUE(verdict.judgement == Judgement::proven || verdict.judgement == Judgement::rounded)
        << describe_verdict(rule, verdict);
    EXPECT_LE(verdict.error_probability, 1e-3) << rule.name;
  }
}

}  // namespace
}  // namespace weft::rule
