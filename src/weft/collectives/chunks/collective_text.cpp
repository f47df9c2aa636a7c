#include "weft/collectives/chunks/collective_text.h"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/base/letters.h"

namespace weft::collective {
namespace {

std::string_view describe(Placement placement) {
  return placement == Placement::either ? "in or out of place" : name(placement);
}

std::string print_want(const CustomWant& want) {
  std::string result = fmt::format("want output[{}] of {} = ", want.index, want.rank);
  if (want.contributions.empty()) return result + "nothing\n";
  for (std::size_t i = 0; i < want.contributions.size(); ++i) {
    const Contribution& part = want.contributions[i];
    result += fmt::format("{}input[{}] of {}", i == 0 ? "" : " + ", part.index, part.rank);
  }
  return result + '\n';
}

// "input[2] of 1"
void read_place(TokenReader& reader, std::string_view buffer, std::int32_t& rank, std::int32_t& index) {
  reader.expect_word(buffer);
  reader.expect(TokenKind::left_bracket);
  index = reader.small_number("an index");
  reader.expect(TokenKind::right_bracket);
  reader.expect_word("of");
  rank = reader.small_number("a rank");
}

void read_want(TokenReader& reader, Collective& collective) {
  const Token start = reader.token();
  CustomWant want;
  reader.expect_word("want");
  if (collective.kind != Kind::custom)
    reader.fail_at(start.span,
                   fmt::format("{} is a built-in collective and cannot have wants", name(collective.kind)),
                   "a custom collective lists its wants");
  read_place(reader, "output", want.rank, want.index);
  reader.expect(TokenKind::equal);
  if (!reader.take_word("nothing")) {
    do {
      Contribution part;
      read_place(reader, "input", part.rank, part.index);
      want.contributions.push_back(part);
    } while (reader.take(TokenKind::plus));
  }
  const auto key = [](const CustomWant& any) { return std::pair(any.rank, any.index); };
  if (!reader.failed() && !collective.wants.empty() && key(collective.wants.back()) >= key(want))
    reader.fail_at(start.span,
                   fmt::format("wants must be sorted by rank and index: output[{}] of {} is out of order",
                               want.index, want.rank));
  collective.wants.push_back(std::move(want));
}

Placement read_placement(TokenReader& reader) {
  const bool in = reader.take_word("in");
  if (in && reader.take_word("place")) return Placement::in_place;
  if (in) reader.expect_word("or");
  reader.expect_word("out");
  reader.expect_word("of");
  reader.expect_word("place");
  return in ? Placement::either : Placement::out_of_place;
}

}  // namespace

std::string print_collective(const Collective& collective, Placement placement) {
  std::string result =
      fmt::format("collective {}, {}, {}", name(collective.kind), print_amount(collective.ranks, "rank"),
                  print_amount(collective.chunks, "chunk"));
  if (collective.root != 0) result += fmt::format(", root {}", collective.root);
  if (collective.peer != 0) result += fmt::format(", peer {}", collective.peer);
  if (!collective.counts.empty()) result += fmt::format(", counts [{}]", fmt::join(collective.counts, ", "));
  result += fmt::format(", {}\n", describe(placement));
  for (const CustomWant& want : collective.wants) result += print_want(want);
  return result;
}

void read_collective(TokenReader& reader, Collective& collective, Placement& placement) {
  reader.expect_word("collective");
  const std::span<const std::string_view> kinds = kind_names();
  const auto kind =
      std::ranges::find_if(kinds, [&](std::string_view known) { return reader.at_word(known); });
  if (kind == kinds.end())
    reader.fail_expected("a kind of collective", kinds);
  else
    collective.kind = static_cast<Kind>(kind - kinds.begin());
  reader.advance();
  reader.expect(TokenKind::comma);
  collective.ranks = reader.small_number("how many ranks");
  read_plural(reader, "rank");
  reader.expect(TokenKind::comma);
  collective.chunks = reader.small_number("how many chunks");
  read_plural(reader, "chunk");
  reader.expect(TokenKind::comma);
  if (reader.take_word("root")) {
    collective.root = reader.small_number("a rank");
    reader.expect(TokenKind::comma);
  }
  if (reader.take_word("peer")) {
    collective.peer = reader.small_number("a rank");
    reader.expect(TokenKind::comma);
  }
  if (reader.take_word("counts")) {
    collective.counts = read_numbers(reader, "a count");
    reader.expect(TokenKind::comma);
  }
  placement = read_placement(reader);
  while (reader.at_word("want")) read_want(reader, collective);
}

std::string print_amount(std::int64_t amount, std::string_view what) {
  return fmt::format("{} {}{}", amount, what, amount == 1 ? "" : "s");
}

void read_plural(TokenReader& reader, std::string_view singular) {
  if (!reader.take_word(singular)) reader.expect_word(fmt::format("{}s", singular));
}

std::string print_slots(const Slot& slot, std::int32_t count) {
  if (count == 1) return fmt::format("{}[{}]", name(slot.buffer), slot.index);
  return fmt::format("{}[{}..{}]", name(slot.buffer), slot.index, std::int64_t{slot.index} + count - 1);
}

SlotRange read_slots(TokenReader& reader) {
  constexpr std::array<std::string_view, 3> kBuffers = {"input", "output", "scratch"};
  SlotRange result;
  const auto buffer =
      std::ranges::find_if(kBuffers, [&](std::string_view known) { return reader.at_word(known); });
  if (buffer == kBuffers.end()) {
    reader.fail_expected("input, output or scratch", kBuffers);
    return result;
  }
  result.first.buffer = static_cast<Buffer>(buffer - kBuffers.begin());
  reader.advance();
  reader.expect(TokenKind::left_bracket);
  const Token start = reader.token();
  result.first.index = reader.small_number("an index");
  if (reader.take(TokenKind::range)) {
    const std::int64_t last = reader.wide_number("an index");
    // A reversed range becomes a count below one, which check_form() rejects.
    std::int64_t count = 0;
    if (__builtin_sub_overflow(last, std::int64_t{result.first.index} - 1, &count) ||
        count != static_cast<std::int32_t>(count))
      reader.fail_at(reader.since(start), fmt::format("range is too long: {}..{}", result.first.index, last));
    result.count = static_cast<std::int32_t>(count);
  }
  reader.expect(TokenKind::right_bracket);
  return result;
}

std::vector<std::int32_t> read_numbers(TokenReader& reader, std::string_view what) {
  std::vector<std::int32_t> result;
  reader.expect(TokenKind::left_bracket);
  if (!reader.at(TokenKind::right_bracket)) {
    do result.push_back(reader.small_number(what));
    while (reader.take(TokenKind::comma));
  }
  reader.expect(TokenKind::right_bracket);
  return result;
}

}  // namespace weft::collective
