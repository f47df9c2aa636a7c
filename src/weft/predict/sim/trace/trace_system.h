// weft/predict/sim/trace/trace_system.h -- how the ranks of a trace compute and communicate.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "weft/predict/sim/trace/traffic.h"

namespace weft::sim {

enum class TraceAlgorithm : std::uint8_t { ring, direct, halving_doubling, double_binary_tree };

std::string_view name(TraceAlgorithm algorithm);  // halvingDoubling

struct TraceSystem {
  // By dimension of the network; a shorter list goes on with its last.
  std::vector<TraceAlgorithm> all_reduce, all_gather, reduce_scatter, all_to_all;
  std::int32_t chunks = 1;         // that a collective is cut into
  std::int32_t active_chunks = 1;  // of a rank in one dimension at once
  // An all-reduce over several dimensions is one all-reduce after the other. False: it scatters along all but
  // the last, where little is left to reduce, and gathers on the way back.
  bool whole_all_reduces = false;
  double endpoint_seconds = 0;         // before the first message and after each
  double memory_bytes_per_second = 0;  // 0: what a reduction reads and writes takes no time
  bool roofline = false;  // compute takes what its operations and bytes take, not what the trace says
  double operations_per_second = 0;
  bool replay = false;  // communication takes what the trace says, too
  // Collectives and sends of a rank at once.
  std::int32_t communications = 1;
  WireModel wires = WireModel::cut_through;
};

}  // namespace weft::sim
