#include "weft/device/codec/codec.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "weft/plan/ops/low_rank.h"

namespace weft::device {
namespace {

// Loops over this many elements, which compilers vectorize.
constexpr std::size_t kCodecLanes = 16;

std::size_t blocks_of(const Codec& codec, std::size_t count) {
  const auto block = static_cast<std::size_t>(codec.block);
  return (count + block - 1) / block;
}

std::size_t codes_before(CodecKind kind, std::size_t begin) {
  return static_cast<std::size_t>(ops::code_bytes(kind, static_cast<std::int64_t>(begin)));
}

// The largest magnitude, or NaN if a value is not finite: x * 0 is then NaN, and so is the sum.
float largest_of(const float* values, std::size_t count) {
  float most[kCodecLanes] = {}, poison[kCodecLanes] = {};
  std::size_t i = 0;
  for (; i + kCodecLanes <= count; i += kCodecLanes)
    for (std::size_t lane = 0; lane < kCodecLanes; ++lane) {
      const float magnitude = std::fabs(values[i + lane]);
      most[lane] = magnitude > most[lane] ? magnitude : most[lane];
      poison[lane] += values[i + lane] * 0.0f;
    }
  for (; i < count; ++i) {
    most[0] = std::max(most[0], std::fabs(values[i]));
    poison[0] += values[i] * 0.0f;
  }
  return *std::max_element(most, most + kCodecLanes) + std::accumulate(poison, poison + kCodecLanes, 0.0f);
}

// Rounds to the nearest integer, for magnitudes below 2^22: the last bit of the sum is worth one.
std::int32_t nearest_whole(float value) {
  constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23
  return static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(value + kMagic) -
                                   std::bit_cast<std::uint32_t>(kMagic));
}

// An 8-bit float with `mantissa` fraction bits and IEEE exponents, for magnitudes up to the largest
// code's.
template <int mantissa>
struct Float8 {
  static constexpr int kExponentBits = 7 - mantissa;
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr int kShift = 23 - mantissa;

  static std::uint8_t encode(float value) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value), magnitude = bits & 0x7fffffffu;
    const std::uint32_t rounded = magnitude + ((1u << (kShift - 1)) - 1) + (magnitude >> kShift & 1u);
    const std::uint32_t normal = (rounded >> kShift) - (static_cast<std::uint32_t>(127 - kBias) << mantissa);
    // Subnormals: multiples of the smallest code, rounded by a sum whose last bit is worth that
    // code.
    const float anchor =
        std::bit_cast<float>(static_cast<std::uint32_t>(127 + 1 - kBias - mantissa + 23) << 23);
    const std::uint32_t small = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + anchor) -
                                std::bit_cast<std::uint32_t>(anchor);
    const bool is_small = magnitude < static_cast<std::uint32_t>(127 + 1 - kBias) << 23;
    return static_cast<std::uint8_t>((bits >> 24 & 0x80u) | (is_small ? small : normal));
  }

  static float decode(std::uint8_t code) {
    const std::uint32_t magnitude = code & 0x7fu;
    const float normal =
        std::bit_cast<float>((magnitude << kShift) + (static_cast<std::uint32_t>(127 - kBias) << 23));
    const float least = std::bit_cast<float>(static_cast<std::uint32_t>(127 + 1 - kBias - mantissa) << 23);
    const float value = magnitude >> mantissa == 0
                            ? static_cast<float>(static_cast<std::int32_t>(magnitude)) * least
                            : normal;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | static_cast<std::uint32_t>(code & 0x80u)
                                                                          << 24);
  }
};

using E4m3 = Float8<3>;
using E5m2 = Float8<2>;

float inverse(float scale) { return scale > std::numeric_limits<float>::min() ? 1 / scale : 0; }

void encode_block(CodecKind kind, const float* values, std::size_t count, float by, std::uint8_t* codes) {
  switch (kind) {
    case CodecKind::int8:
      for (std::size_t i = 0; i < count; ++i)
        codes[i] = static_cast<std::uint8_t>(nearest_whole(values[i] * by));
      return;
    case CodecKind::e4m3:
      for (std::size_t i = 0; i < count; ++i) codes[i] = E4m3::encode(values[i] * by);
      return;
    case CodecKind::e5m2:
      for (std::size_t i = 0; i < count; ++i) codes[i] = E5m2::encode(values[i] * by);
      return;
    case CodecKind::int4:
      for (std::size_t i = 0; i + 1 < count; i += 2)
        codes[i / 2] = static_cast<std::uint8_t>((nearest_whole(values[i] * by) & 15) |
                                                 (nearest_whole(values[i + 1] * by) & 15) << 4);
      if (count % 2 != 0)
        codes[count / 2] = static_cast<std::uint8_t>(nearest_whole(values[count - 1] * by) & 15);
      return;
    case CodecKind::one_bit: {
      const auto sign = [&](std::size_t i) { return std::bit_cast<std::uint32_t>(values[i]) >> 31; };
      std::size_t i = 0;
      for (; i + 8 <= count; i += 8)
        codes[i / 8] = static_cast<std::uint8_t>(sign(i) | sign(i + 1) << 1 | sign(i + 2) << 2 |
                                                 sign(i + 3) << 3 | sign(i + 4) << 4 | sign(i + 5) << 5 |
                                                 sign(i + 6) << 6 | sign(i + 7) << 7);
      std::uint32_t rest = 0;
      for (std::size_t j = i; j < count; ++j) rest |= sign(j) << (j - i);
      if (i < count) codes[i / 8] = static_cast<std::uint8_t>(rest);
      return;
    }
    default: return;
  }
}

void decode_block(CodecKind kind, const std::uint8_t* codes, std::size_t count, float scale, float* values) {
  switch (kind) {
    case CodecKind::int8:
      for (std::size_t i = 0; i < count; ++i)
        values[i] = static_cast<float>(static_cast<std::int8_t>(codes[i])) * scale;
      return;
    case CodecKind::e4m3:
      for (std::size_t i = 0; i < count; ++i) values[i] = E4m3::decode(codes[i]) * scale;
      return;
    case CodecKind::e5m2:
      for (std::size_t i = 0; i < count; ++i) values[i] = E5m2::decode(codes[i]) * scale;
      return;
    case CodecKind::int4: {
      const auto value = [&](std::int32_t code) { return static_cast<float>((code ^ 8) - 8) * scale; };
      for (std::size_t i = 0; i < count / 2; ++i) {
        values[2 * i] = value(codes[i] & 15);
        values[2 * i + 1] = value(codes[i] >> 4);
      }
      if (count % 2 != 0) values[count - 1] = value(codes[count / 2] & 15);
      return;
    }
    case CodecKind::one_bit: {
      // The code bit is the sign bit.
      const std::uint32_t bits = std::bit_cast<std::uint32_t>(scale);
      const auto value = [&](std::uint32_t code, std::size_t bit) {
        return std::bit_cast<float>(bits | (code >> bit & 1u) << 31);
      };
      std::size_t i = 0;
      for (; i + 8 <= count; i += 8)
        for (std::size_t bit = 0; bit < 8; ++bit) values[i + bit] = value(codes[i / 8], bit);
      for (; i < count; ++i) values[i] = value(codes[i / 8], i % 8);
      return;
    }
    default: return;
  }
}

float scale_of(CodecKind kind, const float* values, std::size_t count) {
  const float largest = largest_of(values, count);
  if (kind != CodecKind::one_bit || std::isnan(largest)) return largest / ops::top_of(kind);
  return ops::mean_magnitude({values, count});
}

void encode_bf16(const float* values, std::size_t count, std::uint8_t* codes) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(values[i]);
    const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
    const auto code =
        static_cast<std::uint16_t>(nan ? bits >> 16 | 0x40u : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
    std::memcpy(codes + 2 * i, &code, 2);
  }
}

void decode_bf16(const std::uint8_t* codes, std::size_t count, float* values) {
  for (std::size_t i = 0; i < count; ++i) {
    std::uint16_t code = 0;
    std::memcpy(&code, codes + 2 * i, 2);
    values[i] = std::bit_cast<float>(static_cast<std::uint32_t>(code) << 16);
  }
}

// Positions in ascending order, then their values.
void encode_top_k(std::size_t kept, std::span<const float> values, std::uint8_t* codes) {
  if (kept == 0) return;
  // NaN is kept first, so that it is not lost: its bits compare above those of any number.
  const auto magnitude = [](float value) { return std::bit_cast<std::uint32_t>(value) & 0x7fffffffu; };
  std::vector<std::uint32_t> magnitudes(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) magnitudes[i] = magnitude(values[i]);
  const auto last = magnitudes.begin() + static_cast<std::ptrdiff_t>(kept) - 1;
  std::nth_element(magnitudes.begin(), last, magnitudes.end(), std::greater<>());
  const std::uint32_t threshold = *last;
  // Of the values tied at the threshold, keep the first ones.
  auto ties = static_cast<std::size_t>(std::count(magnitudes.begin(), last + 1, threshold));
  std::size_t found = 0;
  for (std::size_t i = 0; i < values.size() && found < kept; ++i) {
    const std::uint32_t own = magnitude(values[i]);
    if (own < threshold || (own == threshold && ties == 0)) continue;
    if (own == threshold) --ties;
    const auto place = static_cast<std::uint32_t>(i);
    std::memcpy(codes + 4 * found, &place, 4);
    std::memcpy(codes + 4 * (kept + found), &values[i], 4);
    ++found;
  }
}

Status decode_top_k(std::size_t kept, const std::uint8_t* codes, std::span<float> values) {
  std::ranges::fill(values, 0.0f);
  for (std::size_t i = 0; i < kept; ++i) {
    std::uint32_t place = 0;
    std::memcpy(&place, codes + 4 * i, 4);
    if (place >= values.size())
      return user_error(fmt::format("expected a position below {}, found {}", values.size(), place));
    std::memcpy(&values[place], codes + 4 * (kept + i), 4);
  }
  return {};
}

Status accept(const Codec& codec, std::size_t values, std::size_t bytes) {
  const bool factors = codec.kind == CodecKind::low_rank;
  if (factors && (codec.block < 1 || codec.kept < 1 || codec.kept > codec.block))
    return user_error(
        fmt::format("expected rows of at least 1 number and a rank from 1 to the row length, found {} and {}",
                    codec.block, codec.kept));
  if (!factors && (codec.block < 1 || codec.block % 8 != 0))
    return user_error(fmt::format("a block must be a multiple of 8 numbers, found {}", codec.block));
  if (codec.kind == CodecKind::top_k && (codec.kept < 0 || static_cast<std::size_t>(codec.kept) > values))
    return user_error(fmt::format("expected 0 to {} numbers to be kept, found {}", values, codec.kept));
  if (values > std::numeric_limits<std::uint32_t>::max())
    return user_error(fmt::format("expected fewer than 2^32 numbers, found {}", values));
  const std::int64_t expected = encoded_bytes(codec, static_cast<std::int64_t>(values));
  if (static_cast<std::int64_t>(bytes) != expected)
    return user_error(fmt::format("{} numbers take {} bytes, found {}", values, expected, bytes));
  return {};
}

void encode_values(const Codec& codec, std::span<const float> values, std::span<std::byte> codes) {
  auto* out = reinterpret_cast<std::uint8_t*>(codes.data());
  if (codec.kind == CodecKind::bf16) return encode_bf16(values.data(), values.size(), out);
  if (codec.kind == CodecKind::top_k) return encode_top_k(static_cast<std::size_t>(codec.kept), values, out);
  const auto block = static_cast<std::size_t>(codec.block);
  const std::size_t blocks = blocks_of(codec, values.size());
  if (codec.kind == CodecKind::low_rank) {
    std::vector<float> factors(codes.size() / sizeof(float));
    ops::low_rank_factors(values, {static_cast<std::int64_t>(blocks), codec.block}, codec.kept, factors);
    if (!factors.empty()) std::memcpy(out, factors.data(), codes.size());
    return;
  }
  for (std::size_t b = 0; b < blocks; ++b) {
    const std::size_t begin = b * block, count = std::min(block, values.size() - begin);
    const float scale = scale_of(codec.kind, values.data() + begin, count);
    std::memcpy(out + 4 * b, &scale, 4);
    encode_block(codec.kind, values.data() + begin, count, inverse(scale),
                 out + 4 * blocks + codes_before(codec.kind, begin));
  }
}

}  // namespace

Status encode(const Codec& codec, std::span<const float> values, std::span<std::byte> codes,
              std::span<float> carried) {
  WEFT_TRY_STATUS(accept(codec, values.size(), codes.size()));
  if (carried.empty()) {
    encode_values(codec, values, codes);
    return {};
  }
  if (carried.size() != values.size())
    return user_error(
        fmt::format("expected {} numbers carried over, found {}", values.size(), carried.size()));
  for (std::size_t i = 0; i < values.size(); ++i) carried[i] += values[i];
  encode_values(codec, carried, codes);
  std::vector<float> arrived(values.size());
  WEFT_TRY_STATUS(decode(codec, codes, arrived));
  for (std::size_t i = 0; i < values.size(); ++i) carried[i] -= arrived[i];
  return {};
}

Status decode(const Codec& codec, std::span<const std::byte> codes, std::span<float> values) {
  WEFT_TRY_STATUS(accept(codec, values.size(), codes.size()));
  const auto* in = reinterpret_cast<const std::uint8_t*>(codes.data());
  if (codec.kind == CodecKind::bf16) {
    decode_bf16(in, values.size(), values.data());
    return {};
  }
  if (codec.kind == CodecKind::top_k) return decode_top_k(static_cast<std::size_t>(codec.kept), in, values);
  const auto block = static_cast<std::size_t>(codec.block);
  const std::size_t blocks = blocks_of(codec, values.size());
  if (codec.kind == CodecKind::low_rank) {
    std::vector<float> factors(codes.size() / sizeof(float));
    if (!factors.empty()) std::memcpy(factors.data(), in, codes.size());
    ops::low_rank_product(factors, {static_cast<std::int64_t>(blocks), codec.block}, codec.kept, values);
    return {};
  }
  for (std::size_t b = 0; b < blocks; ++b) {
    const std::size_t begin = b * block, count = std::min(block, values.size() - begin);
    float scale = 0;
    std::memcpy(&scale, in + 4 * b, 4);
    decode_block(codec.kind, in + 4 * blocks + codes_before(codec.kind, begin), count, scale,
                 values.data() + begin);
  }
  return {};
}

}  // namespace weft::device
