// weft/parallel/distribute/prove.h -- proves a distributed plan equal to the single-device plan.
//
// Both run by their reference semantics on the same random values: one on a single device, the
// other on a virtual mesh that really slices tensors and adds partial sums.
//
//   over the field (ops/number.h)  exactly. Plans that differ agree by chance with a probability of
//                                  at most degree / 2^61 per sample
//   in f64                         with real maxima: what keeps floats in range has no effect over
//                                  the field. Results agree if they differ no more than rounding
//                                  makes them
//   dropout                        also at rate one half, where two mask streams hardly ever agree
//   integers                       over their range and one past either end; counters around the
//                                  multiples at which something happens (draw_sources.h)
//   decisions                      each with both outcomes, and every two in all combinations
//                                  (choices.h)
//   rounding                       casts to narrower types replaced by distinct functions
//                                  (marked_rounding.h): if outputs then differ, the plans are equal
//                                  up to rounding of these
//   beyond values                  layouts of outputs, initial values: requirements.h
//
// For a wrong plan, the result is the first node that holds a wrong value, and the rank that holds
// it.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribute.h"
#include "weft/plan/graph/graph.h"

namespace weft::distribute {

struct Disagreement {
  plan::NodeId node;       // of the distributed plan
  std::int32_t rank = -1;  // -1: the ranks' partial sums do not add up to the value
  std::string what;        // "node %7 all-reduce .. on rank 3: element 5 is .."
};

struct PlanProof {
  std::int64_t draws = 0;
  std::int64_t elements = 0;  // of compared outputs, over all samples
  std::optional<Disagreement> wrong;
  // What no sample showed, "%12 (less) was never seen to hold": the plans may differ there. Empty:
  // nothing.
  std::string unseen = {};
  // Outputs that are rounded differently from the single-device plan, and the type: "bf16".
  std::set<std::string> rounded = {};
  std::string rounded_to = {};

  bool holds() const { return !wrong; }
  bool is_proven() const { return holds() && unseen.empty(); }
};

struct ProveOptions {
  std::int64_t draws = 2;  // samples over the field, at least; more until all decisions are covered
  bool in_floats = true;   // and one sample in f64
  std::uint64_t seed = 1;
};

// REQUIRES: the plan was made from `original`, replayed for it or traced to it: origins are its
// nodes, or invalid for nodes without a counterpart, which are not compared. Fails if a plan cannot
// be run: too large, or inconsistent layouts.
Result<PlanProof> prove(const plan::Graph& original, const DistributedPlan& plan,
                        const ProveOptions& options = {});

}  // namespace weft::distribute
