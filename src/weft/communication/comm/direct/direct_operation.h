// weft/communication/comm/direct/direct_operation.h -- one call of a direct group under way.
//
// plan_call() decides how it is done (direct_plan.h), the stages do it (direct_stages.h). What ranks tell
// each other before any data moves is announced here: post() writes this rank's announcement, source() reads
// another's.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "weft/communication/comm/direct/direct.h"
#include "weft/communication/comm/direct/direct_blocks.h"
#include "weft/communication/comm/direct/direct_pieces.h"
#include "weft/communication/comm/direct/direct_plan.h"
#include "weft/communication/comm/direct/direct_side.h"
#include "weft/communication/comm/direct/direct_stages.h"
#include "weft/communication/comm/operation.h"

namespace weft::comm {

// What another rank announced for this call.
struct DirectSource {
  std::uint64_t known_for = 0;  // the call's sequence, plus 1
  Offer offer = Offer::nothing;
  // Its input or mailbox entry; null for slots. Offer::memory: an address of its owner's.
  const std::byte* data = nullptr;
  std::byte* output = nullptr;  // where others may put results; null: they may not
};

// Times a call for a trial that asked for it.
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

  // Begins `started`, and ends it.
  void start(const Call& started, std::uint64_t number, const DirectWish& wish);
  void finish();

  // A stage's answers. After fail() the operation takes no further step.
  Progress blocked(std::int32_t peer, const SharedWord& word, std::uint64_t value);
  Progress blocked_by_earlier_call();
  Progress fail(Error error);
  Progress done();
  template <class Next>
  Progress go_on_with(Next next) {
    stage = next;
    return std::get<Next>(stage).step(*this);
  }

  // Announces the call. False, having called blocked(), while this rank's place in the ring is still read.
  bool post(Progress& answer);
  // What `peer` announced. Null after blocked(), where it has announced nothing yet, or after fail(), where
  // it called something else.
  const DirectSource* source(std::int32_t peer, Progress& answer);
  // Tells all how many pieces of this call this rank has copied in, combined or taken.
  void publish(SharedWord& counter, std::uint64_t pieces_of_call);
  // The next piece is taken: its slots are free as far as this rank goes.
  void piece_taken();
  // From here on this rank reads nothing of others. `others_wait`: they wait for that.
  void finish_reading(bool others_wait);

  std::uint64_t what() const { return pack_what(call, plan.two_shot, plan.through_kernel); }

  const std::byte* input() const { return static_cast<const std::byte*>(call.input); }
  std::byte* output() const { return static_cast<std::byte*>(call.output); }
  DirectPeer& peer(std::int32_t other) const { return stream->peers[static_cast<std::size_t>(other)]; }
  const DirectSource& known(std::int32_t other) const { return sources[static_cast<std::size_t>(other)]; }
  // Where a peer's data for piece `piece` of this call is, `offset` within its slot.
  std::byte* slot(std::int32_t owner, std::uint64_t piece, std::size_t offset) const {
    return side->layout.half(peer(owner).part, cut.half) + (piece % cut.slots) * cut.slot_bytes + offset;
  }

  // For good.
  DirectSide* side = nullptr;
  std::size_t index = 0;  // among the group's operations
  std::vector<DirectSource> sources;

  // Of the call.
  bool active = false;
  Call call;
  Blocks blocks;
  DirectStream* stream = nullptr;  // none: a send
  std::uint64_t call_number = 0;
  std::uint64_t sequence = 0;  // in the stream
  DirectPlan plan;
  DirectPieces cut;
  TrialClock clock;
  DirectStage stage;
  bool posted = false;
  std::int32_t awaited_rank = -1;
  Error failure;

 private:
  void start_collective(const DirectWish& wish);
  void start_send();
};

// Staged calls: whether a slot is free for the next piece to be copied in. False, having called blocked().
bool slot_is_free(DirectOperation& operation, Progress& answer);

// Copies from the input of `other`, through the kernel where it has to be. False, having called fail(), where
// that memory cannot be read any more.
bool fetch(DirectOperation& operation, std::int32_t other, std::byte* target, const std::byte* data,
           std::size_t bytes, bool through_kernel, Progress& answer);
// Where this rank can read `bytes` of `other`'s data for a reduction: in place, or where it fetched them to.
// Null, having called fail(), where it cannot. REQUIRES: bytes <= bytes_to_fetch.
const std::byte* within_reach(DirectOperation& operation, std::int32_t other, const std::byte* data,
                              std::size_t bytes, Progress& answer);

// Fails this operation and tells all ranks that `other` called something else.
Progress fail_mismatch(DirectOperation& operation, std::int32_t other);
Progress fail_mismatch(DirectOperation& operation, std::int32_t other, std::uint64_t other_what,
                       std::uint64_t other_count);
std::uint64_t pack_poison(const DirectGroup::Poison& poison);
DirectGroup::Poison unpack_poison(std::uint64_t cause);
// The group's first fault, for people.
Error poison_error(const DirectSide& side);

}  // namespace weft::comm
