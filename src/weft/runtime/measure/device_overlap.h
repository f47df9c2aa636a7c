// weft/runtime/measure/device_overlap.h -- what things that an accelerator does side by side take from each other.
//
//   products, a loop over memory      beside      copies from the host, to it, an all-reduce of two ranks
//
// Each is done over and over for a while, alone and then both at once, each on a stream of its own; what is told is how
// much of its own pace each keeps. 1 and 1: they overlap for nothing.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/device/device.h"

namespace weft::measure {

// Something a device does, begun and waited for by one thread.
struct Doing {
  std::string name;
  std::function<Status()> once;
};

// What each keeps of the pace that it has alone.
struct Beside {
  std::string computing, moving;
  double computes = 1, moves = 1;
};

// Of every pair. The first error ends it.
Result<std::vector<Beside>> beside_each_other(const std::vector<Doing>& computing,
                                              const std::vector<Doing>& moving,
                                              std::chrono::milliseconds each);

// What a device moves: copies either way and, on a GPU, an all-reduce of two ranks of it.
Result<std::vector<Doing>> movements(const std::shared_ptr<device::Device>& device);

}  // namespace weft::measure
