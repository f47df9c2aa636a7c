// weft/runtime/exec/rank_bytes.h -- what a rank takes beyond its program's own memory.
#pragma once
#include <algorithm>
#include <cstdint>

#include "weft/base/result.h"
#include "weft/device/device.h"
#include "weft/program/tasks/program.h"

namespace weft::exec {

// What one worker needs for any of the units.
struct WorkerBytes {
  std::int64_t scratch = 0, definition = 0;

  void see(const program::Unit& unit, const device::Kernel& kernel);
  // What has no kernel is one task, so seldom do two workers compute by definition at once.
  std::int64_t of(int workers) const { return workers * scratch + definition; }
};

// What a rank of the program takes beyond the program's own memory: what its workers have to themselves, and
// what a node without a kernel allocates when it is computed by its definition. Takes nothing.
Result<std::int64_t> bytes_beside(const program::Program& program, device::Device& device, int workers);

// It needs so many, and the limit is less what is held beside it.
Error too_large(const program::Program& program, std::int64_t bytes, std::int64_t limit, std::int64_t held);

}  // namespace weft::exec
