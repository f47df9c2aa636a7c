// weft/device/device.h -- what computes: the processor or an accelerator, behind one interface.
//
//   WEFT_TRY(device, open_device("cpu"));
//   WEFT_TRY(memory, device->allocate(program.bytes()));                     // zero until written
//   WEFT_TRY(kernel, device->make_kernel(program, unit, memory->address()));
//   WEFT_TRY(stream, device->make_stream({.scratch_bytes = kernel->scratch_bytes()}));
//   stream->copy_in(memory->address(), batch);
//   stream->launch(*kernel, task);
//   WEFT_TRY_STATUS(stream->synchronize());                                  // what went wrong is said here
//
//   stream a   [copy in][kernel 1][record e]                  a stream does what it is given in that order,
//   stream b   ....................[wait for e][kernel 2]     streams run beside each other
//
// Work that a stream is given may be done after the call returns: what it reads and writes must stay until
// then. A stream on which something failed does no more work; it says the error when it is asked whether all
// is done, and so does every event recorded on it since. Device memory is not the host's: see Address.
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

// A place in a device's memory. No pointer: whoever wants to read there asks Device::host(), or copies.
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

// Bytes from the beginning of a program's memory to where a place begins.
inline std::int64_t offset_of(const program::Program& program, const program::Place& place) {
  return program.buffer(place.buffer).offset + place.offset * plan::size_in_bytes(place.dtype);
}

// Memory of a device, given back when this goes.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual Address address() const = 0;
};

// Memory of the host's that copies to and from the device are fastest with: page-locked where that helps.
class HostMemory {
 public:
  virtual ~HostMemory() = default;
  virtual std::span<std::byte> bytes() const = 0;
};

// A unit of a program, ready to be launched: compiled, with every address, stride and table found. Tasks of
// one unit may run on several streams at once.
class Kernel {
 public:
  virtual ~Kernel() = default;

  // What a launch wants of its stream's own memory, aligned as for any type.
  virtual std::int64_t scratch_bytes() const { return 0; }
  // True when the node is computed by its definition in ops/, element by element: slow, and it allocates.
  virtual bool is_reference() const { return false; }
};

// A point in a stream that others wait for. What counts is where it was recorded last; one that was never
// recorded is done.
class Event {
 public:
  virtual ~Event() = default;

  virtual bool is_done() const = 0;  // or the stream failed: wait() then returns at once
  virtual Status wait() = 0;         // until done; the error of the stream, where it failed before
  // How much later than another this was done. REQUIRES: both were recorded and are done.
  virtual double seconds_since(const Event& earlier) const = 0;
};

class Stream {
 public:
  // Waits until all it was given is done.
  virtual ~Stream() = default;

  // True when each call returns only when its work is done, by the thread that calls.
  virtual bool on_caller() const = 0;

  virtual void launch(const Kernel& kernel, const program::Task& task) = 0;
  virtual void copy_in(Address to, std::span<const std::byte> from) = 0;
  virtual void copy_out(std::span<std::byte> to, Address from) = 0;
  virtual void copy(Address to, Address from, std::int64_t bytes) = 0;  // no overlap

  virtual void record(Event& event) = 0;
  // What the stream is given from now on waits for where `event` was last recorded by now.
  virtual void wait(const Event& event) = 0;

  // A number that the host reads there when all that the stream was given before is done: how far it has come, which
  // stays readable where it fails. `word` is of allocate_host()'s memory.
  virtual void tell(std::uint64_t& word, std::uint64_t number) = 0;

  virtual Status synchronize() = 0;  // until all is done; the first error, from then on every time
};

struct StreamOptions {
  std::int64_t scratch_bytes = 0;  // the most that a kernel launched on it wants
  // Whoever launches is to do the work, where the device is the processor: the caller's threads are its
  // streams. Other devices pay no heed: Stream::on_caller() tells.
  bool on_caller = false;
  // Where a device does several things at once: it goes before what other streams have waiting; it leaves room for
  // those that are urgent.
  bool is_urgent = false, leaves_room = false;
  bool computes = true;  // false: no kernel of a program is launched on it, and what those want is not made
};

// What made a device of no use, said by whoever found out first.
class DeviceFault {
 public:
  // What was said first: this, or what came before.
  Error say(Error why);
  Status heard() const;

 private:
  mutable std::mutex mutex_;
  std::optional<Error> first_;
};

// Streams, events, memory and kernels of a device are used with that device alone, and go before it does.
// All functions may be called by several threads; a stream or an event is used by one at a time, waiting
// for an event aside.
class Device {
 public:
  virtual ~Device() = default;

  virtual std::string name() const = 0;                 // "cpu", "cuda:0"
  virtual std::string model() const { return name(); }  // "NVIDIA H200"

  // Whether the host reads and writes its memory as its own.
  virtual bool host_accessible() const = 0;
  // Where the host finds a place of its memory; null where it cannot.
  std::byte* host(Address at) const { return host_accessible() ? at.raw() : nullptr; }

  // Bytes that allocate() may be asked for; 0 when nobody knows.
  virtual std::int64_t available_memory() const = 0;

  // Zero until written. Fails when there is not so much.
  virtual Result<std::unique_ptr<Memory>> allocate(std::int64_t bytes) = 0;
  // The same where some of it lies in the host's memory, which kernels then reach slowly: all before `from` and all
  // after `to`, but for what they share a page with.
  virtual Result<std::unique_ptr<Memory>> allocate_spilled(std::int64_t bytes, std::int64_t from,
                                                           std::int64_t to) {
    (void)from, (void)to;
    return allocate(bytes);
  }
  virtual Result<std::unique_ptr<HostMemory>> allocate_host(std::int64_t bytes) = 0;
  virtual Result<std::unique_ptr<Stream>> make_stream(const StreamOptions& options) = 0;
  virtual Result<std::unique_ptr<Event>> make_event() = 0;

  // What making the program's kernels takes long for, done at once; they may be made without it.
  virtual Status prepare(const program::Program& program) {
    (void)program;
    return {};
  }
  // For a rank whose program lies at `memory`, buffers at their offsets. The program must outlive the kernel.
  // Fails where the device cannot run the unit. REQUIRES: not an exchange, which is no rank's alone.
  virtual Result<std::unique_ptr<Kernel>> make_kernel(const program::Program& program,
                                                      const program::Unit& unit, Address memory) = 0;

  // Something that it was given does not end. From now on nothing of its streams is waited for and nothing is given
  // back to it, as that would not return either: whoever is left of the process ends.
  virtual void abandon();
  bool is_abandoned() const { return abandoned_.load(std::memory_order_relaxed); }

  DeviceFault& fault() { return fault_; }
  // Held by a rank that has it run one unit alone.
  std::mutex& turn() { return turn_; }

 private:
  std::atomic<bool> abandoned_ = false;
  DeviceFault fault_;
  std::mutex turn_;
};

// Whether any device of this process was abandoned: its libraries would wait for it at the end of the process.
bool is_any_abandoned();

// "cpu", the processor; "cuda:0", a GPU; "cuda:0 exact": its products in f32 and not in TF32. Fails when there is no
// such device here.
Result<std::shared_ptr<Device>> open_device(std::string_view name);

}  // namespace weft::device
