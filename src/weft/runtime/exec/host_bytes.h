// weft/runtime/exec/host_bytes.h -- bytes of a rank accessible to the host: a view or a copy.
#pragma once
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace weft::exec {

class HostBytes {
 public:
  explicit HostBytes(std::span<const std::byte> in_place) : bytes_(in_place) {}
  explicit HostBytes(std::vector<std::byte> copied) : copy_(std::move(copied)), bytes_(copy_) {}
  HostBytes(HostBytes&&) = default;  // a copy keeps its address
  HostBytes& operator=(HostBytes&&) = default;

  std::span<const std::byte> bytes() const { return bytes_; }
  const std::byte* data() const { return bytes_.data(); }

 private:
  std::vector<std::byte> copy_;
  std::span<const std::byte> bytes_;
};

}  // namespace weft::exec
