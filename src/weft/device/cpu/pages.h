// weft/device/cpu/pages.h -- zero-initialized memory pages from the operating system.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "weft/base/result.h"

namespace weft::device::cpu {

class Pages {
 public:
  // At least one byte. Fails if the system is out of memory.
  static Result<Pages> take(std::int64_t bytes);

  Pages() = default;
  Pages(Pages&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  Pages& operator=(Pages&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Pages();

  std::span<std::byte> bytes() const { return bytes_; }

 private:
  explicit Pages(std::span<std::byte> bytes) : bytes_(bytes) {}
  std::span<std::byte> bytes_;
};

}  // namespace weft::device::cpu
