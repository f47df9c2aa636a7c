// weft/formats/csv.h -- rows of numbers as text: one row per line, values separated by commas.
//
//   pixel0, pixel1, label        a first line in which no value starts like a number is a header
//   0.5, 1e-3, 7                 spaces around values are ignored
//   "0.5", 1e-3, "7"            so are double quotes
//                                and blank lines, and \r before \n
//
// If the header names a field of one value, its column must be where the model expects it.
// Numbers use a decimal point in any locale. An integer may be written 7.0 or 7e0.
#pragma once
#include <span>
#include <string_view>

#include "weft/base/result.h"
#include "weft/formats/byte_source.h"
#include "weft/formats/table.h"

namespace weft::formats {

// `path` is only for error messages. The table takes at most `most_bytes`; 0: half of the free
// memory. The length of a line is limited by what the values of a row can need.
Result<Table> read_csv(ByteSource& source, std::span<const Field> fields, std::string_view path,
                       std::int64_t most_bytes = 0);
Result<Table> parse_csv(std::string_view text, std::span<const Field> fields, std::string_view path);

}  // namespace weft::formats
