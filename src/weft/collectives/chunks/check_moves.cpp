#include "weft/collectives/chunks/check_moves.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "weft/base/hash.h"
#include "weft/collectives/chunks/cells.h"
#include "weft/collectives/chunks/places.h"
#include "weft/collectives/chunks/program_text.h"

namespace weft::collective {
namespace {

Error too_much_memory() {
  return user_error(fmt::format("buffers are too large: at most {} chunks over all ranks", kMostMemoryChunks),
                    "use fewer chunks");
}

Status check_memory(const Moves& moves, const Extents& own) {
  const std::size_t ranks = static_cast<std::size_t>(moves.collective.ranks);
  if (!moves.scratch.empty() && moves.scratch.size() != ranks)
    return user_error(
        fmt::format("expected scratch for {} ranks, found it for {}", ranks, moves.scratch.size()));
  std::int64_t total = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const std::int32_t scratch = moves.scratch.empty() ? 0 : moves.scratch[rank];
    if (scratch < 0)
      return user_error(fmt::format("expected scratch of at least 0 chunks, found {}", scratch));
    total += std::int64_t{own.input[rank]} + own.output[rank] + scratch;
  }
  return total > kMostMemoryChunks ? Status(too_much_memory()) : Status();
}

// Checks of a move that do not need the buffer sizes.
Status check_numbers(const Collective& collective, const Move& move) {
  if (move.count < 1) return user_error(fmt::format("expected a count of at least 1, found {}", move.count));
  if (move.channel < -1)
    return user_error(fmt::format("expected a channel of at least 0, found {}", move.channel));
  for (const Place& place : {move.from, move.to}) {
    if (place.rank < 0 || place.rank >= collective.ranks)
      return user_error(fmt::format("there is no rank {}: {} ranks", place.rank, collective.ranks));
    if (place.index < 0 || std::int64_t{place.index} + move.count > kMostMemoryChunks)
      return user_error(fmt::format("there is no chunk {}[{}]", name(place.buffer), place.index));
  }
  return {};
}

Status check_places(const Moves& moves, const Extents& own, const Move& move) {
  for (const Place& place : {move.from, move.to}) {
    const std::int32_t size = place.buffer == Buffer::input    ? own.input[place.rank]
                              : place.buffer == Buffer::output ? own.output[place.rank]
                              : moves.scratch.empty()          ? 0
                                                               : moves.scratch[place.rank];
    if (place.index + move.count > size)
      return user_error(fmt::format("move leaves the buffer: {}: {} of {} has {} chunks", print(move),
                                    name(place.buffer), place.rank, size));
  }
  return {};
}

Status check_overlap(const Cells& cells, const Move& move) {
  if (!move.local()) return {};
  const std::int32_t from = cells.at(move.from), to = cells.at(move.to);
  const bool apart = from + move.count <= to || to + move.count <= from;
  if (apart || (from == to && move.verb == Move::Verb::copy)) return {};
  return user_error(fmt::format("move reads what it writes: {}", print(move)), "go through scratch");
}

// A random word per contribution, and another for the initial content of each cell.
std::uint64_t word(std::int32_t rank, std::int32_t index) {
  return mix((static_cast<std::uint64_t>(rank) << 32 | static_cast<std::uint32_t>(index)) +
             0x9e3779b97f4a7c15u);
}
std::uint64_t garbage(std::int32_t cell) { return mix(~mix(static_cast<std::uint64_t>(cell) + 1)); }

// The final content of every cell.
struct Outcome {
  std::vector<std::uint64_t> value;
  std::vector<bool> unknown;  // whether it depends on uninitialized memory
};

Outcome play(const Moves& moves, const Cells& cells, const Extents& own) {
  Outcome outcome{std::vector<std::uint64_t>(static_cast<std::size_t>(cells.size())),
                  std::vector<bool>(static_cast<std::size_t>(cells.size()), true)};
  for (std::int32_t cell = 0; cell < cells.size(); ++cell) outcome.value[cell] = garbage(cell);
  // In place, all memory of a custom collective is input.
  const bool all = moves.in_place && moves.collective.kind == Kind::custom;
  for (std::int32_t rank = 0; rank < moves.collective.ranks; ++rank)
    for (std::int32_t index = 0;
         index < (all ? std::max(own.input[rank], own.output[rank]) : own.input[rank]); ++index) {
      const std::int32_t cell = cells.at(rank, {Buffer::input, index});
      outcome.value[cell] = word(rank, index);
      outcome.unknown[cell] = false;
    }
  for (const Move& move : moves.moves) {
    const std::int32_t from = cells.at(move.from), to = cells.at(move.to);
    const bool reduces = move.verb == Move::Verb::reduce;
    for (std::int32_t i = 0; i < move.count; ++i) {
      outcome.value[to + i] = (reduces ? outcome.value[to + i] : 0) + outcome.value[from + i];
      outcome.unknown[to + i] = (reduces && outcome.unknown[to + i]) || outcome.unknown[from + i];
    }
  }
  return outcome;
}

// The first output chunk computed from uninitialized memory, if any. This is the only possible
// fault of a custom collective without WANTs.
std::optional<Place> first_unknown(const Moves& moves, const Cells& cells, const Outcome& outcome) {
  for (const Move& move : moves.moves) {
    const bool output =
        move.to.buffer == Buffer::output || (moves.in_place && move.to.buffer == Buffer::input);
    for (std::int32_t i = 0; output && i < move.count; ++i)
      if (outcome.unknown[cells.at(move.to) + i])
        return Place{move.to.rank, Buffer::output, move.to.index + i};
  }
  return std::nullopt;
}

}  // namespace

Status check_moves(const Moves& moves) {
  if (static_cast<std::int64_t>(moves.moves.size()) > kMostMoves)
    return user_error(fmt::format("too many moves: {}, at most {}", moves.moves.size(), kMostMoves));
  WEFT_TRY_STATUS(check_collective(moves.collective));
  std::int64_t moved = 0;
  for (const Move& move : moves.moves) {
    WEFT_TRY_STATUS(check_numbers(moves.collective, move));
    moved += move.count;
  }
  if (moved > kMostMovedChunks)
    return user_error(fmt::format("too many chunks are moved: {}, at most {}", moved, kMostMovedChunks));
  const Extents own = extents(moves);
  WEFT_TRY_STATUS(check_memory(moves, own));
  for (const Move& move : moves.moves) WEFT_TRY_STATUS(check_places(moves, own, move));
  const Cells cells(moves);
  for (const Move& move : moves.moves) WEFT_TRY_STATUS(check_overlap(cells, move));
  return {};
}

std::optional<Place> first_wrong(const Moves& moves) {
  const Collective& collective = moves.collective;
  const Cells cells(moves);
  const Extents own = extents(moves);
  const Outcome outcome = play(moves, cells, own);
  const auto holds = [&](std::int32_t rank, std::int32_t index, std::uint64_t expected) {
    return outcome.value[cells.at(rank, {Buffer::output, index})] == expected;
  };
  if (collective.kind == Kind::custom) {
    if (collective.wants.empty()) return first_unknown(moves, cells, outcome);
    for (const CustomWant& want : collective.wants) {
      std::uint64_t expected = 0;
      for (const Contribution& part : want.contributions) expected += word(part.rank, part.index);
      if (!holds(want.rank, want.index, expected)) return Place{want.rank, Buffer::output, want.index};
    }
    return std::nullopt;
  }
  std::vector<std::uint64_t> sums(
      static_cast<std::size_t>(*std::max_element(own.input.begin(), own.input.end())), 0);
  for (std::size_t index = 0; index < sums.size(); ++index)
    for (std::int32_t rank = 0; rank < collective.ranks; ++rank)
      sums[index] += word(rank, static_cast<std::int32_t>(index));
  for (std::int32_t rank = 0; rank < collective.ranks; ++rank)
    for (std::int32_t index = 0; index < own.output[rank]; ++index) {
      const Want wanted = want(collective, rank, index);
      if (wanted.what == Want::What::anything) continue;
      const std::uint64_t expected =
          wanted.what == Want::What::sum ? sums[wanted.index] : word(wanted.rank, wanted.index);
      if (!holds(rank, index, expected)) return Place{rank, Buffer::output, index};
    }
  return std::nullopt;
}

}  // namespace weft::collective
