// weft/base/scanner.h -- a cursor in a text, used by lexers and line readers.
//
//   Scanner scanner("%12 = relu");
//   scanner.take('%');           // true
//   const auto from = scanner.place();
//   scanner.skip_while(is_digit);
//   scanner.text_since(from);    // "12"
//   scanner.span_since(from);    // {1, 2}
//
// Past the end it reads NULs, so that callers need not check for the end first. Places are offsets
// in bytes.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weft/base/result.h"

namespace weft {

class Scanner {
 public:
  // REQUIRES: `text` outlives the scanner, and its length fits in 32 bits
  explicit Scanner(std::string_view text) : begin_(text.data()), at_(begin_), end_(begin_ + text.size()) {}

  std::size_t place() const { return static_cast<std::size_t>(at_ - begin_); }
  void go_to(std::size_t place) { at_ = begin_ + place; }

  bool at_end() const { return at_ == end_; }
  bool at(char c) const { return at_ != end_ && *at_ == c; }
  bool at(std::string_view text) const { return rest().starts_with(text); }
  char here() const { return at_ == end_ ? '\0' : *at_; }
  char ahead(std::size_t distance) const { return distance < left() ? at_[distance] : '\0'; }
  std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }
  std::string_view rest() const { return {at_, left()}; }

  // REQUIRES: left() >= count
  void step(std::size_t count = 1) { at_ += count; }
  bool take(char c) {
    if (!at(c)) return false;
    ++at_;
    return true;
  }
  template <class Predicate>
  void skip_while(Predicate belongs) {
    const char* at = at_;
    while (at != end_ && belongs(*at)) ++at;
    at_ = at;
  }
  // Skips to the end of the line, before the newline.
  void skip_line() { at_ = std::find(at_, end_, '\n'); }

  std::string_view text_since(std::size_t from) const { return {begin_ + from, place() - from}; }
  Span span_since(std::size_t from) const {
    return {static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(place() - from)};
  }

 private:
  const char* begin_;
  const char* at_;
  const char* end_;
};

}  // namespace weft
