// weft/device/cpu/kernel.h -- a unit of a program, ready to run on this processor.
//
// Made once; run() only computes: it does not allocate and cannot fail. Tasks of one unit may run
// on several threads at once, each with its own scratch memory.
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

// `memory` is the rank's, with buffers at their offsets. Returns null for an exchange, which
// involves several ranks.
std::unique_ptr<Kernel> make_kernel(const program::Program& program, const program::Unit& unit,
                                    std::byte* memory);

// Address of the start of a place.
inline std::byte* address(const program::Program& program, const program::Place& place, std::byte* memory) {
  return memory + offset_of(program, place);
}

}  // namespace weft::device::cpu
