// test/unit/case/distant_device.h -- the processor, dressed as a device that the host cannot look into.
//
// Its addresses are no processor's: who follows one without asking dies. Its streams do their work later, on
// threads of their own, whatever they are asked for. What runs here assumes nothing that a GPU does not keep.
#pragma once
#include <memory>
#include <utility>

#include "weft/device/cpu/processor.h"
#include "weft/device/device.h"

namespace weft::device {

class DistantDevice final : public Device {
 public:
  std::string name() const override { return "distant"; }
  bool host_accessible() const override { return false; }
  std::int64_t available_memory() const override { return processor_.available_memory(); }

  Result<std::unique_ptr<Memory>> allocate(std::int64_t bytes) override {
    WEFT_TRY(memory, processor_.allocate(bytes));
    return std::unique_ptr<Memory>(std::make_unique<DistantMemory>(std::move(memory)));
  }
  Result<std::unique_ptr<HostMemory>> allocate_host(std::int64_t bytes) override {
    return processor_.allocate_host(bytes);
  }
  Result<std::unique_ptr<Stream>> make_stream(const StreamOptions& options) override {
    WEFT_TRY(stream, processor_.make_stream({.scratch_bytes = options.scratch_bytes}));
    return std::unique_ptr<Stream>(std::make_unique<DistantStream>(std::move(stream)));
  }
  Result<std::unique_ptr<Event>> make_event() override { return processor_.make_event(); }
  Result<std::unique_ptr<Kernel>> make_kernel(const program::Program& program, const program::Unit& unit,
                                              Address memory) override {
    return processor_.make_kernel(program, unit, home(memory));
  }

 private:
  // Beyond what any processor of today has for addresses.
  static constexpr std::uintptr_t kAway = std::uintptr_t{1} << 60;
  static Address away(Address at) { return move(at, kAway); }
  static Address home(Address at) { return move(at, ~kAway + 1); }
  static Address move(Address at, std::uintptr_t by) {
    return Address(reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(at.raw()) + by));
  }

  class DistantMemory final : public Memory {
   public:
    explicit DistantMemory(std::unique_ptr<Memory> memory) : memory_(std::move(memory)) {}
    Address address() const override { return away(memory_->address()); }

   private:
    std::unique_ptr<Memory> memory_;
  };

  class DistantStream final : public Stream {
   public:
    explicit DistantStream(std::unique_ptr<Stream> stream) : stream_(std::move(stream)) {}
    bool on_caller() const override { return false; }
    void launch(const Kernel& kernel, const program::Task& task) override { stream_->launch(kernel, task); }
    void copy_in(Address to, std::span<const std::byte> from) override { stream_->copy_in(home(to), from); }
    void copy_out(std::span<std::byte> to, Address from) override { stream_->copy_out(to, home(from)); }
    void copy(Address to, Address from, std::int64_t bytes) override {
      stream_->copy(home(to), home(from), bytes);
    }
    void record(Event& event) override { stream_->record(event); }
    void wait(const Event& event) override { stream_->wait(event); }
    Status synchronize() override { return stream_->synchronize(); }

   private:
    std::unique_ptr<Stream> stream_;
  };

  cpu::Processor processor_;
};

}  // namespace weft::device
