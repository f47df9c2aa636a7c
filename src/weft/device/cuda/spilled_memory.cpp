#include "weft/device/cuda/spilled_memory.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "weft/base/units.h"

namespace weft::device::cuda {
namespace {

constexpr int kNodeOfHost = 134;  // device attribute

class SpilledMemory final : public Memory {
 public:
  SpilledMemory(std::shared_ptr<Gpu> gpu, std::size_t bytes) : gpu_(std::move(gpu)), bytes_(bytes) {}
  ~SpilledMemory() override {
    if (!gpu_->enter_to_release()) return;
    const Driver& driver = gpu_->driver();
    for (const Part& part : parts_) {
      driver.unmap(at_ + part.from, part.bytes);
      driver.release_memory(part.memory);
    }
    if (at_ != 0) driver.unreserve(at_, bytes_);
  }

  Address address() const override { return Address(reinterpret_cast<std::byte*>(at_)); }

  Status reserve() {
    return check(gpu_->driver().reserve(&at_, bytes_, 0, 0, 0),
                 fmt::format("reserve {} bytes of address space", bytes_));
  }

  // Maps memory of this location to [from, to).
  Status lay(const MemoryPlace& place, std::size_t from, std::size_t to) {
    if (from >= to) return {};
    const Driver& driver = gpu_->driver();
    const MemoryKind kind{.place = place};
    Part part{.from = from, .bytes = to - from};
    const std::string what =
        fmt::format("allocate {} of {} memory", print_bytes(static_cast<double>(part.bytes)),
                    place.kind == kOnHost ? "host" : "GPU");
    WEFT_TRY_STATUS(check(driver.create_memory(&part.memory, part.bytes, &kind, 0), what));
    if (const Code code = driver.map(at_ + from, part.bytes, 0, part.memory, 0); code != 0) {
      driver.release_memory(part.memory);
      return check(code, what);
    }
    parts_.push_back(part);
    const MemoryAccess access{.place = {kOnDevice, gpu_->device()}};
    return check(driver.set_access(at_ + from, part.bytes, &access, 1), what);
  }

  Status clear() {
    WEFT_TRY_STATUS(check(gpu_->driver().fill(at_, 0, bytes_, nullptr), "clear memory"));
    return check(gpu_->driver().synchronize(nullptr), "clear memory");
  }

 private:
  struct Part {
    unsigned long long memory = 0;
    std::size_t from = 0, bytes = 0;
  };
  const std::shared_ptr<Gpu> gpu_;
  const std::size_t bytes_;
  DevicePointer at_ = 0;
  std::vector<Part> parts_;
};

}  // namespace

Result<std::unique_ptr<Memory>> allocate_spilled(std::shared_ptr<Gpu> gpu, std::int64_t bytes,
                                                 std::int64_t from, std::int64_t to) {
  const Driver& driver = gpu->driver();
  int node = 0;
  if (driver.device_attribute(&node, kNodeOfHost, gpu->device()) != 0 || node < 0) node = 0;
  const MemoryPlace here{kOnDevice, gpu->device()}, there{kOnHost, node};
  std::size_t page = 1;
  for (const MemoryPlace& place : {here, there}) {
    const MemoryKind kind{.place = place};
    std::size_t least = 1;
    WEFT_TRY_STATUS(check(driver.granularity(&least, &kind, 0), "map host memory"));
    page = std::max(page, least);
  }
  const auto whole = [&](std::int64_t size) {
    return (static_cast<std::size_t>(size) + page - 1) / page * page;
  };
  const std::size_t all = whole(std::max<std::int64_t>(bytes, 1));
  const std::size_t first = static_cast<std::size_t>(from) / page * page, last = std::min(whole(to), all);
  auto memory = std::make_unique<SpilledMemory>(gpu, all);
  WEFT_TRY_STATUS(memory->reserve());
  WEFT_TRY_STATUS(memory->lay(there, 0, first));
  WEFT_TRY_STATUS(memory->lay(here, first, std::max(first, last)));
  WEFT_TRY_STATUS(memory->lay(there, std::max(first, last), all));
  WEFT_TRY_STATUS(memory->clear());
  return std::unique_ptr<Memory>(std::move(memory));
}

}  // namespace weft::device::cuda
