// weft/base/container.h -- the limits that the control groups of this process set: those of its container, job
// or service. Both versions of the kernel's interface; a group is bounded by its parents too.
#pragma once
#include <cstdint>
#include <filesystem>

namespace weft {

struct ContainerLimits {
  std::int64_t memory = 0;     // bytes; 0: none
  std::int64_t available = 0;  // of them, what is not taken yet; cached files give way
  double processors = 0;       // how many may be busy at once; 0: no quota
};

// `root` is where /proc and /sys are found.
ContainerLimits container_limits(const std::filesystem::path& root = "/");

}  // namespace weft
