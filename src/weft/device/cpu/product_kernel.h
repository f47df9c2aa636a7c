// weft/device/cpu/product_kernel.h -- matrix products with blas.h.
#pragma once
#include "weft/device/cpu/kernel.h"

namespace weft::device::cpu {

std::unique_ptr<Kernel> make_product_kernel(const program::Program& program, const program::Unit& unit,
                                            std::byte* memory);

}  // namespace weft::device::cpu
