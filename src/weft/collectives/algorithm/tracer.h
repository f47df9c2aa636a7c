// weft/collectives/algorithm/tracer.h -- runs an algorithm for trace(); internal to its files.
//
//   trace.cpp       parameters, memory, statements
//   trace_call.cpp  CALL, and the mapping of a callee's moves to the outermost caller's ranks and memory
//
//   all_reduce_hierarchical            Run: ranks 0..7, data
//     CALL reduce_scatter_ring           Run: rank i is rank 4 + i of the caller, data[j] is data[j] there
//
// Functions return false after a failure; the first failure is in progress_.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "weft/collectives/algorithm/algorithm.h"
#include "weft/collectives/algorithm/evaluation.h"
#include "weft/collectives/chunks/places.h"

namespace weft::collective {

inline constexpr std::int64_t kMostChannels = 65536;

// An algorithm being executed: the traced one or a callee.
struct Run {
  Run(const AlgorithmSyntax& algorithm, Progress& progress)
      : syntax(algorithm), values(algorithm, progress) {}

  const AlgorithmSyntax& syntax;
  Evaluation values;
  Collective collective;
  Places places;
  std::vector<std::int32_t> scratch;  // chunks of scratch, per rank

  Run* caller = nullptr;
  const Call* call = nullptr;
  std::int32_t depth = 1;
  std::vector<std::int32_t> caller_ranks;     // this algorithm's rank -> the caller's rank
  std::vector<std::int32_t> outermost_ranks;  // this algorithm's rank -> the outermost caller's rank
  std::vector<std::int32_t> scratch_first;    // offset of its scratch in the outermost caller's
  std::int64_t channel_offset = -1;           // -1: channels are not shifted
};

class Tracer {
 public:
  Tracer(const AlgorithmLibrary& library, const TraceLimits& limits) : library_(library), limits_(limits) {
    progress_.work_left = limits.work;
  }

  Result<Moves> trace(const AlgorithmSyntax& syntax, const Arguments& arguments);

 private:
  bool start(Run& run, const Arguments& arguments);
  bool make_collective(Run& run);
  bool make_scratch(Run& run);
  bool small(Run& run, ExpressionId id, std::string_view what, std::int32_t& result);

  bool execute(Run& run, const Block& block);
  bool execute(Run& run, const Statement& statement);
  bool execute(Run& run, const ForLoop& loop, Span span);
  bool execute(Run& run, const WhileLoop& loop, Span span);
  bool execute(Run& run, const Branch& branch);
  bool execute(Run& run, const Transfer& transfer, Span span);
  bool execute(Run& run, const Call& call, Span span);
  bool execute(Run& run, const Requirement& requirement, Span span);
  bool execute(Run& run, const WantClause& promise);

  const Algorithm* find_callee(Run& run, const Call& call, Span span);
  bool place_ranks(Run& callee, Span span);
  bool take_place(Run& run, const PlaceSyntax& syntax, std::int64_t count, Place& result);
  bool emit(Run& run, const Move& move, Span span);
  bool emit_outermost(Run& run, Move move, Span span);
  bool map_to_caller(Run*& run, Place& place);

  const AlgorithmLibrary& library_;
  TraceLimits limits_;
  Progress progress_;
  Moves moves_;
  std::int64_t moved_chunks_ = 0, memory_chunks_ = 0, contributions_ = 0;
};

}  // namespace weft::collective
