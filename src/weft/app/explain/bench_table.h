// weft/app/explain/bench_table.h -- measured collectives in the columns of nccl-tests, and as JSON.
//
//   all_reduce, 4 ranks, shm
//   size       count   type  redop  root  side          time   algbw   busbw  #wrong   cpu  ratio  limit
//    (B)  (elements)                                    (us)  (GB/s)  (GB/s)          (us)
//   4096        1024  float    sum    -1  weft private   2.6    1.58    2.36       0   5.1   3.54    6.2
//                                         openmpi ucx    9.2    0.45    0.67       0  36.0   1.00   21.9
//
// `ratio` is the best peer's time divided by this side's time. `limit` is this side's time divided
// by the machine's minimum.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/runtime/measure/bench_row.h"

namespace weft::explain {

// Compares rows of one collective, number of ranks and transport, in ascending order of size.
std::string bench_table(std::span<const measure::BenchRow> rows);

// "weft private: 2.7 times the best peer in the geometric mean over 10 sizes; least 1.4 at 64 MiB
// (openmpi no cma)"
std::string bench_summary(std::span<const measure::BenchRow> rows);

struct BenchCopies {
  std::int64_t bytes = 0;
  double one = 0, all = 0;  // memcpy bytes per second of one thread, and of all cores together
};

struct BenchFacts {
  int cores = 0;
  double stolen = 0;  // share of CPU time stolen by the hypervisor, 0 to 1
  double shm_latency = 0, tcp_latency = 0, tcp_rate = 0;      // seconds, bytes per second; 0: not measured
  std::vector<BenchCopies> copies;                            // by size
  std::vector<std::pair<std::string, std::string>> versions;  // of the libraries
  std::vector<std::string> left_out;
};

// "2 cores; memcpy of 64 MiB 25.5 GB/s by one, 46 GB/s by all; one way between cores 125 ns; 2.1 % stolen"
std::string bench_machine(const BenchFacts& facts);

// An object with "rows", "summary", "machine", "versions" and "left_out".
std::string bench_json(std::span<const measure::BenchRow> rows, const BenchFacts& facts);

}  // namespace weft::explain
