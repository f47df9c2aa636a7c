#include "weft/predict/cost/machine_identity.h"

#include <sys/utsname.h>

#include <algorithm>

#include <fmt/format.h>

#include "weft/base/file.h"
#include "weft/base/machine.h"

namespace weft::cost {
namespace {

constexpr std::int64_t kLargestCpuinfo = 16 << 20;  // enough for thousands of processors

// The value of the first line "KEY : value".
std::string_view value_of(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (!line.starts_with(key)) continue;
    const std::size_t colon = line.find_first_not_of(" \t", key.size());
    if (colon == std::string_view::npos || line[colon] != ':') continue;
    const std::size_t value = line.find_first_not_of(" \t", colon + 1);
    if (value != std::string_view::npos) return line.substr(value);
  }
  return {};
}

}  // namespace

std::string processor_name(std::string_view cpuinfo) {
  if (const auto model = value_of(cpuinfo, "model name"); !model.empty()) return std::string(model);
  const auto implementer = value_of(cpuinfo, "CPU implementer"), part = value_of(cpuinfo, "CPU part");
  if (!part.empty()) return fmt::format("ARM {} part {}", implementer, part);
  return "unknown processor";
}

std::string machine_identity() {
  const auto cpuinfo = read_file("/proc/cpuinfo", kLargestCpuinfo);
  utsname system{};
  const bool known = uname(&system) == 0;
  const auto memory = static_cast<double>(total_memory());
  return fmt::format("{}, {}, {} processors, {:.0f} GiB", known ? system.machine : "unknown",
                     processor_name(cpuinfo.ok() ? *cpuinfo : std::string_view{}), available_processors(),
                     std::max(memory, 0.0) / (1 << 30));
}

}  // namespace weft::cost
