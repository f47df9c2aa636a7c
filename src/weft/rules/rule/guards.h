// weft/rules/rule/guards.h -- the conditions that `when` may state: one row per word or sign.
//
//   when  divides(2, size(x, n)) and distinct(n, B) and size(v, n) <= 4096
//
// The parser, the printer, the check for guards that can never hold, the matcher and its messages
// read this table. To add a word, add a Condition::Kind, a row here, and a row in docs/rules.md; a
// test compares them.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "weft/rules/rule/evaluate_number.h"

namespace weft::rule {

struct GuardWord {
  // First argument: Condition::left or ::value. Second argument: ::right or ::other.
  enum class Argument : std::uint8_t { none, number, value, index };

  Condition::Kind kind;
  std::string_view name;   // for a comparison, its sign
  std::string_view usage;  // divides(a, b)
  std::string_view meaning;
  std::array<Argument, 2> arguments = {Argument::none, Argument::none};
  bool is_strict = false;  // never holds if both arguments are equal
  // One of the two is set: `compare` for numbers (the second is 0 if missing), `check` for values
  // and indices.
  bool (*compare)(std::int64_t, std::int64_t) = nullptr;
  bool (*check)(const Condition&, const Place&) = nullptr;
  // Details in the message if a condition does not hold; null: its numbers, if any.
  std::string (*found)(const Condition&, const Place&) = nullptr;

  std::size_t argument_count() const { return arguments[1] != Argument::none ? 2 : 1; }
  bool is_sign() const { return usage.find('(') == usage.npos; }
};

std::span<const GuardWord> guard_words();
const GuardWord& guard_word(Condition::Kind kind);
const GuardWord* find_guard_word(std::string_view name);  // null if unknown, or a sign

// Also false if a number of the condition cannot be evaluated.
bool holds(const Condition& condition, const Place& place);

// The first condition that does not hold; null if all do.
const Condition* first_that_fails(std::span<const Condition> conditions, const Place& place);

// "size(v, n) <= 4 does not hold: 5 and 4"
std::string why_not(const Condition& condition, const Place& place);

}  // namespace weft::rule
