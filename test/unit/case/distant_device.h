// test/unit/case/distant_device.h -- the CPU as a device whose memory the host cannot access.
//
// Its addresses are invalid on the host: dereferencing one crashes. Its streams queue all work, run
// it on threads of their own, and record it on request. Code that runs on this device can rely only
// on what a GPU guarantees. One unit of a device may be faulty.
#pragma once
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include "weft/device/cpu/kernel.h"
#include "weft/device/cpu/processor.h"
#include "weft/device/device.h"
#include "weft/device/recording.h"
#include "weft/program/tasks/items.h"

namespace weft::device {

struct DistantFault {
  enum class Kind : std::uint8_t {
    none,
    fails,      // the unit's kernel fails
    never_ends  // until the device is abandoned
  };
  Kind kind = Kind::none;
  std::size_t unit = 0;   // index in the program
  int good_launches = 0;  // of that unit, before the fault
};

class DistantDevice final : public Device {
 public:
  explicit DistantDevice(DistantFault fault = {}) : broken_(fault) {}

  std::string name() const override { return "distant"; }
  void abandon() override {
    Device::abandon();
    const std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }
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
    if (broken_.kind != DistantFault::Kind::none && &unit == &program.units.at(broken_.unit))
      kernel = std::make_unique<BrokenKernel>(std::move(kernel), *this);
    if (unit.cut != program::Cut::nothing) return kernel;
    return std::unique_ptr<Kernel>(std::make_unique<WholeKernel>(std::move(kernel), items_of(program, unit)));
  }

 private:
  // Beyond the address range of any current processor.
  static constexpr std::uintptr_t kAway = std::uintptr_t{1} << 60;
  static Address away(Address at) { return move(at, kAway); }
  static Address home(Address at) { return move(at, ~kAway + 1); }
  static Address move(Address at, std::uintptr_t by) {
    return Address(reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(at.raw()) + by));
  }

  struct BrokenKernel final : cpu::Kernel {
    BrokenKernel(std::unique_ptr<device::Kernel> kernel, DistantDevice& where)
        : inner(std::move(kernel)), device(where) {}
    std::int64_t scratch_bytes() const override { return inner->scratch_bytes(); }
    void run(const program::Task& task, std::byte* scratch) const override {
      if (device.broken_.good_launches-- > 0)
        return static_cast<const cpu::Kernel&>(*inner).run(task, scratch);
      if (device.broken_.kind == DistantFault::Kind::fails) throw std::runtime_error("a kernel trapped");
      std::unique_lock lock(device.mutex_);
      device.changed_.wait(lock, [&] { return device.released_; });
    }

    const std::unique_ptr<device::Kernel> inner;
    DistantDevice& device;
  };

  // A unit that is not split into tasks runs as a whole, as on devices that split it themselves.
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

  struct DistantRecording final : Recording {
    std::vector<std::function<void()>> calls;
  };

  class DistantStream final : public RecordingStream {
   public:
    explicit DistantStream(std::unique_ptr<Stream> stream) : stream_(std::move(stream)) {}
    bool on_caller() const override { return false; }
    void launch(const Kernel& kernel, const program::Task& task) override {
      give([this, &kernel, &task] {
        const auto* const whole = dynamic_cast<const WholeKernel*>(&kernel);
        if (whole == nullptr) return stream_->launch(kernel, task);
        stream_->launch(*whole->inner, whole->all);
      });
    }
    void copy_in(Address to, std::span<const std::byte> from) override {
      give([this, to, from] { stream_->copy_in(home(to), from); });
    }
    void copy_out(std::span<std::byte> to, Address from) override {
      give([this, to, from] { stream_->copy_out(to, home(from)); });
    }
    void copy(Address to, Address from, std::int64_t bytes) override {
      give([this, to, from, bytes] { stream_->copy(home(to), home(from), bytes); });
    }
    void record(Event& event) override {
      give([this, &event] { stream_->record(event); });
    }
    void wait(const Event& event) override {
      give([this, &event] { stream_->wait(event); });
    }
    void tell(std::uint64_t& word, std::uint64_t number) override {
      give([this, &word, number] { stream_->tell(word, number); });
    }
    Status synchronize() override { return stream_->synchronize(); }

    void start_recording() override { recording_ = std::make_unique<DistantRecording>(); }
    Result<std::unique_ptr<Recording>> end_recording() override {
      return std::unique_ptr<Recording>(std::move(recording_));
    }
    void mark(Event& event) override { record(event); }
    void launch(const Recording& recording) override {
      for (const auto& call : static_cast<const DistantRecording&>(recording).calls) call();
    }

   private:
    void give(std::function<void()> call) {
      if (recording_ != nullptr) return recording_->calls.push_back(std::move(call));
      call();
    }
    std::unique_ptr<Stream> stream_;
    std::unique_ptr<DistantRecording> recording_;
  };

  DistantFault broken_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool released_ = false;
  cpu::Processor processor_;
};

}  // namespace weft::device
