// weft/communication/comm/heap.h -- memory that the other ranks of this machine can access: what
// allocate() returns.
//
//   one anonymous file per rank, a share of twice the machine's memory, mapped by all ranks, empty at first:
//
//   [ gradient 40 MiB | - | activations 8 MiB | ------------------------------------ ]
//                                               ^ no pages until allocated
//
// So no rank has to be notified of an allocation. Pages are allocated with the memory and released
// to the system when it is freed.
#pragma once
#include <cstddef>
#include <map>

#include "weft/base/result.h"
#include "weft/communication/transport/segment.h"

namespace weft::comm {

class Heap {
 public:
  static Result<Heap> create(std::int32_t ranks);  // the number of ranks that map it, including this one

  const transport::Segment& segment() const { return segment_; }

  // Zeroed and page-aligned.
  Result<void*> allocate(std::size_t bytes);
  // False if `memory` is not the start of an allocation.
  bool free(void* memory);

  bool holds(const void* memory) const;

 private:
  transport::Segment segment_;
  std::map<std::size_t, std::size_t> taken_;  // from offset to size in bytes
};

}  // namespace weft::comm
