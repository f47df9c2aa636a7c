// weft/rules/equation/prove_equation.h -- judges an equation over many shapes and finds its guard.
//
//   draw sizes at which the source is well typed
//     -> run both sides over the prime field on random values, with uninterpreted functions and
//        order, and on real numbers chosen to distinguish them
//     -> all equal: proven
//     -> some not: find a guard that separates them, draw fresh sizes under it, and repeat
//
// At the rule's own example the two sides must agree, otherwise it is refuted at once. A guard must
// not exclude the example, so a rule that holds only for trivial sizes is refuted and not guarded.
#pragma once
#include "weft/rules/equation/algebra.h"
#include "weft/rules/equation/equation.h"
#include "weft/rules/rule/judge.h"

namespace weft::equation {

// Caches the plans of operations across rules, which use similar ones. The verdict does not depend
// on what was judged before. Not thread-safe.
class Prover {
 public:
  explicit Prover(rule::ProveOptions options = {}) : options_(options) {}

  rule::Verdict prove(const Equation& equation);

 private:
  rule::ProveOptions options_;
  Algebra algebra_;
};

rule::Verdict prove(const Equation& equation, const rule::ProveOptions& options = {});

}  // namespace weft::equation
