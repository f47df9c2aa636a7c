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
  // By dimension of the network; the last entry applies to all further dimensions.
  std::vector<TraceAlgorithm> all_reduce, all_gather, reduce_scatter, all_to_all;
  std::int32_t chunks = 1;         // per collective
  std::int32_t active_chunks = 1;  // per rank and dimension at once
  // True: an all-reduce over several dimensions is one all-reduce per dimension. False:
  // reduce-scatter along all but the last, all-reduce along the last, then all-gather in reverse
  // order.
  bool whole_all_reduces = false;
  double endpoint_seconds = 0;         // before the first message and after each
  double memory_bytes_per_second = 0;  // 0: reductions take no time
  bool roofline = false;               // compute time from operations and bytes, not from the trace
  double operations_per_second = 0;
  bool replay = false;  // communication time from the trace, too
  // Concurrent collectives and sends per rank.
  std::int32_t communications = 1;
  WireModel wires = WireModel::cut_through;
};

}  // namespace weft::sim
