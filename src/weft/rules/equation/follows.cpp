#include "weft/rules/equation/follows.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "weft/rules/equation/canonical.h"
#include "weft/rules/equation/equal_terms.h"

namespace weft::equation {
namespace {

using ClassId = EqualTerms::ClassId;
constexpr ClassId kUnbound = ~ClassId{0};

// One side of an equation, written out as a tree: children before parents.
struct Pattern {
  struct Part {
    std::int32_t input = -1;  // a variable; if -1:
    std::uint32_t word = 0;   // an operation on earlier parts
    std::int32_t result = 0;
    std::vector<std::size_t> operands;
  };
  std::vector<Part> parts;

  std::size_t root() const { return parts.size() - 1; }
};

std::size_t write(Pattern& pattern, std::span<const Operation> side, Operand operand, Vocabulary& words) {
  Pattern::Part part;
  if (operand.operation < 0) {
    part.input = operand.result;
  } else {
    const Operation& operation = side[static_cast<std::size_t>(operand.operation)];
    if (operation.verb == Verb::identity) return write(pattern, side, operation.operands[0], words);
    part.word = words.find(operation);
    part.result = operand.result;
    for (const Operand inner : operation.operands)
      part.operands.push_back(write(pattern, side, inner, words));
  }
  pattern.parts.push_back(std::move(part));
  return pattern.root();
}

// A rewrite from one pattern to another, for one output.
struct Rewriting {
  std::size_t equation = 0;
  Pattern from, to;
  std::vector<bool> replicated;  // inputs that match only values replicated on all ranks
};

bool binds(const Pattern& from, const Pattern& to) {
  const auto has = [&](std::int32_t input) {
    return std::any_of(from.parts.begin(), from.parts.end(),
                       [&](const Pattern::Part& part) { return part.input == input; });
  };
  return std::all_of(to.parts.begin(), to.parts.end(),
                     [&](const Pattern::Part& part) { return part.input < 0 || has(part.input); });
}

}  // namespace

struct Theory::Known {
  Vocabulary words;
  std::vector<std::vector<Rewriting>> by_word;
  std::size_t equations = 0;
  std::vector<std::size_t> sizes;

  void add(Rewriting rewriting) {
    const Pattern::Part& root = rewriting.from.parts.back();
    if (root.input >= 0 || !binds(rewriting.from, rewriting.to)) return;
    if (by_word.size() <= root.word) by_word.resize(root.word + 1);
    by_word[root.word].push_back(std::move(rewriting));
  }
};

namespace {

// The search for a derivation.
class ConsequenceSearch {
 public:
  ConsequenceSearch(const Vocabulary& words, const Equation& equation, Theory::Limits limits)
      : graph_(words, equation.distributed() ? equation.ranks.front() : 1, limits.nodes) {
    const std::int32_t ranks = equation.distributed() ? equation.ranks.front() : 1;
    for (const EquationInput& input : equation.inputs) {
      inputs_.push_back(
          graph_.add_input(shape_of(local_sizes(input, ranks)),
                           input.holding == Holding::replicated || input.holding == Holding::single));
    }
  }

  std::optional<ClassId> add(const Pattern& pattern) { return add(pattern, inputs_); }
  bool equal(ClassId a, ClassId b) const { return graph_.equal(a, b); }

  // One round: finds all matches of the equations, then applies them. Returns whether anything
  // changed.
  template <class Allowed>
  bool round(const std::vector<std::vector<Rewriting>>& by_word, Allowed&& allowed, std::vector<bool>& used) {
    struct Match {
      const Rewriting* rewriting;
      ClassId at;
      std::vector<ClassId> bindings;
    };
    graph_.close();
    std::vector<Match> matches;
    for (ClassId id = 0; id < graph_.classes() && matches.size() < kMostMatches; ++id) {
      if (graph_.find(id) != id) continue;
      for (const EqualTerms::Node& node : graph_.nodes(id)) {
        if (node.word >= by_word.size()) continue;
        for (const Rewriting& rewriting : by_word[node.word]) {
          if (!allowed(rewriting.equation) || rewriting.from.parts.back().result != node.result) continue;
          bindings_.assign(rewriting.replicated.size(), kUnbound);
          rewriting_ = &rewriting;
          match_operands(rewriting.from.parts.back(), node, [&] {
            matches.push_back({&rewriting, id, bindings_});
          });
        }
      }
    }
    bool changed = false;
    for (const Match& match : matches) {
      const auto made = add(match.rewriting->to, match.bindings);
      if (!made || graph_.equal(*made, match.at)) continue;
      graph_.merge(match.at, *made);
      if (!graph_.equal(*made, match.at)) continue;
      used[match.rewriting->equation] = true;
      changed = true;
    }
    graph_.close();
    return changed;
  }

 private:
  static constexpr std::size_t kMostMatches = 2000;

  std::optional<ClassId> add(const Pattern& pattern, std::span<const ClassId> bindings) {
    std::vector<ClassId> made;
    for (const Pattern::Part& part : pattern.parts) {
      if (part.input >= 0) {
        made.push_back(bindings[static_cast<std::size_t>(part.input)]);
        continue;
      }
      EqualTerms::Node node{part.word, part.result, {}};
      for (const std::size_t operand : part.operands) node.operands.push_back(made[operand]);
      const auto id = graph_.add(std::move(node));
      if (!id) return std::nullopt;
      made.push_back(*id);
    }
    return made.back();
  }

  using Then = std::function<void()>;

  void match(std::size_t part, ClassId id, const Then& then) {
    const Pattern::Part& wanted = rewriting_->from.parts[part];
    id = graph_.find(id);
    if (wanted.input >= 0) {
      const auto input = static_cast<std::size_t>(wanted.input);
      ClassId& binding = bindings_[input];
      if (binding != kUnbound) {
        if (binding == id) then();
        return;
      }
      if (rewriting_->replicated[input] && !graph_.alike_on_ranks(id)) return;
      binding = id;
      then();
      bindings_[input] = kUnbound;
      return;
    }
    for (const EqualTerms::Node& node : graph_.nodes(id))
      if (node.word == wanted.word && node.result == wanted.result) match_operands(wanted, node, then);
  }

  void match_operands(const Pattern::Part& wanted, const EqualTerms::Node& node, const Then& then) {
    const std::size_t count = node.operands.size();
    if (count != wanted.operands.size()) return;
    if (count == 0) return then();
    if (count == 1) return match(wanted.operands[0], node.operands[0], then);
    if (count != 2) return match_from(0, wanted, node, then);
    match(wanted.operands[0], node.operands[0], [&] { match(wanted.operands[1], node.operands[1], then); });
    if (node.operands[0] != node.operands[1] && is_commutative_word(wanted.word))
      match(wanted.operands[0], node.operands[1], [&] { match(wanted.operands[1], node.operands[0], then); });
  }

  void match_from(std::size_t k, const Pattern::Part& wanted, const EqualTerms::Node& node,
                  const Then& then) {
    if (k == node.operands.size()) return then();
    match(wanted.operands[k], node.operands[k], [&, k] { match_from(k + 1, wanted, node, then); });
  }

  bool is_commutative_word(std::uint32_t word) const { return is_commutative(graph_.words()[word].verb); }

  EqualTerms graph_;
  std::vector<ClassId> inputs_;
  std::vector<ClassId> bindings_;
  const Rewriting* rewriting_ = nullptr;
};

}  // namespace

Theory::Theory() : known_(std::make_unique<Known>()) {}
Theory::~Theory() = default;
Theory::Theory(Theory&&) noexcept = default;
Theory& Theory::operator=(Theory&&) noexcept = default;

std::size_t Theory::size() const { return known_->equations; }

void Theory::add(const Equation& equation, bool forward, bool backward) {
  const std::size_t number = known_->equations++;
  known_->sizes.push_back(size_of(equation));
  std::vector<bool> replicated;
  for (const EquationInput& input : equation.inputs)
    replicated.push_back(input.holding == Holding::replicated);
  for (const auto& [source, target] : equation.outputs) {
    Pattern left, right;
    write(left, equation.source, source, known_->words);
    write(right, equation.target, target, known_->words);
    if (forward) known_->add({number, left, right, replicated});
    if (backward) known_->add({number, right, left, replicated});
  }
}

namespace {

template <class Allowed>
std::optional<std::vector<std::size_t>> derive_with(Vocabulary& words,
                                                    const std::vector<std::vector<Rewriting>>& by_word,
                                                    std::size_t equations, const Equation& goal,
                                                    Theory::Limits limits, Allowed&& allowed) {
  std::vector<std::pair<Pattern, Pattern>> outputs;
  for (const auto& [source, target] : goal.outputs) {
    auto& [left, right] = outputs.emplace_back();
    write(left, goal.source, source, words);
    write(right, goal.target, target, words);
  }
  ConsequenceSearch search(words, goal, limits);
  std::vector<std::pair<ClassId, ClassId>> ends;
  for (const auto& [left, right] : outputs) {
    const auto a = search.add(left), b = search.add(right);
    if (!a || !b) return std::nullopt;
    ends.emplace_back(*a, *b);
  }
  const auto met = [&] {
    return std::all_of(ends.begin(), ends.end(),
                       [&](const auto& end) { return search.equal(end.first, end.second); });
  };
  std::vector<bool> used(equations, false);
  for (std::int32_t k = 0; k < limits.rounds && !met(); ++k)
    if (!search.round(by_word, allowed, used)) break;
  if (!met()) return std::nullopt;
  std::vector<std::size_t> numbers;
  for (std::size_t k = 0; k < equations; ++k)
    if (used[k]) numbers.push_back(k);
  return numbers;
}

}  // namespace

std::optional<std::vector<std::size_t>> Theory::derive(const Equation& equation, Limits limits) const {
  return derive_with(known_->words, known_->by_word, known_->equations, equation, limits,
                     [&](std::size_t number) { return known_->sizes[number] < limits.below; });
}

std::optional<std::vector<std::size_t>> Theory::derive_minimal(const Equation& equation,
                                                               Limits limits) const {
  auto used = derive(equation, limits);
  if (!used) return used;
  // Leave out one at a time, the largest first: most of them are not needed.
  for (std::size_t k = used->size(); k-- > 0;) {
    std::vector<std::size_t> rest = *used;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(k));
    auto shorter =
        derive_with(known_->words, known_->by_word, known_->equations, equation, limits,
                    [&](std::size_t number) { return std::binary_search(rest.begin(), rest.end(), number); });
    if (!shorter) continue;
    used = std::move(shorter);
    k = std::min(k, used->size());
  }
  return used;
}

}  // namespace weft::equation
