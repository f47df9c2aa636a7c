// weft/app/explain/progress.h -- progress of a training, or of another long task, on one line.
//
//   digits_mlp  ━━━━━━━━╸──────────    612/1,350  loss 0.0418  281 k rows/s  0:03 left
//   digits_mlp  ━━━━━───────    612/1,350  loss 0.0418                in a narrow terminal
//   step 612 of 1,350  loss 0.0418  281 k rows/s  3 s left            in a log
//   gpt2  tried 140 plans  best 35.2 ms  bound 4.1 ms  0:12           a plan search, only on a terminal
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weft::explain {

// Progress of a plan search, whose steps are the plans tried.
struct SearchProgress {
  double best_seconds = 0;   // step time of the best plan that fits; 0: none yet
  double bound_seconds = 0;  // lower bound on the step time; 0: unknown
  double seconds = 0;        // elapsed
};

struct Progress {
  std::string model = {};
  std::int64_t step = 0;           // completed so far
  std::int64_t steps = 0;          // in total; 0: unknown
  double loss = 0;                 // may be NaN, which is shown
  bool has_loss = true;            // false for tasks other than training
  double rows_per_second = 0;      // 0: not yet known
  std::string_view what = "rows";  // unit of the rate: rows, tokens
  double seconds_left = -1;        // negative: not yet known
  std::optional<SearchProgress> search = std::nullopt;
};

// One line without a newline, at most `width` columns. If it does not fit, drops the rate first,
// then the time left, the bar, the model's name and the loss. For a search it drops the bound, the
// name, the time and the best plan. Without `unicode` all but the name is ASCII.
std::string progress_bar(const Progress& progress, int width, bool unicode);

// One line with a newline.
std::string progress_line(const Progress& progress);

}  // namespace weft::explain
