// weft/formats/data_file.h -- the files that training data comes in.
//
//   const Field fields[] = {{"pixels", 64, plan::DType::f32}, {"label", 1, plan::DType::i32}};
//   WEFT_TRY(table, read_table("digits.csv", fields));
//   table.rows()                    1797
//   table.values<float>(0)          1797 x 64 pixels
//   table.values<std::int32_t>(1)   1797 labels
//
// The end of the name tells the format: .csv, .npy or .npz, each with .gz behind it or not. See csv.h,
// npy.h and npz.h for what each accepts.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "weft/base/result.h"
#include "weft/formats/table.h"

namespace weft::formats {

constexpr std::int64_t kMostFileBytes = std::int64_t{64} << 30;  // of one that must be in memory as a whole
constexpr std::int64_t kMostInflatedBytes = std::int64_t{4} << 30;  // a small .gz can hide a vast text

// Reads every row of the file. Fails at the first value that is not what its field wants, saying
// where it stands: "digits.csv line 9, value 3 (pixels): expected a number, found 'abc'". A .csv or .npy is
// read as it comes, so that the table is what takes memory: `most_bytes` of it, 0: half of what is free.
Result<Table> read_table(const std::string& path, std::span<const Field> fields, std::int64_t most_bytes = 0);

// The file's bytes, inflated where its name ends in .gz: then at most half of the memory that is free.
Result<std::string> read_text(const std::string& path);

}  // namespace weft::formats
