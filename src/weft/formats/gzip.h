// weft/formats/gzip.h -- what a .gz file holds, at once; byte_source.h has it some at a time.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "weft/base/result.h"

namespace weft::formats {

// Inflates one gzip member or several in a row. Fails when the bytes are cut short or damaged,
// when they would become more than `most_bytes`, and in a Weft built without zlib. `path` is only
// for the errors.
Result<std::string> inflate_gzip(std::string_view bytes, std::int64_t most_bytes, std::string_view path);

}  // namespace weft::formats
