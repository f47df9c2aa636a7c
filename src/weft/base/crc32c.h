// weft/base/crc32c.h -- a checksum against transmission errors (Castagnoli's polynomial, RFC 3720).
//
//   crc32c("123456789") == 0xe3069283
//   crc32c(b, crc32c(a)) == crc32c(a followed by b)
//
// Detects every change of up to 3 bits in messages of up to 256 MiB, and every burst of up to 32
// bits. It is not cryptographic. Runs at 8 bytes per cycle if the processor has the instruction
// (x86 with SSE 4.2, aarch64 with crc), with tables otherwise.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace weft {

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0);

// The same with tables, on any processor.
std::uint32_t crc32c_by_tables(std::span<const std::byte> bytes, std::uint32_t before = 0);

}  // namespace weft
