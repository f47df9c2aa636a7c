// weft/device/cpu/processor.h -- the processor as a device.
//
//   make_stream({.on_caller = true})    the launching thread does the work: one stream per worker of a rank
//   make_stream({})                     a separate thread does it, in order, while the caller continues
//
// Its memory is host memory, so copies are plain memory copies.
#pragma once
#include "weft/device/device.h"

namespace weft::device::cpu {

class Processor final : public Device {
 public:
  Processor();

  std::string name() const override { return "cpu"; }
  bool host_accessible() const override { return true; }
  std::int64_t available_memory() const override;
  Result<std::unique_ptr<Memory>> allocate(std::int64_t bytes) override;
  Result<std::unique_ptr<HostMemory>> allocate_host(std::int64_t bytes) override;
  Result<std::unique_ptr<Stream>> make_stream(const StreamOptions& options) override;
  Result<std::unique_ptr<Event>> make_event() override;
  Result<std::unique_ptr<device::Kernel>> make_kernel(const program::Program& program,
                                                      const program::Unit& unit, Address memory) override;
};

}  // namespace weft::device::cpu
