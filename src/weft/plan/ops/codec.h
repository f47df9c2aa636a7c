// weft/plan/ops/codec.h -- lossy compression for communication: the codecs, their sizes and errors.
//
//   codec     bytes of n numbers in blocks of B    error of x, in a block whose largest is m
//   int8      n + 4 n / B                          m / 254
//   int4      n / 2 + 4 n / B                      m / 14
//   e4m3      n + 4 n / B                          |x| / 16 + m / (448 * 1024)
//   e5m2      n + 4 n / B                          |x| / 8 + m / (57344 * 131072)
//   bf16      2 n                                  |x| / 256
//   one_bit   n / 8 + 4 n / B                      m
//   top_k     8 k                                  the k-th largest
//   low_rank  4 k (n / B + B)                      the norm of the block
//
// Each block has one scale. The layout is all scales, then all codes; for top_k the positions in
// ascending order, then the numbers there. Blocks of low_rank are the rows of a matrix, which
// becomes two matrices of k columns each (low_rank.h). A non-finite number decodes to NaN in its
// whole block (top_k: itself only; low_rank: the whole matrix), so that it cannot pass for a
// gradient. one_bit, top_k and low_rank need error feedback: their loss must be added to the next
// message.
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
  std::int64_t block = 256;  // numbers per scale; low_rank: the row length of the matrix
  std::int64_t kept = 0;     // top_k: numbers kept; low_rank: the rank

  friend bool operator==(const Codec&, const Codec&) = default;
};

std::string_view name(CodecKind kind);
std::span<const std::string_view> codec_names();
std::optional<CodecKind> find_codec(std::string_view name);

bool has_scales(CodecKind kind);
// The scaled magnitude of a block's largest number, before rounding to codes.
float top_of(CodecKind kind);
// The scale of one_bit. It sums in 16 lanes, so that the result is bitwise equal on all machines.
float mean_magnitude(std::span<const float> block);
std::int64_t scale_bytes(const Codec& codec, std::int64_t count);
std::int64_t code_bytes(CodecKind kind, std::int64_t count);  // without the scales
std::int64_t encoded_bytes(const Codec& codec, std::int64_t count);

// An upper bound of |x - decoded x|, not counting float rounding. `largest` is the largest
// magnitude of the block, for top_k of all numbers. top_k does not know its k-th largest, so the
// bound is `largest`; for low_rank it is the norm of a row whose elements are all `largest`.
double error_bound(const Codec& codec, double x, double largest);
std::string error_bound_text(CodecKind kind);  // "m / 254"

// Size of the encoded numbers in a plan: whole 32-bit words, the last one padded with zeros.
std::int64_t encoded_words(const Codec& codec, std::int64_t count);

// Reference implementation: slow and simple. `words` has encoded_words() elements.
void encode_row(const Codec& codec, std::span<const double> values, std::span<std::int32_t> words);
void decode_row(const Codec& codec, std::span<const std::int32_t> words, std::span<double> values);

// The codec of an encode or decode node. REQUIRES: node.op() is encode() or decode(), and its types
// were inferred.
Codec codec_of(const plan::NodeView& node);
// Segments are coded independently: their number, and the numbers and words of each.
struct CodeSegments {
  std::int64_t count = 0, numbers = 0, words = 0;
};
CodeSegments code_segments(const plan::NodeView& node);
// The coded indices, in the order of the decoded value. Segments are cut along the first.
std::vector<Symbol> coded_indices(const plan::NodeView& node);

}  // namespace weft::ops
