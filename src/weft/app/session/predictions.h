// weft/app/session/predictions.h -- INFER's rows: what came out of a model for each example.
//
//   logits_0, .., logits_9, predicted       the outputs that begin with the batch's index, and of a model with
//   -2.1,     .., 8.4,      9               a cross entropy the class of the largest logit
//
// Where no output begins so, the logits of the cross entropy are written.
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
  // Rows that would make it more values than these are counted, not kept.
  explicit Predictions(std::int64_t most_values) : most_values_(most_values) {}

  Status add(const exec::Rank& rank, std::int64_t examples);

  // Fails where the model has no rows to write, or the name does not end in .csv or .npy.
  Status write(const std::string& path, std::string_view model) const;

  nlohmann::ordered_json to_json() const;  // "columns", "rows" and, where some are missing, "rows_left_out"
  std::string what() const;                // "logits and predicted"

 private:
  std::vector<formats::Column> columns_;
  std::int64_t width_ = 0, rows_ = 0, left_out_ = 0, most_values_;
  std::vector<double> values_;  // row by row
};

}  // namespace weft::session
