#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/collectives/chunks/check_moves.h"
#include "weft/collectives/chunks/collective_text.h"
#include "weft/collectives/chunks/lexicon.h"
#include "weft/collectives/chunks/places.h"
#include "weft/collectives/chunks/program_text.h"

namespace weft::collective {
namespace {

// Checks that the rank exists and that `count` chunks from the place on lie within the buffer.
Status check_place(const Places& places, std::span<const std::int32_t> scratch, const Place& place,
                   std::int32_t count) {
  if (place.rank < 0 || place.rank >= static_cast<std::int64_t>(scratch.size()))
    return user_error(fmt::format("no such rank: {} of {}", place.rank, scratch.size()));
  if (count < 1) return user_error(fmt::format("expected a move of at least 1 chunk, found {}", count));
  const std::int64_t extent =
      place.buffer == Buffer::scratch ? scratch[place.rank] : places.extent(place.buffer, place.rank);
  const std::int64_t end = std::int64_t{place.index} + count;
  if (place.index >= 0 && end <= extent) return {};
  const std::string range =
      count == 1 ? fmt::format("{}", place.index) : fmt::format("{}..{}", place.index, end - 1);
  return user_error(fmt::format("{}[{}] at rank {} is out of range: {} chunks", name(place.buffer), range,
                                place.rank, extent));
}

class MovesReader {
 public:
  explicit MovesReader(std::string_view text) : reader_(kLexicon, text) {}

  Result<Moves> read() {
    reader_.expect_word("moves");
    moves_.name = reader_.at(TokenKind::string) ? reader_.string("a name")
                                                : std::string(reader_.name("a name for the moves"));
    collective();
    if (reader_.failed()) return reader_.error();
    // The buffers of a custom collective are as large as the moves need.
    constexpr auto kMost = static_cast<std::int32_t>(kMostMemoryChunks);
    places_ = Places(moves_.collective, moves_.in_place, kMost, kMost);
    while (!reader_.at_end()) move();
    if (reader_.failed()) return reader_.error();
    WEFT_TRY_STATUS(check_moves(moves_));
    return std::move(moves_);
  }

 private:
  void collective() {
    const Token start = reader_.token();
    Placement placement = Placement::out_of_place;
    read_collective(reader_, moves_.collective, placement);
    const Span span = reader_.since(start);
    if (reader_.failed()) return;
    if (placement == Placement::either)
      reader_.fail_at(span, "moves are in place or out of place, not both");
    else if (const Status sound = check_collective(moves_.collective); !sound.ok())
      reader_.fail_at(span, sound.error().message);
    if (reader_.failed()) return;
    moves_.in_place = placement == Placement::in_place;

    moves_.scratch.assign(moves_.collective.ranks, 0);
    if (!reader_.take_word("scratch")) return;
    const Token amount = reader_.token();
    if (reader_.at(TokenKind::left_bracket))
      moves_.scratch = read_numbers(reader_, "how many chunks");
    else
      std::ranges::fill(moves_.scratch, reader_.small_number("how many chunks"));
    if (static_cast<std::int64_t>(moves_.scratch.size()) != moves_.collective.ranks)
      reader_.fail_at(amount.span, fmt::format("scratch needs one number per rank: {} ranks, {} numbers",
                                               moves_.collective.ranks, moves_.scratch.size()));
    constexpr auto kMost = static_cast<std::int32_t>(kMostMemoryChunks);
    for (const std::int32_t chunks : moves_.scratch)
      if (chunks < 0 || chunks > kMost)
        reader_.fail_at(amount.span,
                        fmt::format("expected scratch of 0 to {} chunks, found {}", kMost, chunks));
  }

  SlotRange place(Place& place) {
    const Token start = reader_.token();
    const SlotRange range = read_slots(reader_);
    reader_.expect_word("of");
    place = {reader_.small_number("a rank"), range.first.buffer, range.first.index};
    if (reader_.failed()) return range;
    if (const Status within = check_place(places_, moves_.scratch, place, range.count); !within.ok())
      reader_.fail_at(reader_.since(start), within.error().message);
    return range;
  }

  void move() {
    const Token start = reader_.token();
    Move result;
    const bool copies = reader_.take_word("copy");
    if (!copies && !reader_.take_word("reduce")) {
      constexpr std::string_view kVerbs[] = {"copy", "reduce"};
      reader_.fail_expected("copy or reduce", kVerbs);
    }
    result.verb = copies ? Move::Verb::copy : Move::Verb::reduce;
    const SlotRange from = place(result.from);
    reader_.expect_word(copies ? "to" : "into");
    const SlotRange to = place(result.to);
    result.count = from.count;
    if (reader_.take_word("on")) result.channel = reader_.small_number("a channel");
    if (!reader_.failed() && from.count != to.count)
      reader_.fail_at(reader_.since(start),
                      fmt::format("source and target differ in length: {} and {}", from.count, to.count));
    moves_.moves.push_back(result);
  }

  TokenReader reader_;
  Moves moves_;
  Places places_;
};

}  // namespace

Result<Moves> parse_moves(std::string_view text) { return MovesReader(text).read(); }

std::string print(const Move& move) {
  const bool copies = move.verb == Move::Verb::copy;
  std::string out = fmt::format("{} {} of {} {} {} of {}", copies ? "copy" : "reduce",
                                print_slots({move.from.buffer, move.from.index}, move.count), move.from.rank,
                                copies ? "to" : "into",
                                print_slots({move.to.buffer, move.to.index}, move.count), move.to.rank);
  if (move.channel != -1) out += fmt::format(" on {}", move.channel);
  return out;
}

std::string print(const Moves& moves) {
  std::string out = fmt::format("moves {}\n", print_name(moves.name));
  out += print_collective(moves.collective, moves.in_place ? Placement::in_place : Placement::out_of_place);
  const auto differs = [&](std::int32_t chunks) { return chunks != moves.scratch[0]; };
  if (!moves.scratch.empty() && std::ranges::any_of(moves.scratch, differs))
    out += fmt::format("scratch [{}]\n", fmt::join(moves.scratch, ", "));
  else if (!moves.scratch.empty() && moves.scratch[0] != 0)
    out += fmt::format("scratch {}\n", moves.scratch[0]);
  if (!moves.moves.empty()) out += '\n';
  for (const Move& move : moves.moves) {
    out += print(move);
    out += '\n';
  }
  return out;
}

}  // namespace weft::collective
