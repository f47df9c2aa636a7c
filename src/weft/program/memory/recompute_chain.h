// weft/program/memory/recompute_chain.h -- dynamic programming over a chain of blocks.
//
//   i |-- advance, keeping only the end of k ----> k |--- solve(k, j) ---| j     then solve(i, k)
//   i |- block, keeping some of it -> i+1 |------- solve(i+1, j) -------| j     then the block's B
//
// solve(i, j) starts with the base of block i and the gradient of block j's end, and finishes with
// the gradient of that base. It is exact among schedules that keep the end of an advance until its
// B, for sizes that are multiples of the unit. This is the recursion of Griewank and Walther's
// revolve ("Algorithm 799", TOMS 2000) and of Beaumont et al. for heterogeneous stages ("Optimal
// checkpointing for heterogeneous chains", 2019), with exactly solved blocks in place of stages.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "weft/program/memory/recompute_blocks.h"

namespace weft::memory {

class ChainSchedules {
 public:
  explicit ChainSchedules(const Blocks& blocks);

  // The least recomputation time within `memory` bytes, without the graph's input; infinite if
  // nothing was found.
  double cost(std::int64_t memory) const;
  std::vector<RecomputeStep> steps(std::int64_t memory) const;  // REQUIRES: a finite cost

 private:
  // The cost of solve(), by memory in units. Cold: the end of the last block is not held. Warm: it
  // is.
  struct Span {
    std::vector<double> cold, warm;
  };
  struct Choice {
    std::size_t split = 0, way = 0;  // the last block of the advance; or 0 and a way of the first block
  };

  const Span& span(std::size_t i, std::size_t j) const { return spans_[blocks_.stretch(i, j)]; }
  const BlockKind& kind(std::size_t block) const { return blocks_.kinds[blocks_.blocks[block].kind]; }
  std::int64_t held(std::size_t j, bool warm) const;  // gradient and end of the last block during an advance
  void fill(std::size_t i, std::size_t j, bool warm);
  template <class Take>
  void each_choice(std::size_t i, std::size_t j, bool warm, Take take) const;
  void emit(std::size_t i, std::size_t j, std::int64_t memory, bool warm) const;
  void emit_forward(std::size_t block, std::uint32_t kept, bool drops_base) const;
  void emit_backward(std::size_t block, std::uint32_t there, std::int64_t memory) const;

  const Blocks& blocks_;
  std::size_t count_;
  std::vector<Span> spans_;  // by range
  mutable std::vector<RecomputeStep> steps_;
};

}  // namespace weft::memory
