#include "weft/exec/left_flights.h"

#include <array>
#include <ctime>

#include <fmt/format.h>

#include "weft/base/private_folder.h"
#include "weft/device/cuda/gpu.h"

namespace weft::exec {
namespace {

constexpr const char* kFile = "last";
constexpr std::int64_t kMostBytes = 1 << 20;

// Beside that of the kernels.
std::string flights_folder() {
  const std::string kernels = device::cuda::cache_folder();
  return kernels.empty() ? std::string() : kernels.substr(0, kernels.rfind('/')) + "/flights";
}

std::string time_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  gmtime_r(&now, &parts);
  std::array<char, 64> text = {};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text.data();
}

}  // namespace

void leave_flights(std::string_view text) {
  const std::string folder = flights_folder();
  if (folder.empty()) return;
  if (const auto made = PrivateFolder::make(folder); made.ok())
    (void)made->write(kFile, fmt::format("{}\n{}", time_now(), text));
}

std::optional<std::string> find_left_flights() {
  const std::string folder = flights_folder();
  if (folder.empty()) return {};
  const auto opened = PrivateFolder::open(folder);
  if (!opened.ok()) return {};
  auto text = opened->read(kFile, kMostBytes);
  return text.ok() ? std::move(*text) : std::nullopt;
}

}  // namespace weft::exec
