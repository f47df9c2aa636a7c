// weft/device/cuda/row_source.h -- generates CUDA kernels for a loop over rows.
//
//   elementwise steps           one thread per pack of adjacent elements
//   whole-row steps (softmax)   one block per row, or one warp if rows are short, with one loop per phase:
//
//                                 for each j: v = x[j] - r[j]; sum += v        phase 0
//                                 mean = over_row(sum) / n
//                                 for each j: y[j] = (v - mean) * ..           phase 1; v was kept
//
//   sums over all rows          threads own columns of the row: each sums them over its rows
//   sums over a few rows        if the rows are consecutive: one thread sums them for some columns
//   sums over other rows        each row writes its addend to scratch memory
//                               ... and further kernels (row_sums.h) sum these addends in f64
//
// All sums use one fixed order: the same bits on every run.
//
// Contiguous elements are read and written 16 bytes at a time. Addresses are parameters, so that
// identical units of a program share one source, compiled once.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/device/cuda/row_lines.h"

namespace weft::device::cuda {

// Sums the addends that the main kernel wrote for one accumulator. If rows wrote many addends,
// `name` sums segments of them and `join` sums the segments; else row_sums.h's kernel computes all
// sums of a loop.
struct SumSource {
  std::string name, join;     // (addends, segments, addend count), (segments, result, segment count)
  std::uint16_t memory = 0;   // operand number in the loop
  std::int64_t elements = 0;  // of the accumulator
  std::int64_t width = 1;     // addends per row
  std::int64_t addends = 0;   // per element, if rows write them
};

// Threads per row, if a row has more than one thread, and the most blocks for sums over all rows.
// Zeros select the first of row_shapes().
struct RowShape {
  int threads = 0;
  std::int64_t most_blocks = 0;

  friend bool operator==(const RowShape&, const RowShape&) = default;
};

struct RowSource {
  std::string text;
  std::string name = "weft_rows";  // (operands.., one scratch pointer per sum..)
  bool by_row = false;             // else one thread per pack
  bool sums_in_threads = false;    // one addend per block, not per row
  bool sums_at_once = false;       // in one kernel
  int threads = 256;               // per row if by_row, else per block
  int rows_per_block = 1;
  std::int64_t most_blocks = 0;  // that share the rows, if each block has an addend
  std::int64_t each = 1;         // elements per thread, if not by_row
  std::vector<SumSource> sums;
};

RowSource row_source(const program::RowLoop& loop, const RowShape& shape = {});

// Candidate shapes, the default first; the same on every device, for identical bits.
std::vector<RowShape> row_shapes(const program::RowLoop& loop);

}  // namespace weft::device::cuda
