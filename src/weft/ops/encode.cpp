// encode: rows of real numbers as rows of codes, small for the wire.
//
//   y[keep.., into] = codes of the row x[keep..]      one row for each point of the indices that are kept
//
// A row is what the other indices hold, in x's order: blocks of `block` numbers with a scale each, then codes of
// the last byte's worth (codec.h). It is counted in words of 4 bytes, as i32, and `into` is the index along them.
// Rows have nothing in common, so what is kept may be cut; a row may not.
//
// Over the field the codes of a row are uninterpreted: some function of all its numbers. A proof that is to see
// through them takes encode and decode out first (distribute/without_codecs.h).
#include <algorithm>
#include <array>
#include <type_traits>

#include <fmt/format.h>

#include "weft/base/nearest.h"
#include "weft/ops/codec.h"
#include "weft/ops/loops.h"
#include "weft/ops/operators.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 4> kEncodeAttributes = {{{"codec", AttributeKind::word},
                                                                   {"block", AttributeKind::integer},
                                                                   {"keep", AttributeKind::indices},
                                                                   {"into", AttributeKind::index}}};
constexpr std::array<plan::AttributeSpec, 3> kDecodeAttributes = {
    {{"codec", AttributeKind::word}, {"block", AttributeKind::integer}, {"type", AttributeKind::type}}};
constexpr std::size_t kCodecWord = 0, kCodecBlock = 1, kEncodeKeep = 2, kEncodeInto = 3, kDecodeType = 2;

Status check_codec(const NodeView& node) {
  const std::string_view word = node.word(kCodecWord);
  if (!find_codec(word))
    return user_error(fmt::format("no codec of plans: {}", word), did_you_mean(word, plan_codecs()));
  constexpr std::int64_t kLargestBlock = std::int64_t{1} << 30;
  WEFT_TRY_STATUS(expect_between("block", node.integer(kCodecBlock), 8, kLargestBlock));
  if (node.integer(kCodecBlock) % 8 != 0)
    return user_error(
        fmt::format("block must be a multiple of 8 numbers, found {}", node.integer(kCodecBlock)));
  return {};
}

Codec read_codec(const NodeView& node) { return {*find_codec(node.word(kCodecWord)), node.integer(kCodecBlock)}; }

// A codec's arithmetic is that of floats: more bits would be lost before they are coded.
Status expect_short_real(const NodeView& node, plan::DType dtype) {
  if (is_real(dtype) && dtype != plan::DType::f64) return {};
  return user_error(
      fmt::format("{} is of f32, bf16 or f16, found {}", node.op().name(), plan::name(dtype)));
}

// What a row's codes are where numbers mean nothing: some function of the row and the place.
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
  std::size_t fewest_inputs() const override { return 1; }
  std::size_t most_inputs() const override { return 1; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    const plan::Type x = node.input_type(0);
    WEFT_TRY_STATUS(check_codec(node));
    WEFT_TRY_STATUS(expect_short_real(node, x.dtype));
    WEFT_TRY_STATUS(pick(x.dims, node.indices(kEncodeKeep), node));
    if (x.has(node.symbol(kEncodeInto)))
      return user_error(fmt::format("encode needs a new index, found {} in {}", node.text(node.symbol(kEncodeInto)),
                                    print_indices(x.dims, node.graph().symbols())));
    const DimList row = without(x.dims, node.indices(kEncodeKeep));
    if (row.empty()) return user_error("encode needs an index that is not kept: the row that it codes");
    DimList dims = without(x.dims, indices_of(row));
    dims.push_back({node.symbol(kEncodeInto), encoded_words(read_codec(node), points_of(row))});
    return results.add(plan::DType::i32, dims);
  }

  plan::Signature signature(const NodeView& node) const override {
    std::vector<Symbol> whole = coded_indices(node);
    whole.push_back(node.symbol(kEncodeInto));
    return parallel_loops_except(node, whole);
  }

  // Once for the scales, once for the codes.
  plan::Work work(const NodeView& node) const override {
    plan::Work work = bytes_of(node);
    work.flops = 4 * static_cast<double>(node.input_type(0).elements());
    return work;
  }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    const Codec codec = read_codec(at.node());
    const Rows rows(at.node().input_type(0), coded_indices(at.node()));
    std::vector<T> row(rows.columns.size());
    std::vector<std::int32_t> words(
        static_cast<std::size_t>(encoded_words(codec, static_cast<std::int64_t>(row.size()))));
    T* next = at.result(0).data.data();
    for (const std::int64_t start : rows.starts) {
      for (std::size_t i = 0; i < row.size(); ++i)
        row[i] = at.input(0).data[static_cast<std::size_t>(start + rows.columns[i])];
      if constexpr (std::is_same_v<T, Field>) {
        for (std::size_t w = 0; w < words.size(); ++w)
          *next++ = uninterpreted<T>(at, row, static_cast<std::int64_t>(w));
      } else {
        std::vector<double> numbers;
        for (const T& value : row) numbers.push_back(number_of(value));
        encode_row(codec, numbers, words);
        for (const std::int32_t word : words) *next++ = at.numbers.from_integer(word);
      }
    }
  }
};

// decode: what rows of codes stand for.
//
//   y[..] = the numbers of the rows x[keep.., into]      `type` is that of y; indices that x has too were kept
class Decode final : public OperatorOf<Decode> {
 public:
  std::string_view name() const override { return "decode"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kDecodeAttributes; }
  std::size_t fewest_inputs() const override { return 1; }
  std::size_t most_inputs() const override { return 1; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    const plan::Type x = node.input_type(0), to = node.type(kDecodeType);
    WEFT_TRY_STATUS(check_codec(node));
    WEFT_TRY_STATUS(expect_short_real(node, to.dtype));
    DimList kept, row;
    for (const plan::Dim& dim : to.dims) (x.has(dim.index) ? kept : row).push_back(dim);
    const Symbols& symbols = node.graph().symbols();
    const bool agree =
        x.dtype == plan::DType::i32 && x.rank() == kept.size() + 1 && !row.empty() &&
        std::equal(kept.begin(), kept.end(), x.dims.begin()) &&
        x.dims.back().size == encoded_words(read_codec(node), points_of(row));
    if (!agree)
      return user_error(fmt::format("decode of {} in blocks of {} cannot make {} of {}", node.word(kCodecWord),
                                    node.integer(kCodecBlock), print(to, symbols), print(x, symbols)));
    return results.add(to);
  }

  plan::Signature signature(const NodeView& node) const override {
    std::vector<Symbol> whole = coded_indices(node);
    whole.push_back(node.input_type(0).dims.back().index);
    return parallel_loops_except(node, whole);
  }

  plan::Work work(const NodeView& node) const override { return flops_each(node, 2); }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    const Codec codec = read_codec(at.node());
    const Rows rows(at.node().result_type(0), coded_indices(at.node()));
    const auto width = static_cast<std::size_t>(at.node().input_type(0).dims.back().size);
    std::vector<double> row(rows.columns.size());
    for (std::size_t r = 0; r < rows.starts.size(); ++r) {
      const std::span<const T> codes = std::span(at.input(0).data).subspan(r * width, width);
      std::vector<std::int32_t> words(width);
      if constexpr (!std::is_same_v<T, Field>) {
        for (std::size_t w = 0; w < width; ++w)
          words[w] = static_cast<std::int32_t>(at.numbers.to_integer(codes[w]));
        decode_row(codec, words, row);
      }
      for (std::size_t i = 0; i < row.size(); ++i) {
        T& value = at.result(0).data[static_cast<std::size_t>(rows.starts[r] + rows.columns[i])];
        if constexpr (std::is_same_v<T, Field>)
          value = uninterpreted<T>(at, codes, static_cast<std::int64_t>(i));
        else
          value = at.numbers.from(row[i]);
      }
    }
  }
};

}  // namespace

Codec codec_of(const NodeView& node) { return read_codec(node); }

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
