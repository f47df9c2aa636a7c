// weft/predict/cost/exchange_times.h -- how long collectives took in steps that ran, kept for the next prediction.
//
//   rank 0   ---come.........|=====|       own    from when the last one comes: the collective itself
//   rank 1   ----------come..|=====|       late   what a rank waits before that: ranks never run quite
//   rank 2   ------------come|=====|              alike, and each collective waits for the last of them
//
//   "exchange all-reduce 3 shm 2359296 ranks=3"    "late all-reduce 3 shm 2359296 ranks=3"
//
// Both are rows of operator_time. A rank that comes early every time has less to compute than another; the
// simulator knows that, so `late` is the wait of the rank that waits least. On oversubscribed processors each
// rank must wait for its turn, and `late` is the average wait. A size that was never seen is priced by a
// formula, times the ratio of measured to formula at the nearest sizes that were seen.
//
// Sums in which servers have a part are of another kind, and so is the transport that they are kept by.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/graph/layout.h"
#include "weft/predict/cost/operator_time.h"
#include "weft/predict/cost/statistics.h"
#include "weft/predict/cost/step_costs.h"
#include "weft/program/tasks/program.h"
#include "weft/program/tasks/timeline.h"

namespace weft::cost {

// What one rank did: its program, and when the tasks of each step ran. All ranks read one clock.
struct RankSteps {
  const program::Program* program = nullptr;
  std::span<const program::Timeline> timelines;
};

// "shm", or "shm servers=2" where there are some.
std::string transport_with(std::string_view transport, std::int64_t servers);
// The former of either.
std::string_view without_servers(std::string_view transport);

// Adds what the collectives of all ranks took. Where the ranks' programs do not meet, nothing is added.
// REQUIRES: a program for each rank of the mesh, and equally many timelines.
Status learn_exchanges(Statistics& statistics, const plan::Mesh& mesh, std::span<const RankSteps> ranks,
                       std::string_view transport, const Concurrency& concurrency);

// What the statistics know of collectives over one transport, at one concurrency.
class ExchangeTimes {
 public:
  ExchangeTimes() = default;
  ExchangeTimes(std::span<const OperatorTime> rows, std::string_view transport,
                const Concurrency& concurrency);

  // Seconds by a formula that knows nothing of this machine's past.
  using Formula = std::function<double(program::Exchange::Kind kind, std::int32_t ranks, double bytes)>;

  struct Price {
    double own = 0, late = 0;
    Source source = Source::measured;  // calibrated: only other collectives were seen
  };
  // Nothing where no collective was seen at all.
  std::optional<Price> price(program::Exchange::Kind kind, std::int32_t ranks, std::int64_t bytes,
                             const Formula& formula) const;

 private:
  struct Time {
    double own = 0, late = 0;
  };
  using Sizes = std::map<std::int64_t, Time>;

  std::map<std::pair<program::Exchange::Kind, std::int32_t>, Sizes> times_;  // by kind and ranks of the group
  double late_ = 0;                                                          // of any collective, the mean
};

}  // namespace weft::cost
