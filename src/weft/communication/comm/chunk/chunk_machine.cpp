#include "weft/communication/comm/chunk/chunk_machine.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "weft/communication/comm/chunk/chunk_cursor.h"
#include "weft/communication/comm/chunk/chunk_memory.h"
#include "weft/communication/comm/chunk/chunk_shape.h"
#include "weft/device/cpu/reduction.h"

namespace weft::comm {
namespace {

using collective::Buffer;
using collective::Threadblock;

// Bytes to move before control returns to the thread that drives the operation.
constexpr std::int64_t kStepBytes = 128 << 10;
constexpr std::int64_t kLongestElement = 8;
// How many bytes a threadblock may be ahead of the slowest one of its rank, at least one slice.
// This keeps a link of 1 ms and 1 Gbit/s busy even with one sender. With more, a threadblock that
// only sends would fill the links of some receivers while others are idle. There is no deadlock: no
// step needs a later slice, so everything the slowest threadblock needs can still be sent.
constexpr std::int64_t kBytesAhead = 128 << 10, kBytesAheadOfAll = 512 << 10;

bool any(const Threadblock& block, bool (*does)(collective::Op)) {
  return std::ranges::any_of(block.steps, [does](const collective::Step& step) { return does(step.op); });
}

// In slices. The sending threadblocks of a rank share its limit.
std::int64_t most_ahead(const std::vector<ChunkCursor>& cursors, std::int64_t slice_bytes) {
  const std::int64_t senders = std::ranges::count_if(cursors, &ChunkCursor::sends);
  const std::int64_t bytes = std::max(kBytesAhead, kBytesAheadOfAll / std::max<std::int64_t>(senders, 1));
  return std::max<std::int64_t>(bytes / std::max<std::int64_t>(slice_bytes, 1), 1);
}

std::vector<transport::Wire> wires_of(const collective::Program& program) {
  std::vector<transport::Wire> wires;
  for (std::int32_t rank = 0; rank < program.collective.ranks; ++rank)
    for (const Threadblock& block : program.ranks[static_cast<std::size_t>(rank)].blocks) {
      if (any(block, collective::sends)) wires.push_back({rank, block.send_to, block.channel});
      if (any(block, collective::receives)) wires.push_back({block.receive_from, rank, block.channel});
    }
  std::ranges::sort(wires);
  wires.erase(std::unique(wires.begin(), wires.end()), wires.end());
  return wires;
}

// The scheduling order of a rank's threadblocks: first those that send to the next ranks. When all
// ranks send to all, no receiver's link is then overloaded while others are idle.
std::vector<std::size_t> turns_of(const std::vector<Threadblock>& blocks, std::int32_t rank,
                                  std::int32_t ranks) {
  std::vector<std::size_t> turns(blocks.size());
  std::iota(turns.begin(), turns.end(), std::size_t{0});
  std::ranges::stable_sort(turns, {}, [&](std::size_t block) {
    const std::int32_t to = blocks[block].send_to;
    return to < 0 ? ranks : (to - rank + ranks) % ranks;
  });
  return turns;
}

}  // namespace

struct ReadyProgram::State {
  State(std::shared_ptr<const collective::Program> shared, transport::Endpoint& end,
        const MessageLimits& lengths)
      : program(std::move(shared)),
        endpoint(end),
        pieces(lengths),
        shaper(*program, end.rank()),
        memory(*program, end.rank()) {}

  std::shared_ptr<const collective::Program> program;
  transport::Endpoint& endpoint;
  const MessageLimits pieces;
  transport::Ends ends;
  ChunkShaper shaper;
  ChunkMemory memory;
  std::vector<ChunkCursor> cursors;  // one per threadblock
  std::vector<std::size_t> turns;    // their scheduling order
  ChunkShape shape;                  // of the current call
};

namespace {

// A call that failed to start.
class FailedOperation final : public Operation {
 public:
  FailedOperation(Error error, std::string_view algorithm)
      : error_(std::move(error)), algorithm_(algorithm) {}
  Progress step() override { return Progress::failed; }
  std::int32_t waiting_for() const override { return -1; }
  std::int64_t pieces_done() const override { return 0; }
  std::int64_t pieces() const override { return 0; }
  std::string_view algorithm() const override { return algorithm_; }
  Error error() const override { return error_; }

 private:
  const Error error_;
  const std::string_view algorithm_;
};

class ChunkOperation final : public Operation {
 public:
  ChunkOperation(const Call& call, const collective::Program& program, transport::Endpoint& endpoint,
                 ChunkMemory& memory, std::vector<ChunkCursor>& cursors,
                 const std::vector<std::size_t>& turns, ChunkPass pass)
      : call_(call),
        program_(program),
        endpoint_(endpoint),
        memory_(memory),
        cursors_(cursors),
        turns_(turns),
        pass_(pass),
        ahead_(most_ahead(cursors, pass.slice_bytes())) {
    for (ChunkCursor& cursor : cursors_) {
      cursor.begin(fingerprint(call), pass_);
      if (!cursor.finished()) ++unfinished_;
      if (__builtin_add_overflow(pieces_, cursor.pieces(), &pieces_))
        pieces_ = std::numeric_limits<std::int64_t>::max();
    }
  }

  Progress step() override {
    switch (stage_) {
      case Stage::before:
        if (!copy_all(memory_.before(), Stage::walk)) return Progress::moved;
        [[fallthrough]];
      case Stage::walk:
        if (const Progress progress = walk(); progress != Progress::done) return progress;
        stage_ = Stage::beside;
        [[fallthrough]];
      case Stage::beside:
        if (!copy_all(memory_.beside(), Stage::after)) return Progress::moved;
        [[fallthrough]];
      case Stage::after:
        if (!copy_all(memory_.after(), Stage::divide)) return Progress::moved;
        [[fallthrough]];
      case Stage::divide: return divide();
      case Stage::done: return Progress::done;
      case Stage::failed: return Progress::failed;
    }
    return Progress::failed;
  }

  std::int32_t waiting_for() const override {
    std::int32_t found = -1;
    for (const ChunkCursor& cursor : cursors_) {
      const std::int32_t peer = cursor.waiting_for();
      if (peer < 0 || peer == found) continue;
      if (found >= 0) return -1;
      found = peer;
    }
    return found;
  }
  std::int64_t pieces_done() const override {
    std::int64_t done = 0;
    for (const ChunkCursor& cursor : cursors_) done += cursor.pieces_done();
    return done;
  }
  std::int64_t pieces() const override { return pieces_; }
  std::string_view algorithm() const override { return program_.name; }
  Error error() const override { return *error_; }

 private:
  enum class Stage : std::uint8_t { before, walk, beside, after, divide, done, failed };

  Progress walk() {
    std::int64_t moved = 0;
    const std::int64_t last = slowest_slice() + ahead_;
    // Round-robin, each cursor as far as possible, until a full round moves nothing.
    for (std::size_t idle = 0; unfinished_ > 0 && idle < cursors_.size() && moved < kStepBytes; ++idle) {
      ChunkCursor& cursor = cursors_[turns_[turn_]];
      turn_ = turn_ + 1 < cursors_.size() ? turn_ + 1 : 0;
      if (cursor.finished()) continue;
      while (!cursor.finished() && cursor.slice() <= last && moved < kStepBytes &&
             cursor.advance(pass_, cursors_)) {
        moved += cursor.moved_bytes();
        idle = 0;
        any_moved_ = true;
      }
      if (cursor.finished()) --unfinished_;
    }
    if (unfinished_ == 0) return Progress::done;
    if (std::exchange(any_moved_, false)) return Progress::moved;
    if (copy_ < memory_.beside().size()) {  // while all cursors are blocked
      copy_some(memory_.beside());
      return Progress::moved;
    }
    if (const auto fault = endpoint_.fault()) {
      error_ = environment_error(fault->text, fault->what == transport::WireFault::What::other_call
                                                  ? "every rank must make the same calls in the same order"
                                                  : "");
      stage_ = Stage::failed;
      return Progress::failed;
    }
    return Progress::blocked;
  }

  std::int64_t slowest_slice() const {
    std::int64_t slowest = pass_.slices();
    for (const ChunkCursor& cursor : cursors_) slowest = std::min(slowest, cursor.slice());
    return slowest;
  }

  // Turns sums into averages at the end, a fragment per step.
  Progress divide() {
    const bool averages = call_.op == ReduceOp::avg && collective::reduces(call_.kind);
    const std::int64_t bytes = averages ? output_bytes(call_, endpoint_.ranks(), endpoint_.rank()) : 0;
    const std::int64_t some = std::min(bytes - copied_, kStepBytes);
    if (some > 0)
      device::cpu::finish_average(call_.type, static_cast<std::byte*>(call_.output) + copied_,
                                  static_cast<std::size_t>(some) / device::size_of(call_.type),
                                  endpoint_.ranks());
    copied_ += some;
    if (copied_ < bytes) return Progress::moved;
    stage_ = Stage::done;
    return Progress::done;
  }

  // Continues the listed copies by at most kStepBytes.
  void copy_some(const std::vector<Copy>& copies) {
    std::int64_t budget = kStepBytes;
    for (; copy_ < copies.size() && budget > 0; budget -= 1) {
      const Copy& copy = copies[copy_];
      const std::int64_t bytes = std::min(copy.bytes - copied_, budget);
      if (bytes > 0) std::memmove(copy.to + copied_, copy.from + copied_, static_cast<std::size_t>(bytes));
      copied_ += bytes;
      budget -= bytes;
      if (copied_ < copy.bytes) continue;
      ++copy_;
      copied_ = 0;
    }
  }
  // True once everything is copied and the next stage has begun.
  bool copy_all(const std::vector<Copy>& copies, Stage next) {
    copy_some(copies);
    if (copy_ < copies.size()) return false;
    copy_ = 0;
    stage_ = next;
    return true;
  }

  const Call call_;
  const collective::Program& program_;
  transport::Endpoint& endpoint_;
  ChunkMemory& memory_;
  std::vector<ChunkCursor>& cursors_;
  const std::vector<std::size_t>& turns_;
  const ChunkPass pass_;
  const std::int64_t ahead_;  // slices
  std::size_t unfinished_ = 0, turn_ = 0;
  bool any_moved_ = false;
  std::int64_t pieces_ = 0;
  std::size_t copy_ = 0;     // index in the list being copied
  std::int64_t copied_ = 0;  // bytes of that entry, or bytes divided
  Stage stage_ = Stage::before;
  std::optional<Error> error_;
};

}  // namespace

ReadyProgram::ReadyProgram(std::unique_ptr<State> state) : state_(std::move(state)) {}
ReadyProgram::~ReadyProgram() = default;

const collective::Program& ReadyProgram::program() const { return *state_->program; }

Result<std::unique_ptr<ReadyProgram>> ReadyProgram::open(std::shared_ptr<const collective::Program> program,
                                                         transport::Endpoint& endpoint,
                                                         const transport::Capacity& capacity,
                                                         std::int64_t least_piece) {
  if (program->collective.ranks != endpoint.ranks())
    return user_error(fmt::format("{} is for {} ranks, the group has {}", program->name,
                                  program->collective.ranks, endpoint.ranks()));
  if (capacity.slot_bytes < kLongestElement || capacity.slots < 1)
    return user_error(fmt::format("a connection needs slots of at least {} bytes, found {} of {} bytes",
                                  kLongestElement, capacity.slots, capacity.slot_bytes));
  auto state =
      std::make_unique<State>(std::move(program), endpoint, MessageLimits{capacity.slot_bytes, least_piece});
  const std::vector<transport::Wire> wires = wires_of(*state->program);
  WEFT_TRY(ends, endpoint.open(wires, capacity));
  state->ends = std::move(ends);
  const std::int32_t rank = endpoint.rank();
  const auto number = [&](const transport::Wire& wire) {
    return static_cast<std::size_t>(std::ranges::lower_bound(wires, wire) - wires.begin());
  };
  std::int64_t chunks = 0;
  for (const Threadblock& block : state->program->ranks[static_cast<std::size_t>(rank)].blocks) {
    transport::Outgoing* out = nullptr;
    transport::Incoming* in = nullptr;
    if (any(block, collective::sends))
      out = state->ends.outgoing[number({rank, block.send_to, block.channel})].get();
    if (any(block, collective::receives))
      in = state->ends.incoming[number({block.receive_from, rank, block.channel})].get();
    state->cursors.emplace_back(block, out, in, chunks);
    for (const collective::Step& step : block.steps)
      chunks += step.op == collective::Op::nop ? 1 : step.count;
  }
  state->turns =
      turns_of(state->program->ranks[static_cast<std::size_t>(rank)].blocks, rank, endpoint.ranks());
  return std::unique_ptr<ReadyProgram>(new ReadyProgram(std::move(state)));
}

std::unique_ptr<Operation> ReadyProgram::start(const Call& asked) {
  State& state = *state_;
  Call call = asked;
  // A barrier has no data but must wait for all ranks: send one byte.
  if (call.kind == Kind::barrier) {
    call.count = 1;
    call.type = ElementType::u8;
  }
  const auto fail = [&](Error error) {
    return std::make_unique<FailedOperation>(std::move(error), state.program->name);
  };
  auto shape = state.shaper.shape(call);
  if (!shape.ok()) return fail(std::move(shape).error());
  state.shape = std::move(*shape);
  if (Status bound = state.memory.bind(call, state.shape); !bound.ok()) return fail(std::move(bound).error());
  return std::make_unique<ChunkOperation>(
      call, *state.program, state.endpoint, state.memory, state.cursors, state.turns,
      ChunkPass(state.memory, state.shape, call.type, call.op, state.pieces));
}

}  // namespace weft::comm
