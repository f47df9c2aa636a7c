// weft/device/cuda/row_lines.h -- a row program decomposed into lines, each of which needs one loop
// over the row.
//
//   n, s = layer_norm(x)      mean  = sum of x over the row / n                    reduce, phase 0
//                             away  = x - mean                                     define, phase 1
//                             var   = sum of away * away / n                       reduce, phase 1
//                             s     = 1 / sqrt(var + epsilon)                      define, phase 2
//                             n     = away * s                                     define, phase 2; away is kept
//
// A row's reduction is known only after a full loop over the row: lines that read it are one
// *phase* later.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/program/tasks/row_loop.h"

namespace weft::device::cuda {

struct RowLine {
  enum class Kind : std::uint8_t { load, define, reduce, store, accumulate };
  Kind kind = Kind::define;
  int result = -1;
  std::vector<int> reads = {};
  std::string text = {};  // of define: {0}, {1}.. are its reads; j is the position in the row
  plan::Monoid monoid = plan::Monoid::sum;
  double divisor = 1;        // of reduce
  std::uint16_t memory = 0;  // of load, store and accumulate
  int phase = 0;
};

struct RowLines {
  std::vector<RowLine> lines;
  std::vector<bool> is_run;      // per register
  std::vector<int> born, lasts;  // phases, per register
  int phases = 1;

  bool run(int r) const { return is_run[static_cast<std::size_t>(r)]; }
  // Whether a thread keeps it from one phase to the next, for each of its elements of the row.
  bool is_kept(int r) const {
    const auto i = static_cast<std::size_t>(r);
    return is_run[i] && lasts[i] > born[i];
  }
};

RowLines row_lines(const program::RowLoop& loop);

}  // namespace weft::device::cuda
