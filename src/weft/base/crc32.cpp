#include "weft/base/crc32.h"

#include "weft/base/crc_tables.h"

namespace weft {
namespace {

constexpr CrcTables kZipTables(0xedb88320);

}  // namespace

std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t before) {
  return ~kZipTables.feed(~before, bytes);
}

}  // namespace weft
