// weft/formats/gzip.h -- inflates a whole .gz file in memory; byte_source.h streams it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "weft/base/result.h"

namespace weft::formats {

// Inflates one or more gzip members. Fails if the data is truncated or damaged, if it would exceed
// `most_bytes`, and in builds without zlib. `path` is only for error messages.
Result<std::string> inflate_gzip(std::string_view bytes, std::int64_t most_bytes, std::string_view path);

}  // namespace weft::formats
