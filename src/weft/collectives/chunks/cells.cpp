#include "weft/collectives/chunks/cells.h"

#include <algorithm>

#include "weft/collectives/chunks/places.h"

namespace weft::collective {

Extents extents(const Moves& moves) {
  const Places places(moves.collective, moves.in_place);
  Extents result;
  for (std::int32_t rank = 0; rank < moves.collective.ranks; ++rank) {
    result.input.push_back(places.extent(Buffer::input, rank));
    result.output.push_back(places.extent(Buffer::output, rank));
  }
  if (moves.collective.kind != Kind::custom) return result;
  const auto touch = [&](const Place& place, std::int32_t count) {
    if (place.buffer == Buffer::scratch) return;
    std::int32_t& most = (place.buffer == Buffer::input ? result.input : result.output)[place.rank];
    most = std::max(most, place.index + count);
  };
  for (const Move& move : moves.moves) {
    touch(move.from, move.count);
    touch(move.to, move.count);
  }
  return result;
}

Cells::Cells(const Moves& moves) {
  const Extents own = extents(moves);
  *this = Cells(moves.collective, moves.in_place ? Placement::in_place : Placement::out_of_place,
                moves.scratch, own.input, own.output);
}

Cells::Cells(const Collective& collective, Placement placement, const std::vector<std::int32_t>& scratch,
             const std::vector<std::int32_t>& input, const std::vector<std::int32_t>& output) {
  windows_.resize(static_cast<std::size_t>(collective.ranks) * 3);
  for (std::int32_t rank = 0; rank < collective.ranks; ++rank) {
    const std::array<std::int32_t, 3> own = {input[rank], output[rank], scratch.empty() ? 0 : scratch[rank]};
    std::array<std::int32_t, 3> held = {0, 0, 0};
    for (const Buffer buffer : {Buffer::input, Buffer::output, Buffer::scratch}) {
      const Slot start = resolve(collective, placement, rank, {buffer, 0});
      windows_[index(rank, buffer)] = {start.buffer, start.index, 0};
      std::int32_t& size = held[static_cast<std::size_t>(start.buffer)];
      size = std::max(size, start.index + own[static_cast<std::size_t>(buffer)]);
    }
    std::array<std::int32_t, 3> base{};
    for (std::size_t buffer = 0; buffer < 3; ++buffer) {
      base[buffer] = size_;
      size_ += held[buffer];
    }
    for (const Buffer buffer : {Buffer::input, Buffer::output, Buffer::scratch}) {
      Window& window = windows_[index(rank, buffer)];
      window.first = base[static_cast<std::size_t>(window.buffer)] + window.offset;
    }
  }
}

}  // namespace weft::collective
