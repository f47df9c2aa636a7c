// weft/predict/sim/trace/execution_trace.h -- each rank's work as nodes with dependencies.
//
//   rank 0   fwd ──▶ bwd ──▶ all-reduce ──▶ update        rank 1   fwd ──▶ bwd ──▶ all-reduce ──▶ update
//
// The nodes of a rank are ordered by id; a rank runs ready nodes in this order. formats/chakra.h
// reads and writes traces, trace_run.h runs them.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::sim {

struct TraceNode {
  enum class Kind : std::uint8_t { nothing, compute, memory, send, receive, collective };
  // Kinds after all_to_all have no algorithm: they take the time recorded in the trace.
  enum class Collective : std::uint8_t { all_reduce, all_gather, reduce_scatter, all_to_all, other };

  std::uint64_t id = 0;
  std::string name = {};
  Kind kind = Kind::nothing;
  Collective collective = Collective::other;
  bool on_cpu = false;
  double seconds = 0;                     // as recorded in the trace
  double operations = 0;                  // for compute
  double tensor_bytes = 0;                // for compute: bytes read and written
  std::int64_t bytes = 0;                 // communication; all-gather: per rank
  std::int32_t peer = -1;                 // for a send or receive: the other rank
  std::int64_t tag = 0;                   // for a send or receive
  std::int32_t group = -1;                // for a collective: index in ExecutionTrace::groups; -1: all ranks
  std::vector<std::uint32_t> after = {};  // nodes of this rank that it depends on

  friend bool operator==(const TraceNode&, const TraceNode&) = default;
};

std::string_view name(TraceNode::Collective collective);  // all-gather

struct RankTrace {
  std::vector<TraceNode> nodes;

  friend bool operator==(const RankTrace&, const RankTrace&) = default;
};

struct RankGroup {
  std::string name;
  std::vector<std::int32_t> ranks;  // in the order of the collective's steps

  friend bool operator==(const RankGroup&, const RankGroup&) = default;
};

struct ExecutionTrace {
  std::vector<RankTrace> ranks;
  std::vector<RankGroup> groups;
  std::vector<std::string> notes = {};  // what the reader skipped, one sentence each
};

}  // namespace weft::sim
