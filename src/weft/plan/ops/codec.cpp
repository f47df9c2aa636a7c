#include "weft/plan/ops/codec.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>

#include "weft/plan/ops/low_rank.h"

namespace weft::ops {
namespace {

constexpr std::array<std::string_view, 8> kCodecNames = {"int8", "int4",    "e4m3",  "e5m2",
                                                         "bf16", "one_bit", "top_k", "low_rank"};

// The matrix that `count` numbers form; its last row may be incomplete.
MatrixShape matrix_of(const Codec& codec, std::int64_t count) {
  return {(count + codec.block - 1) / codec.block, codec.block};
}

// The value of an 8-bit code: a sign, an exponent and `mantissa` bits.
float float8(int code, int mantissa) {
  const int exponent_bits = 7 - mantissa, bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (code & 0x7f) >> mantissa, fraction = code & ((1 << mantissa) - 1);
  const double magnitude = exponent == 0 ? std::ldexp(fraction, 1 - bias - mantissa)
                                         : std::ldexp((1 << mantissa) + fraction, exponent - bias - mantissa);
  return static_cast<float>((code & 0x80) != 0 ? -magnitude : magnitude);
}

// The nearest code; ties to even.
int nearest_float8(float value, int mantissa) {
  if (std::isnan(value)) return 0;
  const float magnitude = std::fabs(value);
  int best = 0;
  for (int code = 1; code < 0x80 && float8(code, mantissa) < std::numeric_limits<float>::max(); ++code) {
    const float here = std::fabs(float8(code, mantissa) - magnitude),
                there = std::fabs(float8(best, mantissa) - magnitude);
    if (here < there || (here == there && code % 2 == 0)) best = code;
  }
  return best | (std::signbit(value) ? 0x80 : 0);
}

int code_of(CodecKind kind, float scaled) {
  switch (kind) {
    case CodecKind::e4m3: return nearest_float8(scaled, 3);
    case CodecKind::e5m2: return nearest_float8(scaled, 2);
    default: return std::isnan(scaled) ? 0 : static_cast<int>(std::nearbyint(scaled));
  }
}

float value_of(CodecKind kind, int code) {
  switch (kind) {
    case CodecKind::e4m3: return float8(code, 3);
    case CodecKind::e5m2: return float8(code, 2);
    case CodecKind::int4: return static_cast<float>((code & 15) >= 8 ? (code & 15) - 16 : code & 15);
    default: return static_cast<float>(static_cast<std::int8_t>(code));
  }
}

std::uint16_t nearest_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>(bits >> 16 | 0x40u);
  const std::uint32_t rest = bits & 0xffffu, even = bits >> 16;
  return static_cast<std::uint16_t>(even + (rest > 0x8000u || (rest == 0x8000u && even % 2 == 1) ? 1 : 0));
}

// The scale of a block; NaN if an element is not finite.
float scale_of_block(CodecKind kind, std::span<const float> block) {
  float largest = 0;
  for (const float value : block) {
    if (!std::isfinite(value)) return std::numeric_limits<float>::quiet_NaN();
    largest = std::max(largest, std::fabs(value));
  }
  return kind == CodecKind::one_bit ? mean_magnitude(block) : largest / top_of(kind);
}

// NaN and infinity are kept before all others, since their bit patterns are larger. Ties go to the
// first.
void encode_largest(std::int64_t kept, std::span<const float> row, std::uint8_t* bytes) {
  const auto magnitude = [&](std::uint32_t place) {
    return std::bit_cast<std::uint32_t>(row[place]) & 0x7fffffffu;
  };
  std::vector<std::uint32_t> places(row.size());
  std::iota(places.begin(), places.end(), 0u);
  std::ranges::stable_sort(places, std::greater<>(), magnitude);
  places.resize(static_cast<std::size_t>(kept));
  std::ranges::sort(places);
  for (const std::uint32_t place : places) {
    std::memcpy(bytes, &place, 4);
    std::memcpy(bytes + 4 * kept, &row[place], 4);
    bytes += 4;
  }
}

}  // namespace

std::string_view name(CodecKind kind) { return kCodecNames[static_cast<std::size_t>(kind)]; }

std::span<const std::string_view> codec_names() { return kCodecNames; }

std::optional<CodecKind> find_codec(std::string_view name) {
  const auto found = std::ranges::find(kCodecNames, name);
  if (found == kCodecNames.end()) return std::nullopt;
  return static_cast<CodecKind>(found - kCodecNames.begin());
}

bool has_scales(CodecKind kind) {
  return kind != CodecKind::bf16 && kind != CodecKind::top_k && kind != CodecKind::low_rank;
}

float top_of(CodecKind kind) {
  switch (kind) {
    case CodecKind::int8: return 127;
    case CodecKind::int4: return 7;
    case CodecKind::e4m3: return 448;
    case CodecKind::e5m2: return 57344;
    default: return 1;
  }
}

float mean_magnitude(std::span<const float> block) {
  std::array<float, 16> sums = {};
  for (std::size_t i = 0; i < block.size(); ++i) sums[i % sums.size()] += std::fabs(block[i]);
  return std::accumulate(sums.begin(), sums.end(), 0.0f) /
         static_cast<float>(std::max<std::size_t>(block.size(), 1));
}

std::int64_t code_bytes(CodecKind kind, std::int64_t count) {
  switch (kind) {
    case CodecKind::int8:
    case CodecKind::e4m3:
    case CodecKind::e5m2: return count;
    case CodecKind::int4: return (count + 1) / 2;
    case CodecKind::bf16: return 2 * count;
    case CodecKind::one_bit: return (count + 7) / 8;
    case CodecKind::top_k:
    case CodecKind::low_rank: return 0;
  }
  return 0;
}

std::int64_t scale_bytes(const Codec& codec, std::int64_t count) {
  return has_scales(codec.kind) ? 4 * ((count + codec.block - 1) / codec.block) : 0;
}

std::int64_t encoded_bytes(const Codec& codec, std::int64_t count) {
  if (codec.kind == CodecKind::top_k) return 8 * codec.kept;
  if (codec.kind == CodecKind::low_rank) return 4 * codec.kept * (matrix_of(codec, count).rows + codec.block);
  return scale_bytes(codec, count) + code_bytes(codec.kind, count);
}

double error_bound(const Codec& codec, double x, double largest) {
  switch (codec.kind) {
    case CodecKind::int8: return largest / 254;
    case CodecKind::int4: return largest / 14;
    case CodecKind::e4m3: return std::abs(x) / 16 + largest / (448.0 * 1024);
    case CodecKind::e5m2: return std::abs(x) / 8 + largest / (57344.0 * 131072);
    case CodecKind::bf16: return std::abs(x) / 256;
    case CodecKind::one_bit:
    case CodecKind::top_k: return largest;
    case CodecKind::low_rank: return largest * std::sqrt(static_cast<double>(codec.block));
  }
  return largest;
}

std::string error_bound_text(CodecKind kind) {
  switch (kind) {
    case CodecKind::int8: return "m / 254";
    case CodecKind::int4: return "m / 14";
    case CodecKind::e4m3: return "|x| / 16 + m / 458752";
    case CodecKind::e5m2: return "|x| / 8 + m / 7516192768";
    case CodecKind::bf16: return "|x| / 256";
    case CodecKind::one_bit: return "m";
    case CodecKind::top_k: return "the k-th largest";
    case CodecKind::low_rank: return "the norm of a row";
  }
  return "m";
}

std::int64_t encoded_words(const Codec& codec, std::int64_t count) {
  return (encoded_bytes(codec, count) + 3) / 4;
}

void encode_row(const Codec& codec, std::span<const double> values, std::span<std::int32_t> words) {
  std::vector<float> row(values.begin(), values.end());
  std::vector<std::uint8_t> bytes(words.size() * 4);
  const auto count = static_cast<std::int64_t>(row.size());
  if (codec.kind == CodecKind::bf16) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::uint16_t code = nearest_bf16(row[i]);
      std::memcpy(&bytes[2 * i], &code, 2);
    }
  } else if (codec.kind == CodecKind::top_k) {
    encode_largest(codec.kept, row, bytes.data());
  } else if (codec.kind == CodecKind::low_rank) {
    std::vector<float> factors(bytes.size() / 4);
    low_rank_factors(row, matrix_of(codec, count), codec.kept, factors);
    std::memcpy(bytes.data(), factors.data(), bytes.size());
  } else {
    std::uint8_t* const codes = bytes.data() + scale_bytes(codec, count);
    for (std::int64_t begin = 0; begin < count; begin += codec.block) {
      const std::int64_t end = std::min(count, begin + codec.block);
      const float scale = scale_of_block(
          codec.kind,
          std::span(row).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)));
      std::memcpy(&bytes[static_cast<std::size_t>(4 * (begin / codec.block))], &scale, 4);
      const float by = scale > std::numeric_limits<float>::min() ? 1 / scale : 0;
      for (std::int64_t i = begin; i < end; ++i) {
        const float number = row[static_cast<std::size_t>(i)];
        if (codec.kind == CodecKind::one_bit) {
          codes[i / 8] = static_cast<std::uint8_t>(codes[i / 8] | (std::signbit(number) ? 1 : 0) << (i % 8));
          continue;
        }
        const int code = code_of(codec.kind, number * by);
        if (codec.kind == CodecKind::int4)
          codes[i / 2] = static_cast<std::uint8_t>(codes[i / 2] | (code & 15) << (i % 2 * 4));
        else
          codes[i] = static_cast<std::uint8_t>(code);
      }
    }
  }
  std::memcpy(words.data(), bytes.data(), bytes.size());
}

void decode_row(const Codec& codec, std::span<const std::int32_t> words, std::span<double> values) {
  std::vector<std::uint8_t> bytes(words.size() * 4);
  std::memcpy(bytes.data(), words.data(), bytes.size());
  const auto count = static_cast<std::int64_t>(values.size());
  if (codec.kind == CodecKind::top_k) {
    std::ranges::fill(values, 0.0);
    for (std::int64_t i = 0; i < codec.kept; ++i) {
      std::uint32_t place = 0;
      float number = 0;
      std::memcpy(&place, &bytes[static_cast<std::size_t>(4 * i)], 4);
      std::memcpy(&number, &bytes[static_cast<std::size_t>(4 * (codec.kept + i))], 4);
      if (place < values.size()) values[place] = number;
    }
    return;
  }
  if (codec.kind == CodecKind::low_rank) {
    std::vector<float> factors(bytes.size() / 4), numbers(values.size());
    std::memcpy(factors.data(), bytes.data(), bytes.size());
    low_rank_product(factors, matrix_of(codec, count), codec.kept, numbers);
    std::ranges::copy(numbers, values.begin());
    return;
  }
  const std::uint8_t* const codes = bytes.data() + scale_bytes(codec, count);
  for (std::int64_t i = 0; i < count; ++i) {
    double& value = values[static_cast<std::size_t>(i)];
    if (codec.kind == CodecKind::bf16) {
      std::uint16_t code = 0;
      std::memcpy(&code, codes + 2 * i, 2);
      value = std::bit_cast<float>(static_cast<std::uint32_t>(code) << 16);
      continue;
    }
    float scale = 0;
    std::memcpy(&scale, &bytes[static_cast<std::size_t>(4 * (i / codec.block))], 4);
    if (codec.kind == CodecKind::one_bit) {
      value = (codes[i / 8] >> (i % 8) & 1) != 0 ? -scale : scale;
      continue;
    }
    const int code = codec.kind == CodecKind::int4 ? codes[i / 2] >> (i % 2 * 4) : codes[i];
    value = value_of(codec.kind, code) * scale;
  }
}

}  // namespace weft::ops
