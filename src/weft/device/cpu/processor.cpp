#include "weft/device/cpu/processor.h"

#include <utility>

#include "weft/base/check.h"
#include "weft/base/machine.h"
#include "weft/device/cpu/blas.h"
#include "weft/device/cpu/kernel.h"
#include "weft/device/cpu/pages.h"
#include "weft/device/cpu/stream.h"

namespace weft::device::cpu {
namespace {

class CpuMemory final : public Memory, public HostMemory {
 public:
  explicit CpuMemory(Pages pages) : pages_(std::move(pages)) {}
  Address address() const override { return Address(pages_.bytes().data()); }
  std::span<std::byte> bytes() const override { return pages_.bytes(); }

 private:
  const Pages pages_;
};

}  // namespace

// The launching threads provide the parallelism; threads started by BLAS would compete with them.
Processor::Processor() { use_one_blas_thread(); }

std::int64_t Processor::available_memory() const { return weft::available_memory(); }

Result<std::unique_ptr<Memory>> Processor::allocate(std::int64_t bytes) {
  WEFT_TRY(pages, Pages::take(bytes));
  return std::unique_ptr<Memory>(std::make_unique<CpuMemory>(std::move(pages)));
}

Result<std::unique_ptr<HostMemory>> Processor::allocate_host(std::int64_t bytes) {
  WEFT_TRY(pages, Pages::take(bytes));
  return std::unique_ptr<HostMemory>(std::make_unique<CpuMemory>(std::move(pages)));
}

Result<std::unique_ptr<Stream>> Processor::make_stream(const StreamOptions& options) {
  return options.on_caller ? make_caller_stream(options.scratch_bytes)
                           : make_thread_stream(options.scratch_bytes);
}

Result<std::unique_ptr<Event>> Processor::make_event() {
  return std::unique_ptr<Event>(std::make_unique<CpuEvent>());
}

Result<std::unique_ptr<device::Kernel>> Processor::make_kernel(const program::Program& program,
                                                               const program::Unit& unit, Address memory) {
  std::unique_ptr<device::Kernel> kernel = cpu::make_kernel(program, unit, memory.raw());
  WEFT_CHECK(kernel != nullptr, "an exchange is no kernel");
  return kernel;
}

}  // namespace weft::device::cpu
