// weft/device/cuda/kernel_source.h -- CUDA sources embedded in the program: kernels/*.cuh.
//
//   kernel_source("max_pool", "constexpr int kSize = 3, ..")    max_pool.cuh and what it includes
//
// Each #include is replaced by the file's contents, once. An include of preamble/ is for editors:
// it declares NVRTC's built-ins and example definitions. It is replaced by `definitions`.
#pragma once
#include <string>
#include <string_view>

namespace weft::device::cuda {

// REQUIRES: kernels/NAME.cuh exists.
std::string kernel_source(std::string_view name, std::string_view definitions = {});

}  // namespace weft::device::cuda
