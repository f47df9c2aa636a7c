// weft/device/cuda/convolution.h -- convolutions and their gradients by cuDNN.
//
// Values lie as planes (NCHW), and its fastest kernels for narrow numbers take channels last: so each convolution is tried
// both ways, as it lies and turned round before and after, and what was faster is kept on disk (kept_choice.h).
#pragma once
#include "weft/device/cuda/call.h"

namespace weft::device::cuda {

// conv2d and its two gradients. Null where there is no cuDNN or it does not take the shape: see call_image.cpp.
Made make_library_convolution(const Call& call);

}  // namespace weft::device::cuda
