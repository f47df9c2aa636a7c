// weft/device/cuda/convolution.h -- convolutions and their gradients with cuDNN.
//
// Values are stored as planes (NCHW), but cuDNN's fastest kernels for narrow types use
// channels-last. So each convolution is measured both ways, directly and with layout conversions
// before and after. The faster one is kept on disk (stored_choice.h).
#pragma once
#include "weft/device/cuda/call.h"

namespace weft::device::cuda {

// conv2d and its two gradients. Null if cuDNN is missing or does not support the shape: see
// call_image.cpp.
Made make_library_convolution(const Call& call);

}  // namespace weft::device::cuda
