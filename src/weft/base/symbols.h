// weft/base/symbols.h -- interned strings.
//
// A table gives equal texts equal symbols, so names compare and hash as integers. The texts live as
// long as the table. Symbols of different tables must not be mixed.
#pragma once
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "weft/base/ids.h"

namespace weft {

struct SymbolTag;
using Symbol = Id<SymbolTag>;

class Symbols {
 public:
  Symbol intern(std::string_view text);
  // The symbol of `text` if it was interned before; an invalid one otherwise.
  Symbol find(std::string_view text) const;
  std::string_view text(Symbol symbol) const { return texts_[symbol.value]; }
  std::size_t size() const { return texts_.size(); }

  Symbols() = default;
  Symbols(const Symbols& other);
  Symbols& operator=(const Symbols& other);
  Symbols(Symbols&&) = default;
  Symbols& operator=(Symbols&&) = default;

 private:
  std::size_t slot_of(std::string_view text, std::uint64_t hash) const;
  void grow();
  std::string_view keep(std::string_view text);

  std::vector<std::string_view> texts_;
  std::vector<std::uint64_t> hashes_;
  // Open addressing; the size is a power of two. A slot holds a symbol and half its hash, so that
  // most misses are detected without reading the text.
  std::vector<std::uint64_t> slots_;
  std::vector<std::unique_ptr<char[]>> blocks_;
  std::size_t block_used_ = 0, block_size_ = 0;
};

}  // namespace weft
