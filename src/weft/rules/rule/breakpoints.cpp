#include "weft/rules/rule/breakpoints.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "weft/plan/ops/operators.h"
#include "weft/rules/rule/evaluate_number.h"

namespace weft::rule {
namespace {

constexpr std::int64_t kLargestBreakpoint = 4096;
constexpr std::size_t kMostBreakpoints = 96;
// Sizes beyond the small ones that are always tried, around powers of two.
constexpr std::array<std::int64_t, 20> kLargerSizes = {6,  7,  8,  9,  10, 11, 12, 13, 15,  16,
                                                       17, 31, 32, 33, 63, 64, 65, 96, 100, 128};

template <class Visit>
void visit_numbers(const Number& number, const Visit& visit) {
  visit(number);
  for (const Number& part : number.parts) visit_numbers(part, visit);
}

template <class Visit>
void visit_terms(const Rule& rule, const Visit& visit) {
  for (const Side* side : {&rule.left, &rule.right})
    for (const PatternNode& node : side->nodes)
      for (const AttributeTerm& term : node.attributes) visit(term);
}

bool speaks_of_sizes(const Number& number) {
  bool found = false;
  visit_numbers(number, [&](const Number& part) {
    found |= part.kind == Number::Kind::size || part.kind == Number::Kind::elements ||
             part.kind == Number::Kind::ranks;
  });
  return found;
}

// The value of arithmetic on literals only.
std::optional<std::int64_t> literal_value(const Number& number) {
  if (number.kind == Number::Kind::literal) return number.literal;
  if (number.parts.size() != 2) return std::nullopt;
  const auto a = literal_value(number.parts[0]), b = literal_value(number.parts[1]);
  return a && b ? combine(number.kind, *a, *b) : std::nullopt;
}

bool is_literal_number(const Number& number, std::int64_t value) {
  return number.kind == Number::Kind::literal && number.literal == value;
}

bool is_multiple(const Number& number, const Number& factor) {
  return number.kind == Number::Kind::multiply && (number.parts[0] == factor || number.parts[1] == factor);
}

// Whether a condition states that `divisor` divides `whole`.
bool states_divisibility(const Condition& condition, const Number& divisor, const Number& whole) {
  switch (condition.kind) {
    case Condition::Kind::divides: return condition.left == divisor && condition.right == whole;
    case Condition::Kind::even: return is_literal_number(divisor, 2) && condition.left == whole;
    case Condition::Kind::odd:
      return is_literal_number(divisor, 2) &&
             (whole.kind == Number::Kind::subtract || whole.kind == Number::Kind::add) &&
             whole.parts[0] == condition.left && is_literal_number(whole.parts[1], 1);
    case Condition::Kind::equal:
      return (condition.left == whole && is_multiple(condition.right, divisor)) ||
             (condition.right == whole && is_multiple(condition.left, divisor));
    default: return false;
  }
}

}  // namespace

Breakpoints::Breakpoints(const Rule& rule) {
  std::vector<std::int64_t> literals;
  const auto keep = [](std::vector<std::int64_t>& into, std::int64_t value) {
    if (into.size() < kMostBreakpoints && std::abs(value) <= kLargestBreakpoint &&
        std::ranges::find(into, value) == into.end())
      into.push_back(value);
  };
  const auto literals_in = [&](const Number& number) {
    visit_numbers(number, [&](const Number& part) {
      if (const auto value = literal_value(part)) keep(literals, *value);
    });
  };
  visit_terms(rule, [&](const AttributeTerm& term) {
    if (term.kind == AttributeTerm::Kind::number) literals_in(term.number);
    for (const Number& size : term.sizes) literals_in(size);
    if (term.kind != AttributeTerm::Kind::real) return;
    reals_.push_back(term.real);
    if (std::abs(term.real) <= kLargestBreakpoint) keep(literals, std::llround(term.real));
  });
  for (const Condition& condition : rule.when) {
    literals_in(condition.left);
    literals_in(condition.right);
  }
  for (const std::int64_t each : literals)
    for (const std::int64_t near : {each, each + 1, each - 1, 2 * each, 2 * each + 1}) keep(named_, near);
  for (const std::int64_t a : literals)
    for (const std::int64_t b : literals)
      for (const std::int64_t both : {a + b, a * b, a * b + 1, a * b - 1}) keep(named_, both);
}

// The rule's own numbers come first and are drawn more often than combinations of two.
std::int64_t Breakpoints::any_named(Random& random) const {
  return named_[random.below(1 + random.below(named_.size()))];
}

std::int64_t Breakpoints::size(Random& random) const {
  if (!named_.empty() && random.below(2) == 0)
    if (const std::int64_t found = any_named(random); found >= 1) return found;
  return kLargerSizes[random.below(kLargerSizes.size())];
}

std::int64_t Breakpoints::integer(Random& random) const {
  if (!named_.empty() && random.below(2) == 0) return any_named(random);
  if (random.below(3) == 0) return random.between(-4, 40);
  return kLargerSizes[random.below(kLargerSizes.size())];
}

double Breakpoints::real(Random& random) const {
  if (!reals_.empty() && random.below(2) == 0) {
    const double found = reals_[random.below(reals_.size())];
    constexpr std::array kBeside = {0.0, 1.0, -1.0, 0.5};
    return found + kBeside[random.below(kBeside.size())];
  }
  constexpr std::array kScales = {1e-3, 1.0, 20.0};
  return (2 * random.uniform() - 1) * kScales[random.below(kScales.size())];
}

std::vector<std::int64_t> largest_sizes(const Rule& rule) {
  constexpr std::array<std::int64_t, 4> kWholeNumbers = {8, 16, 256, 2048};
  std::vector<std::int64_t> sizes;
  const Breakpoints breakpoints(rule);
  for (const std::int64_t named : breakpoints.named())
    if (named >= 2) sizes.push_back(named);
  const auto casts = [](const PatternNode& node) { return node.op == &ops::cast(); };
  if (std::ranges::any_of(rule.left.nodes, casts) || std::ranges::any_of(rule.right.nodes, casts))
    sizes.insert(sizes.end(), kWholeNumbers.begin(), kWholeNumbers.end());
  std::ranges::sort(sizes);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

std::int64_t number_never_drawn(const Rule& rule) {
  std::int64_t largest = 0;
  const auto check = [&](const Number& number) {
    visit_numbers(number, [&](const Number& part) {
      if (const auto value = literal_value(part); value && std::abs(*value) > kLargestBreakpoint)
        largest = std::max(largest, std::abs(*value));
    });
  };
  visit_terms(rule, [&](const AttributeTerm& term) {
    if (term.kind == AttributeTerm::Kind::number) check(term.number);
    for (const Number& size : term.sizes) check(size);
  });
  return largest;
}

std::vector<const Number*> quotients_of(const Rule& rule) {
  std::vector<const Number*> found;
  const auto add = [&](const Number& number) {
    visit_numbers(number, [&](const Number& part) {
      if (part.kind == Number::Kind::divide && !literal_value(part) && literal_value(part.parts[1]))
        found.push_back(&part);
    });
  };
  visit_terms(rule, [&](const AttributeTerm& term) {
    if (term.kind == AttributeTerm::Kind::number) add(term.number);
    for (const Number& size : term.sizes) add(size);
  });
  return found;
}

std::vector<Condition> missing_divisions(const Rule& rule) {
  std::vector<Condition> missing;
  const auto check = [&](const Number& number) {
    visit_numbers(number, [&](const Number& part) {
      if (part.kind != Number::Kind::divide && part.kind != Number::Kind::remainder) return;
      if (!speaks_of_sizes(part) || is_literal_number(part.parts[1], 1)) return;
      const Number &whole = part.parts[0], &divisor = part.parts[1];
      const auto said = [&](const Condition& condition) {
        return states_divisibility(condition, divisor, whole);
      };
      if (std::ranges::any_of(rule.when, said) || std::ranges::any_of(missing, said)) return;
      Condition condition;
      condition.kind = Condition::Kind::divides;
      condition.left = divisor;
      condition.right = whole;
      missing.push_back(condition);
    });
  };
  visit_terms(rule, [&](const AttributeTerm& term) {
    if (term.kind == AttributeTerm::Kind::number) check(term.number);
    for (const Number& size : term.sizes) check(size);
  });
  return missing;
}

}  // namespace weft::rule
