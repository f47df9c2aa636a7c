// weft/communication/comm/direct/direct_fragments.h -- division of a staged call into fragments, and
// this rank's progress.
//
//   message   | fragment 0 | fragment 1 | fragment 2 | ...     while one is taken out, the next is copied in
//   slots     | 0          | 1          | 0          | ...     a slot is reused once all ranks have taken it
#pragma once
#include <cstddef>
#include <cstdint>

namespace weft::comm {

class DirectOperation;

// A byte range of a block.
struct Stretch {
  std::size_t first = 0, bytes = 0;
};

struct DirectFragments {
  std::uint64_t first = 0, count = 0;  // fragment numbers in the stream; 0 for small calls
  std::uint64_t half = 0;              // which half of the slots
  std::uint64_t half_free_at = 0;      // free once all ranks have finished this many calls
  std::size_t unit = 0;                // bytes of a block per fragment; two-shot: of the message
  std::size_t slot_bytes = 0;
  std::uint64_t slots = 1;
  std::uint64_t copied_in = 0, combined = 0, taken = 0;
};

// REQUIRES: the operation is planned, and not small.
void cut_into_pieces(DirectOperation& operation);

// Bytes to fetch from each rank at a time, so that all of them fit a cache together.
std::size_t bytes_to_fetch(std::int32_t ranks);

}  // namespace weft::comm
