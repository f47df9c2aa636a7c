// weft/communication/comm/gpu/combine_source.h -- element types of collectives in CUDA C++: storage
// and reduction.
//
// Results are bitwise equal to device/cpu/reduction.h: halves are combined in f32 and rounded once,
// integers wrap, min and max of a NaN are NaN, averages are sums until they are divided.
#pragma once
#include <string>

#include "weft/device/element_type.h"

namespace weft::comm::gpu {

// Source of types `weft_element` (in memory) and `weft_number` (for arithmetic), `weft_combine(a,
// b)` of two numbers, `weft_divided(sum, count)`, and 16-byte packs whose loads and stores bypass
// L1.
std::string combine_source(device::ElementType type, device::ReduceOp op);

}  // namespace weft::comm::gpu
