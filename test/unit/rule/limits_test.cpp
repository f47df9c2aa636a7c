// Rules that hold only up to a number of rows, for constants as written, away from narrow regions,
// for single elements or within a range of magnitudes are not called proven without that
// restriction.
#include <cstdlib>
#include <map>
#include <regex>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "thorough.h"
#include "weft/base/file.h"
#include "weft/plan/ops/operators.h"
#include "weft/rules/rule/library.h"
#include "weft/rules/rule/prove_rule.h"

namespace weft::rule {
namespace {

const std::string kFolder = WEFT_SOURCE_DIR "/test/unit/rule/adversary/";

std::vector<Rule> rules_in(const std::string& file) {
  auto rules = load_rules(kFolder + file);
  EXPECT_TRUE(rules.ok()) << rules.error().message;
  return rules.ok() ? std::move(rules).value() : std::vector<Rule>();
}

std::string verdict_text(const Rule& rule, const Verdict& verdict) {
  return fmt::format("{}: {} {} {} {} {}", rule.name, name(verdict.judgement), verdict.guard,
                     name(verdict.rounding), print(verdict.range), verdict.reason);
}

// Proves a sample of the rules of a file, or all of them in thorough runs.
template <class Expect>
void judge(const std::vector<Rule>& rules, std::size_t one_in, const Expect& expect) {
  for (const Rule& rule : every(one_in, rules)) {
    const Verdict verdict = prove(rule).verdict;
    if (std::getenv("WEFT_TELL") != nullptr) std::puts(verdict_text(rule, verdict).c_str());
    expect(rule, verdict);
  }
}

// The largest upper bound in a guard; none if it has no bound.
std::optional<std::int64_t> largest_bound(const std::string& guard) {
  const std::regex bound("<= ([0-9]+)");
  std::optional<std::int64_t> largest;
  for (std::sregex_iterator at(guard.begin(), guard.end(), bound); at != std::sregex_iterator(); ++at)
    largest = std::max(largest.value_or(0), static_cast<std::int64_t>(std::stoll((*at)[1])));
  return largest;
}

// Per rule: the number of rows that a comment above it permits.
std::map<std::string, std::int64_t> rows_in(const std::string& file) {
  std::map<std::string, std::int64_t> rows;
  std::istringstream lines(read_file(kFolder + file, 1 << 20).value());
  std::int64_t most = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# rows ")) most = std::stoll(line.substr(7));
    if (!line.starts_with("rule ")) continue;
    if (most > 0) rows[line.substr(5, line.find(' ', 5) - 5)] = most;
    most = 0;
  }
  return rows;
}

struct Narrow {
  std::string_view dtype;
  std::int64_t rows;  // count of integers from 0 on that it represents exactly
};

constexpr std::array kNarrow = {Narrow{"f8e5m2", 8}, Narrow{"f8e4m3", 16}, Narrow{"bf16", 256},
                                Narrow{"f16", 2048}, Narrow{"f32", 16777216}};

// D stands for the dtype in which rows are counted.
constexpr std::array<std::string_view, 13> kCountedInD = {
    "given p[m], x[n, I]\n left y = gather(p, x, along=n)\n right y = gather(cast(cast(p, to=D), to=i32), x, "
    "along=n)",
    "given p[m], x[n, I]\n left y = gather(cast(cast(p, to=D), to=i32), x, along=n)\n right y = gather(p, x, "
    "along=n)",
    "given p[m], x[n, I]\n left y = gather(p, x, along=n)\n"
    "right y = gather(cast(cast(cast(p, to=f64), to=D), to=i32), x, along=n)",
    "given x[B, v], label[B]\n left y = cross-entropy(x, label, over=v)\n"
    "right y = cross-entropy(x, cast(cast(label, to=D), to=i32), over=v)",
    "given x[B, v], label[B]\n left y = cross-entropy(x, cast(cast(label, to=D), to=i32), over=v)\n"
    "right y = cross-entropy(x, label, over=v)",
    "given x[B, E], w[v, E], label[B]\n left y = linear-cross-entropy(x, w, label, over=v, inner=[E])\n"
    "right y = linear-cross-entropy(x, w, cast(cast(label, to=D), to=i32), over=v, inner=[E])",
    "given p[m], x[n]\n left y = select(equal(p, position(along=n, size=size(x, n))), x, sub(x, x))\n"
    "right y = select(equal(cast(cast(p, to=D), to=i32), position(along=n, size=size(x, n))), x, sub(x, x))",
    "given p[m], x[n]\n left y = select(equal(p, position(along=n, size=size(x, n))), x, sub(x, x))\n"
    "right y = select(equal(cast(p, to=D), cast(position(along=n, size=size(x, n)), to=D)), x, sub(x, x))",
    "given x[n]\n left y = mul(x, cast(position(along=n, size=size(x, n)), to=f64))\n"
    "right y = mul(x, cast(cast(position(along=n, size=size(x, n)), to=D), to=f64))\n when same_dtype(x, y)",
    "given x[s, t]\n"
    "left y = select(less-equal(position(along=t, size=size(x, t)), position(along=s, size=size(x, s))), x, "
    "sub(x, x))\n"
    "right y = select(less-equal(cast(position(along=t, size=size(x, t)), to=D), cast(position(along=s, "
    "size=size(x, s)), "
    "to=D)), x, sub(x, x))",
    "given p[m], x[n, I]\n left y = gather(add(p, constant(value=1, dtype=i32)), x, along=n)\n"
    "right y = gather(cast(add(cast(p, to=D), constant(value=1, dtype=D)), to=i32), x, along=n)",
    "given p[m], x[n, I]\n left y = gather(p, x, along=n, begin=1)\n"
    "right y = gather(cast(cast(p, to=D), to=i32), x, along=n, begin=1)",
    "given x[n], w[n]\n left v, p = top-k(x, over=n, into=k, count=2)\n y = gather(p, w, along=n)\n"
    "right v, p = top-k(x, over=n, into=k, count=2)\n y = gather(cast(cast(p, to=D), to=i32), w, along=n)"};

std::vector<Rule> counted_in(const Narrow& narrow) {
  std::vector<Rule> rules;
  for (std::size_t k = 0; k < kCountedInD.size(); ++k) {
    const std::string body =
        std::regex_replace(std::string(kCountedInD[k]), std::regex("\\bD\\b"), std::string(narrow.dtype));
    auto read = parse_rules(fmt::format("rule counted_in_{}_{} explore\n {}\n", narrow.dtype, k, body),
                            "rows.rules", ops::all());
    EXPECT_TRUE(read.ok()) << read.error().message << "\n" << body;
    if (read.ok()) rules.push_back(std::move(read->front()));
  }
  return rules;
}

TEST(Rows, AreLimitedByTheCountingDtype) {
  std::size_t guarded = 0, all = 0;
  for (const Narrow& narrow : every(2, kNarrow))
    judge(counted_in(narrow), kCountedInD.size(), [&](const Rule& rule, const Verdict& verdict) {
      ++all;
      if (!holds(verdict)) return;
      const auto bound = largest_bound(verdict.guard);
      ASSERT_TRUE(bound) << verdict_text(rule, verdict);
      EXPECT_LE(*bound, narrow.rows) << verdict_text(rule, verdict);
      ++guarded;
    });
  EXPECT_GT(guarded, all / 3);  // a bound is more useful than a rejection
}

TEST(Rows, AreUnlimitedIfBothSidesCountAlike) {
  const auto rules = parse_rules(R"(
rule doubled_past_a_narrow_gather explore
  given p[m], x[n, I]
  left  y = gather(cast(cast(p, to=bf16), to=i32), add(x, x), along=n)
  right r = gather(cast(cast(p, to=bf16), to=i32), x, along=n)
        y = add(r, r)

rule counted_in_f64 explore
  given p[m], x[n, I]
  left  y = gather(cast(cast(p, to=f64), to=i32), x, along=n)
  right y = gather(p, x, along=n)

rule mask_of_a_bounded_size explore
  given x[n]
  left  y = select(less(position(along=n, size=size(x, n)), constant(value=3000, dtype=i32)), x, sub(x, x))
  right y = x
  when  size(x, n) <= 3000
)",
                                 "a.rules", ops::all());
  ASSERT_TRUE(rules.ok()) << rules.error().message;
  for (const Rule& rule : *rules) {
    const Verdict verdict = prove(rule).verdict;
    EXPECT_TRUE(holds(verdict)) << verdict_text(rule, verdict);
    EXPECT_FALSE(largest_bound(verdict.guard)) << verdict_text(rule, verdict);
  }
}

TEST(Constants, AreRoundedToTheirDtype) {
  judge(rules_in("constants.rules"), 4, [](const Rule& rule, const Verdict& verdict) {
    EXPECT_NE(verdict.judgement, Judgement::proven) << verdict_text(rule, verdict);
    if (holds(verdict)) EXPECT_NE(verdict.rounding, Rounding::exact) << verdict_text(rule, verdict);
  });
  const auto alike = parse_rules(
      "rule alike explore\n given x[I]\n left y = mul(x, constant(value=2.50000001, dtype=f32))\n"
      "right y = mul(x, constant(value=2.5, dtype=f32))\n",
      "a.rules", ops::all());
  EXPECT_EQ(prove(alike->front()).verdict.judgement, Judgement::proven);
}

TEST(Narrow, RegionsAreFound) {
  judge(rules_in("narrow.rules"), 3, [](const Rule& rule, const Verdict& verdict) {
    EXPECT_FALSE(holds(verdict)) << verdict_text(rule, verdict);
  });
}

TEST(Infinities, AreNotNumbers) {
  judge(rules_in("infinite.rules"), 3, [](const Rule& rule, const Verdict& verdict) {
    EXPECT_FALSE(holds(verdict)) << verdict_text(rule, verdict);
  });
}

TEST(Untried, IsNotProven) {
  const auto rows = rows_in("untried.rules");
  judge(rules_in("untried.rules"), 5, [&](const Rule& rule, const Verdict& verdict) {
    if (!holds(verdict)) return;
    ASSERT_TRUE(rows.contains(rule.name)) << verdict_text(rule, verdict);
    const auto bound = largest_bound(verdict.guard);
    ASSERT_TRUE(bound) << verdict_text(rule, verdict);
    EXPECT_LE(*bound, rows.at(rule.name)) << verdict_text(rule, verdict);
  });
}

TEST(Range, IsReported) {
  judge(rules_in("range.rules"), 7, [](const Rule& rule, const Verdict& verdict) {
    EXPECT_TRUE(!holds(verdict) || !verdict.range.is_all() || verdict.range.finite_only)
        << verdict_text(rule, verdict);
  });
  const auto found = parse_rules(
      "rule root_of_a_square explore\n given x[I]\n left y = sqrt(mul(x, x))\n right y = abs(x)\n", "a.rules",
      ops::all());
  const Verdict verdict = prove(found->front()).verdict;
  EXPECT_TRUE(holds(verdict));
  EXPECT_NEAR(verdict.range.most, 1.8446743e19, 0.05e19);
  EXPECT_GT(verdict.range.least, 1e-20);
  EXPECT_LT(verdict.range.least, 2e-19);
}

// Operations that only move numbers, without rounding, are exact in all of f32.
TEST(Range, IsAllOfF32IfNothingOverflows) {
  for (const Rule& rule : shipped_rules())
    if (rule.name == "relu_twice" || rule.name == "negate_twice") {
      const Verdict verdict = prove(rule).verdict;
      EXPECT_TRUE(verdict.range.is_all() && !verdict.range.finite_only) << verdict_text(rule, verdict);
      EXPECT_EQ(verdict.rounding, Rounding::exact);
    }
}

// The shipped rules are correct: they need no guard beyond their own, and no bound on rows.
TEST(ShippedRules, KeepTheirVerdicts) {
  judge(shipped_rules(), 24, [](const Rule& rule, const Verdict& verdict) {
    EXPECT_TRUE(holds_everywhere(verdict)) << verdict_text(rule, verdict);
  });
}

}  // namespace
}  // namespace weft::rule
