// weft/communication/comm/blockwise.h -- reductions that each rank performs on one block: shared by
// scans and user-defined operations.
//
//   rank 0   a0 a1 a2     all_to_all     a0 b0 c0     each rank has one block of every input,
//   rank 1   b0 b1 b2    ───────────▶    a1 b1 c1     combines it in rank order,
//   rank 2   c0 c1 c2                    a2 b2 c2     and the results go where they belong
//
// The traffic equals that of a ring for any operation, and the order is rank order on every
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
  // `count` elements per rank, in items of `item` elements.
  Blockwise(Communicator& group, std::int64_t count, ElementType type, std::int64_t item, Purpose purpose,
            ReduceOp op);

  // Gathers this rank's block of all inputs, in rank order.
  Status collect(const void* input);
  std::byte* block_of(std::int32_t rank) {
    return scratch_.data() + static_cast<std::size_t>(rank) * own_bytes();
  }
  std::size_t own_bytes() const { return static_cast<std::size_t>(own_) * element_; }
  std::int64_t own_items() const { return own_ / item_; }

  // Sends each scratch block to its rank, so that `output` of every rank is complete.
  Status return_to(void* output);
  // Gathers the first block of every rank, on all ranks or on the root.
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
  std::vector<std::int64_t> blocks_;  // elements per rank
  bool even_ = true;
  std::int64_t own_ = 0;
  std::vector<std::byte> scratch_;
  mutable std::vector<std::int64_t> pairs_;  // counts of the current all_to_all
};

}  // namespace weft::comm
