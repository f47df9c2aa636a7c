#include "weft/communication/transport/ring.h"

#include <fmt/format.h>

namespace weft::transport {
namespace {

constexpr std::size_t kRingLine = 64;
constexpr std::size_t kPage = 4096;
constexpr std::int32_t kMostRingSlots = 1 << 16;
constexpr std::int64_t kMostSlotBytes = std::int64_t{1} << 40;

static_assert(sizeof(Slot) <= Slot::kDataOffset && Slot::kDataOffset == kRingLine);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

std::size_t round_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

std::size_t slot_stride(const Capacity& capacity) {
  return kRingLine + round_up(static_cast<std::size_t>(capacity.slot_bytes), kRingLine);
}

std::atomic<std::uint64_t>* taken_in(std::byte* memory) {
  return reinterpret_cast<std::atomic<std::uint64_t>*>(memory);
}

// A spare line: adjacent-line prefetch must not couple the counter to the first slot.
constexpr std::size_t kFirstSlot = 2 * kRingLine;

}  // namespace

Result<std::size_t> ring_bytes(const Capacity& capacity) {
  if (capacity.slots < 1 || capacity.slots > kMostRingSlots)
    return user_error(fmt::format("a connection has 1 to {} slots: {}", kMostRingSlots, capacity.slots));
  if (capacity.slot_bytes < 1 || capacity.slot_bytes > kMostSlotBytes)
    return user_error(fmt::format("a slot has 1 to {} bytes: {}", kMostSlotBytes, capacity.slot_bytes));
  return round_up(kFirstSlot + static_cast<std::size_t>(capacity.slots) * slot_stride(capacity), kPage);
}

RingWriter::RingWriter(std::byte* memory, const Capacity& capacity)
    : taken_(taken_in(memory)),
      slots_(memory + kFirstSlot),
      stride_(slot_stride(capacity)),
      slot_bytes_(static_cast<std::size_t>(capacity.slot_bytes)),
      count_(static_cast<std::uint32_t>(capacity.slots)),
      free_until_(count_) {}

Slot* RingWriter::next() {
  if (sent_ == free_until_) {
    // Acquire: the reader has read the slot before we overwrite it.
    free_until_ = taken_->load(std::memory_order_acquire) + count_;
    if (sent_ == free_until_) return nullptr;
  }
  return reinterpret_cast<Slot*>(slots_ + index_ * stride_);
}

void RingWriter::publish() {
  auto* const slot = reinterpret_cast<Slot*>(slots_ + index_ * stride_);
  slot->number.store(++sent_, std::memory_order_release);
  if (++index_ == count_) index_ = 0;
}

RingReader::RingReader(std::byte* memory, const Capacity& capacity)
    : taken_(taken_in(memory)),
      slots_(memory + kFirstSlot),
      stride_(slot_stride(capacity)),
      slot_bytes_(static_cast<std::size_t>(capacity.slot_bytes)),
      count_(static_cast<std::uint32_t>(capacity.slots)) {}

Slot* RingReader::front() {
  auto* const slot = reinterpret_cast<Slot*>(slots_ + index_ * stride_);
  return slot->number.load(std::memory_order_acquire) == done_ + 1 ? slot : nullptr;
}

void RingReader::release() {
  taken_->store(++done_, std::memory_order_release);
  if (++index_ == count_) index_ = 0;
}

}  // namespace weft::transport
