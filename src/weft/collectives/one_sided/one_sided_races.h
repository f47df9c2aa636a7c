// weft/collectives/one_sided/one_sided_races.h -- accesses of an MSCCL++ plan that nothing orders.
//
//   a write, then a read      the write must be visible: a released signal, a barrier, a flushed put
//   a read, then a write      the read must be over: a relaxed signal will do
//   a write, then a write     as a write and a read
//
// The caller is one of those who read and write: it fills the input before a run and uses the output after
// it. So a rank may not end before its output was written, nor be written to before it began again. A run
// ends with all its writes visible on its device, so what the caller wrote needs no release.
//
// Stores through a switch are strong: a relaxed signal after them is enough, as in MSCCL++'s own plans.
// Steps that go packet by packet split their bytes among the threads alike, so that two of one block on the
// same range need no nop; of other steps that is not said anywhere.
#pragma once
#include <optional>

#include "weft/collectives/check/check.h"
#include "weft/collectives/one_sided/memory_order.h"

namespace weft::collective {

std::optional<Finding> find_race(const MemoryOrder& memory);

}  // namespace weft::collective
