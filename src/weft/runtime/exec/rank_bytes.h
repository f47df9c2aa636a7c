// weft/runtime/exec/rank_bytes.h -- memory of a rank beyond its program's own memory.
#pragma once
#include <algorithm>
#include <cstdint>

#include "weft/base/result.h"
#include "weft/device/device.h"
#include "weft/program/tasks/program.h"

namespace weft::exec {

// Memory that one worker needs for any of the units.
struct WorkerBytes {
  std::int64_t scratch = 0, definition = 0;

  void see(const program::Unit& unit, const device::Kernel& kernel);
  // Counts one definition: a node without a kernel is one task, and two rarely run at once.
  std::int64_t of(int workers) const { return workers * scratch + definition; }
};

// Memory of a rank beyond the program's own: the workers' scratch memory, and what the reference
// implementation of a node without a kernel allocates. Only computes the size.
Result<std::int64_t> bytes_beside(const program::Program& program, device::Device& device, int workers);

// The error for a program that needs `bytes` when `limit` minus `held` is available.
Error too_large(const program::Program& program, std::int64_t bytes, std::int64_t limit, std::int64_t held);

}  // namespace weft::exec
