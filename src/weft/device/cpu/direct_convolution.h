// weft/device/cpu/direct_convolution.h -- conv2d and its gradients by sliding windows over planes.
//
//   a plane with its border, as one line      every position of the line is a window position.
//   . . . . . . a b c . . d e f . . . . .     Those at row ends are computed too and discarded,
//     |_|_|   |_|_|   |_|_|                   so that vectors are full at any image width
//
// No columns are gathered. This pays where a product would be small: few channels per group, as in
// depthwise convolutions, and large windows. With a stride of s, a plane is stored as s x s planes
// of every s-th row and column, so that neighbouring positions still read neighbouring elements.
//
// The contract is that of convolution.h, whose functions choose between the two.
#pragma once
#include <cstddef>

#include "weft/device/cpu/convolution.h"

namespace weft::device::cpu {

// Whether sliding is faster than a matrix product, as measured.
bool slides(const Convolution& conv);
bool slides_back(const Convolution& conv);  // the input gradient
bool slides_for_weights(const Convolution& conv);

std::size_t direct_scratch_bytes(const Convolution& conv);

void direct_convolve(const Convolution& conv, std::int64_t begin, std::int64_t end, const float* x,
                     const float* w, float* y, void* scratch);
void direct_input_gradient(const Convolution& conv, std::int64_t begin, std::int64_t end, const float* dy,
                           const float* w, float* dx, void* scratch);
void direct_weight_gradient(const Convolution& conv, std::int64_t begin, std::int64_t end, const float* dy,
                            const float* x, float* dw, void* scratch);

}  // namespace weft::device::cpu
