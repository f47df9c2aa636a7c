#include "weft/predict/sim/collective/run_parameters.h"

namespace weft::sim {

// Figures of NCCL 2.30: buffers from init.cc and device.h, bandwidths and latencies from
// graph/tuning.cc.
RunParameters run_parameters(collective::Protocol protocol) {
  constexpr double kMicro = 1e-6;
  RunParameters made;
  made.slots = collective::fifo_slots(protocol);
  // From issuing a kernel to its first instruction, as in the shipped device descriptions.
  made.launch_seconds = 4 * kMicro;
  // The rate of a threadblock. The tuner assigns one Ampere channel 24 GB/s in a tree
  // (perChMaxTreeBws) and 20 GB/s in a ring with LL128 (perChMaxRingLL128Bws).
  made.copy_bytes_per_second = made.reduce_bytes_per_second = 24e9;
  // hwLatencies of a ring over NVLink are 0.6, 1.9 and 3.4 us per step for LL, LL128 and Simple.
  // LL's counts as the link's own latency. The excess of the others is split into flag latency and
  // barriers of the threadblock.
  switch (protocol) {
    case collective::Protocol::simple:
      made.slot_bytes = (4 << 20) / 8 * 4;  // DEFAULT_BUFFSIZE / NCCL_STEPS, four steps per slot
      made.message_seconds = 1.4 * kMicro;
      made.step_seconds = 1.4 * kMicro;
      break;
    case collective::Protocol::ll:
      // 8 lines of 16 bytes for each of 512 threads, half of it data.
      made.slot_bytes = 8 * 512 * 16 / 2;
      made.efficiency = 1.0 / 2;
      // A single threadblock reaches half: llMaxBws are 39 to 88 GB/s of data for all channels
      // together.
      made.copy_bytes_per_second = made.reduce_bytes_per_second = 12e9;
      made.message_seconds = 0;
      made.step_seconds = 0.1 * kMicro;
      break;
    case collective::Protocol::ll128:
      made.slot_bytes = 120 * 640 * 8 * 15 / 16;  // 120 words for each of 640 threads, 15 of 16 data
      made.efficiency = 15.0 / 16;
      made.copy_bytes_per_second = made.reduce_bytes_per_second = 20e9;
      made.message_seconds = 0.3 * kMicro;
      made.step_seconds = 1.0 * kMicro;
      break;
  }
  return made;
}

}  // namespace weft::sim
