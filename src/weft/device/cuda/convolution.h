// weft/device/cuda/convolution.h -- convolutions and their gradients by cuDNN.
#pragma once
#include "weft/device/cuda/call.h"

namespace weft::device::cuda {

// conv2d and its two gradients. Null where there is no cuDNN or it does not take the shape: see call_image.cpp.
Made make_library_convolution(const Call& call);

}  // namespace weft::device::cuda
