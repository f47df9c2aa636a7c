// weft/formats/npz.h -- named arrays, as numpy.savez and numpy.savez_compressed write them.
//
//   pixels.npy   (1797, 64)      a zip file of .npy files: each input of a model reads the array of its name
//   label.npy    (1797,)
//
// Members are found by the zip's central directory and may be stored or deflated. Each one that is
// read is checked against its CRC-32. Sizes above 4 GiB are read from zip64 fields.
#pragma once
#include <span>
#include <string_view>

#include "weft/base/result.h"
#include "weft/formats/table.h"

namespace weft::formats {

// Arrays without a field of their name are ignored. `path` is only for error messages. The table
// takes at most `most_bytes`; 0: half of the free memory.
Result<Table> parse_npz(std::string_view bytes, std::span<const Field> fields, std::string_view path,
                        std::int64_t most_bytes = 0);

}  // namespace weft::formats
