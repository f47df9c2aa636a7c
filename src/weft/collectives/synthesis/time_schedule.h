// weft/collectives/synthesis/time_schedule.h -- when each chunk of a collective crosses each edge, in seconds.
//
//   edge 0->1  |=chunk 0=|=chunk 1=|          a chunk takes its bytes over the rate of every limit of its edge;
//   edge 1->2  |         . |=chunk 0=|        it is there once it has passed and the edge's latency is over
//
// A cable to a switch that copies carries a chunk once for all edges that it takes at the same time.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "weft/collectives/synthesis/index.h"
#include "weft/collectives/synthesis/step_network.h"
#include "weft/collectives/synthesis/step_problem.h"
#include "weft/collectives/synthesis/step_schedule.h"

namespace weft::synthesis {

inline constexpr double kNever = std::numeric_limits<double>::infinity();

struct TimeSend {
  double start = 0, arrives = 0;  // seconds
  std::int32_t edge = 0, chunk = 0;

  friend auto operator<=>(const TimeSend&, const TimeSend&) = default;
};

struct TimeSchedule {
  std::vector<TimeSend> sends;  // sorted
  double finish = 0;            // when the last chunk is there
};

// What every edge needs of its limits, for chunks of one size.
struct EdgeTimes {
  EdgeTimes(const StepNetwork& network, double chunk_bytes);

  std::vector<std::vector<std::int32_t>> limits;  // of an edge
  std::vector<std::int32_t> first, last;          // of these: its cable at either end
  std::vector<double> busy;                       // a limit, with one chunk
  std::vector<double> takes;                      // a chunk, from its start to its arrival
  std::vector<std::vector<double>> shortest;      // from device to device, one chunk alone
};

// What is earlier by less than a part of 1e-9 is at the same time.
inline bool is_later(double time, double than) { return time * (1 - 1e-9) > than; }

// No schedule is done earlier: the longest way of a chunk alone, and the narrowest cut. A chunk may be cut on its way
// into parts of `part_bytes`.
double time_bound(const StepNetwork& network, const StepProblem& problem, double chunk_bytes,
                  double part_bytes);

// The first thing wrong with it; knows nothing of how it was found.
std::optional<std::string> first_fault(const StepNetwork& network, const StepProblem& problem,
                                       double chunk_bytes, const TimeSchedule& schedule);

// Without what nobody needs: chunks that end where they are neither wanted nor passed on.
void drop_idle_sends(const StepNetwork& network, const StepProblem& problem, TimeSchedule& schedule);

// The sends one after another, as step_moves() takes them.
StepSchedule in_order(const TimeSchedule& schedule);

}  // namespace weft::synthesis
