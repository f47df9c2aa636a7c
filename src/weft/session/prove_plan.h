// weft/session/prove_plan.h -- a distributed plan proven at small sizes, with its real structure.
//
//   gpt3_175b on node=128, gpu=8      b = 2, s = 8, d = 8, h = 2, layers = 96, v = 8 on node=2, gpu=2
//   alexnet on node=4, gpu=8          b = 4, c = 3, h = 64, w = 64 on node=2, gpu=2
//
// The model is bound again with small sizes, the plan replayed on it (distribute/replay.h) and both are run
// by their exact semantics (distribute/prove.h). Which sizes are legal only the model knows: a few are tried.
// Where its names do not reach all of them, as where a convolution's channels stand in the text as numbers,
// the bound plan itself is made smaller (distribute/shrink.h).
//
// Included by the files of session/ only.
#pragma once
#include <string>
#include <vector>

#include "weft/distribute/prove.h"
#include "weft/search/optimize.h"
#include "weft/session/prepare.h"

namespace weft::session {

struct SmallProof {
  distribute::PlanProof proof;
  std::string sizes;  // "b = 2, s = 8, .. on node=2, gpu=2"
  double seconds = 0;
  bool rewritten = false;  // by rules, before it was spread

  // "proven equal to the plan of one device: ..", or what is wrong.
  std::string text() const;
};

// What was chosen for `model`, the plan of one device that was prepared or what is asked of it besides: where
// rules rewrote it, against what it was before; where it is spread over ranks, against the plan of one device.
// Fails where no small sizes were found that the model accepts.
Result<SmallProof> prove_plan(const Session::State& state, const Prepared& prepared, const plan::Graph& model,
                              const search::Choice& choice);

// A plan that was written for the plan of one device that was prepared.
Result<SmallProof> prove_written_plan(const Session::State& state, const Prepared& prepared,
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
Result<Proof> require_proof(const Session::State& state, const Prepared& prepared, const plan::Graph& model,
                            const search::Choice& choice);

}  // namespace weft::session
