// weft/device/cpu/reduction.h -- adds up stretches of numbers: what collectives compute.
//
//   reduce(f32, sum, target, {a, b, c}, n)       target[i] = (a[i] + b[i]) + c[i]
//
// The order is that of the sources, so the same sources give the same bits. Halves (f16, bf16) are combined
// in f32 and rounded once, to nearest, ties to even; integers wrap, and only they have bitwise operations. min and max of a NaN and a number are
// NaN. avg is sum until finish_average() divides, at the very end. Vector instructions of the machine at hand
// are used; the answer does not depend on which, the payload of a NaN aside. Pointers need the alignment of
// their elements at most.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "weft/device/element_type.h"

namespace weft::device::cpu {

// target[0, elements) from at least one source; bitwise of whole numbers only; target may be one of the sources, no other overlap.
void reduce(ElementType type, ReduceOp op, void* target, std::span<const void* const> sources,
            std::size_t elements);

// target = source op target, or target op source: which comes first is said, since it shows in the last bit.
void reduce_pair(ElementType type, ReduceOp op, void* target, const void* first, const void* second,
                 std::size_t elements);

// Divides sums by `count`; integers are rounded towards zero.
void finish_average(ElementType type, void* target, std::size_t elements, std::int64_t count);

}  // namespace weft::device::cpu
