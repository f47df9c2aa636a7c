// weft/formats/csv.h -- rows of numbers as text: one row a line, values between commas.
//
//   pixel0, pixel1, label        a first line in which no value begins like a number is a header
//   0.5, 1e-3, 7                 spaces around a value do not matter
//   "0.5", 1e-3, "7"            nor do double quotes around it
//                                nor do blank lines, nor \r before \n
//
// Where the header names a field of one value, the field must stand where the model wants it.
// Numbers are decimal with a point, whatever the locale. An integer may be written 7.0 or 7e0.
#pragma once
#include <span>
#include <string_view>

#include "weft/base/result.h"
#include "weft/formats/byte_source.h"
#include "weft/formats/table.h"

namespace weft::formats {

// `path` is only for the errors. The table takes `most_bytes` at most, 0: half of the memory that is free; a
// line, what all values of a row can.
Result<Table> read_csv(ByteSource& source, std::span<const Field> fields, std::string_view path,
                       std::int64_t most_bytes = 0);
Result<Table> parse_csv(std::string_view text, std::span<const Field> fields, std::string_view path);

}  // namespace weft::formats
