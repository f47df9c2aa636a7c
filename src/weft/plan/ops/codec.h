// weft/plan/ops/codec.h -- numbers made small for the wire: what a codec is, how small and how far off.
//
//   codec     bytes of n numbers in blocks of B    error of x, in a block whose largest is m
//   int8      n + 4 n / B                          m / 254
//   int4      n / 2 + 4 n / B                      m / 14
//   e4m3      n + 4 n / B                          |x| / 16 + m / (448 * 1024)
//   e5m2      n + 4 n / B                          |x| / 8 + m / (57344 * 131072)
//   bf16      2 n                                  |x| / 256
//   one_bit   n / 8 + 4 n / B                      m
//   top_k     8 k                                  the k-th largest
//   low_rank  4 k (n / B + B)                      the length of the block
//
// A block has one scale. The layout is all scales, then all codes; of top_k the places in ascending order, then the
// numbers there. Blocks of low_rank are the rows of a matrix, which becomes two of k columns each (low_rank.h). A block
// with a number that is not finite decodes to NaN, of top_k that number, of low_rank all: it must not pass for a
// gradient. one_bit, top_k and low_rank are of no use unless what they lose is added to what is encoded next.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/symbols.h"
#include "weft/plan/graph/graph.h"

namespace weft::ops {

enum class CodecKind : std::uint8_t { int8, int4, e4m3, e5m2, bf16, one_bit, top_k, low_rank };

struct Codec {
  CodecKind kind = CodecKind::int8;
  std::int64_t block = 256;  // numbers that share a scale; of low_rank a row of the matrix
  std::int64_t kept = 0;     // by top_k; of low_rank the rank

  friend bool operator==(const Codec&, const Codec&) = default;
};

std::string_view name(CodecKind kind);
std::span<const std::string_view> codec_names();
std::optional<CodecKind> find_codec(std::string_view name);

bool has_scales(CodecKind kind);
// What the largest number of a block becomes, before codes are whole.
float top_of(CodecKind kind);
// The scale of one_bit: summed in 16 lanes, so that the bits are the same wherever it is taken.
float mean_magnitude(std::span<const float> block);
std::int64_t scale_bytes(const Codec& codec, std::int64_t count);
std::int64_t code_bytes(CodecKind kind, std::int64_t count);  // but for scales
std::int64_t encoded_bytes(const Codec& codec, std::int64_t count);

// The most that |x - decoded x| can be, float rounding aside; of top_k what its k-th largest is not known to bound,
// so `largest`; of low_rank what a row of `largest` everywhere is long. `largest` is that of the block, of top_k that of all.
double error_bound(const Codec& codec, double x, double largest);
std::string error_bound_text(CodecKind kind);  // "m / 254"

// Of numbers as encode and decode have them in a plan: whole words, the last one filled up with zeros.
std::int64_t encoded_words(const Codec& codec, std::int64_t count);

// By the definition: slow and plain. `words` holds encoded_words() of them.
void encode_row(const Codec& codec, std::span<const double> values, std::span<std::int32_t> words);
void decode_row(const Codec& codec, std::span<const std::int32_t> words, std::span<double> values);

// What an encode or decode node says. REQUIRES: node.op() is encode() or decode(), and its types were inferred.
Codec codec_of(const plan::NodeView& node);
// What is coded by itself: so many in all, of so many numbers each, in so many words.
struct CodeSegments {
  std::int64_t count = 0, numbers = 0, words = 0;
};
CodeSegments code_segments(const plan::NodeView& node);
// The indices that are coded, in the order of the value that has them. Segments are cut along the first.
std::vector<Symbol> coded_indices(const plan::NodeView& node);

}  // namespace weft::ops
