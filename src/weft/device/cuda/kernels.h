// weft/device/cuda/kernels.h -- units of a program as kernels of a GPU, one maker a kind of unit.
#pragma once
#include <memory>
#include <span>

#include "weft/device/cuda/gpu.h"

namespace weft::device::cuda {

// Fails where this device has no kernel for it: nothing is computed elsewhere without a word.
Result<std::unique_ptr<Kernel>> make_kernel(Functions& gpu, const program::Program& program,
                                            const program::Unit& unit, Address memory);

Result<std::unique_ptr<Kernel>> make_row_kernel(Functions& gpu, const program::Program& program,
                                                const program::Unit& unit, Address memory);
// The same loop in another shape, its operands at these places: to be tried.
Result<std::unique_ptr<Kernel>> make_row_kernel(Functions& gpu, const program::RowLoop& loop,
                                                std::span<const DevicePointer> operands,
                                                const RowShape& shape);
Result<std::unique_ptr<Kernel>> make_product_kernel(Functions& gpu, const program::Program& program,
                                                    const program::Unit& unit, Address memory);
Result<std::unique_ptr<Kernel>> make_call_kernel(Functions& gpu, const program::Program& program,
                                                 const program::Unit& unit, Address memory);

// Calls of one optimizer, alike but for their tensors.
Result<std::unique_ptr<Kernel>> make_update_kernel(Functions& gpu, const program::Program& program,
                                                   std::span<const program::OperatorCall> calls,
                                                   Address memory);

// A place of the program in the device's memory.
inline DevicePointer pointer(const program::Program& program, const program::Place& place, Address memory) {
  return pointer(memory + offset_of(program, place));
}

}  // namespace weft::device::cuda
