// weft/runtime/measure/tune_group.h -- the ranks of one job measure algorithms together.
//
//   rank 0                                   all ranks
//   "these candidates, this size"  ───────▶  run batches of each in turn
//   ... takes the slowest rank's time  ◀───────  time per call of each candidate, by batch
//
// Settings are measured one after the other, and sizes in rounds (tune_rounds.h), as time permits.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/communication/comm/choice/choice.h"
#include "weft/communication/comm/communicator.h"
#include "weft/communication/transport/job.h"

namespace weft::measure {

struct TunePlan {
  comm::TransportKind transport = comm::TransportKind::automatic;
  std::vector<comm::Kind> kinds = {};
  std::vector<std::int64_t> sizes = {};  // ascending
  // The database that communicators choose from; their choices are measured as well. Empty: only
  // the candidates are measured.
  std::optional<std::string> chosen_from = {};
  std::int32_t rounds = 7;                 // at most, after round 0
  std::chrono::milliseconds time{10'000};  // total, approximate
  std::function<void(std::string_view)> on_note = {};
};

struct Tuned {
  comm::ChoiceTable table;
  std::int64_t times = 0, disturbed = 0;  // candidates measured; those that varied by more than 2x
  std::int64_t measured = 0;              // sizes of settings
  std::int64_t skipped = 0;               // for lack of time
  std::vector<std::string> dropped;       // failed candidates with the reason
};

// Collective over the job. Rank 0 gets the result, the others an empty one.
Result<Tuned> tune_group(const std::shared_ptr<transport::Job>& job, const TunePlan& plan);

// Text form, sent from rank 0's process to the one that started it.
std::string print(const Tuned& tuned);
Result<Tuned> parse_tuned(std::string_view text);

}  // namespace weft::measure
