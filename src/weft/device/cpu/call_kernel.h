// weft/device/cpu/call_kernel.h -- kernels for single operators; operators without one run their
// definition.
#pragma once
#include "weft/device/cpu/kernel.h"

namespace weft::device::cpu {

std::unique_ptr<Kernel> make_call_kernel(const program::Program& program, const program::Unit& unit,
                                         std::byte* memory);

// Pointwise functions and casts of any dtype, and constants of a plan: one element at a time.
std::unique_ptr<Kernel> make_element_kernel(const program::Program& program,
                                            const program::OperatorCall& call, std::byte* memory);

// Attention and its gradient, with rows of any stride.
std::unique_ptr<Kernel> make_attention_kernel(const program::Program& program,
                                              const program::OperatorCall& call, std::byte* memory);

// The definition in ops/: slow, for operators and dtypes without a kernel.
std::unique_ptr<Kernel> make_reference_kernel(const program::Program& program,
                                              const program::OperatorCall& call, std::byte* memory);

}  // namespace weft::device::cpu
