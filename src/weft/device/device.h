// weft/device/device.h -- the interface to a compute device: the processor or an accelerator.
//
//   WEFT_TRY(device, open_device("cpu"));
//   WEFT_TRY(memory, device->allocate(program.bytes()));                     // zero until written
//   WEFT_TRY(kernel, device->make_kernel(program, unit, memory->address()));
//   WEFT_TRY(stream, device->make_stream({.scratch_bytes = kernel->scratch_bytes()}));
//   stream->copy_in(memory->address(), batch);
//   stream->launch(*kernel, task);
//   WEFT_TRY_STATUS(stream->synchronize());                                  // errors are reported here
//
//   stream a   [copy in][kernel 1][record e]                  a stream runs its work in order,
//   stream b   ....................[wait for e][kernel 2]     streams run concurrently
//
// Calls are asynchronous: the memory that they read and write must stay valid until the work is
// done. A stream on which something failed does no more work. It reports the error from
// synchronize(), and so does every event recorded on it since. Device memory may not be accessible
// from the host: see Address.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/program/tasks/program.h"

namespace weft::device {

// A location in a device's memory. Not a pointer: to read it, use Device::host() or copy it out.
class Address {
 public:
  Address() = default;
  explicit Address(std::byte* raw) : raw_(raw) {}

  std::byte* raw() const { return raw_; }  // for the device's own code
  explicit operator bool() const { return raw_ != nullptr; }
  friend Address operator+(Address from, std::int64_t bytes) { return Address(from.raw_ + bytes); }
  friend bool operator==(Address, Address) = default;

 private:
  std::byte* raw_ = nullptr;
};

// Offset in bytes of a place from the start of a program's memory.
inline std::int64_t offset_of(const program::Program& program, const program::Place& place) {
  return program.buffer(place.buffer).offset + place.offset * plan::size_in_bytes(place.dtype);
}

// Device memory, freed by the destructor.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual Address address() const = 0;
};

// Host memory with the fastest copies to and from the device: page-locked where that helps.
class HostMemory {
 public:
  virtual ~HostMemory() = default;
  virtual std::span<std::byte> bytes() const = 0;
};

// A unit of a program, ready to launch: compiled, with all addresses, strides and tables resolved.
// Tasks of one unit may run on several streams concurrently.
class Kernel {
 public:
  virtual ~Kernel() = default;

  // Bytes of the stream's scratch memory that a launch needs, aligned for any type.
  virtual std::int64_t scratch_bytes() const { return 0; }
  // True if the node runs its definition in ops/, element by element: slow, and it allocates.
  virtual bool is_reference() const { return false; }
};

// A point in a stream that others can wait for. Only the latest recording counts; an event that was
// never recorded is done.
class Event {
 public:
  virtual ~Event() = default;

  virtual bool is_done() const = 0;  // also true if the stream failed: wait() then returns at once
  virtual Status wait() = 0;         // until done; returns the stream's error if it failed earlier
  // Time from `earlier` to this event. REQUIRES: both were recorded and are done.
  virtual double seconds_since(const Event& earlier) const = 0;
};

class Stream {
 public:
  // Waits for all of its work.
  virtual ~Stream() = default;

  // True if each call does its work on the calling thread before it returns.
  virtual bool on_caller() const = 0;

  virtual void launch(const Kernel& kernel, const program::Task& task) = 0;
  virtual void copy_in(Address to, std::span<const std::byte> from) = 0;
  virtual void copy_out(std::span<std::byte> to, Address from) = 0;
  virtual void copy(Address to, Address from, std::int64_t bytes) = 0;  // no overlap

  virtual void record(Event& event) = 0;
  // Later work on this stream waits for the latest recording of `event` so far.
  virtual void wait(const Event& event) = 0;

  // Writes `number` to `word` when all earlier work is done. The host reads there how far the
  // stream has come, even if the stream fails. `word` is in memory from allocate_host().
  virtual void tell(std::uint64_t& word, std::uint64_t number) = 0;

  virtual Status synchronize() = 0;  // until all is done; returns the first error, on every later call too
};

struct StreamOptions {
  std::int64_t scratch_bytes = 0;  // the most that any kernel launched on it needs
  // Processor only: the launching thread does the work, so the caller's threads are the streams.
  // Other devices ignore it; Stream::on_caller() tells which.
  bool on_caller = false;
  // On devices that run several streams at once: high_priority has priority over pending work of other
  // streams; leaves_sms_free keeps resources free for urgent streams.
  bool high_priority = false, leaves_sms_free = false;
  bool computes = true;  // false: runs no program kernels, so their scratch memory is not allocated
};

// The error that made a device unusable: the first one reported.
class DeviceFault {
 public:
  // Returns the first error: `why`, or the one reported before it.
  Error say(Error why);
  Status heard() const;

 private:
  mutable std::mutex mutex_;
  std::optional<Error> first_;
};

// Streams, events, memory and kernels of a device are used with that device only and destroyed
// before it. All functions are thread-safe. A stream or an event is used by one thread at a time,
// except that several threads may wait for an event.
class Device {
 public:
  virtual ~Device() = default;

  virtual std::string name() const = 0;                 // "cpu", "cuda:0"
  virtual std::string model() const { return name(); }  // "NVIDIA H200"

  // Whether the host can read and write device memory directly.
  virtual bool host_accessible() const = 0;
  // Host pointer to a location in device memory; null if the host cannot access it.
  std::byte* host(Address at) const { return host_accessible() ? at.raw() : nullptr; }

  // Bytes that allocate() can still provide; 0 if unknown.
  virtual std::int64_t available_memory() const = 0;

  // Zero-initialized. Fails if there is not enough memory.
  virtual Result<std::unique_ptr<Memory>> allocate(std::int64_t bytes) = 0;
  // As allocate(), but all before `from` and all after `to` is in host memory, which kernels access
  // slowly. Pages that straddle a limit stay on the device.
  virtual Result<std::unique_ptr<Memory>> allocate_spilled(std::int64_t bytes, std::int64_t from,
                                                           std::int64_t to) {
    (void)from, (void)to;
    return allocate(bytes);
  }
  virtual Result<std::unique_ptr<HostMemory>> allocate_host(std::int64_t bytes) = 0;
  virtual Result<std::unique_ptr<Stream>> make_stream(const StreamOptions& options) = 0;
  virtual Result<std::unique_ptr<Event>> make_event() = 0;

  // Does the slow part of making all of the program's kernels in one go. Optional.
  virtual Status prepare(const program::Program& program) {
    (void)program;
    return {};
  }
  // For a rank whose program is at `memory`, with buffers at their offsets. The program must
  // outlive the kernel. Fails if the device cannot run the unit. REQUIRES: not an exchange, which
  // involves several ranks.
  virtual Result<std::unique_ptr<Kernel>> make_kernel(const program::Program& program,
                                                      const program::Unit& unit, Address memory) = 0;

  // Called when work on the device hangs. From then on its streams are not waited for and its
  // resources are not freed, since those calls would hang too. The rest of the process exits.
  virtual void abandon();
  bool is_abandoned() const { return abandoned_.load(std::memory_order_relaxed); }

  DeviceFault& fault() { return fault_; }
  // Held by a rank while its unit must be the only one running on the device.
  std::mutex& turn() { return turn_; }

 private:
  std::atomic<bool> abandoned_ = false;
  DeviceFault fault_;
  std::mutex turn_;
};

// Whether any device of this process was abandoned: its libraries would wait for it at process
// exit.
bool is_any_abandoned();

// "cpu" is the processor, "cuda:0" a GPU; "cuda:0 exact" computes products in f32, not in TF32.
// Fails if the machine has no such device.
Result<std::shared_ptr<Device>> open_device(std::string_view name);

}  // namespace weft::device
