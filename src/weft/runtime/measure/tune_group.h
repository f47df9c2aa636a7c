// weft/runtime/measure/tune_group.h -- the ranks of one job measure algorithms together.
//
//   rank 0                                   everyone
//   "these candidates, this size"  ───────▶  runs batches of each in turn
//   ... takes the slowest rank's time  ◀───────  time a call of each candidate, batch by batch
//
// Settings come one after the other, sizes in rounds (tune_rounds.h), as many as there is time for.
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
  // The database that communicators choose from by themselves: what they choose is measured as well. None:
  // the candidates alone are.
  std::optional<std::string> chosen_from = {};
  std::int32_t rounds = 7;                 // after the first, at most
  std::chrono::milliseconds time{10'000};  // for all of it, about
  std::function<void(std::string_view)> on_note = {};
};

struct Tuned {
  comm::ChoiceTable table;
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

}  // namespace weft::measure
