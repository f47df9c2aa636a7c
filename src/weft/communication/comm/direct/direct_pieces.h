// weft/communication/comm/direct/direct_pieces.h -- a staged call cut into pieces, and how far this rank is with them.
//
//   message   | piece 0 | piece 1 | piece 2 | ...     while one is taken out, the next is copied in
//   slots     | 0       | 1       | 0       | ...     a slot is used again when all have taken its piece
#pragma once
#include <cstddef>
#include <cstdint>

namespace weft::comm {

class DirectOperation;

// Bytes of a block, or of a piece of one.
struct Stretch {
  std::size_t first = 0, bytes = 0;
};

struct DirectPieces {
  std::uint64_t first = 0, count = 0;  // of the stream's pieces; none where the call is small
  std::uint64_t half = 0;              // of the slots
  std::uint64_t half_free_at = 0;      // when so many calls are finished by everyone
  std::size_t unit = 0;                // bytes of a block in one piece; all of a two-shot's message
  std::size_t slot_bytes = 0;
  std::uint64_t slots = 1;
  std::uint64_t copied_in = 0, combined = 0, taken = 0;
};

// REQUIRES: the operation is planned, and not small.
void cut_into_pieces(DirectOperation& operation);

// How much to fetch of each other rank at a time, so that all of it together stays in a cache.
std::size_t bytes_to_fetch(std::int32_t ranks);

}  // namespace weft::comm
