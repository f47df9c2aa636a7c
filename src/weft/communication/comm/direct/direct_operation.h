// weft/communication/comm/direct/direct_operation.h -- one call of a direct group in flight.
//
// plan_call() decides how it runs (direct_plan.h), the stages run it (direct_stages.h). The
// exchange that precedes any data is here: post() writes this rank's announcement, source() reads a
// peer's.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "weft/communication/comm/direct/direct.h"
#include "weft/communication/comm/direct/direct_blocks.h"
#include "weft/communication/comm/direct/direct_fragments.h"
#include "weft/communication/comm/direct/direct_plan.h"
#include "weft/communication/comm/direct/direct_side.h"
#include "weft/communication/comm/direct/direct_stages.h"
#include "weft/communication/comm/operation.h"

namespace weft::comm {

// The announcement of another rank for this call.
struct DirectSource {
  std::uint64_t known_for = 0;  // sequence of its call, plus 1
  Offer offer = Offer::nothing;
  // Its input or mailbox entry; null for slots. For Offer::memory, an address in the owner's
  // address space.
  const std::byte* data = nullptr;
  std::byte* output = nullptr;  // where peers may write results; null: not allowed
};

// Times a call on behalf of a trial.
class TrialClock {
 public:
  void start(DirectTrial& trial);
  bool runs() const { return trial_ != nullptr; }
  void stop(bool counts);  // REQUIRES: runs()

 private:
  DirectTrial* trial_ = nullptr;
  std::chrono::steady_clock::time_point begin_;
};

class DirectOperation final : public Operation {
 public:
  Progress step() override;
  std::int32_t waiting_for() const override { return awaited_rank; }
  std::int64_t pieces_done() const override;
  std::int64_t pieces() const override;
  std::string_view algorithm() const override { return name(plan.way); }
  Error error() const override { return failure; }

  // start() begins the call `started`, finish() ends it.
  void start(const Call& started, std::uint64_t number, const DirectOptions& wish);
  void finish();

  // Results of a stage. After fail() the operation takes no further step.
  Progress blocked(std::int32_t peer, const SharedWord& word, std::uint64_t value);
  Progress blocked_by_earlier_call();
  Progress fail(Error error);
  Progress done();
  template <class Next>
  Progress go_on_with(Next next) {
    stage = next;
    return std::get<Next>(stage).step(*this);
  }

  // Announces the call. If false, blocked() was called: this rank's place in the ring is still
  // being read.
  bool post(Progress& answer);
  // The announcement of `peer`. Null after blocked(), if there is none yet, or after fail(), if the
  // calls do not match.
  const DirectSource* source(std::int32_t peer, Progress& answer);
  // Publishes how many fragments of this call this rank has copied in, combined or taken.
  void publish(SharedWord& counter, std::uint64_t pieces_of_call);
  // Marks the next fragment as taken: this rank no longer needs its slots.
  void fragment_taken();
  // This rank reads no more data of other ranks. `others_wait`: peers wait for that.
  void finish_reading(bool others_wait);

  std::uint64_t what() const { return pack_what(call, plan.two_shot, plan.through_kernel); }

  const std::byte* input() const { return static_cast<const std::byte*>(call.input); }
  std::byte* output() const { return static_cast<std::byte*>(call.output); }
  DirectPeer& peer(std::int32_t other) const { return stream->peers[static_cast<std::size_t>(other)]; }
  const DirectSource& known(std::int32_t other) const { return sources[static_cast<std::size_t>(other)]; }
  // The address of a peer's data for fragment `piece` of this call, at `offset` within its slot.
  std::byte* slot(std::int32_t owner, std::uint64_t piece, std::size_t offset) const {
    return side->layout.half(peer(owner).part, cut.half) + (piece % cut.slots) * cut.slot_bytes + offset;
  }

  // Constant after construction.
  DirectSide* side = nullptr;
  std::size_t index = 0;  // among the group's operations
  std::vector<DirectSource> sources;

  // Set per call.
  bool active = false;
  Call call;
  Blocks blocks;
  DirectStream* stream = nullptr;  // null for a send
  std::uint64_t call_number = 0;
  std::uint64_t sequence = 0;  // in the stream
  DirectPlan plan;
  DirectFragments cut;
  TrialClock clock;
  DirectStage stage;
  bool posted = false;
  std::int32_t awaited_rank = -1;
  Error failure;

 private:
  void start_collective(const DirectOptions& wish);
  void start_send();
};

// Staged calls: whether a slot is free for the next fragment. If false, blocked() was called.
bool slot_is_free(DirectOperation& operation, Progress& answer);

// Copies from the input of `other`, through the OS kernel if necessary. If false, fail() was
// called: the memory cannot be read any more.
bool fetch(DirectOperation& operation, std::int32_t other, std::byte* target, const std::byte* data,
           std::size_t bytes, bool through_kernel, Progress& answer);
// The address at which this rank can read `bytes` of `other`'s data for a reduction: in place, or
// fetched. If null, fail() was called: the memory cannot be read. REQUIRES: bytes <=
// bytes_to_fetch.
const std::byte* within_reach(DirectOperation& operation, std::int32_t other, const std::byte* data,
                              std::size_t bytes, Progress& answer);

// Fails this operation and reports to all ranks that the call of `other` does not match.
Progress fail_mismatch(DirectOperation& operation, std::int32_t other);
Progress fail_mismatch(DirectOperation& operation, std::int32_t other, std::uint64_t other_what,
                       std::uint64_t other_count);
std::uint64_t pack_poison(const DirectGroup::Poison& poison);
DirectGroup::Poison unpack_poison(std::uint64_t cause);
// The group's first fault as an error.
Error poison_error(const DirectSide& side);

}  // namespace weft::comm
