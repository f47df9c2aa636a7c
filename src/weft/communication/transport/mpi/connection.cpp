#include "weft/communication/transport/mpi/connection.h"

#include <cstring>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "weft/base/crc32c.h"

namespace weft::transport::mpi {
namespace {

// Precedes every payload.
struct Header {
  std::uint64_t label = 0;
  std::uint64_t number = 0;  // message number in its connection, from 0
  std::uint32_t bytes = 0;
  std::uint32_t checksum = 0;  // of the payload; 0 within a machine
};
static_assert(sizeof(Header) == 24);

struct Slot {
  std::unique_ptr<std::byte[]> memory;  // header and payload; not touched before first use
  WeftMpiRequest request{};
  bool pending = false;  // a request is in flight

  std::byte* payload() const { return memory.get() + sizeof(Header); }
};

// The slots of one end of a connection, used as a ring.
class Circle {
 public:
  explicit Circle(const Capacity& capacity)
      : slot_bytes_(static_cast<std::size_t>(capacity.slot_bytes)),
        slots_(static_cast<std::size_t>(capacity.slots)) {
    for (Slot& slot : slots_) slot.memory = std::make_unique_for_overwrite<std::byte[]>(memory_bytes());
  }

  std::size_t slot_bytes() const { return slot_bytes_; }
  std::size_t memory_bytes() const { return sizeof(Header) + slot_bytes_; }
  std::uint64_t number() const { return number_; }  // messages so far
  Slot& current() { return slots_[number_ % slots_.size()]; }
  void advance() { ++number_; }
  std::vector<Slot>& all() { return slots_; }

 private:
  std::size_t slot_bytes_;
  std::vector<Slot> slots_;
  std::uint64_t number_ = 0;
};

void report(Traffic& traffic, const Wire& wire, WireFault::What what, std::string text) {
  if (!traffic.fault) traffic.fault = WireFault{wire, what, std::move(text)};
  traffic.signal.fetch_add(1, std::memory_order_release);
}

class MpiOutgoing final : public Outgoing, public Watched {
 public:
  MpiOutgoing(std::shared_ptr<Traffic> traffic, const WireEnd& end, const Capacity& capacity)
      : Watched(std::move(traffic)), end_(end), circle_(capacity) {
    const auto lock = traffic_->library->lock();
    enlist();
  }

  ~MpiOutgoing() override {
    const auto lock = traffic_->library->lock();
    retire();
    for (Slot& slot : circle_.all()) {
      if (slot.pending) traffic_->library->outlive(slot.request, std::move(slot.memory));
    }
  }

  void set_label(std::uint64_t label) override { label_ = label; }

  std::byte* room(std::size_t bytes) override {
    WEFT_CHECK(bytes <= circle_.slot_bytes());
    const auto lock = traffic_->library->lock();
    awaited_ = !ready();
    if (awaited_ || broken_) return nullptr;
    bytes_ = bytes;
    return circle_.current().payload();
  }

  void send() override {
    Slot& slot = circle_.current();
    const Header header{label_, circle_.number(), static_cast<std::uint32_t>(bytes_),
                        end_.checked ? crc32c({slot.payload(), bytes_}) : 0};
    std::memcpy(slot.memory.get(), &header, sizeof header);
    const auto lock = traffic_->library->lock();
    const std::string why =
        traffic_->library->send(slot.memory.get(), sizeof header + bytes_, end_.peer, end_.tag, slot.request);
    if (why.empty()) {
      slot.pending = true;
      circle_.advance();
    } else {
      fail(why);
    }
  }

  bool send_from(std::span<const std::byte> bytes) override {
    std::byte* place = room(bytes.size());
    if (place == nullptr) return false;
    if (!bytes.empty()) std::memcpy(place, bytes.data(), bytes.size());
    send();
    return true;
  }

 private:
  bool ready() override {
    Slot& slot = circle_.current();
    if (!slot.pending || broken_) return true;
    const Library::Outcome outcome = traffic_->library->test(slot.request);
    slot.pending = !outcome.done;
    if (!outcome.why.empty()) fail(outcome.why);
    return outcome.done;
  }

  void fail(const std::string& why) {
    broken_ = true;
    report(*traffic_, end_.wire, WireFault::What::closed,
           fmt::format("{} cannot send to rank {}: {}", traffic_->library->name(), end_.wire.to, why));
  }

  const WireEnd end_;
  Circle circle_;
  std::uint64_t label_ = 0;
  std::size_t bytes_ = 0;  // requested from room()
  bool broken_ = false;
};

class MpiIncoming final : public Incoming, public Watched {
 public:
  MpiIncoming(std::shared_ptr<Traffic> traffic, const WireEnd& end, const Capacity& capacity)
      : Watched(std::move(traffic)), end_(end), circle_(capacity) {
    const auto lock = traffic_->library->lock();
    for (Slot& slot : circle_.all()) post(slot);
    enlist();
  }

  ~MpiIncoming() override {
    const auto lock = traffic_->library->lock();
    retire();
    for (Slot& slot : circle_.all()) {
      if (slot.pending) traffic_->library->cancel(slot.request);
    }
  }

  void set_label(std::uint64_t label) override { label_ = label; }

  const std::byte* front(std::size_t bytes) override {
    const auto lock = traffic_->library->lock();
    awaited_ = !ready();
    if (awaited_ || broken_ || !expected(bytes)) return nullptr;
    return circle_.current().payload();
  }

  void pop() override {
    const auto lock = traffic_->library->lock();
    post(circle_.current());
    circle_.advance();
  }

  bool receive_into(std::span<std::byte> target) override {
    const std::byte* message = front(target.size());
    if (message == nullptr) return false;
    if (!target.empty()) std::memcpy(target.data(), message, target.size());
    pop();
    return true;
  }

 private:
  void post(Slot& slot) {
    const std::string why = traffic_->library->receive(slot.memory.get(), circle_.memory_bytes(), end_.peer,
                                                       end_.tag, slot.request);
    slot.pending = why.empty();
    if (!why.empty()) lost(why);
  }

  bool ready() override {
    Slot& slot = circle_.current();
    if (!slot.pending || broken_) return true;
    const Library::Outcome outcome = traffic_->library->test(slot.request);
    slot.pending = !outcome.done;
    if (!outcome.why.empty()) {
      lost(outcome.why);
    } else if (outcome.done) {
      inspect(outcome.bytes);
    }
    return outcome.done;
  }

  // Checks the properties that every message must have, whatever the receiver expects.
  void inspect(std::size_t bytes) {
    const Slot& slot = circle_.current();
    std::memcpy(&header_, slot.memory.get(), sizeof header_);
    if (bytes < sizeof header_ || bytes - sizeof header_ != header_.bytes ||
        header_.number != circle_.number()) {
      fault(WireFault::What::damaged,
            fmt::format("a message of rank {} is corrupted: {} bytes received as number {}", end_.wire.from,
                        bytes, circle_.number()));
      return;
    }
    if (!end_.checked) return;
    const std::uint32_t found = crc32c({slot.payload(), header_.bytes});
    if (found != header_.checksum) {
      fault(WireFault::What::damaged,
            fmt::format("a message of rank {} is corrupted: checksum {:#x}, expected {:#x}", end_.wire.from,
                        found, header_.checksum));
    }
  }

  bool expected(std::size_t bytes) {
    if (header_.label == label_ && header_.bytes == bytes) return true;
    fault(WireFault::What::other_call,
          fmt::format("rank {} sent {} bytes of call {:#x}, where {} bytes of call {:#x} were expected",
                      end_.wire.from, header_.bytes, header_.label, bytes, label_));
    return false;
  }

  void lost(const std::string& why) {
    fault(WireFault::What::closed,
          fmt::format("{} cannot receive from rank {}: {}", traffic_->library->name(), end_.wire.from, why));
  }

  void fault(WireFault::What what, std::string text) {
    broken_ = true;
    report(*traffic_, end_.wire, what, std::move(text));
  }

  const WireEnd end_;
  Circle circle_;
  Header header_;  // of the current message
  std::uint64_t label_ = 0;
  bool broken_ = false;
};

}  // namespace

bool Watched::look() {
  if (!awaited_ || !ready()) return false;
  awaited_ = false;
  traffic_->signal.fetch_add(1, std::memory_order_release);
  return true;
}

std::unique_ptr<Outgoing> make_outgoing(std::shared_ptr<Traffic> traffic, const WireEnd& end,
                                        const Capacity& capacity) {
  return std::make_unique<MpiOutgoing>(std::move(traffic), end, capacity);
}

std::unique_ptr<Incoming> make_incoming(std::shared_ptr<Traffic> traffic, const WireEnd& end,
                                        const Capacity& capacity) {
  return std::make_unique<MpiIncoming>(std::move(traffic), end, capacity);
}

}  // namespace weft::transport::mpi
