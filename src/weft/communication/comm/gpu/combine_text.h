// weft/communication/comm/gpu/combine_text.h -- numbers of collectives in CUDA C++: how they lie in memory and are combined.
//
// The answers are those of device/cpu/reduction.h, to the bit: halves are combined in f32 and rounded once,
// integers wrap, min and max of a NaN are NaN, averages are sums until they are divided.
#pragma once
#include <string>

#include "weft/device/element_type.h"

namespace weft::comm::gpu {

// Types `weft_element` (in memory) and `weft_number` (combined), `weft_combine(a, b)` of two numbers,
// `weft_divided(sum, count)`, and packs of 16 bytes that go around the caches of single processors.
std::string combine_text(device::ElementType type, device::ReduceOp op);

}  // namespace weft::comm::gpu
