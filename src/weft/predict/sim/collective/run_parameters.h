// weft/predict/sim/collective/run_parameters.h -- a runtime's costs besides the wires.
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
  double step_seconds = 0;    // for a threadblock to proceed to its next step
  double message_seconds =
      0;  // from the last byte's arrival until the receiver sees it, and likewise for a freed slot

  // The rate at which one threadblock copies or reduces.
  double copy_bytes_per_second = std::numeric_limits<double>::infinity();
  double reduce_bytes_per_second = std::numeric_limits<double>::infinity();

  double efficiency = 1;           // fraction of a connection's bytes that is data
  double packet_efficiency = 0.5;  // the same for packets: four bytes of flag per four of data

  // A chunk with more slices than this is simulated only up to here. The rest is extrapolated at
  // the rate between the first and the last quarter.
  std::int32_t max_slices = 16;
};

// A protocol's parameters between GPUs joined by NVLink, from NCCL's own model and buffer sizes.
// Latencies do not include the link's own latency.
RunParameters run_parameters(collective::Protocol protocol);

}  // namespace weft::sim
