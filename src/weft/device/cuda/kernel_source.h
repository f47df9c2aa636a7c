// weft/device/cuda/kernel_source.h -- CUDA sources that travel inside the program: kernels/*.cuh.
//
//   kernel_source("max_pool", "constexpr int kSize = 3, ..")    max_pool.cuh and what it includes
//
// A file that is included is put in its place, once. An include of preamble/ is for editors: it declares what NVRTC has
// built in and examples of what the program defines, so the program's own definitions are put in its place.
#pragma once
#include <string>
#include <string_view>

namespace weft::device::cuda {

// REQUIRES: kernels/NAME.cuh.
std::string kernel_source(std::string_view name, std::string_view definitions = {});

}  // namespace weft::device::cuda
