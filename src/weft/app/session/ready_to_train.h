// weft/app/session/ready_to_train.h -- what TRAIN needs before its first step: plan, data and weights.
//
//   weights   the session's weights, initial values, or on resume, the statement's checkpoint
//   steps     those of the statement; on resume, the remaining ones
//
// Ranks of a launcher compare all of this before they start: see run/rank_comparison.h.
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
  // The session keeps the existing weights, so they survive if the training fails.
  const run::Weights* start = nullptr;
  std::unique_ptr<run::Weights> own;  // if `start` is not the session's
  bool from_file = false;             // from LOAD or a checkpoint
  std::int64_t begin = 0;             // the model's step when the statement first started
  std::int64_t end = 0;               // the step to train to

  bool is_over() const { return start->step >= end; }
};

Result<ReadyToTrain> make_ready_to_train(const Session::State& state, const Context& context,
                                         const language::syntax::Run& run);

// What must be identical on all ranks.
std::vector<run::Claim> claims_of(const ReadyToTrain& ready);

// An error about the files after FROM, located at `span`.
Error about_data(Error error, Span span);

}  // namespace weft::session
