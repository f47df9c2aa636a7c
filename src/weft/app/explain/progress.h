// weft/app/explain/progress.h -- how far a training, or another long task, is, on one line.
//
//   digits_mlp  ━━━━━━━━╸──────────    612/1,350  loss 0.0418  281 k rows/s  0:03 left
//   digits_mlp  ━━━━━───────    612/1,350  loss 0.0418                in a narrow terminal
//   step 612 of 1,350  loss 0.0418  281 k rows/s  3 s left            in a log
//   gpt2  looked at 140 plans  best 35.2 ms  bound 4.1 ms  0:12       a search for a plan, on a terminal only
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weft::explain {

// Of a search for a plan, whose steps are the plans it has looked at.
struct SearchProgress {
  double best_seconds = 0;   // of a step, of the best that fits; 0: none yet
  double bound_seconds = 0;  // no plan takes less; 0: not known
  double seconds = 0;        // that it has taken
};

struct Progress {
  std::string model = {};
  std::int64_t step = 0;           // done so far
  std::int64_t steps = 0;          // in all; 0: nobody knows
  double loss = 0;                 // may be NaN, which is worth seeing
  bool has_loss = true;            // a training has one, other tasks do not
  double rows_per_second = 0;      // 0: not known yet
  std::string_view what = "rows";  // what the rate counts: rows, tokens
  double seconds_left = -1;        // negative: not known yet
  std::optional<SearchProgress> search = std::nullopt;
};

// One line without a newline, at most `width` columns. Where it would not fit, the rate goes first, then
// the time left, the bar, the model's name and the loss; of a search the bound, the name and the best. Without `unicode` all but the name is ASCII.
std::string progress_bar(const Progress& progress, int width, bool unicode);

// One line with a newline.
std::string progress_line(const Progress& progress);

}  // namespace weft::explain
