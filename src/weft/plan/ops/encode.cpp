// encode: compresses rows of real numbers for communication.
//
//   y[keep.., into] = codes of the row x[keep..]      one row per point of the kept indices
//
// A row is the other indices, in x's order. It is coded in segments of `segment` steps of the first
// of these indices. A segment holds the scales of its blocks, then its codes (codec.h), padded to
// whole 32-bit words. `into` is the index along these words, as i32. Segments are independent, so
// the kept indices may be sliced, and the first index of a row between segments.
//
// Over the field the codes of a row are uninterpreted: some function of all its numbers. A proof
// that must see through them removes encode and decode first (distribute/without_codecs.h).
#include <algorithm>
#include <array>
#include <type_traits>

#include <fmt/format.h>

#include "weft/base/nearest.h"
#include "weft/plan/ops/codec.h"
#include "weft/plan/ops/codes.h"
#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/low_rank.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

// top_k: how many numbers of a segment are kept; low_rank: the rank of its matrices.
constexpr plan::AttributeSpec kCodecKeptSpec = {"kept", AttributeKind::integer, false};
constexpr std::array<plan::AttributeSpec, 6> kEncodeAttributes = {{{"codec", AttributeKind::word},
                                                                   {"block", AttributeKind::integer},
                                                                   {"segment", AttributeKind::integer},
                                                                   {"keep", AttributeKind::indices},
                                                                   {"into", AttributeKind::index},
                                                                   kCodecKeptSpec}};
constexpr std::array<plan::AttributeSpec, 5> kDecodeAttributes = {{{"codec", AttributeKind::word},
                                                                   {"block", AttributeKind::integer},
                                                                   {"segment", AttributeKind::integer},
                                                                   {"type", AttributeKind::type},
                                                                   kCodecKeptSpec}};
constexpr std::size_t kCodecWord = 0, kCodecBlock = 1, kCodecSegment = 2, kEncodeKeep = 3, kEncodeInto = 4,
                      kEncodeKept = 5, kDecodeType = 3, kDecodeKept = 4;

Status check_codec(const NodeView& node) {
  const std::string_view word = node.word(kCodecWord);
  if (!find_codec(word))
    return user_error(fmt::format("unknown codec: {}", word), did_you_mean(word, codec_names()));
  constexpr std::int64_t kLargestBlock = std::int64_t{1} << 30;
  if (*find_codec(word) == CodecKind::low_rank)
    return expect_between("block", node.integer(kCodecBlock), 1, kLargestBlock);
  WEFT_TRY_STATUS(expect_between("block", node.integer(kCodecBlock), 8, kLargestBlock));
  if (node.integer(kCodecBlock) % 8 != 0)
    return user_error(
        fmt::format("block must be a multiple of 8 numbers, found {}", node.integer(kCodecBlock)));
  return {};
}

Codec read_codec(const NodeView& node) {
  return {*find_codec(node.word(kCodecWord)), node.integer(kCodecBlock),
          node.integer(&node.op() == &encode() ? kEncodeKept : kDecodeKept)};
}

// The segments of one row. REQUIRES: the row has an index.
Result<CodeSegments> segments_of(const NodeView& node, std::span<const plan::Dim> row) {
  const std::int64_t segment = node.integer(kCodecSegment), first = row.front().size;
  WEFT_TRY_STATUS(expect_between("segment", segment, 1, std::max<std::int64_t>(first, 1)));
  if (first % segment != 0)
    return user_error(fmt::format("segments of {} do not divide index {} of size {}", segment,
                                  node.text(row.front().index), first));
  const std::int64_t numbers = segment * points_of(row.subspan(1));
  const Codec codec = read_codec(node);
  const bool factors = codec.kind == CodecKind::low_rank, keeps = factors || codec.kind == CodecKind::top_k;
  const std::int64_t most =
      factors ? std::min(codec.block, (numbers + codec.block - 1) / codec.block) : numbers;
  WEFT_TRY_STATUS(
      expect_between("kept", codec.kept, keeps ? 1 : 0, keeps ? std::max<std::int64_t>(most, 1) : 0));
  return CodeSegments{first / segment, numbers, encoded_words(codec, numbers)};
}

// Kept indices are parallel, and so is the first index of the row, together with the codes' index.
plan::Signature coded_loops(const NodeView& node, Symbol codes) {
  const bool encodes = &node.op() == &encode();
  const plan::Type x = node.input_type(0), y = node.result_type(0);
  const std::vector<Symbol> coded = coded_indices(node);
  plan::Signature signature;
  for (const plan::Dim& dim : (encodes ? x : y).dims) {
    const bool is_first = dim.index == coded.front();
    const int from = x.position(!encodes && is_first ? codes : dim.index),
              to = y.position(encodes && is_first ? codes : dim.index);
    signature.loops.push_back(
        loop_at(dim, contains(coded, dim.index) && !is_first ? kWhole : kParallel, {from}, {to}));
  }
  return signature;
}

// Codecs compute in f32: the extra bits of a wider dtype would be lost before encoding.
Status expect_short_real(const NodeView& node, plan::DType dtype) {
  if (is_real(dtype) && dtype != plan::DType::f64 && !plan::is_f8(dtype)) return {};
  return user_error(fmt::format("{} needs f32, bf16 or f16, found {}", node.op().name(), plan::name(dtype)));
}

// The codes of a segment over the field: some function of all its numbers and the position.
template <class T>
T uninterpreted(const Evaluation<T>& at, std::span<const T> row, std::int64_t place) {
  T sum = at.numbers.from_integer(place + 1);
  std::int64_t weight = 1;
  for (const T& value : row) sum += value * at.numbers.from_integer(weight += place + 2);
  return at.numbers.apply(Function::tanh, sum);
}

double number_of(float value) { return static_cast<double>(value); }
double number_of(double value) { return value; }
double number_of(Rounded value) { return value.value; }

class Encode final : public OperatorOf<Encode> {
 public:
  std::string_view name() const override { return "encode"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kEncodeAttributes; }
  std::size_t min_inputs() const override { return 1; }
  std::size_t max_inputs() const override { return 1; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    const plan::Type x = node.input_type(0);
    WEFT_TRY_STATUS(check_codec(node));
    WEFT_TRY_STATUS(expect_short_real(node, x.dtype));
    WEFT_TRY_STATUS(pick(x.dims, node.indices(kEncodeKeep), node));
    if (x.has(node.symbol(kEncodeInto)))
      return user_error(fmt::format("encode needs a new index, found {} in {}",
                                    node.text(node.symbol(kEncodeInto)),
                                    print_indices(x.dims, node.graph().symbols())));
    const DimList row = without(x.dims, node.indices(kEncodeKeep));
    if (row.empty()) return user_error("encode needs an index that is not kept: the row to encode");
    WEFT_TRY(segments, segments_of(node, row));
    DimList dims = without(x.dims, indices_of(row));
    dims.push_back({node.symbol(kEncodeInto), segments.count * segments.words});
    return results.add(plan::DType::i32, dims);
  }

  plan::Signature signature(const NodeView& node) const override {
    return coded_loops(node, node.symbol(kEncodeInto));
  }

  // One operation for the scales, one for the codes.
  plan::Work work(const NodeView& node) const override {
    plan::Work work = bytes_of(node);
    const Codec codec = read_codec(node);
    const auto numbers = static_cast<double>(node.input_type(0).elements());
    work.flops = codec.kind == CodecKind::low_rank
                     ? 2.0 * (2 * kPowerIterations + 1) * static_cast<double>(codec.kept) * numbers
                     : 4 * numbers;
    return work;
  }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    const Codec codec = read_codec(at.node());
    const Rows rows(at.node().input_type(0), coded_indices(at.node()));
    const CodeSegments segments = code_segments(at.node());
    std::vector<T> numbers(static_cast<std::size_t>(segments.numbers));
    std::vector<std::int32_t> words(static_cast<std::size_t>(segments.words));
    T* next = at.result(0).data.data();
    for (const std::int64_t start : rows.starts)
      for (std::size_t begin = 0; begin < rows.columns.size(); begin += numbers.size()) {
        for (std::size_t i = 0; i < numbers.size(); ++i)
          numbers[i] = at.input(0).data[static_cast<std::size_t>(start + rows.columns[begin + i])];
        if constexpr (std::is_same_v<T, Field>) {
          for (std::size_t w = 0; w < words.size(); ++w)
            *next++ = uninterpreted<T>(at, numbers, static_cast<std::int64_t>(w));
        } else {
          std::vector<double> plain;
          for (const T& value : numbers) plain.push_back(number_of(value));
          encode_row(codec, plain, words);
          for (const std::int32_t word : words) *next++ = at.numbers.from_integer(word);
        }
      }
  }
};

// decode: decompresses rows of codes.
//
//   y[..] = the numbers of the rows x[keep.., into]
//
// `type` is that of y. Its indices that x has too are the kept ones.
class Decode final : public OperatorOf<Decode> {
 public:
  std::string_view name() const override { return "decode"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kDecodeAttributes; }
  std::size_t min_inputs() const override { return 1; }
  std::size_t max_inputs() const override { return 1; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    const plan::Type x = node.input_type(0), to = node.type(kDecodeType);
    WEFT_TRY_STATUS(check_codec(node));
    WEFT_TRY_STATUS(expect_short_real(node, to.dtype));
    DimList kept, row;
    for (const plan::Dim& dim : to.dims) (x.has(dim.index) ? kept : row).push_back(dim);
    const Symbols& symbols = node.graph().symbols();
    const bool agree = x.dtype == plan::DType::i32 && x.rank() == kept.size() + 1 && !row.empty() &&
                       std::equal(kept.begin(), kept.end(), x.dims.begin());
    const auto wrong = [&] {
      return user_error(fmt::format("decode of {} in blocks of {} and segments of {} cannot make {} of {}",
                                    node.word(kCodecWord), node.integer(kCodecBlock),
                                    node.integer(kCodecSegment), print(to, symbols), print(x, symbols)));
    };
    if (!agree) return wrong();
    WEFT_TRY(segments, segments_of(node, row));
    if (x.dims.back().size != segments.count * segments.words) return wrong();
    return results.add(to);
  }

  plan::Signature signature(const NodeView& node) const override {
    return coded_loops(node, node.input_type(0).dims.back().index);
  }

  plan::Work work(const NodeView& node) const override {
    const Codec codec = read_codec(node);
    return flops_each(node, codec.kind == CodecKind::low_rank ? 2 * static_cast<double>(codec.kept) : 2);
  }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    const Codec codec = read_codec(at.node());
    const Rows rows(at.node().result_type(0), coded_indices(at.node()));
    const CodeSegments segments = code_segments(at.node());
    const auto width = static_cast<std::size_t>(segments.words);
    std::vector<double> numbers(static_cast<std::size_t>(segments.numbers));
    std::size_t next = 0;
    for (const std::int64_t start : rows.starts)
      for (std::size_t begin = 0; begin < rows.columns.size(); begin += numbers.size(), next += width) {
        const std::span<const T> codes = std::span(at.input(0).data).subspan(next, width);
        std::vector<std::int32_t> words(width);
        if constexpr (!std::is_same_v<T, Field>) {
          for (std::size_t w = 0; w < width; ++w)
            words[w] = static_cast<std::int32_t>(at.numbers.to_integer(codes[w]));
          decode_row(codec, words, numbers);
        }
        for (std::size_t i = 0; i < numbers.size(); ++i) {
          T& value = at.result(0).data[static_cast<std::size_t>(start + rows.columns[begin + i])];
          if constexpr (std::is_same_v<T, Field>)
            value = uninterpreted<T>(at, codes, static_cast<std::int64_t>(i));
          else
            value = at.numbers.from(numbers[i]);
        }
      }
  }
};

}  // namespace

Codec codec_of(const NodeView& node) { return read_codec(node); }

CodeSegments code_segments(const NodeView& node) {
  const bool encodes = &node.op() == &encode();
  const plan::Type numbers = encodes ? node.input_type(0) : node.type(kDecodeType);
  CodeSegments segments{.numbers = node.integer(kCodecSegment)};
  const std::vector<Symbol> coded = coded_indices(node);
  for (const Symbol index : std::span(coded).subspan(1)) segments.numbers *= numbers.size_of(index);
  segments.words = encoded_words(read_codec(node), segments.numbers);
  segments.count = numbers.elements() / segments.numbers;
  return segments;
}

std::vector<Symbol> coded_indices(const NodeView& node) {
  const bool encodes = &node.op() == &encode();
  const plan::Type numbers = encodes ? node.input_type(0) : node.type(kDecodeType);
  std::vector<Symbol> coded;
  for (const plan::Dim& dim : numbers.dims)
    if (encodes ? !contains(node.indices(kEncodeKeep), dim.index) : !node.input_type(0).has(dim.index))
      coded.push_back(dim.index);
  return coded;
}

const Operator& encode() {
  static const Encode op;
  return op;
}

const Operator& decode() {
  static const Decode op;
  return op;
}

}  // namespace weft::ops
