// weft/device/cpu/call_kernel.h -- operators with a kernel of their own, and all others by their definition.
#pragma once
#include "weft/device/cpu/kernel.h"

namespace weft::device::cpu {

std::unique_ptr<Kernel> make_call_kernel(const program::Program& program, const program::Unit& unit,
                                         std::byte* memory);

// Pointwise functions and casts of any dtype, and the few numbers a plan holds: one element at a time.
std::unique_ptr<Kernel> make_element_kernel(const program::Program& program,
                                            const program::OperatorCall& call, std::byte* memory);

// Attention and its gradient, whose rows may lie anywhere.
std::unique_ptr<Kernel> make_attention_kernel(const program::Program& program,
                                              const program::OperatorCall& call, std::byte* memory);

// The definition in ops/: slow, for what has no kernel, and for dtypes that have none.
std::unique_ptr<Kernel> make_reference_kernel(const program::Program& program,
                                              const program::OperatorCall& call, std::byte* memory);

}  // namespace weft::device::cpu
