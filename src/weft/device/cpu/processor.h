// weft/device/cpu/processor.h -- the processor as a device.
//
//   make_stream({.on_caller = true})    the thread that launches does the work: a rank's workers, each a
//   stream make_stream({})                     a thread of its own does it, in order, while the caller goes
//   on
//
// Its memory is the host's, so copies are plain ones.
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
