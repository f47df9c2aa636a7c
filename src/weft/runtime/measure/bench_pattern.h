// weft/runtime/measure/bench_pattern.h -- input data that makes a collective's result easy to check.
//
//   element i of block b of rank r:  1 to 5, drawn from (r, b, i mod 61)
//
// The values are small integers, so every type holds their sums exactly in any order of addition.
// They repeat every 61 elements, so filling is a memcpy and checking a memcmp: a 64 MiB buffer
// takes milliseconds.
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

  // Writes this rank's input. In place, `input` is part of `output` or vice versa.
  void fill(std::byte* input) const;
  // The number of wrong elements in the result.
  std::int64_t wrong(const std::byte* output) const;

 private:
  std::string period(std::int32_t first_rank, std::int32_t last_rank, std::int32_t block) const;
  std::int64_t blocks_in() const;
  std::int64_t blocks_out() const;

  collective::Kind kind_;
  device::ElementType type_;
  std::int64_t elements_;  // per block
  std::int32_t ranks_, rank_;
};

}  // namespace weft::measure
