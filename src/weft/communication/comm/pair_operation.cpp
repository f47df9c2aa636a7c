#include "weft/communication/comm/pair_operation.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "weft/base/hash.h"

namespace weft::comm {
namespace {

class PairOperation final : public Operation {
 public:
  PairOperation(Pair& pair, const Call& call, bool sends)
      : pair_(pair),
        wires_(pair.wires[static_cast<std::size_t>(call.priority)]),
        bytes_(static_cast<std::size_t>(call.count) * device::size_of(call.type)),
        source_(static_cast<const std::byte*>(call.input)),
        target_(static_cast<std::byte*>(call.output)),
        sends_(sends) {
    if (!pair.opened.ok()) return;
    const std::uint64_t number = sends ? wires_.sent++ : wires_.received++;
    const std::uint64_t label = mix(fingerprint(call) + number);
    if (sends) {
      wires_.out->set_label(label);
    } else {
      wires_.in->set_label(label);
    }
  }

  // An empty call still sends one empty message: the receiver waits for its sender.
  Progress step() override {
    if (!pair_.opened.ok()) return Progress::failed;
    if (done_) return Progress::done;
    const std::size_t length = std::min(pair_.slot_bytes, bytes_ - moved_);
    const bool passed = sends_ ? wires_.out->send_from(std::span(source_ + moved_, length))
                               : wires_.in->receive_into(std::span(target_ + moved_, length));
    if (!passed) return pair_.endpoint->fault() ? Progress::failed : Progress::blocked;
    moved_ += length;
    done_ = moved_ == bytes_;
    return done_ ? Progress::done : Progress::moved;
  }

  std::int32_t waiting_for() const override { return pair_.other; }
  std::int64_t pieces_done() const override { return pieces_of(moved_); }
  std::int64_t pieces() const override { return std::max<std::int64_t>(1, pieces_of(bytes_)); }
  std::string_view algorithm() const override { return sends_ ? "send" : "receive"; }
  Error error() const override {
    if (!pair_.opened.ok()) return pair_.opened.error();
    const auto fault = pair_.endpoint->fault();
    return environment_error(fault ? fault->text : "the connection failed");
  }

 private:
  std::int64_t pieces_of(std::size_t bytes) const {
    const std::size_t slot = std::max<std::size_t>(pair_.slot_bytes, 1);
    return static_cast<std::int64_t>((bytes + slot - 1) / slot);
  }

  Pair& pair_;
  PairWires& wires_;
  std::size_t bytes_, moved_ = 0;
  const std::byte* source_;
  std::byte* target_;
  bool sends_, done_ = false;
};

}  // namespace

Status Pair::open(Result<std::unique_ptr<transport::Endpoint>> made, bool is_lower) {
  if (!made.ok()) return std::move(made).error();
  endpoint = std::move(*made);
  const transport::Capacity capacity;
  std::vector<transport::Wire> asked;
  for (std::int32_t priority = 0; priority < static_cast<std::int32_t>(kPriorities); ++priority) {
    asked.push_back({0, 1, priority});
    asked.push_back({1, 0, priority});
  }
  WEFT_TRY(ends, endpoint->open(asked, capacity));
  for (std::size_t priority = 0; priority < kPriorities; ++priority) {
    wires[priority].out = std::move(ends.outgoing[2 * priority + (is_lower ? 0 : 1)]);
    wires[priority].in = std::move(ends.incoming[2 * priority + (is_lower ? 1 : 0)]);
  }
  slot_bytes = static_cast<std::size_t>(capacity.slot_bytes);
  source = source_of(*endpoint);
  return {};
}

Operation* start_pair(Pair& pair, const Call& call, bool sends) {
  PairWires& wires = pair.wires[static_cast<std::size_t>(call.priority)];
  std::unique_ptr<Operation>& place = sends ? wires.sending : wires.receiving;
  place = std::make_unique<PairOperation>(pair, call, sends);
  return place.get();
}

}  // namespace weft::comm
