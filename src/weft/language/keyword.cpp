#include "weft/language/keyword.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace weft::language {
namespace {

// A word packed into two integers, so that a lookup is a multiplication and two comparisons.
// Clearing the case bit maps letters to upper case and no other word character to a letter.
struct Packed {
  std::uint64_t head = 0, tail = 0;  // eight letters each, the first in the lowest byte

  friend constexpr bool operator==(const Packed&, const Packed&) = default;
};
constexpr std::size_t kShortest = 2, kLongest = 14;
constexpr std::uint64_t kNoCase = 0xDFDFDFDFDFDFDFDFu;

constexpr Packed pack(std::string_view word) {
  Packed result;
  for (std::size_t i = 0; i < word.size(); ++i) {
    std::uint64_t& half = i < 8 ? result.head : result.tail;
    half |= static_cast<std::uint64_t>(static_cast<unsigned char>(word[i])) << (i % 8 * 8);
  }
  return {result.head & kNoCase, result.tail & kNoCase};
}

constexpr std::size_t kSlotCount = 256;

// A perfect hash: the factor was found by search, and a static_assert below checks that no two
// keywords share a slot.
constexpr std::size_t slot_of(const Packed& word) { return (word.head * 0x5cc6a61298d1a9c1u) >> 56; }

struct Slot {
  Packed word;
  Keyword keyword = Keyword::none;
};

constexpr std::array<Slot, kSlotCount> kSlots = [] {
  std::array<Slot, kSlotCount> slots{};
  for (std::size_t keyword = 1; keyword < kSpellings.size(); ++keyword) {
    const Packed word = pack(kSpellings[keyword]);
    slots[slot_of(word)] = {word, static_cast<Keyword>(keyword)};
  }
  return slots;
}();
static_assert(std::ranges::all_of(kSpellings, [](std::string_view word) {
  return word.empty() || (word.size() >= kShortest && word.size() <= kLongest);
}));
static_assert(std::ranges::count(kSlots, Keyword::none, &Slot::keyword) ==
              kSlotCount - kSpellings.size() + 1);

}  // namespace

Keyword find_keyword(std::string_view word, std::size_t readable) {
  if (word.size() < kShortest || word.size() > kLongest) return Keyword::none;
  Packed packed;
  if (readable < sizeof(Packed) || std::endian::native != std::endian::little) {
    packed = pack(word);
  } else {
    std::memcpy(&packed, word.data(), sizeof(Packed));
    const auto first = [](std::size_t letters) { return ~std::uint64_t{0} >> (64 - 8 * letters); };
    const bool is_long = word.size() > 8;
    packed.head &= kNoCase & first(is_long ? 8 : word.size());
    packed.tail &= is_long ? kNoCase & first(word.size() - 8) : 0;
  }
  const Slot& slot = kSlots[slot_of(packed)];
  return slot.word == packed ? slot.keyword : Keyword::none;
}

}  // namespace weft::language
