#include "weft/base/machine.h"

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

namespace weft {
namespace {

// The number in a one-line file such as a control group's memory.max; 0 when there is none.
std::int64_t number_in(const char* path) {
  std::ifstream file(path);
  std::int64_t number = 0;
  return file >> number ? number : 0;
}

// The number behind a word of a file of such pairs; 0 when there is none.
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
  if (const std::int64_t limit = number_in("/sys/fs/cgroup/memory.max"); limit > 0) {
    // Files that are only cached give way.
    const std::int64_t used =
        number_in("/sys/fs/cgroup/memory.current") - number_after("/sys/fs/cgroup/memory.stat", "file");
    bound(std::max<std::int64_t>(limit - used, 1));
  }
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    bound(static_cast<std::int64_t>(limit.rlim_cur));
  return available;
}

int available_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(CPU_COUNT(&set), 1);
  return static_cast<int>(std::max(std::thread::hardware_concurrency(), 1u));
}

int current_processor() { return sched_getcpu(); }

std::int64_t context_switches() {
  rusage used{};
  return getrusage(RUSAGE_THREAD, &used) == 0 ? used.ru_nvcsw + used.ru_nivcsw : 0;
}

std::vector<int> allowed_processors() {
  std::vector<int> all;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return all;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor)
    if (CPU_ISSET(processor, &set)) all.push_back(processor);
  return all;
}

void move_to_processor(int processor) {
  cpu_set_t allowed, there;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  CPU_ZERO(&there);
  CPU_SET(processor, &there);
  if (sched_setaffinity(0, sizeof there, &there) == 0) sched_setaffinity(0, sizeof allowed, &allowed);
}

}  // namespace weft
