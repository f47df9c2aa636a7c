// weft/rules/equation/generate.h -- finds rules by enumerating and proving small graphs.
//
//   level 1:  ewadd(a1, a2)   relu(a1)   smul(a1, c1)  ..
//   level 2:  smul(ewadd(a1, a2), c1)   relu(relu(a1))  ..          relu(relu(x)) = relu(x)      kept
//   level 3:  ewadd(smul(a1, c1), smul(a2, c1))  ..                 = smul(ewadd(a1, a2), c1)    kept
//
// Values are enumerated, not graphs. A value is an operation applied to values of lower levels, and
// its fingerprint is a hash of its numbers over the prime field at random inputs. Two values with
// the same fingerprint are a candidate, which more draws and then the prover judge. A proven
// equation becomes a rewriting towards the smaller side. Values that it rewrites are not used as
// building blocks: whatever holds for such a value follows from the smaller one. So higher levels
// stay small, and rules found there are new. Memory is bounded: the last level stores only
// fingerprints, and if they do not fit, it is enumerated several times, each time for one part of
// the fingerprints.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/rules/equation/equation.h"
#include "weft/rules/equation/operator_set.h"
#include "weft/rules/equation/prove_equation.h"

namespace weft::equation {

struct GenerateProgress {
  std::string_view phase;  // "enumerate", "pair", "prove"
  std::int32_t level = 0;  // operations per graph of the current level
  double done = 0;         // from 0 to 1, for this phase and level
};

struct GenerateOptions {
  OperatorSet operators;
  std::int32_t most_operators = 3;
  std::int64_t most_bytes = std::int64_t{1} << 30;  // of the tables of values and fingerprints
  std::uint64_t seed = 1;
  rule::ProveOptions prove;
  std::function<void(const GenerateProgress&)> progress;  // may be empty
  std::function<bool()> interrupted;                      // polled; true cancels
};

struct GeneratedRule {
  Equation equation;  // the source is the larger side
  rule::Verdict verdict;
  rule::Verdict backward;  // for the equation from target to source
  double gain = 0;         // what the target saves (see rank.h)
};

struct GenerateCounts {
  std::int64_t graphs = 0;      // well-typed graphs enumerated
  std::int64_t evaluated = 0;   // of these, graphs that were run
  std::int64_t candidates = 0;  // pairs with equal fingerprints that were judged
  std::int64_t proven = 0, guarded = 0, refuted = 0, ill_typed = 0;
  // Graphs not run, or pairs not judged, by reason:
  std::int64_t pruned_rewritten = 0;     // a kept rule rewrites it at the root
  std::int64_t pruned_renaming = 0;      // the same up to names of inputs
  std::int64_t pruned_same_context = 0;  // the same operation on equal operands
  std::int64_t pruned_by_chance = 0;     // a later draw differed
  std::int64_t pruned_follows = 0;       // follows from kept rules
  double enumerate_seconds = 0, pair_seconds = 0, prove_seconds = 0;
  std::int64_t table_bytes = 0;  // peak
  std::int32_t passes = 1;       // over the last level
};

struct Generated {
  std::vector<GeneratedRule> rules;  // smallest first
  GenerateCounts counts;
};

Result<Generated> generate(const GenerateOptions& options);

}  // namespace weft::equation
