// weft/device/cuda/kernels.h -- units of a program as GPU kernels: one maker per kind of unit.
#pragma once
#include <memory>
#include <span>

#include "weft/device/cuda/gpu.h"

namespace weft::device::cuda {

// Fails if this device has no kernel for the unit; there is no silent fallback.
Result<std::unique_ptr<Kernel>> make_kernel(Functions& gpu, const program::Program& program,
                                            const program::Unit& unit, Address memory);

Result<std::unique_ptr<Kernel>> make_row_kernel(Functions& gpu, const program::Program& program,
                                                const program::Unit& unit, Address memory);
// For trials: the same loop with another shape and the given operand addresses.
Result<std::unique_ptr<Kernel>> make_row_kernel(Functions& gpu, const program::RowLoop& loop,
                                                std::span<const DevicePointer> operands,
                                                const RowShape& shape);
Result<std::unique_ptr<Kernel>> make_product_kernel(Functions& gpu, const program::Program& program,
                                                    const program::Unit& unit, Address memory);
Result<std::unique_ptr<Kernel>> make_call_kernel(Functions& gpu, const program::Program& program,
                                                 const program::Unit& unit, Address memory);

// Calls of one optimizer that differ only in their tensors.
Result<std::unique_ptr<Kernel>> make_update_kernel(Functions& gpu, const program::Program& program,
                                                   std::span<const program::OperatorCall> calls,
                                                   Address memory);

// Device address of a place of the program.
inline DevicePointer pointer(const program::Program& program, const program::Place& place, Address memory) {
  return pointer(memory + offset_of(program, place));
}

}  // namespace weft::device::cuda
