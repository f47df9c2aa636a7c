// weft/collectives/synthesis/step_sat.h -- a propositional formula and its SAT solver.
//
// Literals are numbers: v is true, -v its negation. kTrue and kFalse may appear in clauses and
// counts and are simplified away. The solver is CaDiCaL; a build without it can construct formulas
// but not solve them.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

namespace weft::synthesis {

// A time limit, and a callback that can stop the search.
struct StepClock {
  std::chrono::steady_clock::time_point end = std::chrono::steady_clock::time_point::max();
  std::function<bool()> stop;  // empty: never

  bool over() const { return std::chrono::steady_clock::now() >= end || (stop && stop()); }
};

class StepFormula {
 public:
  static constexpr int kTrue = 1, kFalse = -1;

  StepFormula();
  ~StepFormula();
  StepFormula(const StepFormula&) = delete;
  StepFormula& operator=(const StepFormula&) = delete;

  int variable() { return ++variables_; }
  void clause(std::span<const int> literals);
  void clause(std::initializer_list<int> literals) { clause(std::span(literals.begin(), literals.size())); }

  // result[k] is implied by k + 1 of the literals being true, for all k < most. With `both`, the
  // reverse implication holds too.
  std::vector<int> count(std::span<const int> literals, std::size_t most, bool both = false);

  enum class Outcome : std::uint8_t { satisfied, unsatisfied, unknown };
  // Unknown after `conflicts` conflicts (-1: unlimited) or when the clock expires.
  Outcome solve(std::int64_t conflicts, const StepClock& clock);
  // REQUIRES: the last solve() returned satisfied
  bool value(int literal) const;

  std::int64_t variables() const { return variables_; }
  std::int64_t clauses() const { return clauses_; }

 private:
  struct Solver;
  std::unique_ptr<Solver> solver_;
  int variables_ = kTrue;
  std::int64_t clauses_ = 0;
};

// Whether this build has the solver.
bool can_decide_steps();

}  // namespace weft::synthesis
