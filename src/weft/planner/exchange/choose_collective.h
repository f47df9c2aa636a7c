// weft/planner/exchange/choose_collective.h -- choose an algorithm per message size, and explain it.
//
//   128 B to 147 KiB    all_pairs   next ring (1.12x), tree (1.19x)   latency-bound: 2 steps against 14
//   147 KiB to 32 MiB   ring        next tree (1.48x)                 bandwidth-bound: sends 1.75x ...
//
// The candidate with the least time at a size wins. Neighbouring sizes with the same winner form a
// range, and bisection finds the size at which the winner changes. There is no hysteresis: the
// result depends only on the curves.
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

// What explains a candidate's time. 0 means unknown and explains nothing.
struct CollectiveFacts {
  double steps = 0;           // sequential messages on the longest chain
  double wire = 0;            // bytes that the busiest rank sends, over the buffer size
  std::int32_t slots = 0;     // FIFO slots per connection that the program needs
  std::int32_t channels = 0;  // channels that it uses
  collective::Protocol protocol = collective::Protocol::simple;
};

struct CollectiveCandidate {
  std::string name;
  CollectiveFacts facts = {};
  std::function<double(std::int64_t)> seconds;  // of a call with this many bytes; infinite: unsupported
  // Candidates of a family differ only in parameters and protocol. The winner and the runners-up
  // are all of different families, since real alternatives say more than small variations.
  std::string family = {};
};

// A candidate given by its times at some sizes, interpolated linearly in log bytes and log seconds.
// Other sizes are unsupported. REQUIRES: as many seconds as sizes; sizes ascending and positive.
CollectiveCandidate tabled(std::string name, const CollectiveFacts& facts,
                           std::span<const std::int64_t> sizes, std::span<const double> seconds);

struct RunnerUp {
  std::size_t candidate = 0;
  double ratio = 1;  // its time over the winner's: geometric mean over the range's sizes
};

struct CollectiveRange {
  std::int64_t min_bytes = 0, max_bytes = 0;  // inclusive
  std::size_t best = 0;                       // index of the winning candidate
  std::vector<RunnerUp> runners_up;           // by ratio, at most two, of different families
  std::string why;                            // "latency-bound: 4 steps against 14"
};

struct CollectiveChoice {
  std::vector<CollectiveRange> ranges;  // by size; with gaps where no candidate can run
};

// Evaluates at `sizes`, which must ascend. Between two of them it only searches if their winners
// differ. The first of several equal candidates wins.
Result<CollectiveChoice> choose_collective(std::span<const CollectiveCandidate> candidates,
                                           std::span<const std::int64_t> sizes);

}  // namespace weft::exchange
