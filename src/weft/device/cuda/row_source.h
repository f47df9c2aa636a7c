// weft/device/cuda/row_source.h -- a loop over rows as the text of CUDA kernels.
//
//   steps need no whole row     a thread an element
//   they do (sums, softmax)     a block of threads a row, or a warp where rows are short; what the row is reduced
//                               to is known when all have added to it, so the text has a loop a *phase*:
//
//                                 for each j: v = x[j] - r[j]; sum += v        phase 0
//                                 mean = over_row(sum) / n
//                                 for each j: y[j] = (v - mean) * ..           phase 1; v was kept
//
//   sums over the rows          each row's addend goes to scratch memory, and kernels of their own add them up in
//                               the order of rows, in f64: the same bits on every run
//
// Addresses are parameters, so that alike units of a program are one text and compiled once.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/program/row_loop.h"

namespace weft::device::cuda {

// Adds up what the rows of a task gave to one accumulator: `name` for segments of rows, then `join` for those.
struct SumSource {
  std::string name, join;
  std::uint16_t memory = 0;   // of the loop's operands
  std::int64_t elements = 0;  // of the accumulator
  std::int64_t width = 1;     // addends of a row
  std::int64_t segments = 1;
};

struct RowSource {
  std::string text;
  std::string name = "weft_rows";  // (operands.., scratch a sum.., begin, end, first row, end row)
  bool by_row = false;             // else a thread an element
  int threads = 256;               // of a row; of a block where a thread is an element
  int rows_per_block = 1;
  std::vector<SumSource> sums;
};

RowSource row_source(const program::RowLoop& loop);

}  // namespace weft::device::cuda
