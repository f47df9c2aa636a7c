#include "weft/runtime/measure/bench_pattern.h"

#include <algorithm>
#include <cstring>

#include "weft/device/element_access.h"

namespace weft::measure {
namespace {

using collective::Kind;
using device::ElementType;

constexpr std::int64_t kPeriod = 61;   // prime, so that power-of-two blocks start differently
constexpr std::int64_t kRepeats = 64;  // periods per memcpy

std::int64_t value(std::int64_t rank, std::int64_t block, std::int64_t index) {
  // A hash in which neighbouring ranks, blocks and indices differ.
  std::uint64_t mixed = static_cast<std::uint64_t>(rank) * 0x9e3779b97f4a7c15U +
                        static_cast<std::uint64_t>(block) * 0xc2b2ae3d27d4eb4fU +
                        static_cast<std::uint64_t>(index) * 0x165667b19e3779f9U;
  mixed ^= mixed >> 31;
  mixed *= 0xd6e8feb86659fd93U;
  return 1 + static_cast<std::int64_t>((mixed >> 40) % 5);
}

void append(std::string& bytes, ElementType type, std::int64_t number) {
  const auto put = [&](auto element) {
    bytes.append(reinterpret_cast<const char*>(&element), sizeof element);
  };
  switch (type) {
    case ElementType::f64: return put(static_cast<double>(number));
    case ElementType::f32: return put(static_cast<float>(number));
    case ElementType::f16: return put(device::to_f16(static_cast<double>(number)));
    case ElementType::bf16: return put(device::to_bf16(static_cast<double>(number)));
    case ElementType::i8: return put(static_cast<std::int8_t>(number));
    case ElementType::i32: return put(static_cast<std::int32_t>(number));
    case ElementType::i64: return put(number);
    case ElementType::u8: return put(static_cast<std::uint8_t>(number));
    case ElementType::i16: return put(static_cast<std::int16_t>(number));
    case ElementType::u16: return put(static_cast<std::uint16_t>(number));
    case ElementType::u32: return put(static_cast<std::uint32_t>(number));
    case ElementType::u64: return put(static_cast<std::uint64_t>(number));
  }
}

void repeat(const std::string& period, std::byte* target, std::int64_t bytes) {
  const auto step = static_cast<std::int64_t>(period.size());
  for (std::int64_t at = 0; at < bytes; at += step)
    std::memcpy(target + at, period.data(), static_cast<std::size_t>(std::min(step, bytes - at)));
}

std::int64_t differing(const std::string& period, const std::byte* found, std::int64_t bytes,
                       std::size_t element) {
  const auto step = static_cast<std::int64_t>(period.size());
  std::int64_t wrong = 0;
  for (std::int64_t at = 0; at < bytes; at += step) {
    const auto size = static_cast<std::size_t>(std::min(step, bytes - at));
    if (std::memcmp(found + at, period.data(), size) == 0) continue;
    for (std::size_t i = 0; i < size; i += element)
      wrong += std::memcmp(found + at + i, period.data() + i, element) != 0 ? 1 : 0;
  }
  return wrong;
}

}  // namespace

BenchPattern::BenchPattern(const BenchTurn& turn, std::int32_t ranks, std::int32_t rank)
    : kind_(turn.kind),
      type_(turn.type),
      elements_(block_elements(turn, ranks)),
      ranks_(ranks),
      rank_(rank) {}

std::int64_t BenchPattern::blocks_in() const {
  return kind_ == Kind::reduce_scatter || kind_ == Kind::all_to_all ? ranks_ : 1;
}

std::int64_t BenchPattern::blocks_out() const {
  return kind_ == Kind::all_gather || kind_ == Kind::all_to_all ? ranks_ : 1;
}

std::int64_t BenchPattern::input_bytes() const {
  return blocks_in() * elements_ * static_cast<std::int64_t>(size_of(type_));
}

std::int64_t BenchPattern::output_bytes() const {
  return blocks_out() * elements_ * static_cast<std::int64_t>(size_of(type_));
}

// The sum over ranks [first, last) for one period, repeated to the size of one memcpy.
std::string BenchPattern::period(std::int32_t first, std::int32_t last, std::int32_t block) const {
  std::string once;
  for (std::int64_t i = 0; i < kPeriod; ++i) {
    std::int64_t sum = 0;
    for (std::int32_t rank = first; rank < last; ++rank) sum += value(rank, block, i);
    append(once, type_, sum);
  }
  std::string all;
  const std::int64_t repeats = std::min(kRepeats, elements_ / kPeriod + 1);
  for (std::int64_t i = 0; i < repeats; ++i) all += once;
  return all;
}

void BenchPattern::fill(std::byte* input) const {
  const std::int64_t block_bytes = elements_ * static_cast<std::int64_t>(size_of(type_));
  if (kind_ == Kind::broadcast && rank_ != 0) {
    std::memset(input, 0, static_cast<std::size_t>(block_bytes));
    return;
  }
  for (std::int32_t block = 0; block < blocks_in(); ++block)
    repeat(period(rank_, rank_ + 1, block), input + block * block_bytes, block_bytes);
}

std::int64_t BenchPattern::wrong(const std::byte* output) const {
  const std::size_t element = size_of(type_);
  const std::int64_t block_bytes = elements_ * static_cast<std::int64_t>(element);
  std::int64_t wrong = 0;
  for (std::int32_t block = 0; block < blocks_out(); ++block) {
    std::string expected;
    switch (kind_) {
      case Kind::all_reduce: expected = period(0, ranks_, 0); break;
      case Kind::reduce_scatter: expected = period(0, ranks_, rank_); break;
      case Kind::all_gather: expected = period(block, block + 1, 0); break;
      case Kind::all_to_all: expected = period(block, block + 1, rank_); break;
      default: expected = period(0, 1, 0); break;
    }
    wrong += differing(expected, output + block * block_bytes, block_bytes, element);
  }
  return wrong;
}

}  // namespace weft::measure
