// weft/predict/sim/trace/execution_trace.h -- what each rank of a job did, as nodes that wait for each other.
//
//   rank 0   fwd ──▶ bwd ──▶ all-reduce ──▶ update        rank 1   fwd ──▶ bwd ──▶ all-reduce ──▶ update
//
// The nodes of a rank stand in order of their id, by which a rank chooses among those that are ready.
// formats/chakra.h reads and writes them, trace_run.h runs them.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::sim {

struct TraceNode {
  enum class Kind : std::uint8_t { nothing, compute, memory, send, receive, collective };
  // Those after all_to_all have no algorithm: they take the time that the trace says they took.
  enum class Collective : std::uint8_t { all_reduce, all_gather, reduce_scatter, all_to_all, other };

  std::uint64_t id = 0;
  std::string name = {};
  Kind kind = Kind::nothing;
  Collective collective = Collective::other;
  bool on_cpu = false;
  double seconds = 0;                     // as the trace has it
  double operations = 0;                  // of compute
  double tensor_bytes = 0;                // of compute: what it reads and writes
  std::int64_t bytes = 0;                 // of communication; of an all-gather what each rank gives
  std::int32_t peer = -1;                 // of a send and a receive: the other rank
  std::int64_t tag = 0;                   // of a send and a receive
  std::int32_t group = -1;                // of a collective, in ExecutionTrace::groups; -1: all ranks
  std::vector<std::uint32_t> after = {};  // nodes of this rank that must be done before

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
  std::vector<std::string> notes = {};  // what the reader had to leave out, a sentence each
};

}  // namespace weft::sim
