// weft/app/session/ready_to_train.h -- all that a TRAIN needs before its first step: plan of one device, data, weights.
//
//   weights   what was learned before, new initial values, or, where it resumes, its own checkpoint
//   steps     those of the statement; resumed, those that are left of them
//
// Ranks of a launcher compare them before they go on: see run/rank_comparison.h.
//
// Included by app/session and app/command only.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "weft/app/session/state.h"
#include "weft/planner/statement/prepare.h"
#include "weft/runtime/run/feed.h"
#include "weft/runtime/run/rank_comparison.h"

namespace weft::session {

struct ReadyToTrain {
  Prepared prepared;
  std::unique_ptr<run::Feed> feed;
  // What was learned before stays the session's: if this goes wrong, it is still there.
  const run::Weights* start = nullptr;
  std::unique_ptr<run::Weights> own;  // where it is not the session's
  bool from_file = false;             // LOAD or a checkpoint gave it
  std::int64_t begin = 0;             // the model's step at which the statement began, when it first did
  std::int64_t end = 0;               // at which it is over

  bool is_over() const { return start->step >= end; }
};

Result<ReadyToTrain> make_ready_to_train(const Session::State& state, const Context& context,
                                         const language::syntax::Run& run);

// What all ranks must have alike.
std::vector<run::Claim> claims_of(const ReadyToTrain& ready);

// An error about the files that FROM names, at their place.
Error about_data(Error error, Span span);

}  // namespace weft::session
