// weft/predict/sim/collective/run_parameters.h -- what a runtime costs besides the wires.
#pragma once
#include <cstdint>
#include <limits>

#include "weft/collectives/chunks/program.h"

namespace weft::sim {

struct RunParameters {
  // A connection holds `slots` messages of at most `slot_bytes` of data each.
  std::int32_t slots = 2;
  double slot_bytes = 2 << 20;

  double launch_seconds = 0;  // before the first step
  double step_seconds = 0;    // a threadblock takes to come to its next step
  double message_seconds =
      0;  // from the last byte's arrival until the receiver has seen it, and back for a slot

  // One threadblock moves and adds so many bytes per second.
  double copy_bytes_per_second = std::numeric_limits<double>::infinity();
  double reduce_bytes_per_second = std::numeric_limits<double>::infinity();

  double efficiency = 1;           // data among the bytes that a connection sends
  double packet_efficiency = 0.5;  // the same for packet cells: four bytes of flag with four of data

  // A chunk longer than this many slots is not walked to its end: the pace between the first and the last
  // quarter of them is taken to hold on.
  std::int32_t most_slices = 16;
};

// What NCCL's own model and buffers say of a protocol between GPUs joined by NVLink. Latencies are for
// links whose own latency is counted apart.
RunParameters run_parameters(collective::Protocol protocol);

}  // namespace weft::sim
