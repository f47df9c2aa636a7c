#include "weft/collectives/compile/split.h"

#include <algorithm>

namespace weft::collective {
namespace {

bool nothing(const Move& move, const Cells& cells) { return cells.at(move.from) == cells.at(move.to); }

Slot slot_of(const Place& place, const Cells& cells) {
  return cells.resolved(place.rank, {place.buffer, place.index});
}

}  // namespace

Instructions split(const Moves& moves, const Cells& cells, const Dependences& dependences) {
  Instructions result;
  result.name = moves.name;
  result.collective = moves.collective;
  result.placement = moves.in_place ? Placement::in_place : Placement::out_of_place;
  Extents own = extents(moves);
  result.input = std::move(own.input);
  result.output = std::move(own.output);
  result.scratch = moves.scratch;
  result.scratch.resize(static_cast<std::size_t>(moves.collective.ranks), 0);

  std::vector<std::int32_t> of_end(moves.moves.size() * 2, -1);  // the instruction of each end
  result.list.reserve(moves.moves.size() * 2);
  result.first.reserve(moves.moves.size() * 2 + 1);
  result.after.reserve(dependences.list.size());
  const auto add = [&](const Instruction& instruction, std::int32_t end) {
    result.first.push_back(static_cast<std::int64_t>(result.after.size()));
    for (const Dependence& dependence : dependences.of(end)) result.after.push_back(of_end[dependence.end]);
    of_end[end] = result.size();
    result.list.push_back(instruction);
  };
  for (std::size_t m = 0; m < moves.moves.size(); ++m) {
    const Move& move = moves.moves[m];
    if (nothing(move, cells)) continue;
    const std::int32_t number = static_cast<std::int32_t>(m);
    const Slot from = slot_of(move.from, cells), to = slot_of(move.to, cells);
    const bool reduces = move.verb == Move::Verb::reduce;
    if (move.local()) {
      add({.op = reduces ? Op::reduce : Op::copy,
           .rank = move.to.rank,
           .source = from,
           .target = to,
           .count = move.count,
           .done = number,
           .channel = move.channel},
          to_end(number));
      continue;
    }
    const std::int32_t sender = result.size();
    add({.op = Op::send,
         .rank = move.from.rank,
         .source = from,
         .target = from,
         .count = move.count,
         .taker = sender + 1,
         .sent = number,
         .channel = move.channel},
        from_end(number));
    add({.op = reduces ? Op::receive_reduce_copy : Op::receive,
         .rank = move.to.rank,
         .source = to,
         .target = to,
         .count = move.count,
         .giver = sender,
         .done = number,
         .channel = move.channel},
        to_end(number));
  }
  result.first.push_back(static_cast<std::int64_t>(result.after.size()));
  return result;
}

}  // namespace weft::collective
