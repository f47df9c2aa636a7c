// weft/language/syntax_value.h -- the leaves of the syntax: names, strings, numbers, settings.
#pragma once
#include <cstdint>
#include <string_view>

#include "weft/base/result.h"
#include "weft/base/units.h"

namespace weft::language::syntax {

// A name without its quotes. Names may be absent.
struct Name {
  std::string_view text;
  Span span;

  bool given() const { return !text.empty(); }
};

// A string with its escapes resolved: 'it''s' is it's. May be empty.
struct Text {
  std::string_view text;
  Span span;
};

struct Number {
  double value = 0;        // always set; infinite for inf
  std::int64_t whole = 0;  // the exact value, if is_whole
  bool is_whole = false;   // written without fraction or exponent: 12, 1_000, -3
  Span span;
};

// The kind of a setting's value: 8, -1.5, 40 GiB, 'mnist.bin', adam, true.
enum class ValueKind : std::uint8_t { number, quantity, text, word, boolean };

struct Value {
  ValueKind kind = ValueKind::number;
  bool truth = false;     // boolean
  Number number;          // number, quantity: as written, 40
  Quantity quantity;      // number, quantity: in base units; Dimension::count for a plain number
  std::string_view text;  // text: its contents; word: its letters; quantity: its unit, GiB
  Span span;
};

struct Setting {  // optimizer = adam
  Name name;
  Value value;
};

}  // namespace weft::language::syntax
