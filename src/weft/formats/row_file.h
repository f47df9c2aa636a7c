// weft/formats/row_file.h -- rows of numbers to a file: what a model answered.
//
//   logits 3, predicted 1       logits_0,logits_1,logits_2,predicted       .csv: a header, then a line a row
//                               0.5,-1.25,8.5,2
//                                                                          .npy: <f4 (rows, 4), or <f8 where a
//                                                                          number needs it
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

// REQUIRES: `values` are `rows` times what the columns are wide.
std::string print_csv(std::span<const Column> columns, std::span<const double> values, std::int64_t rows);
std::string print_npy(std::span<const double> values, std::int64_t rows, std::int64_t width);

// As the end of the name says; the file is replaced whole or not at all.
Status write_rows(const std::string& path, std::span<const Column> columns, std::span<const double> values,
                  std::int64_t rows);

}  // namespace weft::formats
