// weft/device/cpu/direct_convolution.h -- conv2d and its gradients by windows that slide over planes.
//
//   a plane with its border, as one line      every place of the line is a place of the window; those where a
//   . . . . . . a b c . . d e f . . . . .     row ends are computed too and thrown away, so that vectors are full
//     |_|_|   |_|_|   |_|_|                   whatever the width of an image is
//
// No columns are gathered, which pays where a product would be small: few channels in a group, above all one,
// as in depthwise convolutions, and large windows. With a stride of s, a plane is kept as s x s planes of every
// s-th row and column, so that neighbouring places still read neighbouring elements.
//
// The contract is that of convolution.h, whose functions choose.
#pragma once
#include <cstddef>

#include "weft/device/cpu/convolution.h"

namespace weft::device::cpu {

// Where sliding is measured to be faster than a product of matrices.
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
