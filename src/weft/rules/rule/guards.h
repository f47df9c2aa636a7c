// weft/rules/rule/guards.h -- what `when` may state: one row per word or sign, and whether a condition holds.
//
//   when  divides(2, size(x, n)) and distinct(n, B) and size(v, n) <= 4096
//
// The parser, the printer, the check for guards that can never hold, the matcher and its messages read the table.
// A new word is a Condition::Kind, a row here, and a row of the table in docs/rules.md, which a test compares.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "weft/rules/rule/evaluate_number.h"

namespace weft::rule {

struct GuardWord {
  // Of a condition's first argument: Condition::left or ::value; of the second: ::right or ::other.
  enum class Argument : std::uint8_t { none, number, value, index };

  Condition::Kind kind;
  std::string_view name;   // of a comparison: its sign
  std::string_view usage;  // divides(a, b)
  std::string_view meaning;
  std::array<Argument, 2> arguments = {Argument::none, Argument::none};
  bool is_strict = false;  // never holds of an argument and itself
  // One of the two: of numbers (the second is 0 where there is none), or of values and indices.
  bool (*compare)(std::int64_t, std::int64_t) = nullptr;
  bool (*check)(const Condition&, const Place&) = nullptr;
  // What a message shows of a condition that does not hold; null: its numbers, if it has any.
  std::string (*found)(const Condition&, const Place&) = nullptr;

  std::size_t argument_count() const { return arguments[1] != Argument::none ? 2 : 1; }
  bool is_sign() const { return usage.find('(') == usage.npos; }
};

std::span<const GuardWord> guard_words();
const GuardWord& guard_word(Condition::Kind kind);
const GuardWord* find_guard_word(std::string_view name);  // null: unknown, or a sign

// False also where a number of the condition is none.
bool holds(const Condition& condition, const Place& place);

// The first condition that does not hold; null when all do.
const Condition* first_that_fails(std::span<const Condition> conditions, const Place& place);

// "size(v, n) <= 4 does not hold: 5 and 4"
std::string why_not(const Condition& condition, const Place& place);

}  // namespace weft::rule
