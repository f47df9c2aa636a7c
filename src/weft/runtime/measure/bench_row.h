// weft/runtime/measure/bench_row.h -- measurements of one collective, and how libraries compare.
//
//   all_reduce, 4 ranks, shm, 4096 bytes     weft private      2.6 us
//                                            openmpi cma      27.6 us
//                                            openmpi ucx       9.2 us    the best peer: weft is 3.54x faster
//
// Ratios are within one run: libraries take turns, so any disturbance affects all of them.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "weft/collectives/chunks/collective.h"

namespace weft::measure {

struct BenchSample {
  double seconds = 0;            // per call, of the slowest rank
  double processor_seconds = 0;  // per call, summed over ranks
  std::int64_t wrong = 0;        // elements
};

struct BenchRow {
  collective::Kind kind = collective::Kind::all_reduce;
  std::int32_t ranks = 1;
  std::string transport;
  std::int64_t bytes = 0;  // message size, the larger buffer of a rank
  std::int64_t count = 0;  // elements, as nccl-tests counts them
  std::string type;        // "float"
  bool in_place = false;
  std::string peer;          // "weft", or another library
  std::string setting;       // "private", "no cma"
  std::string failure = {};  // the reason, if there are no times

  std::int32_t repeats = 0;
  double seconds = 0, fastest = 0, slowest = 0;  // median, minimum, maximum
  double processor_seconds = 0;                  // median
  std::int64_t wrong = 0;                        // maximum
  double limit = 0;                              // seconds, lower bound of this machine; 0: unknown

  // Set by compare(); 0 if there is nothing to compare with.
  double ratio_to_best_peer = 0;  // the best peer's time over this time; above 1: faster than all peers
  std::string best_peer = {};     // "openmpi ucx"
  double ratio_to_limit = 0;      // this time over the limit; 1: as fast as the machine allows

  bool measured() const { return failure.empty() && seconds > 0; }
  bool is_weft() const { return peer == "weft"; }
  std::string side() const { return setting.empty() ? peer : peer + " " + setting; }
};

// Sets the times of `row` from its repetitions.
void summarize(std::span<const BenchSample> samples, BenchRow& row);

// Sets the ratios of rows that share collective, number of ranks, transport and size.
void compare(std::span<BenchRow> rows);

// A setting of Weft against the best peers, over all sizes of one collective, number of ranks and
// transport.
struct BenchSummary {
  collective::Kind kind = collective::Kind::all_reduce;
  std::int32_t ranks = 1;
  std::string transport, side;
  double mean = 0;   // geometric mean of ratio_to_best_peer
  double worst = 0;  // the smallest of them, ...
  std::int64_t worst_bytes = 0;
  std::string worst_peer;  // ... and against which peer
  double limit_mean = 0;   // geometric mean of ratio_to_limit
  std::int64_t sizes = 0;
};
std::vector<BenchSummary> summarize(std::span<const BenchRow> rows);

}  // namespace weft::measure
