// weft/collectives/synthesis/step_sat.h -- a propositional formula and the solver that decides it.
//
// Literals are numbers: v is true, -v its opposite. kTrue and kFalse may stand in clauses and counts like any
// other and vanish there. The solver is CaDiCaL; a build without it can make formulas but not decide them.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

namespace weft::synthesis {

// When to give up: at a time, or when asked to.
struct StepClock {
  std::chrono::steady_clock::time_point end = std::chrono::steady_clock::time_point::max();
  std::function<bool()> stop;  // none: never

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

  // result[k] follows from k + 1 of the literals being true, for all k < most. With `both`, it also holds
  // only where so many are.
  std::vector<int> count(std::span<const int> literals, std::size_t most, bool both = false);

  enum class Outcome : std::uint8_t { satisfied, unsatisfied, unknown };
  // Unknown once `conflicts` have been met (-1: any number) or the clock is over.
  Outcome solve(std::int64_t conflicts, const StepClock& clock);
  // REQUIRES: the last solve() was satisfied
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
