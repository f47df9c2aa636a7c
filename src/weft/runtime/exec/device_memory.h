// weft/runtime/exec/device_memory.h -- a rank's memory on its device, and transfers to and from the host.
//
//   host-accessible (a processor)         host views are the memory itself; exchanges run in it
//   not host-accessible                   copies through page-locked memory; exchanges are staged there:
//
//                                         operand ──copy out──▶ page-locked ──exchange──▶ ──copy in──▶ result
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/device/device.h"
#include "weft/runtime/exec/exchanger.h"
#include "weft/runtime/exec/host_bytes.h"

namespace weft::exec {

class DeviceMemory {
 public:
  // Allocates from `owner` if it has memory that is better for exchanges and the device can compute
  // in it.
  static Result<std::unique_ptr<DeviceMemory>> take(std::shared_ptr<device::Device> device,
                                                    std::int64_t bytes, Exchanger* owner);
  // The same for a program with spilled tensors, which are kept in a file in `folder`.
  static Result<std::unique_ptr<DeviceMemory>> take_spilling(std::shared_ptr<device::Device> device,
                                                             const program::Program& program,
                                                             const std::string& folder);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  device::Address address() const { return address_; }

  // Makes a place an input: the host writes it where input() points, and send_inputs() copies it to
  // the device.
  Status make_input(device::Address at, std::int64_t bytes);
  std::span<std::byte> input(device::Address at, std::int64_t bytes) const;
  void send_inputs(device::Stream& stream) const;

  // Double buffering: allocates space for one more batch, copied while a step still reads the
  // previous one.
  //   copying   [to the buffer, batch 1]......[wait][to the buffer, batch 2]
  //   step      [from the buffer, batch 1][event][step 1  ...........][from the buffer, batch 2]
  // Returns false if the memory is host-accessible, or if the device has no more memory.
  bool make_prefetch_buffer();
  bool has_prefetch_buffer() const { return ahead_ != nullptr; }
  std::int64_t prefetch_bytes() const;  // size of that buffer
  Status send_prefetched();             // sends the inputs; afterwards the host may overwrite them
  void take_prefetched(device::Stream& stream);

  // Synchronous, on the calling thread. Nothing else may use the memory meanwhile.
  Status write(device::Address to, std::span<const std::byte> bytes);
  Status write(device::Address to, std::int64_t bytes, const std::function<void(std::span<std::byte>)>& make);
  Result<HostBytes> read(device::Address from, std::int64_t bytes) const;
  // Access the device's memory itself; inputs have the values last sent.
  Status copy_in(device::Address to, std::span<const std::byte> from);
  Status copy_out(std::span<std::byte> to, device::Address from) const;

  // Returns whole pages to the system, if this is host memory owned by this rank.
  void forget(device::Address from, std::int64_t bytes);

  // Calls `move` with operand and result in host-accessible memory. At most one thread per stream
  // of the program. REQUIRES: the dependencies of the operand are done.
  using Move = std::function<Status(std::byte* operand, std::byte* result)>;
  Status exchange(const program::Exchange& exchange, device::Address operand, device::Address result,
                  std::size_t stream, const Move& move);

 private:
  struct Input {
    device::Address at;
    std::unique_ptr<device::HostMemory> memory;
    std::span<std::byte> bytes;
    device::Address ahead;  // in the second buffer; null: none
  };

  explicit DeviceMemory(std::shared_ptr<device::Device> device) : device_(std::move(device)) {}
  // Takes ownership of the memory; creates a copy stream if it is not host-accessible.
  Status own(Result<std::unique_ptr<device::Memory>> memory);
  // The host address of a place: its input buffer or the memory itself; null if there is neither.
  std::byte* host(device::Address at) const;

  const std::shared_ptr<device::Device> device_;
  std::unique_ptr<device::Memory> own_;
  Exchanger* owner_ = nullptr;  // owner of the memory; null: own_
  device::Address address_;
  // Null if the memory is host-accessible.
  std::unique_ptr<device::Stream> copies_;
  std::vector<Input> inputs_;
  // The second input buffer; events for its consumption and arrival; the stream that fills it.
  std::unique_ptr<device::Memory> ahead_;
  std::unique_ptr<device::Event> taken_, sent_;
  std::unique_ptr<device::Stream> sending_;
  // Page-locked buffers for exchanges: one pair per stream of the program that has exchanged so
  // far.
  struct Staging {
    std::unique_ptr<device::HostMemory> operand, result;
  };
  std::mutex staging_mutex_;  // guards the map and `copies_`, which streams share
  std::map<std::size_t, Staging> staging_;
};

}  // namespace weft::exec
