// weft/device/cpu/reduction.h -- element-wise reduction of buffers, as collectives compute it.
//
//   reduce(f32, sum, target, {a, b, c}, n)       target[i] = (a[i] + b[i]) + c[i]
//
// Sources are combined in order, so the same sources give the same bits. f16 and bf16 are combined
// in f32 and rounded once, to nearest even. Integers wrap, and only they have bitwise operations.
// min and max of a NaN and a number are NaN. avg is sum until finish_average() divides at the end.
// Uses the machine's vector instructions; the result does not depend on which, except for NaN
// payloads. Pointers need at most the alignment of their elements.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "weft/device/element_type.h"

namespace weft::device::cpu {

// target[0, elements) from at least one source. Bitwise operations are for integers only. target
// may be one of the sources; no other overlap.
void reduce(ElementType type, ReduceOp op, void* target, std::span<const void* const> sources,
            std::size_t elements);

// target = first op second. The order is explicit, since it affects the last bit.
void reduce_pair(ElementType type, ReduceOp op, void* target, const void* first, const void* second,
                 std::size_t elements);

// Divides sums by `count`; integers round towards zero.
void finish_average(ElementType type, void* target, std::size_t elements, std::int64_t count);

}  // namespace weft::device::cpu
