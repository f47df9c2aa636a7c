// weft/planner/proof/prove_plan.h -- prove a distributed plan at small sizes, with its real structure.
//
//   gpt3_175b on node=128, gpu=8      b = 3, s = 4, d = 10, h = 5, v = 7, p = 4 on 2 x 3 and 3 x 2 ranks
//   alexnet on node=4, gpu=8          b = 5, c = 3, h = 64, w = 36 on 2 x 3 and 3 x 2 ranks
//
// The model is bound again with small, distinct sizes that it accepts (small_sizes.h). If its names
// do not cover all sizes, for example if a convolution's channels are literals, the bound plan is
// shrunk instead (distribute/shrink.h). The plan is replayed on it (distribute/replay.h) on two
// meshes (distribute/proof_meshes.h), and both are run (distribute/prove.h). Sizes that do not work
// on one of the meshes are replaced by others. If none work, the proof covers only the other mesh,
// and says so. Constants of a plan could be right by chance for one choice of sizes, so two are
// proven.
#pragma once
#include <string>
#include <vector>

#include "weft/parallel/distribute/prove.h"
#include "weft/planner/search/optimize.h"
#include "weft/planner/statement/prepare.h"

namespace weft::planner {

struct SmallProof {
  distribute::PlanProof proof;
  std::string sizes;  // "b = 3, s = 4, .. on 2 x 3 and 3 x 2 ranks"
  double seconds = 0;
  bool rewritten = false;                   // by rules, before it was distributed
  std::int64_t norm_shares = 1;             // shares of the batch for the statistics of batch norms
  bool in_time = false;                     // run stage by stage, as by its ranks
  bool up_to_codecs = false;                // with codecs treated as the identity
  std::int64_t steps_between_averages = 1;  // steps without gradient sums, which are treated as sums
  bool but_for_delay = false;               // with delayed gradients treated as applied at once

  // "proven equal to the plan of one device: ..", or what is wrong.
  std::string text() const;
};

// Proves the choice for `model`, the prepared one-device plan, possibly with further outputs. A
// plan rewritten by rules is compared with the original, a distributed plan with the one-device
// plan. Fails if no small sizes were found that the model accepts.
Result<SmallProof> prove_plan(const Knowledge& state, const Prepared& prepared, const plan::Graph& model,
                              const search::Choice& choice);

// Proves a written plan against the prepared one-device plan. Also fails if it is correct at small
// sizes that do not show what it does at its own.
Result<SmallProof> prove_written_plan(const Knowledge& state, const Prepared& prepared,
                                      const distribute::DistributedPlan& plan);

// Whether both can be run in the reference interpreter at their own sizes.
bool is_small(const plan::Graph& graph, const plan::Mesh& mesh);

struct Proof {
  bool holds = false;
  std::string text;
};

// The proof that a plan needs before it is shown or run. Fails if the plan is wrong. A plan that
// cannot be made small passes, and the text says so. Proofs kept in `state` are not repeated. A
// plan that is neither rewritten nor distributed needs no proof; its text is empty.
Result<Proof> require_proof(const Knowledge& state, const Prepared& prepared, const plan::Graph& model,
                            const search::Choice& choice);

}  // namespace weft::planner
