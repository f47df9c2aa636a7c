#include "weft/device/cuda/compile.h"

#include <fmt/format.h>

#include "weft/device/cuda/api.h"

namespace weft::device::cuda {

Result<std::string> compile(const std::string& text, const std::string& architecture) {
  WEFT_TRY(compiler, cuda::compiler());
  Handle program = nullptr;
  const auto fails = [&](Code code) {
    return environment_error(
        fmt::format("a kernel for the GPU does not compile: {}", compiler->error_text(code)));
  };
  if (const Code code = compiler->create(&program, text.c_str(), "weft.cu", 0, nullptr, nullptr); code != 0)
    return fails(code);
  const std::string target = "--gpu-architecture=" + architecture;
  const char* const options[] = {target.c_str(), "--std=c++17", "--fmad=true"};
  const Code code = compiler->compile(program, 3, options);
  std::string image;
  Status status;
  if (code != 0) {
    std::size_t bytes = 0;
    compiler->log_size(program, &bytes);
    std::string log(bytes, '\0');
    compiler->log(program, log.data());
    status = environment_error(fmt::format("a kernel for the GPU does not compile: {}\n{}",
                                           compiler->error_text(code), log.c_str()));
  } else {
    std::size_t bytes = 0;
    compiler->image_size(program, &bytes);
    image.resize(bytes);
    compiler->image(program, image.data());
  }
  compiler->destroy(&program);
  if (!status.ok()) return status.error();
  return image;
}

}  // namespace weft::device::cuda
