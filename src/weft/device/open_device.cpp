#include <fmt/format.h>

#include "weft/device/cpu/processor.h"
#include "weft/device/device.h"

namespace weft::device {

Result<std::shared_ptr<Device>> open_device(std::string_view name) {
  if (name == "cpu") return std::shared_ptr<Device>(std::make_shared<cpu::Processor>());
  return user_error(fmt::format("unknown device: {}", name), "devices of this build: cpu");
}

}  // namespace weft::device
