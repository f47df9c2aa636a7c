// weft/device/codec/codec.h -- numbers made small for the wire, and back.
//
//   codec     bytes of n numbers in blocks of B    error of x, in a block whose largest is m
//   int8      n + 4 n / B                          m / 254
//   int4      n / 2 + 4 n / B                      m / 14
//   e4m3      n + 4 n / B                          |x| / 16 + m / (448 * 1024)
//   e5m2      n + 4 n / B                          |x| / 8 + m / (57344 * 131072)
//   bf16      2 n                                  |x| / 256
//   one_bit   n / 8 + 4 n / B                      m
//   top_k     8 k                                  the k-th largest
//
// A block has one scale. The layout is all scales, then all codes. With error feedback what a code loses is added
// to what is encoded next, so that over many steps nothing is lost: one_bit and top_k are of no use without.
// A block with a number that is not finite decodes to NaN: it must not pass for a gradient.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "weft/base/result.h"

namespace weft::device {

enum class CodecKind : std::uint8_t { int8, int4, e4m3, e5m2, bf16, one_bit, top_k };

struct Codec {
  CodecKind kind = CodecKind::int8;
  std::int64_t block = 256;  // numbers that share a scale
  std::int64_t kept = 0;     // by top_k
};

std::int64_t encoded_bytes(const Codec& codec, std::int64_t count);

// The most that |x - decoded x| can be, float rounding aside; of top_k what its k-th largest is not known to bound,
// so `largest`. `largest` is that of the block, of top_k that of all.
double error_bound(const Codec& codec, double x, double largest);

// Writes encoded_bytes() to `codes`. `carried`, where it is not empty, is as long as `values`: it is added to them,
// and holds afterwards what was lost.
Status encode(const Codec& codec, std::span<const float> values, std::span<std::byte> codes,
              std::span<float> carried = {});

// Fails where `codes` is not as long as encode() makes it, or names a place that does not exist.
Status decode(const Codec& codec, std::span<const std::byte> codes, std::span<float> values);

}  // namespace weft::device
