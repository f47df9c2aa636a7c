#include "weft/base/symbols.h"

#include <algorithm>
#include <cstring>

#include "weft/base/hash.h"

namespace weft {
namespace {

constexpr std::uint64_t kFree = Symbol::kNone;  // an empty slot

constexpr std::uint64_t slot_for(std::uint64_t hash, std::size_t symbol) {
  return (hash & 0xffffffff00000000u) | static_cast<std::uint32_t>(symbol);
}
constexpr std::uint32_t symbol_in(std::uint64_t slot) { return static_cast<std::uint32_t>(slot); }
constexpr std::size_t kSpellingBlock = 16 * 1024;

std::uint64_t hash_text(std::string_view text) {
  std::uint64_t state = text.size() * 0x9e3779b97f4a7c15u;
  const char* at = text.data();
  std::size_t left = text.size();
  while (left >= 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    state = multiply_fold(state ^ word, 0x9e3779b97f4a7c15u);
    at += 8;
    left -= 8;
  }
  std::uint64_t word = 0;
  if (left != 0) std::memcpy(&word, at, left);
  return multiply_fold(state ^ word, 0xc2b2ae3d27d4eb4fu);
}

}  // namespace

Symbols::Symbols(const Symbols& other) { *this = other; }

Symbols& Symbols::operator=(const Symbols& other) {
  if (this == &other) return *this;
  texts_.clear();
  hashes_.clear();
  slots_.clear();
  blocks_.clear();
  block_used_ = block_size_ = 0;
  for (const std::string_view text : other.texts_) intern(text);
  return *this;
}

std::string_view Symbols::keep(std::string_view text) {
  if (text.empty()) return {};
  if (block_used_ + text.size() > block_size_) {
    block_size_ = std::max(kSpellingBlock, text.size());
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(block_size_));
    block_used_ = 0;
  }
  char* place = blocks_.back().get() + block_used_;
  std::memcpy(place, text.data(), text.size());
  block_used_ += text.size();
  return {place, text.size()};
}

std::size_t Symbols::slot_of(std::string_view text, std::uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash & mask;
  while (symbol_in(slots_[slot]) != kFree) {
    const bool alike = (slots_[slot] ^ hash) >> 32 == 0;
    if (alike && texts_[symbol_in(slots_[slot])] == text) break;
    slot = (slot + 1) & mask;
  }
  return slot;
}

void Symbols::grow() {
  const std::size_t size = slots_.empty() ? 64 : slots_.size() * 2;
  slots_.assign(size, kFree);
  for (std::uint32_t symbol = 0; symbol < texts_.size(); ++symbol) {
    std::size_t slot = hashes_[symbol] & (size - 1);
    while (symbol_in(slots_[slot]) != kFree) slot = (slot + 1) & (size - 1);
    slots_[slot] = slot_for(hashes_[symbol], symbol);
  }
}

Symbol Symbols::intern(std::string_view text) {
  if ((texts_.size() + 1) * 2 > slots_.size()) grow();
  const std::uint64_t hash = hash_text(text);
  const std::size_t slot = slot_of(text, hash);
  if (symbol_in(slots_[slot]) == kFree) {
    slots_[slot] = slot_for(hash, texts_.size());
    texts_.push_back(keep(text));
    hashes_.push_back(hash);
  }
  return Symbol(symbol_in(slots_[slot]));
}

Symbol Symbols::find(std::string_view text) const {
  if (slots_.empty()) return {};
  const std::uint32_t found = symbol_in(slots_[slot_of(text, hash_text(text))]);
  return found == kFree ? Symbol() : Symbol(found);
}

}  // namespace weft
