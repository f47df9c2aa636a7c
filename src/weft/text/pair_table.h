// weft/text/pair_table.h -- a hash table from pairs of numbers to pairs of numbers.
//
// Merging looks up every pair of neighbours in a text, so this is the inner loop of BPE: open
// addressing takes a third of the time of std::unordered_map.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::text {

class PairTable {
 public:
  struct Value {
    std::uint32_t first = 0, second = 0;
  };

  // The value of the pair: the one it had, or `value`.
  Value insert(std::uint32_t a, std::uint32_t b, Value value) {
    if (slots_.size() < 2 * (count_ + 1)) grow();
    Slot& slot = slots_[place(key_of(a, b))];
    if (slot.key == kEmpty) {
      slot = {key_of(a, b), value};
      ++count_;
    }
    return slot.value;
  }

  void replace(std::uint32_t a, std::uint32_t b, Value value) {
    insert(a, b, value);
    slots_[place(key_of(a, b))].value = value;
  }

  const Value* find(std::uint32_t a, std::uint32_t b) const {
    if (slots_.empty()) return nullptr;
    const Slot& slot = slots_[place(key_of(a, b))];
    return slot.key == kEmpty ? nullptr : &slot.value;
  }

 private:
  static constexpr std::uint64_t kEmpty = UINT64_MAX;

  struct Slot {
    std::uint64_t key = kEmpty;
    Value value;
  };

  static std::uint64_t key_of(std::uint32_t a, std::uint32_t b) { return std::uint64_t{a} << 32 | b; }

  // The slot of the key, or the empty one where it belongs.
  std::size_t place(std::uint64_t key) const {
    std::size_t at = static_cast<std::size_t>((key * 0x9E3779B97F4A7C15u) >> 20) & (slots_.size() - 1);
    while (slots_[at].key != kEmpty && slots_[at].key != key) at = (at + 1) & (slots_.size() - 1);
    return at;
  }

  void grow() {
    std::vector<Slot> old(slots_.empty() ? 64 : slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old)
      if (slot.key != kEmpty) slots_[place(slot.key)] = slot;
  }

  std::vector<Slot> slots_;  // a power of two, at most half full
  std::size_t count_ = 0;
};

}  // namespace weft::text
