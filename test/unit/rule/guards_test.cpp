// The table of guards: each row determines parsing, printing and documentation of its word.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "weft/base/file.h"
#include "weft/plan/ops/operators.h"
#include "weft/rules/rule/guards.h"

namespace weft::rule {
namespace {

using Argument = GuardWord::Argument;

// Two arguments of each kind, all different.
std::string argument(Argument kind, std::size_t k) {
  switch (kind) {
    case Argument::number: return k == 0 ? "ranks(a)" : "size(y, m)";
    case Argument::value: return k == 0 ? "x" : "y";
    default: return k == 0 ? "n" : "m";
  }
}

std::string written(const GuardWord& word) {
  const std::string first = argument(word.arguments[0], 0), second = argument(word.arguments[1], 1);
  if (word.is_sign()) return fmt::format("{} {} {}", first, word.name, second);
  return word.argument_count() == 1 ? fmt::format("{}({})", word.name, first)
                                    : fmt::format("{}({}, {})", word.name, first, second);
}

Result<std::vector<Rule>> rule_with(std::string_view guard) {
  return parse_rules(fmt::format("rule r explore\n given x[n, I] sliced(n) on a, y[m, I]\n"
                                 " left z = mul(relu(x), y)\n right z = mul(y, relu(x))\n when {}\n",
                                 guard),
                     "a.rules", ops::all());
}

TEST(Guards, RowsAreInOrderOfKind) {
  for (std::size_t k = 0; k < guard_words().size(); ++k) {
    const GuardWord& word = guard_words()[k];
    EXPECT_EQ(static_cast<std::size_t>(word.kind), k) << word.name;
    EXPECT_EQ(&guard_word(word.kind), &word);
    EXPECT_EQ(find_guard_word(word.name), word.is_sign() ? nullptr : &word) << word.name;
    EXPECT_NE(word.compare == nullptr, word.check == nullptr) << word.name;
    EXPECT_EQ(word.compare != nullptr, word.arguments[0] == Argument::number) << word.name;
    EXPECT_NE(word.usage.find(word.name), word.usage.npos) << word.name;
  }
  EXPECT_EQ(find_guard_word("size"), nullptr);
}

TEST(Guards, ParsesAndPrintsEachWord) {
  for (const GuardWord& word : guard_words()) {
    const auto rules = rule_with(written(word));
    ASSERT_TRUE(rules.ok()) << word.name << ": " << rules.error().message;
    ASSERT_EQ(rules->front().when.size(), 1u) << word.name;
    EXPECT_EQ(rules->front().when[0].kind, word.kind) << word.name;
    EXPECT_EQ(print(rules->front().when, rules->front()), written(word));
  }
}

TEST(Guards, RejectsTooFewArguments) {
  for (const GuardWord& word : guard_words()) {
    if (word.is_sign()) continue;
    const auto rules = rule_with(fmt::format("{}()", word.name));
    ASSERT_FALSE(rules.ok()) << word.name;
    EXPECT_NE(rules.error().message.find(fmt::format("{} takes", word.name)), std::string::npos)
        << rules.error().message;
    EXPECT_EQ(rules.error().hint, fmt::format("{}: {}", word.usage, word.meaning));
  }
}

TEST(Guards, AStrictComparisonIsIrreflexive) {
  for (const GuardWord& word : guard_words()) {
    if (word.argument_count() == 1 || word.arguments[0] != word.arguments[1]) continue;
    std::string text = written(word);
    const std::string second = argument(word.arguments[1], 1);
    text.replace(text.rfind(second), second.size(), argument(word.arguments[0], 0));
    EXPECT_NE(rule_with(text).ok(), word.is_strict) << text;
  }
}

TEST(Guards, AnUnknownWordListsTheKnownOnes) {
  const auto rules = rule_with("frobnicates(x)");
  ASSERT_FALSE(rules.ok());
  EXPECT_EQ(rules.error().hint,
            "guards are divides, even, odd, same_dtype, real, replicated, whole, distinct");
}

TEST(Guards, EachWordIsDocumented) {
  const auto document = read_file(WEFT_SOURCE_DIR "/docs/rules.md", 1 << 20);
  ASSERT_TRUE(document.ok());
  for (const GuardWord& word : guard_words())
    EXPECT_NE(document->find(fmt::format("| `{}` | {} |", word.usage, word.meaning)), std::string::npos)
        << word.usage;
}

}  // namespace
}  // namespace weft::rule
