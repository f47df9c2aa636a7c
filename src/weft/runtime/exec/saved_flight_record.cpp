#include "weft/runtime/exec/saved_flight_record.h"

#include <unistd.h>

#include <array>
#include <ctime>

#include <fmt/format.h>

#include "weft/base/number.h"
#include "weft/base/private_folder.h"
#include "weft/device/cuda/gpu.h"

namespace weft::exec {
namespace {

constexpr const char* kFile = "last";
constexpr std::int64_t kMostBytes = 1 << 20;

// The folder is beside the kernel cache.
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

void save_flight_record(std::string_view text) {
  const std::string folder = flights_folder();
  if (folder.empty()) return;
  if (const auto made = PrivateFolder::make(folder); made.ok())
    (void)made->write(kFile, fmt::format("{} {}\n{}", ::getpid(), time_now(), text));
}

std::optional<SavedFlightRecord> find_saved_flight_record() {
  const std::string folder = flights_folder();
  if (folder.empty()) return {};
  const auto opened = PrivateFolder::open(folder);
  if (!opened.ok()) return {};
  const auto held = opened->read(kFile, kMostBytes);
  if (!held.ok() || !*held) return {};
  const std::string_view all = **held, first = all.substr(0, all.find('\n'));
  SavedFlightRecord left;
  const std::size_t blank = first.find(' ');
  const auto process = read_number<decltype(left.process)>(first.substr(0, blank), 1);
  if (!process || blank == std::string_view::npos || first.size() == all.size()) return {};
  left.process = *process;
  left.time = first.substr(blank + 1);
  left.text = all.substr(first.size() + 1);
  return left;
}

}  // namespace weft::exec
