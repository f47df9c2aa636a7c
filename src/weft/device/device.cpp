#include "weft/device/device.h"

#include <utility>

namespace weft::device {
namespace {

std::atomic<bool> any_abandoned = false;

}  // namespace

Error DeviceFault::say(Error why) {
  const std::lock_guard lock(mutex_);
  if (!first_) first_ = std::move(why);
  return *first_;
}

Status DeviceFault::heard() const {
  const std::lock_guard lock(mutex_);
  return first_ ? Status(*first_) : Status();
}

void Device::abandon() {
  abandoned_.store(true, std::memory_order_relaxed);
  any_abandoned.store(true, std::memory_order_relaxed);
}

bool is_any_abandoned() { return any_abandoned.load(std::memory_order_relaxed); }

}  // namespace weft::device
