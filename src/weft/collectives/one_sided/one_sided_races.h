// weft/collectives/one_sided/one_sided_races.h -- finds unordered accesses of an MSCCL++ plan.
//
//   a write, then a read      the write must be visible: a released signal, a barrier, a flushed put
//   a read, then a write      the read must be over: a relaxed signal suffices
//   a write, then a write     as a write and a read
//
// The caller also reads and writes: it fills the input before a run and uses the output after it.
// So a rank may not end before its output was written, nor be written to before it has restarted. A
// run ends with all its writes visible on its device, so the caller's writes need no release.
//
// Stores through a switch are strong: a relaxed signal after them suffices, as in MSCCL++'s own
// plans. Steps that work packet by packet assign bytes to threads identically, so two of one block
// on the same range need no nop. Other steps have no such guarantee.
#pragma once
#include <optional>

#include "weft/collectives/check/check.h"
#include "weft/collectives/one_sided/memory_order.h"

namespace weft::collective {

std::optional<Finding> find_race(const MemoryOrder& memory);

}  // namespace weft::collective
