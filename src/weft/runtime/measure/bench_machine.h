// weft/runtime/measure/bench_machine.h -- lower bounds on collective times on this machine.
//
// Shared memory. N ranks, message of S bytes (the larger buffer of a rank). Every algorithm must
// read every input and write every output at least once:
//
//                    read      written    as copies of S bytes, half of both
//   all_reduce       N S       N S        N
//   reduce_scatter   N S       S          (N + 1) / 2
//   all_gather       S         N S        (N + 1) / 2          in place, a rank's own block is not moved:
//   all_to_all       N S       N S        N                    N S - S fewer bytes are written (and read)
//   broadcast        S         (N - 1) S  N / 2
//
// So a call takes at least as long as all cores together need to copy that much between buffers of
// that size. It also takes at least one message latency, because every rank needs data from others.
// (The root of a broadcast can run ahead, so consecutive broadcasts are not bound by latency.)
//
// TCP. At least 2 (N - 1) S bytes pass through the kernel for an all_reduce, and (N - 1) S for the
// others. The rate is that of one stream per pair of cores.
#pragma once
#include <cstdint>
#include <map>
#include <string_view>

#include "weft/base/result.h"
#include "weft/collectives/chunks/collective.h"

namespace weft::measure {

// Lower bounds over all ranks: bytes to copy (shm) and bytes to send (tcp).
double least_copied(collective::Kind kind, std::int32_t ranks, double message_bytes, bool in_place);
double least_sent(collective::Kind kind, std::int32_t ranks, double message_bytes);

class BenchMachine {
 public:
  explicit BenchMachine(int cores) : cores_(cores) {}

  int cores() const { return cores_; }

  // Seconds for `threads` threads to copy `bytes` in total, each between its own buffers.
  double copy_seconds(double bytes, int threads);
  double shm_latency();  // one-way seconds between two spinning threads
  double tcp_latency();  // one-way, over loopback
  double tcp_rate();     // bytes per second of one loopback stream

  double limit(std::string_view transport, collective::Kind kind, std::int32_t ranks, double message_bytes,
               bool in_place);

 private:
  void measure_tcp();

  int cores_;
  std::map<std::pair<std::int64_t, int>, double> copies_;  // measured so far, by bytes and threads
  double shm_latency_ = 0, tcp_latency_ = 0, tcp_rate_ = 0;
};

}  // namespace weft::measure
