// weft/rules/rule/match.h -- finds all matches of rules' left sides in a plan.
//
//   rules                                 the automaton
//   a: contract(x, add(y, z))             contract -- operand: add --+-- a
//   b: contract(x, add(y, y))                                        +-- its operands are the same -- b
//   c: contract(x, v), contract(x, w)        `------- reader of x: contract -- c
//
// All left sides are compiled into one automaton: a tree of tests in which rules share common
// prefixes. Traversing it from a node reports every match of every rule that is rooted there. After
// a rewrite only roots near the change are searched again.
//
// Different values of a left side may match the same value of the plan, but two results of a rule
// never do. Commutative operators are tried in each order. A left side of more than kMaxLeftValues
// values matches nothing, and at most kMaxMatchesPerRoot matches of one rule are reported per root.
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

constexpr std::size_t kMaxLeftValues = 64;
constexpr std::size_t kMaxMatchesPerRoot = 1024;

// The bindings of a rule's variables in a match.
struct Bindings {
  std::vector<std::vector<Symbol>> indices;      // Rule::indices -> indices of the plan, in memory order
  std::vector<plan::Attribute> attributes;       // Rule::variables
  std::vector<const plan::Operator*> operators;  // Rule::operators
};

struct Match {
  std::uint32_t rule = 0;             // its number in the set
  plan::NodeId root;                  // the node of the rule's first output
  std::vector<plan::NodeId> nodes;    // the left side's nodes
  std::vector<plan::ValueId> values;  // the left side's values: inputs, then results
  Bindings bindings;

  // Ordered by rule, then nodes, then values.
  friend bool operator<(const Match& a, const Match& b);
  friend bool operator==(const Match& a, const Match& b);  // the same rule, nodes and values
};

// Why a rule declined although its structure was found, for `weft rules why`.
struct Declined {
  std::uint32_t rule = 0;
  std::vector<plan::NodeId> nodes;
  std::string because;  // "guard: size(v, n) <= 4096 does not hold: 8192 and 4096"
};

// The layouts of a plan's values on a mesh, for rules that need them. Without them, a rule that
// requires a sliced or partial value matches only if a communication operator of its left side
// implies that layout.
struct Placement {
  const plan::Mesh* mesh = nullptr;
  std::span<const plan::Layout> layouts;  // by value; unknown past its end
};

class Automaton {
 public:
  explicit Automaton(std::span<const Rule> rules);  // REQUIRES: the rules outlive it
  ~Automaton();
  Automaton(Automaton&&) noexcept;
  Automaton& operator=(Automaton&&) noexcept;

  std::span<const Rule> rules() const;
  std::size_t states() const;            // number of tests in the tree
  std::size_t tests_one_by_one() const;  // number without sharing

  // Appends every match rooted at `root` to `found`, in order. With `declined`, also reports near
  // misses: the first reason per rule and nodes.
  void matches_at(const Draft& draft, plan::NodeId root, std::vector<Match>& found,
                  std::vector<Declined>* declined = nullptr, const Placement& placement = {}) const;
  std::vector<Match> all(const Draft& draft, const Placement& placement = {}) const;
  // The roots at which matches may have appeared. (Matches that vanished contained a removed or
  // rewired node.)
  std::vector<plan::NodeId> affected(const Draft& draft, const Change& change) const;

 private:
  struct State;
  class Walk;
  std::unique_ptr<State> state_;
};

// The same result, one rule at a time: the reference for tests and the baseline for benchmarks.
std::vector<Match> match_one_by_one(const Draft& draft, std::span<const Rule> rules,
                                    const Placement& placement = {});

// All matches of a draft, updated incrementally. A match keeps its address until an update removes
// it.
class Matches {
 public:
  Matches(const Automaton& automaton, const Draft& draft);  // REQUIRES: the automaton outlives it
  // Call after every apply() and undo(). Returns the roots that were searched again, ascending.
  std::vector<plan::NodeId> update(const Draft& draft, const Change& change);
  std::vector<const Match*> all() const;  // sorted
  std::size_t size() const { return size_; }

 private:
  void look_at(const Draft& draft, plan::NodeId root);
  void forget(plan::NodeId root);

  const Automaton* automaton_;
  std::vector<std::vector<Match>> by_root_;
  std::vector<std::vector<plan::NodeId>>
      roots_with_;  // node -> roots of matches that contain it, possibly more
  std::size_t size_ = 0;
};

}  // namespace weft::rule
