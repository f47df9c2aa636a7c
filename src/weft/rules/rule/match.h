// weft/rules/rule/match.h -- finds every place where a rule's left side stands in a plan.
//
//   rules                                 the automaton
//   a: contract(x, add(y, z))             contract -- operand: add --+-- a
//   b: contract(x, add(y, y))                                        +-- its operands are the same -- b
//   c: contract(x, v), contract(x, w)        `------- reader of x: contract -- c
//
// All left sides are compiled into one automaton: a tree of tests in which rules that begin alike share their
// beginning. Walking it from a node reports every match of every rule that is rooted there. After a rewrite
// only roots near the change are walked again.
//
// Different values of a left side may be the same value of the plan, but two results of a rule never are.
// Operators that commute are tried in each order. A left side of more than kLargestLeft values matches
// nothing, and no more than kMostMatchesAtRoot matches of one rule are reported at one root.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weft/plan/graph/layout.h"
#include "weft/rules/rule/draft.h"
#include "weft/rules/rule/rule.h"

namespace weft::rule {

constexpr std::size_t kLargestLeft = 64;
constexpr std::size_t kMostMatchesAtRoot = 1024;

// What a match gives a rule's variables.
struct Bindings {
  std::vector<std::vector<Symbol>> indices;      // Rule::indices -> indices of the plan, in memory order
  std::vector<plan::Attribute> attributes;       // Rule::variables
  std::vector<const plan::Operator*> operators;  // Rule::operators
};

struct Match {
  std::uint32_t rule = 0;             // which of the set
  plan::NodeId root;                  // where it was found: the node of the rule's first output
  std::vector<plan::NodeId> nodes;    // the left side's nodes
  std::vector<plan::ValueId> values;  // the left side's values: inputs, then results
  Bindings bindings;

  // A fixed order: rule, then nodes, then values.
  friend bool operator<(const Match& a, const Match& b);
  friend bool operator==(const Match& a, const Match& b);  // the same rule, nodes and values
};

// Why a rule's structure was found but the rule declined: for `weft rules why`.
struct Declined {
  std::uint32_t rule = 0;
  std::vector<plan::NodeId> nodes;
  std::string because;  // "guard: size(v, n) <= 4096 does not hold: 8192 and 4096"
};

// Where the ranks of a mesh hold the values of a plan, for rules that ask. Without one, a rule that wants a
// value sliced or partial matches only where a communication operator of its left side says as much.
struct Placement {
  const plan::Mesh* mesh = nullptr;
  std::span<const plan::Layout> layouts;  // by value; what lies past its end is not known
};

class Automaton {
 public:
  explicit Automaton(std::span<const Rule> rules);  // REQUIRES: the rules outlive it
  ~Automaton();
  Automaton(Automaton&&) noexcept;
  Automaton& operator=(Automaton&&) noexcept;

  std::span<const Rule> rules() const;
  std::size_t states() const;            // tests in the tree; and how many
  std::size_t tests_one_by_one() const;  // the rules would need one by one

  // Every match rooted at `root`, in order, put behind what `found` holds. With `declined`, near misses too:
  // the first thing that declined, once for a rule and its nodes.
  void matches_at(const Draft& draft, plan::NodeId root, std::vector<Match>& found,
                  std::vector<Declined>* declined = nullptr, const Placement& placement = {}) const;
  std::vector<Match> all(const Draft& draft, const Placement& placement = {}) const;
  // The roots at which matches may have appeared. (Those that vanished held a removed or rewired node.)
  std::vector<plan::NodeId> affected(const Draft& draft, const Change& change) const;

 private:
  struct State;
  class Walk;
  std::unique_ptr<State> state_;
};

// The same answer, a rule at a time: the automaton's judge and its peer in the bench.
std::vector<Match> match_one_by_one(const Draft& draft, std::span<const Rule> rules,
                                    const Placement& placement = {});

// All matches of a draft, kept up to date. A match stays where it is until an update drops it.
class Matches {
 public:
  Matches(const Automaton& automaton, const Draft& draft);  // REQUIRES: the automaton outlives it
  // After every apply() and undo(). Returns the roots that were looked at again, ascending.
  std::vector<plan::NodeId> update(const Draft& draft, const Change& change);
  std::vector<const Match*> all() const;  // in order
  std::size_t size() const { return size_; }

 private:
  void look_at(const Draft& draft, plan::NodeId root);
  void forget(plan::NodeId root);

  const Automaton* automaton_;
  std::vector<std::vector<Match>> by_root_;
  std::vector<std::vector<plan::NodeId>>
      roots_with_;  // node -> roots of matches that hold it, and maybe more
  std::size_t size_ = 0;
};

}  // namespace weft::rule
