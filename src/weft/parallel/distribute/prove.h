// weft/parallel/distribute/prove.h -- whether a distributed plan computes what the plan of one device computes.
//
// Both are run by their reference semantics on the same random values: the one on one device, the other on a
// virtual mesh, where shares are really cut and addends really added.
//
//   over the field (ops/number.h)   exactly. Plans that differ agree by chance with a probability of at most
//                                   degree / 2^61 a draw
//   in f64                          with real maxima: what keeps floats in range is nothing over the field.
//                                   Two results are alike when they differ no more than rounding makes them
//   dropout                         also at one half, where two streams of masks hardly ever agree
//   whole numbers                   over their range and one beyond either end; counters around the multiples at
//                                   which something happens (draw_sources.h)
//   choices                         each on both sides, and every two in all combinations (choices.h)
//   rounding                        casts to fewer bits as functions of their own (shown_rounding.h): where outputs
//                                   then differ, the plans are equal up to rounding of these
//   beyond values                   layouts of outputs, initial values: promises.h
//
// A plan that is wrong is answered with the first node that holds something else than it should, and the rank
// that does.
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
  std::int32_t rank = -1;  // -1: the ranks' addends do not add up to it
  std::string what;        // "node %7 all-reduce .. on rank 3: element 5 is .."
};

struct PlanProof {
  std::int64_t draws = 0;
  std::int64_t elements = 0;  // of outputs that were compared, over all draws
  std::optional<Disagreement> wrong;
  // What no draw showed, "%12 (less) was never seen to hold": the plans may differ there. Empty: nothing.
  std::string unseen = {};
  // Outputs in which numbers are rounded otherwise than on one device, and to what: "bf16".
  std::set<std::string> rounded = {};
  std::string rounded_to = {};

  bool holds() const { return !wrong; }
  bool is_proven() const { return holds() && unseen.empty(); }
};

struct ProveOptions {
  std::int64_t draws = 2;  // over the field, at least; more until all choices were seen
  bool in_floats = true;   // and one in f64
  std::uint64_t seed = 1;
};

// REQUIRES: the plan was made of `original`, replayed for it or traced to it: origins are its nodes, or
// invalid where a node has none and is compared with nothing. Fails where a plan cannot be run at all: too
// large, or layouts that do not go together.
Result<PlanProof> prove(const plan::Graph& original, const DistributedPlan& plan,
                        const ProveOptions& options = {});

}  // namespace weft::distribute
