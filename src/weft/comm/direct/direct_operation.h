// weft/comm/direct/direct_operation.h -- one call of a direct group under way.
//
//   post ──▶ mailbox                                   ──▶ close ──▶ done        small
//        ──▶ staged: copy in | combine or copy out     ──▶ close ──▶ done        moves, one-shot reductions
//        ──▶ two-shot: copy in | combine | copy out    ──▶ close ──▶ done        large all_reduce, reduce
//
// `close` waits for the ranks that read straight from this rank's buffer. Each stage is a function that does
// one piece of work, sets `stage` to the next one, and returns how it went.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "weft/comm/direct/direct.h"
#include "weft/comm/direct/direct_blocks.h"
#include "weft/comm/direct/direct_side.h"
#include "weft/comm/operation.h"

namespace weft::comm {

// A rank with a core of its own copies in so many pieces more than it takes out: enough to keep the others
// busy, few enough to be read from the caches.
inline constexpr std::uint64_t kPiecesAhead = 1;

// What another rank announced for this call.
struct DirectSource {
  std::uint64_t known_for = 0;  // the call's sequence, plus 1
  Offer offer = Offer::nothing;
  // Its input or mailbox entry; null for slots. Offer::memory: an address of its owner's.
  const std::byte* data = nullptr;
  std::byte* output = nullptr;              // where others may put results; null: they may not
  const std::byte* output_there = nullptr;  // its output, for the kernel: an address of its owner's
  bool hands = false;                       // it puts a share of each block into the outputs that are offered
  bool non_temporal = false;                // what is taken from it had better be written by such stores
};

// Bytes of a block, or of a piece of one.
struct Stretch {
  std::size_t first = 0, bytes = 0;
};

class DirectOperation final : public Operation {
 public:
  Progress step() override;
  std::int32_t waiting_for() const override { return awaited_rank; }
  std::int64_t pieces_done() const override;
  std::int64_t pieces() const override;
  std::string_view algorithm() const override { return name(way); }
  Error error() const override { return failure; }

  // A stage's answers.
  Progress blocked(std::int32_t peer, const SharedWord& word, std::uint64_t value);
  Progress done();
  Progress fail(Error error);

  // Announces the call. False, having called blocked(), while this rank's place in the ring is still read.
  bool post(Progress& answer);
  // What `peer` announced. Null after blocked(), where it has announced nothing yet, or after fail(), where it
  // called something else.
  const DirectSource* source(std::int32_t peer, Progress& answer);
  // Tells all how many pieces of this call this rank has copied in, combined or taken.
  void publish(SharedWord& counter, std::uint64_t pieces_of_call);
  // The next piece is taken: its slots are free as far as this rank goes.
  void piece_taken();
  // From here on this rank reads nothing of others. `others_wait`: they wait for that.
  void finish_reading(bool others_wait);

  // Whether private inputs of this reduction are read through the kernel: all ranks cut it alike.
  bool reads_through_kernel() const { return reads_memory(mode) && collective::reduces(call.kind); }
  std::uint64_t what() const { return pack_what(call, two_shot, reads_through_kernel()); }

  const std::byte* input() const { return static_cast<const std::byte*>(call.input); }
  std::byte* output() const { return static_cast<std::byte*>(call.output); }
  DirectPeer& peer(std::int32_t other) const { return stream->peers[static_cast<std::size_t>(other)]; }
  // Where a peer's data for piece `piece` of this call is, `offset` within its slot.
  std::byte* slot(std::int32_t owner, std::uint64_t piece, std::size_t offset) const {
    return side->layout.half(peer(owner).part, half) + (piece % slots) * slot_bytes + offset;
  }

  // For good.
  DirectSide* side = nullptr;
  std::size_t index = 0;  // among the group's operations
  std::vector<DirectSource> sources;

  // Of the call.
  using Stage = Progress (*)(DirectOperation&);
  bool active = false;
  Stage stage = nullptr;
  Call call;
  Blocks blocks;
  DirectStream* stream = nullptr;
  DirectWay way = DirectWay::mailbox;
  Offer offer = Offer::nothing;                  // where others find this rank's data
  bool output_offered = false;                   // others may write into this rank's output
  bool output_there = false;                     // others may write to it through the kernel
  bool hands = false;                            // this rank has shares to put into others' outputs
  DirectGroup::Place input_place, output_place;  // as far as they are offered
  CopyMode mode = CopyMode::slots;               // of private buffers
  bool non_temporal = false;      // what is not read again soon is written by non-temporal stores
  DirectTrial* trial = nullptr;   // that wants this call's time
  bool trial_of_reading = false;  // a trial that tells nothing where buffers can be reached
  std::chrono::steady_clock::time_point began_at;  // where there is a trial
  bool two_shot = false;
  bool posted = false;
  bool gives = false, takes = false;
  bool overwrites = false;     // its input with its output
  bool handed_out = false;     // the root asks every rank where its output is
  bool reads_buffers = false;  // of others, which wait until this rank has read them
  std::uint64_t call_number = 0;
  std::uint64_t sequence = 0;  // in the stream; of a send, on its wire
  std::int32_t next = 0;       // the rank that a stage has come to
  std::int32_t awaited_rank = -1;
  Error failure;

  // Staged calls: pieces [first, first + count) of the stream.
  std::uint64_t first = 0, piece_count = 0;
  std::uint64_t half = 0;
  std::uint64_t half_free_at = 0;
  std::size_t unit = 0;  // bytes of a block in one piece; all of a two-shot's message
  std::size_t slot_bytes = 0;
  std::uint64_t slots = 1;
  std::uint64_t copied_in = 0, combined = 0, taken = 0;  // pieces, of this call
  std::size_t own_copied = 0;                            // bytes of this rank's block for itself
  std::size_t handed = 0;                                // bytes of the share of rank `next`
  bool all_known = false;  // two-shot: every rank's announcement was read, so that `push` is known
  bool push = false;       // two-shot: results go straight into everyone's output
};

// Where a call's mailbox entry goes: from `begin` to `end`, once the first `finished` calls are finished by
// everyone.
struct MailboxRoom {
  std::uint64_t begin = 0, end = 0, finished = 0;
};
MailboxRoom find_room(const DirectStream& stream, std::uint64_t sequence, std::size_t bytes,
                      std::size_t ring);

// Decides how the call is done and numbers its pieces.
void prepare(DirectOperation& operation, const DirectWish& wish);
void prepare_send(DirectOperation& operation);
// How to copy private buffers of a call that is too long for the mailbox: as asked for, or as trials found
// quickest. Also finds out whether they can be read at all. For a reduction all ranks get the same answer.
CopyMode find_copy_mode(DirectOperation& operation, const DirectWish& wish);
// Whether a call of that mode writes its results by non-temporal stores.
bool writes_non_temporal(const DirectOperation& operation);
// A call is over: where it was a trial, its time counts.
void note_time(DirectOperation& operation);
// Copies from the input or output of `other`, through the kernel where it has to be. False, having called
// fail(), where that memory cannot be read any more.
bool fetch(DirectOperation& operation, std::int32_t other, std::byte* target, const std::byte* data,
           std::size_t bytes, bool through_kernel, Progress& answer);
// Where this rank can read `bytes` of `other`'s data for a reduction: in place, or where it fetched them to.
// Null, having called fail(), where it cannot. REQUIRES: bytes <= bytes_to_fetch.
const std::byte* within_reach(DirectOperation& operation, std::int32_t other, const std::byte* data,
                              std::size_t bytes, Progress& answer);
// How much to fetch of each other rank at a time, so that all of it together stays in a cache.
std::size_t bytes_to_fetch(const DirectSide& side);

Progress step_alone(DirectOperation& operation);
Progress step_mailbox(DirectOperation& operation);
Progress step_staged(DirectOperation& operation);
Progress step_two_shot(DirectOperation& operation);
Progress step_close(DirectOperation& operation);
Progress step_await_share(DirectOperation& operation);
Progress step_send(DirectOperation& operation);
Progress step_receive(DirectOperation& operation);
Progress step_nothing(DirectOperation& operation);

// Staged calls: whether a slot is free for the next piece to be copied in. False, having called blocked().
bool slot_is_free(DirectOperation& operation, Progress& answer);

// Whether `giver` puts a share of its block into this rank's output.
bool is_handed(const DirectOperation& operation, std::int32_t giver);
// What of `giver`'s block this rank takes itself: all, or all but what it is handed.
std::size_t bytes_to_take(const DirectOperation& operation, std::int32_t giver);
// Puts the next stretch of a share where it belongs; after the last, `hands` is over. False, having called
// blocked() or fail().
bool hand_out(DirectOperation& operation, Progress& answer);

// Fails this operation and tells all ranks that `other` called something else.
Progress fail_mismatch(DirectOperation& operation, std::int32_t other);
Progress fail_mismatch(DirectOperation& operation, std::int32_t other, std::uint64_t other_what,
                       std::uint64_t other_count);
// Gives the output back to this rank's caller before the call is over. The root may be about to write into it
// through the kernel, so this poisons the group and waits for a write that is under way.
void take_back_output(DirectOperation& operation);
std::uint64_t pack_poison(const DirectGroup::Poison& poison);
DirectGroup::Poison unpack_poison(std::uint64_t cause);
// The group's first fault, for people.
Error poison_error(const DirectSide& side);

}  // namespace weft::comm
