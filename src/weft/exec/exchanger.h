// weft/exec/exchanger.h -- what a rank asks to have its values moved to and from other ranks.
//
//   program   [product][Exchange all_reduce][update]     the rank's crew hands over each Exchange, in the
//                        │                               program's order, when what it waits for is done
//                        ▼
//   Exchanger::run(exchange, operand, result)            comm_exchanger.h: over weft::comm
//
// Called by one thread at a time, and in the same order on all ranks.
#pragma once
#include <cstddef>
#include <span>

#include "weft/base/result.h"
#include "weft/program/program.h"

namespace weft::exec {

class Exchanger {
 public:
  virtual ~Exchanger() = default;

  // Before the first step: all exchanges of the program, in its order. Collective.
  virtual Status prepare(std::span<const program::Exchange* const> exchanges) = 0;

  // Returns when `result` is complete and `operand` may be written again. An error is final: whoever else
  // takes part hears of it, and every later exchange fails.
  virtual Status run(const program::Exchange& exchange, const std::byte* operand, std::byte* result) = 0;

  // Memory that exchanges reach without copying, zero until written; null where there is no better than any
  // other. Freed with the exchanger at the latest, after the rank that lies in it.
  virtual std::byte* allocate(std::size_t bytes) = 0;
  virtual void free(std::byte* memory) = 0;
};

}  // namespace weft::exec
