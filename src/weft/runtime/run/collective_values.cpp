#include "weft/runtime/run/collective_values.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "weft/base/hash.h"
#include "weft/communication/comm/chunk/chunk_memory.h"
#include "weft/device/cpu/reduction.h"

namespace weft::run {
namespace {

using collective::Buffer;
using collective::Kind;
using collective::Want;
using comm::ElementType;
using comm::ReduceOp;

constexpr std::int64_t kMostExact = 256;  // bf16 represents all integers up to this
constexpr std::int64_t kMostFactors = 6;  // factors of 2 in a product, at most 64
constexpr std::int64_t kMostCheckedElements = std::numeric_limits<std::int32_t>::max();

std::uint64_t scrambled(std::int32_t rank, std::int64_t place) {
  return mix(static_cast<std::uint64_t>(place) + (static_cast<std::uint64_t>(rank + 1) << 44));
}

// The exact value at a position of a rank's input. Simple enough to vectorize, because every rank
// recomputes the inputs of all ranks.
class ExactValue {
 public:
  ExactValue(ReduceOp op, std::int32_t ranks)
      : product_(op == ReduceOp::product),
        apart_(static_cast<std::uint32_t>(2 * ((ranks + kMostFactors - 1) / kMostFactors))),
        most_(static_cast<std::uint32_t>(std::max<std::int64_t>(2, kMostExact / ranks))) {}

  std::int32_t operator()(std::int32_t rank, std::int64_t place) const {
    const auto low = static_cast<std::uint32_t>(place), from = static_cast<std::uint32_t>(rank);
    // One in `apart_` ranks contributes a factor 2; which ones depends on the position.
    if (product_) return (low + from) % apart_ == 0 ? 2 : 1;
    std::uint32_t drawn = (low + from * 0x9e846af9u) * 0xb1a615d5u;
    drawn = (drawn ^ (drawn >> 15)) * 0xe9846af9u;
    return static_cast<std::int32_t>(((drawn >> 16) * most_) >> 16);
  }

 private:
  const bool product_;
  const std::uint32_t apart_, most_;
};

// Converts 0 to 2048 to f16.
std::uint16_t small_half(std::int64_t value) {
  if (value == 0) return 0;
  const int exponent = 63 - std::countl_zero(static_cast<std::uint64_t>(value));
  const std::int64_t mantissa = exponent <= 10 ? value << (10 - exponent) : value >> (exponent - 10);
  return static_cast<std::uint16_t>(((exponent + 15) << 10) | (mantissa & 0x3ff));
}

template <class T>
void put(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

void put_exact(ElementType type, std::byte* at, std::int64_t value) {
  switch (type) {
    case ElementType::f64: return put(at, static_cast<double>(value));
    case ElementType::f32: return put(at, static_cast<float>(value));
    case ElementType::f16: return put(at, small_half(value));
    case ElementType::bf16:
      return put(at,
                 static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16));
    case ElementType::i8:
    case ElementType::u8: return put(at, static_cast<std::uint8_t>(value));
    case ElementType::i16:
    case ElementType::u16: return put(at, static_cast<std::uint16_t>(value));
    case ElementType::i32:
    case ElementType::u32: return put(at, static_cast<std::uint32_t>(value));
    case ElementType::i64:
    case ElementType::u64: return put(at, value);
  }
}

// Floats between 1/2 and 2 with random mantissas; arbitrary integers.
void put_rough(ElementType type, std::byte* at, std::uint64_t drawn) {
  switch (type) {
    case ElementType::f64: return put(at, (drawn & 0x000fffffffffffff) | 0x3fe0000000000000);
    case ElementType::f32: return put(at, static_cast<std::uint32_t>((drawn & 0x00ffffff) | 0x3f000000));
    case ElementType::f16: return put(at, static_cast<std::uint16_t>((drawn & 0x07ff) | 0x3800));
    case ElementType::bf16: return put(at, static_cast<std::uint16_t>((drawn & 0x00ff) | 0x3f00));
    case ElementType::i8:
    case ElementType::u8: return put(at, static_cast<std::uint8_t>(drawn));
    case ElementType::i16:
    case ElementType::u16: return put(at, static_cast<std::uint16_t>(drawn));
    case ElementType::i32:
    case ElementType::u32: return put(at, static_cast<std::uint32_t>(drawn));
    case ElementType::i64:
    case ElementType::u64: return put(at, drawn);
  }
}

// Computes the expected output for consecutive elements that combine the same ranks' inputs.
class Reference {
 public:
  explicit Reference(const ElementCollective& what)
      : op_(what.call.op), ranks_(what.ranks()), exact_(what.call.op, what.ranks()) {}

  // `parts`: the first element of each input that contributes.
  void draw(std::span<const collective::Contribution> parts, std::int64_t scale,
            std::vector<std::int32_t>& stretch) const {
    for (std::size_t i = 0; i < stretch.size(); ++i) stretch[i] = at(parts[0], scale, i);
    for (const collective::Contribution& part : parts.subspan(1)) switch (op_) {
        case ReduceOp::product:
          for (std::size_t i = 0; i < stretch.size(); ++i) stretch[i] *= at(part, scale, i);
          break;
        case ReduceOp::min:
          for (std::size_t i = 0; i < stretch.size(); ++i)
            stretch[i] = std::min(stretch[i], at(part, scale, i));
          break;
        case ReduceOp::max:
          for (std::size_t i = 0; i < stretch.size(); ++i)
            stretch[i] = std::max(stretch[i], at(part, scale, i));
          break;
        case ReduceOp::bit_and:
          for (std::size_t i = 0; i < stretch.size(); ++i) stretch[i] &= at(part, scale, i);
          break;
        case ReduceOp::bit_or:
          for (std::size_t i = 0; i < stretch.size(); ++i) stretch[i] |= at(part, scale, i);
          break;
        case ReduceOp::bit_xor:
          for (std::size_t i = 0; i < stretch.size(); ++i) stretch[i] ^= at(part, scale, i);
          break;
        default:
          for (std::size_t i = 0; i < stretch.size(); ++i) stretch[i] += at(part, scale, i);
      }
  }

  // The inputs named by `want`; empty if any value is allowed.
  std::vector<collective::Contribution> parts(const Want& want) const {
    switch (want.what) {
      case Want::What::anything: return {};
      case Want::What::chunk: return {{want.rank, want.index}};
      case Want::What::listed: return want.contributions;
      case Want::What::sum: break;
    }
    std::vector<collective::Contribution> all;
    for (std::int32_t rank = 0; rank < ranks_; ++rank) all.push_back({rank, want.index});
    return all;
  }

 private:
  std::int32_t at(const collective::Contribution& part, std::int64_t scale, std::size_t i) const {
    return exact_(part.rank, part.index * scale + static_cast<std::int64_t>(i));
  }

  const ReduceOp op_;
  const std::int32_t ranks_;
  const ExactValue exact_;
};

// The number of elements from `place` on that are also consecutive in the inputs: those of one
// block.
std::int64_t stretch_at(const ElementCollective& what, std::int32_t rank, std::int64_t place,
                        std::int64_t end) {
  const Kind kind = what.call.kind;
  if (kind == Kind::custom) return what.call.count;
  if (kind != Kind::all_gather && kind != Kind::gather && kind != Kind::all_to_all) return end - place;
  if (what.call.counts.empty()) return what.call.count;
  std::int64_t last = 0;
  for (std::int32_t from = 0; from < what.ranks(); ++from) {
    last +=
        what.call
            .counts[static_cast<std::size_t>(kind == Kind::all_to_all ? from * what.ranks() + rank : from)];
    if (place < last) break;
  }
  return last - place;
}

}  // namespace

std::int64_t ElementCollective::elements(Buffer buffer, std::int32_t rank) const {
  if (program.collective.kind == Kind::custom)
    return comm::callers_chunks(program, rank, buffer) * call.count;
  const auto element = static_cast<std::int64_t>(device::size_of(call.type));
  const std::int64_t bytes = buffer == Buffer::input ? comm::input_bytes(call, ranks(), rank)
                                                     : comm::output_bytes(call, ranks(), rank);
  return bytes / element;
}

void fill_input(const ElementCollective& what, std::int32_t rank, Values values, std::byte* input) {
  const std::int64_t elements = what.elements(Buffer::input, rank);
  const auto element = static_cast<std::int64_t>(device::size_of(what.call.type));
  const ExactValue exact(what.call.op, what.ranks());
  for (std::int64_t place = 0; place < elements; ++place) {
    std::byte* const at = input + place * element;
    if (values == Values::exact)
      put_exact(what.call.type, at, exact(rank, place));
    else
      put_rough(what.call.type, at, scrambled(rank, place));
  }
}

Result<Expected> expected_output(const ElementCollective& what, std::int32_t rank) {
  const std::int64_t elements = what.elements(Buffer::output, rank);
  if (elements > kMostCheckedElements || what.call.count > kMostCheckedElements / what.ranks())
    return user_error(fmt::format("too many elements to verify: {}", elements), "fewer --bytes");
  Expected expected;
  const auto element = static_cast<std::int64_t>(device::size_of(what.call.type));
  expected.bytes.resize(static_cast<std::size_t>(elements * element));
  const Reference reference(what);
  const bool custom = what.program.collective.kind == Kind::custom;
  // For collectives other than custom, a chunk is one element, so that want() refers to elements.
  collective::Collective wanted = what.program.collective;
  if (custom) {
    expected.wanted.assign(static_cast<std::size_t>(elements), true);
  } else {
    wanted.chunks = static_cast<std::int32_t>(std::max<std::int64_t>(1, what.call.count));
    wanted.counts.assign(what.call.counts.begin(), what.call.counts.end());
  }
  const std::int64_t scale = custom ? what.call.count : 1;  // elements per chunk
  std::vector<std::int32_t> stretch;
  for (std::int64_t place = 0; place < elements; place += static_cast<std::int64_t>(stretch.size())) {
    stretch.resize(static_cast<std::size_t>(stretch_at(what, rank, place, elements)));
    const auto parts =
        reference.parts(collective::want(wanted, rank, static_cast<std::int32_t>(place / scale)));
    if (parts.empty()) {
      if (custom) std::fill_n(expected.wanted.begin() + place, stretch.size(), false);
      continue;
    }
    reference.draw(parts, scale, stretch);
    for (std::size_t i = 0; i < stretch.size(); ++i)
      put_exact(what.call.type, expected.bytes.data() + (place + static_cast<std::int64_t>(i)) * element,
                stretch[i]);
  }
  if (what.call.op == ReduceOp::avg && collective::reduces(what.call.kind))
    device::cpu::finish_average(what.call.type, expected.bytes.data(), static_cast<std::size_t>(elements),
                                what.ranks());
  return expected;
}

}  // namespace weft::run
