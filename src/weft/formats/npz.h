// weft/formats/npz.h -- arrays by name, as numpy.savez and numpy.savez_compressed write them.
//
//   pixels.npy   (1797, 64)      a zip file of .npy files: each input of a model is the array of its name
//   label.npy    (1797,)
//
// The zip's list of contents at its end says what is where. Its members are stored or deflated, and each that is
// read is compared with its CRC-32; sizes of more than 4 GiB are read from the zip64 fields.
#pragma once
#include <span>
#include <string_view>

#include "weft/base/result.h"
#include "weft/formats/table.h"

namespace weft::formats {

// Arrays that no field is named after are left alone. `path` is only for the errors. The table takes
// `most_bytes` at most, 0: half of the memory that is free.
Result<Table> parse_npz(std::string_view bytes, std::span<const Field> fields, std::string_view path,
                        std::int64_t most_bytes = 0);

}  // namespace weft::formats
