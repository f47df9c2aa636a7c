// weft/collectives/chunks/places.h -- the memory that moves move in: what lies within it, and what is the same chunk.
//
//   all_gather in place, 2 ranks, 1 chunk      output of a rank has 2 chunks, input 1;
//                                              input[0] of 1 is output[1] of 1
//
// The same as extent() and resolve(), which count blocks anew at every question; here they were counted once.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/chunks/collective.h"
#include "weft/collectives/chunks/moves.h"

namespace weft::collective {

// Whether ranks, chunks, root, peer and counts make sense together and every buffer has less than 2^30
// chunks, so that whatever asks about the collective can add in 32 bits.
Status check_collective(const Collective& collective);

class Places {
 public:
  Places() = default;
  // REQUIRES: check_collective(collective) is ok. A custom collective's buffers are as large as what it
  // wants, and no smaller than `inputs` and `outputs`.
  Places(const Collective& collective, bool in_place, std::int32_t inputs = 0, std::int32_t outputs = 0);

  // How many chunks of input or output `rank` has under that name; in place some have two names.
  std::int32_t extent(Buffer buffer, std::int32_t rank) const;

  // Where the place really lies, as resolve() in program.h has it.
  Place resolve(Place place) const;

 private:
  Kind kind_ = Kind::custom;
  std::int32_t ranks_ = 0, chunks_ = 0;
  bool in_place_ = false;
  // By Buffer, then rank; a single one where all ranks have as many.
  std::vector<std::int32_t> extents_[2];
  std::vector<std::int32_t> firsts_;  // where a rank's block starts, if blocks differ
};

}  // namespace weft::collective
