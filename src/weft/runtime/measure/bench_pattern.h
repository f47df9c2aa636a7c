// weft/runtime/measure/bench_pattern.h -- numbers by which a collective's result is known to be right.
//
//   element i of block b of rank r:  1 to 5, drawn from (r, b, i mod 61)
//
// Whole numbers so small that every type holds their sums exactly, in any order of adding. They
// come again every 61 elements, so that filling is copying and checking is comparing: a 64 MiB
// buffer takes milliseconds.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "weft/runtime/measure/bench_turn.h"

namespace weft::measure {

class BenchPattern {
 public:
  BenchPattern(const BenchTurn& turn, std::int32_t ranks, std::int32_t rank);

  std::int64_t input_bytes() const;  // of this rank
  std::int64_t output_bytes() const;

  // What this rank puts in; in place, `input` lies in `output` or the other way round.
  void fill(std::byte* input) const;
  // How many elements of the result are not what they must be.
  std::int64_t wrong(const std::byte* output) const;

 private:
  std::string period(std::int32_t first_rank, std::int32_t last_rank, std::int32_t block) const;
  std::int64_t blocks_in() const;
  std::int64_t blocks_out() const;

  collective::Kind kind_;
  device::ElementType type_;
  std::int64_t elements_;  // of a block
  std::int32_t ranks_, rank_;
};

}  // namespace weft::measure
