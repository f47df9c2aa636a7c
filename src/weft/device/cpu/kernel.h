// weft/device/cpu/kernel.h -- a unit of a program, ready to run on this processor.
//
// Made once, with every address, stride and table found; run() then only computes. Nothing is
// allocated there and nothing can fail. Tasks of one unit may run on several threads at once, each
// with scratch memory of its own.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "weft/program/program.h"

namespace weft::device::cpu {

class Kernel {
 public:
  virtual ~Kernel() = default;

  // What run() wants of a worker's own memory, aligned as for any type.
  virtual std::int64_t scratch_bytes() const { return 0; }
  virtual void run(const program::Task& task, std::byte* scratch) const = 0;
  // True when the node is computed by its definition in ops/, element by element: slow, and it allocates.
  virtual bool is_reference() const { return false; }
};

// `memory` is the rank's: buffers lie there at their offsets. Null for an exchange, which is no rank's alone.
std::unique_ptr<Kernel> make_kernel(const program::Program& program, const program::Unit& unit,
                                    std::byte* memory);

// Where a place begins.
inline std::byte* address(const program::Program& program, const program::Place& place, std::byte* memory) {
  return memory + program.buffer(place.buffer).offset + place.offset * plan::size_in_bytes(place.dtype);
}

}  // namespace weft::device::cpu
