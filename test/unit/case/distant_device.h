// test/unit/case/distant_device.h -- the processor, dressed as a device that the host cannot look into.
//
// Its addresses are no processor's: who follows one without asking dies. Its streams do their work later, on
// threads of their own, whatever they are asked for. What runs here assumes nothing that a GPU does not keep.
#pragma once
#include <memory>
#include <utility>

#include "weft/device/cpu/processor.h"
#include "weft/device/device.h"
#include "weft/program/items.h"

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
    WEFT_TRY(kernel, processor_.make_kernel(program, unit, home(memory)));
    if (unit.cut != program::Cut::nothing) return kernel;
    return std::unique_ptr<Kernel>(std::make_unique<WholeKernel>(std::move(kernel), items_of(program, unit)));
  }

 private:
  // Beyond what any processor of today has for addresses.
  static constexpr std::uintptr_t kAway = std::uintptr_t{1} << 60;
  static Address away(Address at) { return move(at, kAway); }
  static Address home(Address at) { return move(at, ~kAway + 1); }
  static Address move(Address at, std::uintptr_t by) {
    return Address(reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(at.raw()) + by));
  }

  // A unit that nobody has cut is done whole, as devices do that cut it themselves.
  struct WholeKernel final : Kernel {
    WholeKernel(std::unique_ptr<Kernel> kernel, std::int64_t items)
        : inner(std::move(kernel)), all{.begin = 0, .end = items} {}
    std::int64_t scratch_bytes() const override { return inner->scratch_bytes(); }
    bool is_reference() const override { return inner->is_reference(); }

    const std::unique_ptr<Kernel> inner;
    const program::Task all;
  };
  static std::int64_t items_of(const program::Program& program, const program::Unit& unit) {
    if (const auto* const loop = std::get_if<program::RowLoop>(&unit.kernel))
      return loop->rows() * loop->blocks();
    if (const auto* const call = std::get_if<program::OperatorCall>(&unit.kernel))
      return program::item_count(program.graph->view(call->node));
    return unit.items;
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
    void launch(const Kernel& kernel, const program::Task& task) override {
      const auto* const whole = dynamic_cast<const WholeKernel*>(&kernel);
      if (whole == nullptr) return stream_->launch(kernel, task);
      stream_->launch(*whole->inner, whole->all);
    }
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
