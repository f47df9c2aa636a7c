// weft/runtime/measure/device_overlap.h -- how much concurrent operations on a device slow each other down.
//
//   products, a loop over memory      beside      copies from the host, to it, an all-reduce of two ranks
//
// Repeats each operation for a while, alone and then in pairs, on separate streams. The result is
// the fraction of its own rate that each keeps. 1 and 1: they overlap perfectly.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/device/device.h"

namespace weft::measure {

// An operation of a device, launched and waited for by one thread.
struct Doing {
  std::string name;
  std::function<Status()> once;
};

// The fraction of its rate alone that each operation keeps.
struct Beside {
  std::string computing, moving;
  double computes = 1, moves = 1;
};

// Measures every pair. Stops at the first error.
Result<std::vector<Beside>> measure_overlap(const std::vector<Doing>& computing,
                                            const std::vector<Doing>& moving, std::chrono::milliseconds each);

// Copies in both directions and, on a GPU, an all-reduce between two of its ranks.
Result<std::vector<Doing>> movements(const std::shared_ptr<device::Device>& device);

}  // namespace weft::measure
