#include "weft/base/machine.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include "weft/base/container.h"

namespace weft {
namespace {

// The number after a word in a file of such pairs; 0 if the word is missing.
std::int64_t number_after(const char* path, std::string_view wanted) {
  std::ifstream file(path);
  std::int64_t number = 0;
  for (std::string word; file >> word;)
    if (word == wanted) return file >> number ? number : 0;
  return 0;
}

}  // namespace

std::int64_t available_memory() {
  std::int64_t available = 1024 * number_after("/proc/meminfo", "MemAvailable:");
  const auto bound = [&](std::int64_t limit) {
    if (limit > 0) available = available == 0 ? limit : std::min(available, limit);
  };
  bound(container_limits().available);
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    bound(static_cast<std::int64_t>(limit.rlim_cur));
  return available;
}

std::int64_t total_memory() {
  const auto all = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  const std::int64_t limit = container_limits().memory;
  return limit > 0 ? std::min(all, limit) : all;
}

int available_processors() {
  // If the threads exceed the quota, all are throttled for the rest of each period.
  static const double quota = container_limits().processors;
  const int most = quota > 0 ? std::max(static_cast<int>(quota), 1) : INT_MAX;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::clamp(CPU_COUNT(&set), 1, most);
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, most);
}

std::vector<int> allowed_processors() {
  std::vector<int> all;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return all;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor)
    if (CPU_ISSET(processor, &set)) all.push_back(processor);
  return all;
}

}  // namespace weft
