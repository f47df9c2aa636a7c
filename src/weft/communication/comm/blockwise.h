// weft/communication/comm/blockwise.h -- reductions that a rank does block by block: what scans and operations of the
// caller's have in common.
//
//   rank 0   a0 a1 a2     all_to_all     a0 b0 c0     each rank has one block of everyone,
//   rank 1   b0 b1 b2    ───────────▶    a1 b1 c1     combines in the order of ranks,
//   rank 2   c0 c1 c2                    a2 b2 c2     and the results go where they belong
//
// As many bytes travel as in a ring, whatever the operation, and its order is that of the ranks on every
// transport.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "weft/communication/comm/communicator.h"

namespace weft::comm {

class Blockwise {
 public:
  // `count` elements a rank, `item` of which belong together.
  Blockwise(Communicator& group, std::int64_t count, ElementType type, std::int64_t item, Purpose purpose,
            ReduceOp op);

  // This rank's block of all inputs, in the order of ranks.
  Status collect(const void* input);
  std::byte* block_of(std::int32_t rank) {
    return scratch_.data() + static_cast<std::size_t>(rank) * own_bytes();
  }
  std::size_t own_bytes() const { return static_cast<std::size_t>(own_) * element_; }
  std::int64_t own_items() const { return own_ / item_; }

  // The blocks of the scratch to their ranks, where each finds all of its own in `output`.
  Status return_to(void* output);
  // The first of them to all, or to one.
  Status share(void* output);
  Status bring_to(std::int32_t root, void* output);

 private:
  Call call(Kind kind, const void* input, void* output) const;

  Communicator& group_;
  ElementType type_;
  std::int64_t item_;
  Purpose purpose_;
  ReduceOp op_;
  std::size_t element_;
  std::vector<std::int64_t> blocks_;  // elements, by rank
  bool even_ = true;
  std::int64_t own_ = 0;
  std::vector<std::byte> scratch_;
  mutable std::vector<std::int64_t> pairs_;  // counts of the all_to_all under way
};

}  // namespace weft::comm
