// weft/device/cuda/attention_kernels.h -- the texts that attention_text.cpp puts together, which know the shape as
// constants that come before them.
#pragma once
#include <string_view>

namespace weft::device::cuda {

// For bf16 and f16: products of 16 x 8 x 16 by tensor cores.
std::string_view tensor_tiles_text();
std::string_view tensor_forward_text();
std::string_view tensor_gradient_text();

// For f32.
std::string_view plain_tiles_text();
std::string_view plain_forward_text();
std::string_view plain_gradient_text();

}  // namespace weft::device::cuda
