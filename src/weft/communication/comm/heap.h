// weft/communication/comm/heap.h -- memory that the other ranks of this machine can reach: what allocate() gives out.
//
//   one anonymous file a rank, a share of twice the machine's memory, mapped by all ranks at once, empty at first:
//
//   [ gradient 40 MiB | - | activations 8 MiB | ------------------------------------ ]
//                                               ^ no pages until allocated
//
// So no rank has to be told of an allocation. Pages are had when memory is allocated and given back to the
// machine when it is freed.
#pragma once
#include <cstddef>
#include <map>

#include "weft/base/result.h"
#include "weft/communication/transport/segment.h"

namespace weft::comm {

class Heap {
 public:
  static Result<Heap> create(std::int32_t ranks);  // that map it, this one among them

  const transport::Segment& segment() const { return segment_; }

  // Zeroes, aligned to pages.
  Result<void*> allocate(std::size_t bytes);
  // False when `memory` is not the beginning of an allocation.
  bool free(void* memory);

  bool holds(const void* memory) const;

 private:
  transport::Segment segment_;
  std::map<std::size_t, std::size_t> taken_;  // offset to bytes
};

}  // namespace weft::comm
