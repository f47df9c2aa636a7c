#include <fmt/format.h>

#include "weft/base/number.h"
#include "weft/device/cpu/processor.h"
#include "weft/device/cuda/gpu.h"
#include "weft/device/device.h"

namespace weft::device {

Result<std::shared_ptr<Device>> open_device(std::string_view name) {
  if (name == "cpu") return std::shared_ptr<Device>(std::make_shared<cpu::Processor>());
  constexpr std::string_view kExact = " exact";
  const bool exact = name.ends_with(kExact);
  std::string_view which = exact ? name.substr(0, name.size() - kExact.size()) : name;
  if (which.starts_with("cuda:")) {
    which.remove_prefix(5);
    if (const auto ordinal = read_number<int>(which)) {
      WEFT_TRY(gpu, cuda::Gpu::open(*ordinal, exact));
      return std::shared_ptr<Device>(std::move(gpu));
    }
  }
  return user_error(fmt::format("unknown device: {}", name), "devices of this build: cpu, cuda:0");
}

}  // namespace weft::device
