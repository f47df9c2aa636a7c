// weft/base/crc32.h -- the checksum of zip and gzip files (polynomial 0x04c11db7, ISO 3309).
//
//   crc32("123456789") == 0xcbf43926
//   crc32(b, crc32(a)) == crc32(a followed by b)
//
// Uses tables, at about one gigabyte per second. Weft's own files and messages use CRC-32C, which
// is faster.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace weft {

std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t before = 0);

}  // namespace weft
