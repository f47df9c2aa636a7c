// weft/device/cuda/compile.h -- compiles kernel sources with NVRTC. Needs no GPU.
#pragma once
#include <string>

#include "weft/base/result.h"

namespace weft::device::cuda {

// For an architecture such as "sm_90a". Fails with the compiler's messages.
Result<std::string> compile(const std::string& text, const std::string& architecture);

}  // namespace weft::device::cuda
