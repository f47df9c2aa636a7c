// weft/runtime/measure/bench_machine.h -- what no collective on this machine can beat, measured and derived.
//
// Shared memory. N ranks, message of S bytes (the larger buffer of a rank). Every input must be read and
// every output written once, whatever the algorithm:
//
//                    read      written    as copies of S bytes, half of both
//   all_reduce       N S       N S        N
//   reduce_scatter   N S       S          (N + 1) / 2
//   all_gather       S         N S        (N + 1) / 2          in place a rank's own block is already there:
//   all_to_all       N S       N S        N                    N S - S fewer bytes are written (and read)
//   broadcast        S         (N - 1) S  N / 2
//
// so a call takes at least as long as all cores together need to copy that much between buffers of that size.
// And nobody is done before the others' data came: at least one message one way. (A broadcast's root may run
// ahead, so that calls in a row are not bound by it.)
//
// TCP. Through the kernel go at least 2 (N - 1) S bytes for an all_reduce and (N - 1) S for the others, at
// the rate of as many streams as there are pairs of cores.
#pragma once
#include <cstdint>
#include <map>
#include <string_view>

#include "weft/base/result.h"
#include "weft/collectives/chunks/collective.h"

namespace weft::measure {

// Bytes to copy (shm) or to send (tcp) at least, over all ranks.
double least_copied(collective::Kind kind, std::int32_t ranks, double message_bytes, bool in_place);
double least_sent(collective::Kind kind, std::int32_t ranks, double message_bytes);

class BenchMachine {
 public:
  explicit BenchMachine(int cores) : cores_(cores) {}

  int cores() const { return cores_; }

  // Seconds for `threads` threads to copy `bytes` together, each its part from one buffer to another.
  double copy_seconds(double bytes, int threads);
  double shm_latency();  // seconds one way, two threads that spin
  double tcp_latency();  // over loopback
  double tcp_rate();     // bytes per second of one stream over loopback

  double limit(std::string_view transport, collective::Kind kind, std::int32_t ranks, double message_bytes,
               bool in_place);

 private:
  void measure_tcp();

  int cores_;
  std::map<std::pair<std::int64_t, int>, double> copies_;  // by bytes and threads: measured once
  double shm_latency_ = 0, tcp_latency_ = 0, tcp_rate_ = 0;
};

}  // namespace weft::measure
