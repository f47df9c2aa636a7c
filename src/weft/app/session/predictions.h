// weft/app/session/predictions.h -- the rows that INFER writes: a model's outputs for each example.
//
//   logits_0, .., logits_9, predicted       the outputs whose first index is the batch index; for a
//   -2.1,     .., 8.4,      9               model with a cross-entropy, also the class of the
//                                           largest logit
//
// If no output starts with the batch index, the logits of the cross-entropy are written.
//
// Included by app/session and app/command only.
#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "weft/base/result.h"
#include "weft/formats/row_file.h"
#include "weft/runtime/exec/rank.h"

namespace weft::session {

class Predictions {
 public:
  static constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();
  // Keeps rows of up to `most_values` values in total; further rows are only counted.
  explicit Predictions(std::int64_t most_values) : most_values_(most_values) {}

  Status add(const exec::Rank& rank, std::int64_t examples);

  // Fails if the model has no rows to write, or the name does not end in .csv or .npy.
  Status write(const std::string& path, std::string_view model) const;

  nlohmann::ordered_json to_json() const;  // "columns", "rows" and, if any were dropped, "rows_left_out"
  std::string what() const;                // "logits and predicted"

 private:
  std::vector<formats::Column> columns_;
  std::int64_t width_ = 0, rows_ = 0, left_out_ = 0, most_values_;
  std::vector<double> values_;  // in row-major order
};

}  // namespace weft::session
