// bench/support/measure.h -- comparable times.
//
//   side A  |===|     |===|     |===|        Sides alternate in one run, so a machine that slows down
//   side B       |===|     |===|     |===|   slows them all; the medians are compared.
//
// Other programs that compute during a turn spoil it. So turns are repeated until enough of them
// were quiet, and the quietest are kept. They are chosen by the load of other programs, never by
// their time. That load is read from /proc/stat; without it, every turn counts as quiet.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "weft/base/median.h"

namespace weft::bench {

double wall_seconds();
// Of this thread: for work on one thread, since other load hardly affects it.
double processor_seconds();

double wall_seconds_of(const std::function<void()>& work);
double processor_seconds_of(const std::function<void()>& work);

struct Side {
  std::function<double()> turn;        // works for a moment and returns the wall seconds to count
  double amount = 1;                   // units of work per turn: times are divided by it
  std::vector<pid_t> processes = {};   // that do the work; empty: this process and children that have ended
  std::function<void()> warm_up = {};  // before each turn, not counted
};

// A side whose work is steps: as many as take about 0.2 s, with a tenth of them as warm-up before
// each turn. `train` runs a number of steps and returns their seconds.
Side side_of_steps(const std::function<double(std::int64_t)>& train, std::vector<pid_t> processes = {},
                   bool warms_up = true);

struct Turns {
  int wanted = 7;    // turns per side
  int most = 21;     // turns to try if other programs are busy
  double pause = 0;  // seconds before each turn, until threads of the previous side stop spinning
};

struct Times {
  double median = 0;
  double spread = 0;     // half of the turns are this close to the median, as a share of it
  double processor = 0;  // of all threads together
  double others = 0;     // processors used by other programs meanwhile
};

// In the order of the sides.
std::vector<Times> take_turns(std::span<const Side> sides, const Turns& turns);

}  // namespace weft::bench
