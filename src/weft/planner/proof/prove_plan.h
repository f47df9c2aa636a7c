// weft/planner/proof/prove_plan.h -- a distributed plan proven at small sizes, with its real structure.
//
//   gpt3_175b on node=128, gpu=8      b = 3, s = 4, d = 10, h = 5, v = 7, p = 4 on 2 x 3 and 3 x 2 ranks
//   alexnet on node=4, gpu=8          b = 5, c = 3, h = 64, w = 36 on 2 x 3 and 3 x 2 ranks
//
// The model is bound again with small sizes that it accepts and that differ (small_sizes.h), or, where its
// names do not reach all of them, as where a convolution's channels stand in the text as numbers, the bound
// plan itself is made smaller (distribute/shrink.h). The plan is replayed on it (distribute/replay.h), on two
// meshes (distribute/proof_meshes.h), and both are run (distribute/prove.h). Sizes that do not go with the
// plan on one of the meshes are followed by others; where none do, the proof is on the other mesh alone, and
// says so. Numbers that a plan has of its own could be right at one choice of sizes by chance: it is proven
// at two.
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
  bool rewritten = false;        // by rules, before it was spread
  std::int64_t norm_shares = 1;  // of the batch, from which batch norms take their statistics
  bool in_time = false;          // as its ranks run it, stage by stage
  bool up_to_codecs = false;     // with what they code taken to arrive as it was
  std::int64_t steps_alone = 1;  // with gradients taken for summed that are not, for so many steps
  bool but_for_delay = false;    // with gradients taken for applied at once that are applied a step later

  // "proven equal to the plan of one device: ..", or what is wrong.
  std::string text() const;
};

// What was chosen for `model`, the plan of one device that was prepared or what is asked of it besides: where
// rules rewrote it, against what it was before; where it is spread over ranks, against the plan of one device.
// Fails where no small sizes were found that the model accepts.
Result<SmallProof> prove_plan(const Knowledge& state, const Prepared& prepared, const plan::Graph& model,
                              const search::Choice& choice);

// A plan that was written for the plan of one device that was prepared. Fails too where it is right at small
// sizes and they do not show what it does at its own.
Result<SmallProof> prove_written_plan(const Knowledge& state, const Prepared& prepared,
                                      const distribute::DistributedPlan& plan);

// Whether both can be run by definition as they are.
bool is_small(const plan::Graph& graph, const plan::Mesh& mesh);

struct Proof {
  bool holds = false;
  std::string text;
};

// What a plan must pass before it is shown or run. Fails where it is wrong. One that could not be made small
// passes and says so; one whose proof `state` has kept is not proven again.
// One that is as the model says has nothing to be proven, and its text is empty.
Result<Proof> require_proof(const Knowledge& state, const Prepared& prepared, const plan::Graph& model,
                            const search::Choice& choice);

}  // namespace weft::planner
