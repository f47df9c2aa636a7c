// weft/rules/equation/prove_equation.h -- judges an equation over many shapes, and finds the guard it needs.
//
//   draw sizes at which the source makes sense
//     -> run both sides over the prime field on random values, functions and order uninterpreted, and on real
//        numbers that were chosen to tell them apart
//     -> all equal: proven
//     -> some not: find a guard that tells them apart, draw fresh sizes under it, and again
//
// At the rule's own example the two sides must agree, or it is refuted at once; no guard may exclude the
// example, so that a rule that holds for trivial sizes alone is refuted and not guarded.
#pragma once
#include "weft/rules/equation/algebra.h"
#include "weft/rules/equation/equation.h"
#include "weft/rules/rule/judge.h"

namespace weft::equation {

// Keeps the plans of operations between rules, which are alike; the verdict does not depend on what
// was judged before. Not thread-safe.
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
