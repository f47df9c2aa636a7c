#include "weft/comm/pair_operation.h"

#include <algorithm>
#include <span>

#include "weft/base/hash.h"

namespace weft::comm {
namespace {

class PairOperation final : public Operation {
 public:
  PairOperation(Pair& pair, const Call& call, bool sends)
      : pair_(pair),
        bytes_(static_cast<std::size_t>(call.count) * device::size_of(call.type)),
        source_(static_cast<const std::byte*>(call.input)),
        target_(static_cast<std::byte*>(call.output)),
        sends_(sends) {
    const std::uint64_t number = sends ? pair.sent++ : pair.received++;
    const std::uint64_t label = mix(fingerprint(call) + number);
    if (sends) {
      pair.out->set_label(label);
    } else {
      pair.in->set_label(label);
    }
    (sends ? pair.sending : pair.receiving) = true;
  }

  ~PairOperation() override { (sends_ ? pair_.sending : pair_.receiving) = false; }

  // A call of no bytes still sends one empty message: the receiver waits for its sender.
  Progress step() override {
    if (done_) return Progress::done;
    const std::size_t length = std::min(pair_.slot_bytes, bytes_ - moved_);
    const bool passed = sends_ ? pair_.out->send_from(std::span(source_ + moved_, length))
                               : pair_.in->receive_into(std::span(target_ + moved_, length));
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
    const auto fault = pair_.endpoint->fault();
    return world_error(fault ? fault->text : "the connection failed");
  }

 private:
  std::int64_t pieces_of(std::size_t bytes) const {
    return static_cast<std::int64_t>((bytes + pair_.slot_bytes - 1) / pair_.slot_bytes);
  }

  Pair& pair_;
  std::size_t bytes_, moved_ = 0;
  const std::byte* source_;
  std::byte* target_;
  bool sends_, done_ = false;
};

}  // namespace

std::unique_ptr<Operation> start_pair(Pair& pair, const Call& call, bool sends) {
  return std::make_unique<PairOperation>(pair, call, sends);
}

}  // namespace weft::comm
