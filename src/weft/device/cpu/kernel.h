// weft/device/cpu/kernel.h -- a unit of a program, ready to run on this processor.
//
// Made once; run() then only computes. Nothing is allocated there and nothing can fail. Tasks of one unit
// may run on several threads at once, each with scratch memory of its own.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "weft/device/device.h"

namespace weft::device::cpu {

class Kernel : public device::Kernel {
 public:
  virtual void run(const program::Task& task, std::byte* scratch) const = 0;
};

// `memory` is the rank's: buffers lie there at their offsets. Null for an exchange, which is no rank's alone.
std::unique_ptr<Kernel> make_kernel(const program::Program& program, const program::Unit& unit,
                                    std::byte* memory);

// Where a place begins.
inline std::byte* address(const program::Program& program, const program::Place& place, std::byte* memory) {
  return memory + offset_of(program, place);
}

}  // namespace weft::device::cpu
