// weft/runtime/exec/device_memory.h -- a rank's memory on its device, and the host's ways in and out of it.
//
//   the host reaches it (a processor)     views are the memory itself; exchanges run in it
//   the host does not                     copies through page-locked memory; exchanges are staged there:
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
  // Where `owner` has better memory for exchanges and the device can compute in it, in that.
  static Result<std::unique_ptr<DeviceMemory>> take(std::shared_ptr<device::Device> device,
                                                    std::int64_t bytes, Exchanger* owner);
  // The same for a program of which some lies in a file in that folder.
  static Result<std::unique_ptr<DeviceMemory>> take_spilling(std::shared_ptr<device::Device> device,
                                                             const program::Program& program,
                                                             const std::string& folder);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  device::Address address() const { return address_; }

  // From now on the host writes what belongs to a place where input() says, and send_inputs() brings it there.
  Status make_input(device::Address at, std::int64_t bytes);
  std::span<std::byte> input(device::Address at, std::int64_t bytes) const;
  void send_inputs(device::Stream& stream) const;

  // Room beside the memory for one more batch, so that it is copied while a step still reads the one before:
  //   copying   [to the room, batch 1]......[wait][to the room, batch 2]
  //   step      [from the room, batch 1][event][step 1  ...............][from the room, batch 2]
  // False where the host reaches the memory, or the device has no more.
  bool make_room_ahead();
  bool has_room_ahead() const { return ahead_ != nullptr; }
  std::int64_t bytes_ahead() const;  // that it takes
  Status send_ahead();               // what the host wrote; when it returns, the host may write again
  void take_ahead(device::Stream& stream);

  // By the thread that calls; nothing else may run on the memory meanwhile.
  Status write(device::Address to, std::span<const std::byte> bytes);
  Status write(device::Address to, std::int64_t bytes, const std::function<void(std::span<std::byte>)>& make);
  Result<HostBytes> read(device::Address from, std::int64_t bytes) const;
  // What the device has itself, inputs too as they were sent last.
  Status copy_in(device::Address to, std::span<const std::byte> from);
  Status copy_out(std::span<std::byte> to, device::Address from) const;

  // Whole pages of it go back to the machine, where it is memory of the host's and of this rank alone.
  void forget(device::Address from, std::int64_t bytes);

  // Hands the operand and the result to `move` in memory that the host reaches. One thread a stream of the
  // program. REQUIRES: what the operand waits for is done.
  using Move = std::function<Status(std::byte* operand, std::byte* result)>;
  Status exchange(const program::Exchange& exchange, device::Address operand, device::Address result,
                  std::size_t stream, const Move& move);

 private:
  struct Input {
    device::Address at;
    std::unique_ptr<device::HostMemory> memory;
    std::span<std::byte> bytes;
    device::Address ahead;  // of the room ahead; none: there is none
  };

  explicit DeviceMemory(std::shared_ptr<device::Device> device) : device_(std::move(device)) {}
  // Has this memory, and a stream to copy by where the host does not reach it.
  Status own(Result<std::unique_ptr<device::Memory>> memory);
  // What the host uses for a place: an input's own memory, or the device's; null where there is neither.
  std::byte* host(device::Address at) const;

  const std::shared_ptr<device::Device> device_;
  std::unique_ptr<device::Memory> own_;
  Exchanger* owner_ = nullptr;  // whose the memory is; none: own_
  device::Address address_;
  // Where the host does not reach the memory; else none.
  std::unique_ptr<device::Stream> copies_;
  std::vector<Input> inputs_;
  // The room ahead, who copies there, when a step has taken what was there last, and when the next is there.
  std::unique_ptr<device::Memory> ahead_;
  std::unique_ptr<device::Event> taken_, sent_;
  std::unique_ptr<device::Stream> sending_;
  // Page-locked memory of exchanges, a pair for each stream of the program that ever exchanged.
  struct Staging {
    std::unique_ptr<device::HostMemory> operand, result;
  };
  std::mutex staging_mutex_;  // of the map and of `copies_`, which the streams share
  std::map<std::size_t, Staging> staging_;
};

}  // namespace weft::exec
