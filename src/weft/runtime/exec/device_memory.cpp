#include "weft/runtime/exec/device_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "weft/base/check.h"
#include "weft/runtime/exec/spill_file.h"

namespace weft::exec {
namespace {

std::int64_t bytes_of(const program::Place& place) {
  return place.buffer.valid() ? place.elements() * plan::size_in_bytes(place.dtype) : 0;
}

// Rounds up to an alignment that is fast to copy from on any device.
std::int64_t aligned(std::int64_t bytes) {
  constexpr std::int64_t kLine = 256;
  return (bytes + kLine - 1) / kLine * kLine;
}

// Returns `bytes` bytes, reallocating if the memory is too small.
Result<std::span<std::byte>> room(device::Device& device, std::unique_ptr<device::HostMemory>& memory,
                                  std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  if (memory == nullptr || memory->bytes().size() < size) {
    WEFT_TRY(more, device.allocate_host(bytes));
    memory = std::move(more);
  }
  return memory->bytes().first(size);
}

}  // namespace

Result<std::unique_ptr<DeviceMemory>> DeviceMemory::take(std::shared_ptr<device::Device> device,
                                                         std::int64_t bytes, Exchanger* owner) {
  std::unique_ptr<DeviceMemory> memory(new DeviceMemory(std::move(device)));
  const std::int64_t wanted = std::max<std::int64_t>(bytes, 1);
  if (owner != nullptr && memory->device_->host_accessible())
    memory->address_ = device::Address(owner->allocate(static_cast<std::size_t>(wanted)));
  if (memory->address_)
    memory->owner_ = owner;
  else
    WEFT_TRY_STATUS(memory->own(memory->device_->allocate(wanted)));
  return memory;
}

Status DeviceMemory::own(Result<std::unique_ptr<device::Memory>> memory) {
  if (!memory.ok()) return memory.error();
  own_ = std::move(*memory);
  address_ = own_->address();
  if (device_->host_accessible()) return {};
  WEFT_TRY(copies, device_->make_stream({.computes = false}));
  copies_ = std::move(copies);
  return {};
}

Result<std::unique_ptr<DeviceMemory>> DeviceMemory::take_spilling(std::shared_ptr<device::Device> device,
                                                                  const program::Program& program,
                                                                  const std::string& folder) {
  if (!device->host_accessible()) {
    // Spills to host memory, not to a file.
    std::unique_ptr<DeviceMemory> there(new DeviceMemory(std::move(device)));
    WEFT_TRY_STATUS(there->own(there->device_->allocate_spilled(
        program.bytes(), program.spilled_bytes, program.persistent_bytes + program.work_bytes)));
    return there;
  }
  WEFT_TRY(memory, take(std::move(device), program.bytes(), nullptr));
  WEFT_TRY(file, SpillFile::make(folder, program.spilled_bytes + program.spilled_work_bytes));
  std::byte* const begin = memory->device_->host(memory->address_);
  WEFT_TRY_STATUS(file.lay_over(begin, program.spilled_bytes));
  WEFT_TRY_STATUS(
      file.lay_over(begin + program.persistent_bytes + program.work_bytes, program.spilled_work_bytes));
  return memory;
}

DeviceMemory::~DeviceMemory() {
  if (owner_ != nullptr) owner_->free(address_.raw());
}

std::byte* DeviceMemory::host(device::Address at) const {
  for (const Input& input : inputs_)
    if (input.at == at) return input.bytes.data();
  return device_->host(at);
}

Status DeviceMemory::make_input(device::Address at, std::int64_t bytes) {
  if (device_->host_accessible()) return {};
  WEFT_TRY(memory, device_->allocate_host(bytes));
  const std::span<std::byte> whole = memory->bytes().first(static_cast<std::size_t>(bytes));
  inputs_.push_back({at, std::move(memory), whole, {}});
  return {};
}

std::span<std::byte> DeviceMemory::input(device::Address at, std::int64_t bytes) const {
  std::byte* const here = host(at);
  WEFT_CHECK(here != nullptr, "no input of the rank");
  return {here, static_cast<std::size_t>(bytes)};
}

void DeviceMemory::send_inputs(device::Stream& stream) const {
  for (const Input& input : inputs_) stream.copy_in(input.at, input.bytes);
}

std::int64_t DeviceMemory::prefetch_bytes() const {
  std::int64_t bytes = 0;
  for (const Input& input : inputs_) bytes += aligned(static_cast<std::int64_t>(input.bytes.size()));
  return bytes;
}

bool DeviceMemory::make_prefetch_buffer() {
  if (inputs_.empty()) return false;
  auto stream = device_->make_stream({.computes = false});
  auto taken = device_->make_event();
  auto sent = device_->make_event();
  auto room = device_->allocate(prefetch_bytes());
  if (!stream.ok() || !taken.ok() || !sent.ok() || !room.ok()) return false;
  sending_ = std::move(*stream);
  taken_ = std::move(*taken);
  sent_ = std::move(*sent);
  ahead_ = std::move(*room);
  device::Address next = ahead_->address();
  for (Input& input : inputs_) {
    input.ahead = next;
    next = next + aligned(static_cast<std::int64_t>(input.bytes.size()));
  }
  return true;
}

Status DeviceMemory::send_prefetched() {
  sending_->wait(*taken_);
  for (const Input& input : inputs_) sending_->copy_in(input.ahead, input.bytes);
  sending_->record(*sent_);
  // Do not wait for a device that was abandoned.
  for (constexpr std::chrono::microseconds kBetweenLooks{50}; !sent_->is_done();
       std::this_thread::sleep_for(kBetweenLooks))
    if (device_->is_abandoned()) return device_->fault().heard();
  return sending_->synchronize();
}

void DeviceMemory::take_prefetched(device::Stream& stream) {
  for (const Input& input : inputs_)
    stream.copy(input.at, input.ahead, static_cast<std::int64_t>(input.bytes.size()));
  stream.record(*taken_);
}

Status DeviceMemory::write(device::Address to, std::span<const std::byte> bytes) {
  return write(to, static_cast<std::int64_t>(bytes.size()),
               [&](std::span<std::byte> room) { std::ranges::copy(bytes, room.begin()); });
}

Status DeviceMemory::write(device::Address to, std::int64_t bytes,
                           const std::function<void(std::span<std::byte>)>& make) {
  const auto size = static_cast<std::size_t>(bytes);
  if (std::byte* const here = host(to)) {
    make({here, size});
    return {};
  }
  std::vector<std::byte> made(size);
  make(made);
  return copy_in(to, made);
}

Result<HostBytes> DeviceMemory::read(device::Address from, std::int64_t bytes) const {
  const auto size = static_cast<std::size_t>(bytes);
  if (const std::byte* const here = host(from)) return HostBytes(std::span(here, size));
  std::vector<std::byte> copy(size);
  WEFT_TRY_STATUS(copy_out(copy, from));
  return HostBytes(std::move(copy));
}

Status DeviceMemory::copy_in(device::Address to, std::span<const std::byte> from) {
  if (from.empty()) return {};
  if (copies_ == nullptr) {
    std::memcpy(device_->host(to), from.data(), from.size());
    return {};
  }
  copies_->copy_in(to, from);
  return copies_->synchronize();
}

void DeviceMemory::forget(device::Address from, std::int64_t bytes) {
  if (own_ == nullptr || !device_->host_accessible() || bytes <= 0) return;
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGE_SIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(device_->host(from));
  const std::uintptr_t first = (begin + page - 1) / page * page,
                       last = (begin + static_cast<std::uintptr_t>(bytes)) / page * page;
  // Ignores failure: then the pages just stay allocated.
  if (first < last) (void)madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

Status DeviceMemory::copy_out(std::span<std::byte> to, device::Address from) const {
  if (to.empty()) return {};
  if (copies_ == nullptr) {
    std::memcpy(to.data(), device_->host(from), to.size());
    return {};
  }
  copies_->copy_out(to, from);
  return copies_->synchronize();
}

Status DeviceMemory::exchange(const program::Exchange& exchange, device::Address operand,
                              device::Address result, std::size_t stream, const Move& move) {
  if (device_->host_accessible()) return move(device_->host(operand), device_->host(result));
  std::span<std::byte> from, to;
  {
    const std::lock_guard lock(staging_mutex_);
    Staging& staging = staging_[stream];
    WEFT_TRY(from_room, room(*device_, staging.operand, bytes_of(exchange.operand)));
    WEFT_TRY(to_room, room(*device_, staging.result, bytes_of(exchange.result)));
    from = from_room;
    to = to_room;
    WEFT_TRY_STATUS(copy_out(from, operand));
  }
  WEFT_TRY_STATUS(move(from.empty() ? nullptr : from.data(), to.empty() ? nullptr : to.data()));
  const std::lock_guard lock(staging_mutex_);
  return copy_in(result, to);
}

}  // namespace weft::exec
