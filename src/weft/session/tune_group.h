// weft/session/tune_group.h -- the ranks of one job measure algorithms together.
//
//   rank 0                                   everyone
//   "these candidates, this size"  ───────▶  opens a communicator for each, runs batches in turn: a b c a b c
//   ... takes the slowest rank's time  ◀───────  time a call of each candidate, batch by batch
//
// Coarse sizes come first, ascending, with all candidates; then the sizes between them, with those that could
// still be the best there. A candidate that is far behind is left out of larger sizes.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/comm/choice.h"
#include "weft/comm/communicator.h"
#include "weft/transport/job.h"

namespace weft::session {

struct TunePlan {
  comm::TransportKind transport = comm::TransportKind::automatic;
  std::vector<comm::Kind> kinds = {};
  std::vector<std::int64_t> sizes = {};    // ascending
  std::vector<std::int64_t> between = {};  // measured the same way, but kept apart: to check predictions
  std::int32_t batches = 7;                // of each time
  std::chrono::milliseconds time{10'000};  // for all of it, about
  std::function<void(std::string_view)> on_note = {};
};

struct Tuned {
  comm::ChoiceTable table, between;
  std::int64_t times = 0, disturbed = 0;  // of candidates; and how many of them varied by more than twice
  std::int64_t measured = 0;              // sizes of settings
  std::int64_t skipped = 0;               // for want of time
  std::vector<std::string> dropped;       // candidates that failed, and why
};

// Collective over the job. Rank 0 has the answer, the others an empty one.
Result<Tuned> tune_group(const std::shared_ptr<transport::Job>& job, const TunePlan& plan);

// As text and back, from rank 0's process to the one that started it.
std::string print(const Tuned& tuned);
Result<Tuned> parse_tuned(std::string_view text);

}  // namespace weft::session
