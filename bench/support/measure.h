// bench/support/measure.h -- times that can be compared.
//
//   side A  |===|     |===|     |===|        Sides take turns in one run, so a machine that slows
//   side B       |===|     |===|     |===|   down slows them all; the medians are compared.
//
// A turn is spoilt when other programs compute meanwhile, so turns go on for a while until enough of
// them were quiet, and the quietest are kept: chosen by what others did, never by the time itself.
// What others use is read from /proc/stat; where there is none, every turn is quiet.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "weft/base/median.h"

namespace weft::bench {

double wall_seconds();
// Of this thread: for work on one thread, which a busy machine then does not slow down.
double processor_seconds();

double wall_seconds_of(const std::function<void()>& work);
double processor_seconds_of(const std::function<void()>& work);

struct Side {
  std::function<double()> turn;        // works for a moment and returns the wall seconds that count
  double amount = 1;                   // of work in a turn: times are divided by it
  std::vector<pid_t> processes = {};   // who do the work; none: this process and children that have ended
  std::function<void()> warm_up = {};  // before each turn, not counted
};

// A side whose work is steps: as many as take some 0.2 s, a tenth of them to warm up before each turn.
// `train` returns the seconds of so many.
Side side_of_steps(const std::function<double(std::int64_t)>& train, std::vector<pid_t> processes = {},
                   bool warms_up = true);

struct Turns {
  int wanted = 7;    // of each side
  int most = 21;     // tried, when others are busy
  double pause = 0;  // seconds before each turn: threads of the side before may still look for work
};

struct Times {
  double median = 0;
  double spread = 0;     // half of the turns are this near to the median, as a share of it
  double processor = 0;  // of all threads together; on one thread, what a busy machine delays least
  double others = 0;     // processors that other programs used meanwhile
};

// In the order of the sides.
std::vector<Times> take_turns(std::span<const Side> sides, const Turns& turns);

}  // namespace weft::bench
