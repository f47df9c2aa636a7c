// weft/base/container.h -- limits from this process's cgroups (container, job or service).
//
// Supports cgroup v1 and v2, and includes the limits of parent groups.
#pragma once
#include <cstdint>
#include <filesystem>

namespace weft {

struct ContainerLimits {
  std::int64_t memory = 0;     // bytes; 0: none
  std::int64_t available = 0;  // of these, not in use; cached files count as available
  double processors = 0;       // CPU quota as a number of processors; 0: no quota
};

// `root` is the directory that contains /proc and /sys.
ContainerLimits container_limits(const std::filesystem::path& root = "/");

}  // namespace weft
