#include "weft/communication/transport/shm/connection.h"

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <utility>

#include "weft/communication/transport/ring.h"

namespace weft::transport::shm {
namespace {

// The data of an empty span may be null, which memcpy does not allow.
void copy_bytes(std::byte* target, const std::byte* source, std::size_t bytes) {
  if (bytes > 0) std::memcpy(target, source, bytes);
}

class RingOutgoing final : public Outgoing {
 public:
  RingOutgoing(RingPlace place, const Wire& wire, const Capacity& capacity)
      : place_(std::move(place)),
        wire_(wire),
        ring_(place_.memory, capacity),
        one_copy_(place_.neighbours->memory().reaches(wire.to)) {}

  ~RingOutgoing() override {
    if (posted_ != nullptr) abandon();
  }

  void set_label(std::uint64_t label) override { label_ = label; }

  std::byte* room(std::size_t bytes) override {
    WEFT_CHECK(bytes <= ring_.slot_bytes() && posted_ == nullptr);
    next_ = ring_.next();
    if (next_ == nullptr) return nullptr;
    next_->bytes = bytes;
    return next_->data();
  }

  void send() override {
    WEFT_CHECK(next_ != nullptr);
    publish(*std::exchange(next_, nullptr), SlotState::stored);
  }

  bool send_from(std::span<const std::byte> bytes) override {
    if (posted_ != nullptr) return settle(bytes);
    WEFT_CHECK(bytes.size() <= ring_.slot_bytes());
    Slot* const slot = ring_.next();
    if (slot == nullptr) return false;
    slot->bytes = bytes.size();
    if (one_copy_ && place_.neighbours->fetches(bytes.size())) {
      slot->address = reinterpret_cast<std::uintptr_t>(bytes.data());
      posted_ = slot;
      recalls_before_ = place_.neighbours->recalls();
      place_.neighbours->add_post();
      publish(*slot, SlotState::posted);
      return false;
    }
    copy_bytes(slot->data(), bytes.data(), bytes.size());
    publish(*slot, SlotState::stored);
    return true;
  }

 private:
  void publish(Slot& slot, SlotState state) {
    slot.label = label_;
    slot.state.store(state, std::memory_order_relaxed);
    ring_.publish();
    place_.neighbours->tell(wire_.to);
  }

  // Whether the caller's memory may be reused.
  bool settle(std::span<const std::byte> bytes) {
    SlotState state = posted_->state.load(std::memory_order_acquire);
    if (state == SlotState::posted && recalls_before_ != place_.neighbours->recalls() &&
        posted_->state.compare_exchange_strong(state, SlotState::filling, std::memory_order_acq_rel))
      return fill(bytes);
    if (state == SlotState::refused) {
      one_copy_ = false;
      return fill(bytes);
    }
    if (state != SlotState::taken) return false;
    end_post();
    return true;
  }

  bool fill(std::span<const std::byte> bytes) {
    copy_bytes(posted_->data(), bytes.data(), bytes.size());
    posted_->state.store(SlotState::stored, std::memory_order_release);
    end_post();
    place_.neighbours->tell(wire_.to);
    return true;
  }

  // The connection is destroyed before its last message was fetched: the receiver must no longer
  // read the caller's memory.
  void abandon() {
    constexpr std::chrono::seconds kLongestFetch{1};  // a receiver that fails meanwhile never finishes it
    const auto begin = std::chrono::steady_clock::now();
    SlotState state = SlotState::posted;
    if (!posted_->state.compare_exchange_strong(state, SlotState::lost, std::memory_order_acq_rel))
      while (posted_->state.load(std::memory_order_acquire) == SlotState::taking &&
             std::chrono::steady_clock::now() - begin < kLongestFetch)
        yield_core();
    end_post();
    place_.neighbours->tell(wire_.to);
  }

  void end_post() {
    posted_ = nullptr;
    place_.neighbours->end_post();
  }

  RingPlace place_;
  Wire wire_;
  RingWriter ring_;
  std::uint64_t label_ = 0;
  Slot* next_ = nullptr;    // returned by room()
  Slot* posted_ = nullptr;  // waits to be fetched
  std::uint32_t recalls_before_ = 0;
  bool one_copy_;
};

class RingIncoming final : public Incoming {
 public:
  RingIncoming(RingPlace place, const Wire& wire, const Capacity& capacity)
      : place_(std::move(place)), wire_(wire), ring_(place_.memory, capacity) {}

  void set_label(std::uint64_t label) override { label_ = label; }

  const std::byte* front(std::size_t bytes) override {
    Slot* const slot = expect(bytes);
    if (slot == nullptr) return nullptr;
    if (!fetched_) {
      const SlotState state = slot->state.load(std::memory_order_acquire);
      if (state == SlotState::stored) return slot->data();
      if (!fetch(*slot, state, {slot->data(), bytes})) return nullptr;
      place_.neighbours->tell(wire_.from);
      fetched_ = true;
    }
    return slot->data();
  }

  void pop() override {
    fetched_ = false;
    ring_.release();
    place_.neighbours->tell(wire_.from);
  }

  bool receive_into(std::span<std::byte> target) override {
    Slot* const slot = expect(target.size());
    if (slot == nullptr) return false;
    const SlotState state = fetched_ ? SlotState::stored : slot->state.load(std::memory_order_acquire);
    if (state == SlotState::stored)
      copy_bytes(target.data(), slot->data(), target.size());
    else if (!fetch(*slot, state, target))
      return false;
    pop();
    return true;
  }

 private:
  // The next message, if it has arrived and is as expected.
  Slot* expect(std::size_t bytes) {
    if (broken_) return nullptr;
    Slot* const slot = ring_.front();
    if (slot == nullptr || (slot->label == label_ && slot->bytes == bytes)) return slot;
    fail(WireFault::What::other_call,
         fmt::format(
             "rank {} sent {} bytes of call {:#018x} on channel {}, expected {} bytes of call {:#018x}",
             place_.neighbours->name_of(wire_.from), slot->bytes, slot->label, wire_.channel, bytes, label_));
    return nullptr;
  }

  bool fetch(Slot& slot, SlotState state, std::span<std::byte> target) {
    if (state == SlotState::lost)
      fail(WireFault::What::closed,
           fmt::format("rank {} stopped sending", place_.neighbours->name_of(wire_.from)));
    if (state != SlotState::posted) return false;
    if (!slot.state.compare_exchange_strong(state, SlotState::taking, std::memory_order_acq_rel))
      return false;
    const bool done = place_.neighbours->memory().read(wire_.from, slot.address, target);
    slot.state.store(done ? SlotState::taken : SlotState::refused, std::memory_order_release);
    if (!done) place_.neighbours->tell(wire_.from);
    return done;
  }

  void fail(WireFault::What what, std::string text) {
    broken_ = true;
    Neighbours& neighbours = *place_.neighbours;
    const Wire named{neighbours.name_of(wire_.from), neighbours.name_of(wire_.to), wire_.channel};
    neighbours.report({.wire = named, .what = what, .text = std::move(text)});
  }

  RingPlace place_;
  Wire wire_;
  RingReader ring_;
  std::uint64_t label_ = 0;
  bool fetched_ = false;  // the front message was posted and is now in its slot
  bool broken_ = false;
};

}  // namespace

std::unique_ptr<Outgoing> make_outgoing(RingPlace place, const Wire& wire, const Capacity& capacity) {
  return std::make_unique<RingOutgoing>(std::move(place), wire, capacity);
}

std::unique_ptr<Incoming> make_incoming(RingPlace place, const Wire& wire, const Capacity& capacity) {
  return std::make_unique<RingIncoming>(std::move(place), wire, capacity);
}

}  // namespace weft::transport::shm
