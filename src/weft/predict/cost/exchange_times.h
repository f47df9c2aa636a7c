// weft/predict/cost/exchange_times.h -- measured times of collectives, kept for predictions.
//
//   rank 0   ---x............|=====|       x      the rank arrives
//   rank 1   ----------x.....|=====|       own    from the last arrival on: the collective itself
//   rank 2   ----------------x=====|       late   what a rank waits before that: ranks never run in exact
//                                                 lockstep, and each collective waits for the last of them
//
//   "exchange all-reduce 3 shm 2359296 ranks=3"    "late all-reduce 3 shm 2359296 ranks=3"
//
// Both are rows of operator_time. A rank that always arrives early has less to compute than the
// others; the simulator models that, so `late` is the wait of the rank that waits least. On
// oversubscribed processors each rank must wait to be scheduled, and `late` is the average wait.
// For a size that was never measured, the time is a formula's, scaled by the ratio of measured to
// formula at the nearest measured sizes.
//
// Sums that use summation servers count as another kind, stored under another transport name.
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

// One rank's program, and when the tasks of each step ran. All ranks use one clock.
struct RankSteps {
  const program::Program* program = nullptr;
  std::span<const program::Timeline> timelines;
};

// "shm", or "shm servers=2" if there are servers.
std::string transport_with_servers(std::string_view transport, std::int64_t servers);
// The transport without the servers suffix.
std::string_view transport_without_servers(std::string_view transport);

// Adds the times of all ranks' collectives. Adds nothing if the ranks' programs do not have
// matching collectives. REQUIRES: one program per rank of the mesh, all with the same number of
// timelines.
Status record_exchanges(Statistics& statistics, const plan::Mesh& mesh, std::span<const RankSteps> ranks,
                        std::string_view transport, const Concurrency& concurrency);

// What the statistics hold on collectives over one transport, at one concurrency.
class ExchangeTimes {
 public:
  ExchangeTimes() = default;
  ExchangeTimes(std::span<const OperatorTime> rows, std::string_view transport,
                const Concurrency& concurrency);

  // Seconds by a formula that uses no measurements of this machine.
  using Formula = std::function<double(program::Exchange::Kind kind, std::int32_t ranks, double bytes)>;

  struct Price {
    double own = 0, late = 0;
    Source source = Source::measured;  // calibrated: only other collectives were measured
  };
  // Empty if no collective was measured.
  std::optional<Price> price(program::Exchange::Kind kind, std::int32_t ranks, std::int64_t bytes,
                             const Formula& formula) const;

 private:
  struct Time {
    double own = 0, late = 0;
  };
  using Sizes = std::map<std::int64_t, Time>;

  std::map<std::pair<program::Exchange::Kind, std::int32_t>, Sizes> times_;  // by kind and ranks
  double late_ = 0;                                                          // mean over all collectives
};

}  // namespace weft::cost
