// weft/formats/row_file.h -- writes rows of numbers, such as a model's outputs, to a file.
//
//   logits 3, predicted 1       logits_0,logits_1,logits_2,predicted      .csv: header, one line per row
//                               0.5,-1.25,8.5,2
//                                                                         .npy: <f4 (rows, 4), or <f8
//                                                                         if a number needs it
//
// Reading a .csv back as f32 or f64 gives the same bits.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "weft/base/result.h"

namespace weft::formats {

struct Column {
  std::string name;
  std::int64_t width = 1;
};

// REQUIRES: `values` has `rows` times the columns' total width numbers.
std::string print_csv(std::span<const Column> columns, std::span<const double> values, std::int64_t rows);
std::string print_npy(std::span<const double> values, std::int64_t rows, std::int64_t width);

// The extension selects the format. The file is replaced atomically.
Status write_rows(const std::string& path, std::span<const Column> columns, std::span<const double> values,
                  std::int64_t rows);

}  // namespace weft::formats
