// weft/formats/data_file.h -- reads files of training data.
//
//   const Field fields[] = {{"pixels", 64, plan::DType::f32}, {"label", 1, plan::DType::i32}};
//   WEFT_TRY(table, read_table("digits.csv", fields));
//   table.rows()                    1797
//   table.values<float>(0)          1797 x 64 pixels
//   table.values<std::int32_t>(1)   1797 labels
//
// The extension selects the format: .csv, .npy or .npz, each optionally followed by .gz. See csv.h,
// npy.h and npz.h for what each accepts.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "weft/base/result.h"
#include "weft/formats/table.h"

namespace weft::formats {

constexpr std::int64_t kMostFileBytes = std::int64_t{64} << 30;     // for files read into memory as a whole
constexpr std::int64_t kMostInflatedBytes = std::int64_t{4} << 30;  // a small .gz can inflate to a huge text

// Reads every row of the file. Fails at the first value that does not fit its field and reports its
// location: "digits.csv line 9, value 3 (pixels): expected a number, found 'abc'". .csv and .npy
// files are streamed, so that only the table takes memory: at most `most_bytes`; 0: half of the
// free memory.
Result<Table> read_table(const std::string& path, std::span<const Field> fields, std::int64_t most_bytes = 0);

// The file's bytes, inflated if its name ends in .gz: then to at most half of the free memory.
Result<std::string> read_text(const std::string& path);

}  // namespace weft::formats
