// weft/formats/gzip.h -- what a .gz file holds.
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

// The same for deflated bytes without a wrapper, as zip files hold them, which become exactly `bytes_after`.
Result<std::string> inflate_raw(std::string_view bytes, std::int64_t bytes_after, std::string_view path);

}  // namespace weft::formats
