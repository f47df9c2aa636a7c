// weft/device/cuda/attention_kernels.h -- the texts that attention_text.cpp puts together, which know the shape as
// constants that come before them.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace weft::device::cuda {

// For bf16 and f16: products of 16 x 8 x 16 by tensor cores.
std::string_view tensor_tiles_text();
std::string_view tensor_forward_text();
std::string_view tensor_gradient_text();

// The same by products of 64 x N x 16 of four warps (wgmma) and tiles that the copy engine fetches: compute capability
// 9.0 alone. The products have so many columns each.
std::string_view hopper_tiles_text();
std::string hopper_products_text(std::int64_t columns);
std::string_view hopper_forward_text();
std::string_view hopper_gradient_text();

// For f32.
std::string_view plain_tiles_text();
std::string_view plain_forward_text();
std::string_view plain_gradient_text();

}  // namespace weft::device::cuda
