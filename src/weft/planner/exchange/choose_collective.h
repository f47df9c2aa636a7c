// weft/planner/exchange/choose_collective.h -- which algorithm for which size of message, and why.
//
//   128 B to 147 KiB    all_pairs   next ring (1.12x), tree (1.19x)   latency-bound: 2 steps against 14
//   147 KiB to 32 MiB   ring        next tree (1.48x)                 bandwidth-bound: sends 1.75x ...
//
// The winner at a size is whoever takes the least time there; neighbouring sizes with one winner are one
// range, and the size at which the winner changes is found by halving. There is no hysteresis: the answer
// depends on the curves alone.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/chunks/program.h"

namespace weft::exchange {

// What explains a candidate's time. A value of 0 is not known and explains nothing.
struct CollectiveFacts {
  double steps = 0;           // messages in a row on the longest chain
  double wire = 0;            // what the busiest rank sends, as a share of the buffer
  std::int32_t slots = 0;     // of a connection that the program needs
  std::int32_t channels = 0;  // that it spreads over
  collective::Protocol protocol = collective::Protocol::simple;
};

struct CollectiveCandidate {
  std::string name;
  CollectiveFacts facts = {};
  std::function<double(std::int64_t)> seconds;  // of a call of so many bytes; infinite: it cannot do that
  // Candidates that differ in parameters and protocol only. Runners-up are of other families than the
  // winner and one another: whom else there is says more than the same thing slightly changed.
  std::string family = {};
};

// A candidate known by its times at some sizes, straight lines in log bytes, log seconds between them;
// it cannot do other sizes. REQUIRES: as many seconds as sizes, sizes ascending and positive.
CollectiveCandidate tabled(std::string name, const CollectiveFacts& facts,
                           std::span<const std::int64_t> sizes, std::span<const double> seconds);

struct RunnerUp {
  std::size_t candidate = 0;
  double ratio = 1;  // its time over the winner's, the geometric mean over the sizes of the range
};

struct CollectiveRange {
  std::int64_t min_bytes = 0, max_bytes = 0;  // both belong to it
  std::size_t best = 0;                       // of the candidates
  std::vector<RunnerUp> runners_up;           // the nearest first, two at most, a family each
  std::string why;                            // "latency-bound: 4 steps against 14"
};

struct CollectiveChoice {
  std::vector<CollectiveRange> ranges;  // by size; a hole where no candidate can do it
};

// Looks at `sizes`, which ascend; what happens between two of them is seen only where their winners
// differ. Of equals the first wins.
Result<CollectiveChoice> choose_collective(std::span<const CollectiveCandidate> candidates,
                                           std::span<const std::int64_t> sizes);

}  // namespace weft::exchange
