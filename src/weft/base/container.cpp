#include "weft/base/container.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace weft {
namespace {

using std::filesystem::path;

// A cgroup without a limit reports a number near 2^63 in v1, and "max" in v2.
constexpr std::int64_t kUnlimited = std::int64_t{1} << 60;

std::int64_t number_in(const path& file) {
  std::ifstream in(file);
  std::int64_t number = 0;
  return in >> number ? number : 0;
}

std::int64_t number_after(const path& file, std::string_view wanted) {
  std::ifstream in(file);
  std::int64_t number = 0;
  for (std::string word; in >> word;)
    if (word == wanted) return in >> number ? number : 0;
  return 0;
}

// The names of the cgroup files for memory.
struct MemoryFiles {
  const char *limit, *used, *cached;
};
constexpr MemoryFiles kFirst = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr MemoryFiles kSecond = {"memory.max", "memory.current", "file"};

void bound_memory(ContainerLimits& limits, const path& group, const MemoryFiles& files) {
  const std::int64_t limit = number_in(group / files.limit);
  if (limit <= 0 || limit >= kUnlimited) return;
  const std::int64_t used = number_in(group / files.used) - number_after(group / "memory.stat", files.cached);
  const std::int64_t available = std::max<std::int64_t>(limit - std::max<std::int64_t>(used, 0), 1);
  limits.available = limits.memory == 0 ? available : std::min(limits.available, available);
  limits.memory = limits.memory == 0 ? limit : std::min(limits.memory, limit);
}

void bound_processors(ContainerLimits& limits, std::int64_t quota, std::int64_t period) {
  if (quota <= 0 || period <= 0) return;
  const double processors = static_cast<double>(quota) / static_cast<double>(period);
  limits.processors = limits.processors == 0 ? processors : std::min(limits.processors, processors);
}

// The cgroup and its parents, up to the mount point of the hierarchy. Inside a container the path
// may be a host path that is not visible here; then the mount point is the container's own group.
std::vector<path> groups_of(const path& mounted, std::string_view name) {
  std::vector<path> groups = {mounted};
  path at = mounted;
  for (const path& part : path(std::string(name)).relative_path()) {
    if (part == "..") return {mounted};
    at /= part;
    std::error_code ignored;
    if (!std::filesystem::is_directory(at, ignored)) return {mounted};
    groups.push_back(at);
  }
  return groups;
}

bool has_controller(std::string_view list, std::string_view wanted) {
  std::istringstream in{std::string(list)};
  for (std::string one; std::getline(in, one, ',');)
    if (one == wanted) return true;
  return false;
}

}  // namespace

// A line of /proc/self/cgroup is "number:controllers:path"; in v2 it is "0::path".
ContainerLimits container_limits(const path& root) {
  ContainerLimits limits;
  const path hierarchies = root / "sys/fs/cgroup";
  std::ifstream in(root / "proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1),
                      name = line.substr(second + 1);
    if (controllers.empty()) {
      for (const path& group : groups_of(hierarchies, name)) {
        bound_memory(limits, group, kSecond);
        std::ifstream quota(group / "cpu.max");
        std::int64_t time = 0, period = 0;
        if (quota >> time >> period) bound_processors(limits, time, period);
      }
    } else if (has_controller(controllers, "memory")) {
      for (const path& group : groups_of(hierarchies / "memory", name)) bound_memory(limits, group, kFirst);
    } else if (has_controller(controllers, "cpu")) {
      for (const char* mounted : {"cpu", "cpu,cpuacct"})
        for (const path& group : groups_of(hierarchies / mounted, name))
          bound_processors(limits, number_in(group / "cpu.cfs_quota_us"),
                           number_in(group / "cpu.cfs_period_us"));
    }
  }
  return limits;
}

}  // namespace weft
