// weft/collectives/synthesis/time_schedule.h -- a schedule of chunks over edges, in seconds.
//
//   edge 0->1  |=chunk 0=|=chunk 1=|          a chunk takes its bytes over the rate of every limit of its edge;
//   edge 1->2  |         . |=chunk 0=|        it arrives after that and the edge's latency
//
// A link to a switch that copies carries a chunk once for all edges that it takes at the same time.
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
  double finish = 0;            // arrival of the last chunk
};

// The times of every edge and limit for chunks of one size.
struct EdgeTimes {
  EdgeTimes(const StepNetwork& network, double chunk_bytes);

  std::vector<std::vector<std::int32_t>> limits;  // per edge
  std::vector<std::int32_t> first, last;          // per edge: the limit that is its link at either end
  std::vector<double> busy;                       // per limit: time that one chunk occupies it
  std::vector<double> takes;                      // per edge: time from a chunk's start to its arrival
  std::vector<std::vector<double>> shortest;      // from device to device, for one chunk alone
};

// Times that differ by less than a relative 1e-9 count as equal.
inline bool is_later(double time, double than) { return time * (1 - 1e-9) > than; }

// A lower bound on the finish: the longest path of a chunk alone, and the narrowest cut. Chunks may
// be cut into parts of `part_bytes` on their way.
double time_bound(const StepNetwork& network, const StepProblem& problem, double chunk_bytes,
                  double part_bytes);

// The first fault of the schedule. Independent of how schedules are found.
std::optional<std::string> first_fault(const StepNetwork& network, const StepProblem& problem,
                                       double chunk_bytes, const TimeSchedule& schedule);

// Removes sends to devices that neither want the chunk nor forward it.
void drop_idle_sends(const StepNetwork& network, const StepProblem& problem, TimeSchedule& schedule);

// The sends in sequence, as step_moves() expects them.
StepSchedule in_order(const TimeSchedule& schedule);

}  // namespace weft::synthesis
