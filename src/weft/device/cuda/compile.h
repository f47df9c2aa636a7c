// weft/device/cuda/compile.h -- the text of kernels to what a GPU loads, by NVRTC. Needs no GPU.
#pragma once
#include <string>

#include "weft/base/result.h"

namespace weft::device::cuda {

// For an architecture, "sm_90a". Fails with what the compiler says.
Result<std::string> compile(const std::string& text, const std::string& architecture);

}  // namespace weft::device::cuda
