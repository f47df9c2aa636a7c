// weft/device/cuda/row_source.h -- a loop over rows as the text of CUDA kernels.
//
//   steps need no whole row     a thread some elements side by side
//   they do (sums, softmax)     a block of threads a row, or a warp where rows are short, with a loop a phase:
//
//                                 for each j: v = x[j] - r[j]; sum += v        phase 0
//                                 mean = over_row(sum) / n
//                                 for each j: y[j] = (v - mean) * ..           phase 1; v was kept
//
//   sums over all rows          threads own places of the row: each adds up what its rows give there
//   sums over a few rows        that follow each other: a thread adds up some places of them
//   sums over other rows        each row's addend goes to scratch memory
//                               ... and kernels of their own (row_sums.h) add up what blocks and rows left, in f64
//
// All add in one order: the same bits on every run.
//
// Elements that lie side by side are read and written 16 bytes at a time. Addresses are parameters, so that alike
// units of a program are one text and compiled once.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/device/cuda/row_lines.h"

namespace weft::device::cuda {

// Adds up what the main kernel left of one accumulator: where rows left many addends, `name` for segments of them, then `join`
// for those; else row_sums.h's kernel does it for all of a loop.
struct SumSource {
  std::string name, join;     // (addends, segments, count of addends), (segments, result, count of segments)
  std::uint16_t memory = 0;   // of the loop's operands
  std::int64_t elements = 0;  // of the accumulator
  std::int64_t width = 1;     // addends of a row
  std::int64_t addends = 0;   // of an element, where rows leave them
};

// How threads share rows, where a row is not one thread's: so many to a row, and of sums over all rows so many blocks at
// most. Zeros: as row_shapes() has it first.
struct RowShape {
  int threads = 0;
  std::int64_t most_blocks = 0;

  friend bool operator==(const RowShape&, const RowShape&) = default;
};

struct RowSource {
  std::string text;
  std::string name = "weft_rows";  // (operands.., scratch a sum..)
  bool by_row = false;             // else a thread an element
  bool sums_in_threads = false;    // a sum has an addend a block, not one a row
  bool sums_at_once = false;       // by one kernel
  int threads = 256;               // of a row; of a block where a thread is an element
  int rows_per_block = 1;
  std::int64_t most_blocks = 0;  // that share the rows, where a sum has an addend a block
  std::int64_t each = 1;         // elements of a thread, where it is one's
  std::vector<SumSource> sums;
};

RowSource row_source(const program::RowLoop& loop, const RowShape& shape = {});

// Shapes that may be faster than the usual one, which is the first; the same on every device, so that bits are.
std::vector<RowShape> row_shapes(const program::RowLoop& loop);

}  // namespace weft::device::cuda
