#include "weft/collectives/compile/out_of_place.h"

#include <algorithm>

#include "weft/collectives/chunks/cells.h"
#include "weft/collectives/chunks/places.h"

namespace weft::collective {

Moves out_of_place(const Moves& moves) {
  if (!moves.in_place) return moves;
  const Collective& collective = moves.collective;
  const Cells cells(moves);
  const Extents own = extents(moves);
  const auto start = [&](std::int32_t rank, Buffer buffer) {
    return cells.resolved(rank, {buffer, 0}).index;
  };
  const auto shared = [&](std::int32_t rank) {
    return std::max(start(rank, Buffer::input) + own.input[rank],
                    start(rank, Buffer::output) + own.output[rank]);
  };
  bool in_output = true;
  for (std::int32_t rank = 0; rank < collective.ranks; ++rank)
    in_output = in_output && start(rank, Buffer::output) == 0 && shared(rank) <= own.output[rank];

  Moves result = moves;
  result.in_place = false;
  result.moves.clear();
  result.scratch.resize(static_cast<std::size_t>(collective.ranks), 0);
  // The new location of chunk `index` of the memory that input and output shared.
  const auto now = [&](std::int32_t rank, std::int32_t index) {
    if (in_output) return Place{rank, Buffer::output, index};
    return Place{rank, Buffer::scratch, (moves.scratch.empty() ? 0 : moves.scratch[rank]) + index};
  };
  const bool only_root =
      collective.kind == Kind::broadcast || collective.kind == Kind::scatter || collective.kind == Kind::send;
  for (std::int32_t rank = 0; rank < collective.ranks; ++rank) {
    if (!in_output) result.scratch[rank] += shared(rank);
    if (own.input[rank] > 0 && (!only_root || rank == collective.root))
      result.moves.push_back({Move::Verb::copy,
                              {rank, Buffer::input, 0},
                              now(rank, start(rank, Buffer::input)),
                              own.input[rank]});
  }
  for (Move move : moves.moves) {
    for (Place* place : {&move.from, &move.to})
      if (place->buffer != Buffer::scratch)
        *place = now(place->rank, cells.resolved(place->rank, {place->buffer, place->index}).index);
    result.moves.push_back(move);
  }
  if (in_output) return result;
  for (std::int32_t rank = 0; rank < collective.ranks; ++rank)
    if (own.output[rank] > 0)
      result.moves.push_back({Move::Verb::copy,
                              now(rank, start(rank, Buffer::output)),
                              {rank, Buffer::output, 0},
                              own.output[rank]});
  return result;
}

}  // namespace weft::collective
