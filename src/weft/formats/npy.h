// weft/formats/npy.h -- rows of numbers as numpy.save writes them.
//
//   \x93NUMPY 1 0 | length | {'descr': '<f4', 'fortran_order': False, 'shape': (1797, 65), } | numbers
//
// Supports versions 1.0, 2.0 and 3.0 of the format (NEP 1), C order, and elements <f2 <f4 <f8,
// |i1 <i2 <i4 <i8, |u1 <u2 <u4 <u8 and |b1, which must be 0 or 1. Each number is converted to the
// dtype of its field. For f32 it is rounded. For an integer a fraction, NaN or a number out of
// range is an error.
//
// The first dimension counts the rows; the others hold the values of all fields side by side. An
// array of more than two dimensions must be for one field and have its shape, so that a transposed
// array is not accepted silently. Errors give positions as numpy counts, from zero:
// "rows.npy[2, 64] (label): found nan, expected a finite number".
#pragma once
#include <span>
#include <string_view>

#include "weft/base/result.h"
#include "weft/formats/byte_source.h"
#include "weft/formats/table.h"

namespace weft::formats {

// `path` is only for error messages. The table takes at most `most_bytes`; 0: half of the free
// memory. Its memory grows with the data that has arrived, whatever the header claims.
Result<Table> read_npy(ByteSource& source, std::span<const Field> fields, std::string_view path,
                       std::int64_t most_bytes = 0);
Result<Table> parse_npy(std::string_view bytes, std::span<const Field> fields, std::string_view path);

}  // namespace weft::formats
