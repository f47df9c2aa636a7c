#include "weft/collectives/synthesis/step_sat.h"

#include <algorithm>

#ifdef WEFT_HAS_CADICAL
#include <cadical.hpp>
#endif

namespace weft::synthesis {

#ifdef WEFT_HAS_CADICAL
struct StepFormula::Solver : CaDiCaL::Terminator {
  bool terminate() override {
    // The solver calls this very often, so the clock is read only every 16th time.
    return (++calls_ & 15) == 0 && clock && clock->over();
  }

  CaDiCaL::Solver solver;
  const StepClock* clock = nullptr;
  unsigned calls_ = 0;
};

bool can_decide_steps() { return true; }

StepFormula::StepFormula() : solver_(std::make_unique<Solver>()) {
  solver_->solver.set("quiet", 1);
  solver_->solver.add(kTrue);
  solver_->solver.add(0);
}

void StepFormula::clause(std::span<const int> literals) {
  if (std::ranges::find(literals, kTrue) != literals.end()) return;
  for (const int literal : literals)
    if (literal != kFalse) solver_->solver.add(literal);
  solver_->solver.add(0);
  ++clauses_;
}

StepFormula::Outcome StepFormula::solve(std::int64_t conflicts, const StepClock& clock) {
  if (clock.over()) return Outcome::unknown;
  solver_->clock = &clock;
  solver_->solver.connect_terminator(solver_.get());
  if (conflicts >= 0)
    solver_->solver.limit("conflicts", static_cast<int>(std::min<std::int64_t>(conflicts, 1 << 30)));
  const int answer = solver_->solver.solve();
  solver_->solver.disconnect_terminator();
  return answer == 10 ? Outcome::satisfied : answer == 20 ? Outcome::unsatisfied : Outcome::unknown;
}

bool StepFormula::value(int literal) const { return solver_->solver.val(literal) > 0; }
#else
struct StepFormula::Solver {};

bool can_decide_steps() { return false; }

StepFormula::StepFormula() = default;
void StepFormula::clause(std::span<const int>) { ++clauses_; }
StepFormula::Outcome StepFormula::solve(std::int64_t, const StepClock&) { return Outcome::unknown; }
bool StepFormula::value(int) const { return false; }
#endif

StepFormula::~StepFormula() = default;

// A totalizer: counts both halves and adds their unary sums.
std::vector<int> StepFormula::count(std::span<const int> literals, std::size_t most, bool both) {
  if (literals.empty() || most == 0) return {};
  if (literals.size() == 1) return {literals[0]};
  const auto left = count(literals.first(literals.size() / 2), most, both);
  const auto right = count(literals.subspan(literals.size() / 2), most, both);
  std::vector<int> sum(std::min(left.size() + right.size(), most));
  for (int& literal : sum) literal = variable();
  for (std::size_t a = 0; a <= left.size(); ++a)
    for (std::size_t b = 0; b <= right.size(); ++b) {
      const auto reaches = [](const std::vector<int>& side, std::size_t k) {
        return k == 0 ? kTrue : side[k - 1];
      };
      const auto misses = [](const std::vector<int>& side, std::size_t k) {
        return k == side.size() ? kTrue : -side[k];
      };
      if (a + b > 0) clause({-reaches(left, a), -reaches(right, b), sum[std::min(a + b, most) - 1]});
      if (both && a + b < sum.size()) clause({-misses(left, a), -misses(right, b), -sum[a + b]});
    }
  return sum;
}

}  // namespace weft::synthesis
