#include "weft/communication/transport/scheduler_group.h"

#include <unistd.h>

#include <algorithm>
#include <string>

#include "weft/base/hash.h"
#include "weft/base/kernel_file.h"

namespace weft::transport {
namespace {

// Parses lines like "0::/job" (version 2) and "4:cpu,cpuacct:/job" (version 1), which takes
// precedence.
std::string_view control_group_of(std::string_view lines) {
  std::string_view found = "/";
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
    const std::size_t first = line.find(':');
    const std::size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string controllers = "," + std::string(line.substr(first + 1, second - first - 1)) + ",";
    const bool unified = controllers == ",,";
    if (controllers.find(",cpu,") != controllers.npos) return line.substr(second + 1);
    if (unified) found = line.substr(second + 1);
  }
  return found;
}

}  // namespace

std::uint64_t scheduler_group(std::string_view control_groups, bool by_session, pid_t session) {
  const std::string_view group = control_group_of(control_groups);
  // Sessions matter only for processes in the root control group.
  const auto its_session = group == "/" && by_session ? static_cast<std::uint64_t>(session) : 0;
  return Hasher().text(group).number(its_session).digest().low | 1;
}

std::uint64_t scheduler_group() {
  return scheduler_group(read_kernel_file("/proc/self/cgroup"),
                         read_kernel_file("/proc/sys/kernel/sched_autogroup_enabled").starts_with('1'),
                         ::getsid(0));
}

}  // namespace weft::transport
