// Rules that were written to fool the prover, and true ones that look like them.
#include <cstdlib>
#include <map>
#include <sstream>

#include <gtest/gtest.h>

#include "weft/base/file.h"
#include "weft/ops/operators.h"
#include "weft/rule/library.h"
#include "weft/rule/prove_rule.h"

namespace weft::rule {
namespace {

const std::string kAdversary = WEFT_SOURCE_DIR "/test/unit/rule/adversary/";

// The kind under which each rule stands in a file.
std::map<std::string, std::string> kinds_in(const std::string& path) {
  std::map<std::string, std::string> kinds;
  std::istringstream lines(read_file(path, 1 << 20).value());
  std::string kind;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# kind: ")) kind = line.substr(8);
    if (line.starts_with("rule ")) kinds[line.substr(5, line.find(' ', 5) - 5)] = kind;
  }
  return kinds;
}

std::string told(const Rule& rule, const Verdict& verdict) {
  return rule.name + ": " + std::string(name(verdict.judgement)) + " " + verdict.guard + " " +
         std::string(name(verdict.rounding)) + " " + verdict.reason;
}

TEST(Adversary, ProvesNothingFalse) {
  const std::string path = kAdversary + "false.rules";
  const auto rules = load_rules(path);
  ASSERT_TRUE(rules.ok()) << rules.error().message;
  EXPECT_GE(rules->size(), 70u);
  const auto kinds = kinds_in(path);
  for (const Rule& rule : *rules) {
    const Verdict verdict = prove(rule).verdict;
    if (std::getenv("WEFT_TELL") != nullptr) std::puts(told(rule, verdict).c_str());
    // What differs by rounding alone may say so.
    const bool by_rounding = kinds.at(rule.name) == "rounding" && verdict.judgement == Judgement::rounded &&
                             verdict.rounding != Rounding::exact && verdict.rounding_bound > 0;
    EXPECT_TRUE(by_rounding || !holds(verdict)) << told(rule, verdict);
    if (verdict.judgement == Judgement::refuted) EXPECT_EQ(verdict.counterexamples.size(), 1u) << rule.name;
  }
}

TEST(Adversary, ProvesWhatIsTrue) {
  const auto rules = load_rules(kAdversary + "true.rules");
  ASSERT_TRUE(rules.ok()) << rules.error().message;
  EXPECT_GE(rules->size(), 30u);
  for (const Rule& rule : *rules) {
    const Verdict verdict = prove(rule).verdict;
    if (std::getenv("WEFT_TELL") != nullptr) std::puts(told(rule, verdict).c_str());
    EXPECT_TRUE(verdict.judgement == Judgement::proven || verdict.judgement == Judgement::rounded)
        << told(rule, verdict);
    EXPECT_LE(verdict.error_probability, 1e-3) << rule.name;
  }
}

}  // namespace
}  // namespace weft::rule
