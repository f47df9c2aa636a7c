// weft/collectives/chunks/row_positions.h -- buffer extents and aliases, precomputed.
//
//   all_gather in place, 2 ranks, 1 chunk      output of a rank has 2 chunks, input 1;
//                                              input[0] of 1 is output[1] of 1
//
// Same results as extent() and resolve(), which recount the blocks in every call.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/chunks/collective.h"
#include "weft/collectives/chunks/moves.h"

namespace weft::collective {

// Checks that ranks, chunks, root, peer and counts are consistent. Every buffer must have less than
// 2^30 chunks, so that code that uses the collective can add in 32 bits.
Status check_collective(const Collective& collective);

class Places {
 public:
  Places() = default;
  // REQUIRES: check_collective(collective) is ok. A custom collective's buffers hold its WANTs, and
  // at least `inputs` and `outputs` chunks.
  Places(const Collective& collective, bool in_place, std::int32_t inputs = 0, std::int32_t outputs = 0);

  // The number of chunks of the input or output of `rank`. In place some chunks are in both.
  std::int32_t extent(Buffer buffer, std::int32_t rank) const;

  // The canonical place, like resolve() in program.h.
  Place resolve(Place place) const;

 private:
  Kind kind_ = Kind::custom;
  std::int32_t ranks_ = 0, chunks_ = 0;
  bool in_place_ = false;
  // By Buffer, then rank; a single entry if all ranks have the same.
  std::vector<std::int32_t> extents_[2];
  std::vector<std::int32_t> firsts_;  // offset of each rank's block, if blocks differ
};

}  // namespace weft::collective
