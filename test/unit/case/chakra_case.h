// test/unit/case/chakra_case.h -- small hand-written execution traces.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "weft/predict/sim/trace/execution_trace.h"
#include "weft/predict/sim/trace/trace_network.h"
#include "weft/predict/sim/trace/trace_system.h"

namespace weft::sim {

inline TraceNode computing(std::uint64_t id, double seconds, std::vector<std::uint32_t> after = {}) {
  return {.id = id,
          .name = "compute",
          .kind = TraceNode::Kind::compute,
          .seconds = seconds,
          .after = std::move(after)};
}

inline TraceNode meeting(std::uint64_t id, TraceNode::Collective collective, std::int64_t bytes,
                         std::vector<std::uint32_t> after = {}, std::int32_t group = -1) {
  return {.id = id,
          .name = std::string(name(collective)),
          .kind = TraceNode::Kind::collective,
          .collective = collective,
          .bytes = bytes,
          .group = group,
          .after = std::move(after)};
}

inline TraceNode mail(std::uint64_t id, TraceNode::Kind kind, std::int32_t peer, std::int64_t bytes,
                      std::int64_t tag, std::vector<std::uint32_t> after = {}) {
  return {.id = id,
          .name = kind == TraceNode::Kind::send ? "send" : "receive",
          .kind = kind,
          .bytes = bytes,
          .peer = peer,
          .tag = tag,
          .after = std::move(after)};
}

// The same nodes on every rank.
inline ExecutionTrace alike(std::int32_t ranks, std::vector<TraceNode> nodes) {
  ExecutionTrace trace;
  trace.ranks.assign(static_cast<std::size_t>(ranks), {std::move(nodes)});
  return trace;
}

// 1 GB/s and 1 us, so that a kilobyte takes one microsecond plus one of latency.
inline TraceNetwork network_of(std::vector<std::pair<TraceDimension::Kind, std::int32_t>> dimensions) {
  TraceNetwork network;
  for (const auto& [kind, ranks] : dimensions) network.dimensions.push_back({kind, ranks, 1e9, 1e-6});
  return network;
}

}  // namespace weft::sim
