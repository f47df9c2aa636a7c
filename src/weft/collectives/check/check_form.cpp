#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

#include "weft/collectives/check/check.h"

namespace weft::collective {
namespace {

// Far above what any runtime loads. Within them, sums of 32-bit numbers cannot overflow.
constexpr std::int64_t kMostProgramRanks = 1 << 20;
constexpr std::int64_t kMostProgramChunks = 1 << 25;  // of memory, all ranks together
constexpr std::int64_t kMostActions = 1 << 24;        // a step of count n is n actions
constexpr std::int64_t kMostProgramChannels = 1 << 20;

class FormCheck {
 public:
  explicit FormCheck(const Program& program) : program_(program), collective_(program.collective) {}

  std::optional<Finding> find() {
    check_collective();
    if (found_) return found_;
    for (rank_ = 0; !found_ && rank_ < collective_.ranks; ++rank_) check_rank();
    return found_;
  }

 private:
  template <class... Parts>
  void complain(Where where, fmt::format_string<Parts...> text, Parts&&... parts) {
    if (!found_)
      found_ = Finding{Verdict::malformed, where, fmt::format(text, std::forward<Parts>(parts)...)};
  }
  Where here() const { return {rank_, block_, step_}; }

  bool is_rank(std::int32_t rank) const { return rank >= 0 && rank < collective_.ranks; }

  void check_collective() {
    if (collective_.ranks < 1 || collective_.ranks > kMostProgramRanks)
      return complain({}, "a program has 1 to {} ranks, this one {}", kMostProgramRanks, collective_.ranks);
    if (program_.ranks.size() != static_cast<std::size_t>(collective_.ranks))
      return complain({}, "the collective has {} ranks, the program {}", collective_.ranks,
                      program_.ranks.size());
    if (program_.channels < 1 || program_.channels > kMostProgramChannels)
      return complain({}, "a program has 1 to {} channels, this one {}", kMostProgramChannels,
                      program_.channels);
    using enum Kind;
    const std::initializer_list<Kind> rooted = {broadcast, reduce, gather, scatter, send};
    if (std::ranges::find(rooted, collective_.kind) != rooted.end() && !is_rank(collective_.root))
      return complain({}, "the root is not a rank: gpu {}", collective_.root);
    if (collective_.kind == send && !is_rank(collective_.peer))
      return complain({}, "the receiver is not a rank: gpu {}", collective_.peer);
    check_blocks();
    if (!found_) check_wants();
    if (!found_) check_memory();
  }

  // Makes extent() safe to call.
  void check_blocks() {
    const std::int64_t ranks = collective_.ranks;
    if (collective_.chunks < 1 || collective_.chunks * ranks > kMostProgramChunks)
      return complain({}, "{} ranks with blocks of {} chunks: expected 1 to {} in all", ranks,
                      collective_.chunks, kMostProgramChunks);
    if (collective_.counts.empty()) return;
    const bool pairs = collective_.kind == Kind::all_to_all;
    const std::int64_t expected = pairs ? ranks * ranks : ranks;
    if (static_cast<std::int64_t>(collective_.counts.size()) != expected)
      return complain({}, "expected {} block sizes, found {}", expected, collective_.counts.size());
    std::int64_t total = 0;
    for (const std::int32_t count : collective_.counts) {
      if (count < 0) return complain({}, "a block of {} chunks", count);
      total += count;
    }
    if (total > kMostProgramChunks)
      complain({}, "blocks of {} chunks in all: at most {}", total, kMostProgramChunks);
  }

  void check_wants() {
    if (collective_.kind != Kind::custom) return;
    const auto key = [](const CustomWant& want) { return std::pair(want.rank, want.index); };
    const CustomWant* last = nullptr;
    for (const CustomWant& want : collective_.wants) {
      if (!is_rank(want.rank) || want.index < 0 || want.index >= kMostProgramChunks)
        return complain({}, "a want for output[{}] of gpu {}, which does not exist", want.index, want.rank);
      if (last != nullptr && key(*last) >= key(want))
        return complain({}, "wants unsorted or duplicated: output[{}] of gpu {}", want.index, want.rank);
      last = &want;
      for (const Contribution& part : want.contributions)
        if (!is_rank(part.rank) || part.index < 0 || part.index >= kMostProgramChunks)
          return complain({}, "a want for input[{}] of gpu {}, which does not exist", part.index, part.rank);
    }
  }

  void check_memory() {
    std::int64_t total = 0, actions = 0;
    for (rank_ = 0; rank_ < collective_.ranks; ++rank_) {
      const RankProgram& rank = program_.ranks[rank_];
      for (const Buffer buffer : {Buffer::input, Buffer::output, Buffer::scratch}) {
        const std::int32_t chunks = declared(rank, buffer);
        if (chunks < 0 || chunks > kMostProgramChunks)
          return complain({rank_, -1, -1}, "{} of {} chunks: expected 0 to {}", name(buffer), chunks,
                          kMostProgramChunks);
        total += memory_chunks(program_, Placement::out_of_place, rank_, buffer);
        if (collective_.kind == Kind::custom || buffer == Buffer::scratch || chunks == 0) continue;
        if (const std::int32_t expected = extent(collective_, buffer, rank_); chunks != expected)
          return complain({rank_, -1, -1}, "{} has {} chunks, expected {} for {} of {} ranks", name(buffer),
                          chunks, expected, name(collective_.kind), collective_.ranks);
      }
      for (const Threadblock& block : rank.blocks)
        for (const Step& step : block.steps)
          actions += step.op == Op::nop ? 1 : std::clamp<std::int64_t>(step.count, 1, kMostProgramChunks);
    }
    if (total > kMostProgramChunks)
      return complain({}, "memory of {} chunks: at most {}", total, kMostProgramChunks);
    if (actions > kMostActions) complain({}, "steps over {} chunks: at most {}", actions, kMostActions);
  }

  static std::int32_t declared(const RankProgram& rank, Buffer buffer) {
    return buffer == Buffer::input    ? rank.input_chunks
           : buffer == Buffer::output ? rank.output_chunks
                                      : rank.scratch_chunks;
  }

  // The extent of this rank's buffers under every placement that the program supports.
  void measure() {
    for (const Buffer buffer : {Buffer::input, Buffer::output, Buffer::scratch}) {
      std::int32_t& chunks = reach_[static_cast<std::size_t>(buffer)];
      chunks = memory_chunks(program_, Placement::out_of_place, rank_, buffer);
      // In place, a custom collective has one buffer, and the program may declare only one of the
      // two.
      if (program_.placement == Placement::in_place && collective_.kind == Kind::custom &&
          buffer != Buffer::scratch)
        chunks = memory_chunks(program_, Placement::in_place, rank_, Buffer::input);
    }
  }

  void check_rank() {
    const std::vector<Threadblock>& blocks = program_.ranks[rank_].blocks;
    measure();
    std::vector<std::array<std::int32_t, 3>> sending, receiving;  // peer, channel, block
    for (block_ = 0; !found_ && block_ < static_cast<std::int32_t>(blocks.size()); ++block_) {
      const Threadblock& block = blocks[block_];
      step_ = -1;
      if (block.send_to != -1) check_peer("sends to", block.send_to);
      if (block.receive_from != -1) check_peer("receives from", block.receive_from);
      if (block.channel < 0 || block.channel >= program_.channels)
        complain(here(), "channel {} does not exist: the program has {}", block.channel, program_.channels);
      bool sends_any = false, receives_any = false;
      for (step_ = 0; !found_ && step_ < static_cast<std::int32_t>(block.steps.size()); ++step_) {
        check_step(block, block.steps[step_]);
        sends_any = sends_any || sends(block.steps[step_].op);
        receives_any = receives_any || receives(block.steps[step_].op);
      }
      if (sends_any) sending.push_back({block.send_to, block.channel, block_});
      if (receives_any) receiving.push_back({block.receive_from, block.channel, block_});
    }
    check_alone(sending, "send to");
    check_alone(receiving, "receive from");
  }

  void check_peer(std::string_view verb, std::int32_t peer) {
    if (!is_rank(peer)) return complain(here(), "{} gpu {}, which does not exist", verb, peer);
    if (peer == rank_) complain(here(), "{} its own gpu", verb);
  }

  void check_step(const Threadblock& block, const Step& step) {
    if (sends(step.op) && block.send_to < 0)
      return complain(here(), "{} in a threadblock that has no peer to send to", name(step.op));
    if (receives(step.op) && block.receive_from < 0)
      return complain(here(), "{} in a threadblock that has no peer to receive from", name(step.op));
    if (step.op != Op::nop && step.count < 1)
      return complain(here(), "{} of {} chunks", name(step.op), step.count);
    if (reads_source(step.op)) check_slot(step.source, step.count, "reads");
    if (writes_target(step.op)) check_slot(step.target, step.count, "writes");
    if (step.wait_block != -1) check_wait(step);
  }

  void check_slot(const Slot& slot, std::int64_t count, std::string_view verb) {
    const std::int32_t chunks = reach_[static_cast<std::size_t>(slot.buffer)];
    if (slot.index < 0 || slot.index + count > chunks)
      complain(here(), "{} {}[{}..{}), which has {} chunks", verb, name(slot.buffer), slot.index,
               slot.index + count, chunks);
  }

  void check_wait(const Step& step) {
    const std::vector<Threadblock>& blocks = program_.ranks[rank_].blocks;
    if (step.wait_block < 0 || static_cast<std::size_t>(step.wait_block) >= blocks.size())
      return complain(here(), "waits for tb {}, which does not exist", step.wait_block);
    const std::size_t steps = blocks[step.wait_block].steps.size();
    if (step.wait_step < 0 || static_cast<std::size_t>(step.wait_step) >= steps)
      return complain(here(), "waits for step {} of tb {}, which has {}", step.wait_step, step.wait_block,
                      steps);
    if (step.wait_block == block_ && step.wait_step >= step_)
      complain(here(), "waits for step {} of its own threadblock", step.wait_step);
  }

  void check_alone(std::vector<std::array<std::int32_t, 3>>& users, std::string_view verb) {
    std::ranges::sort(users);
    for (std::size_t i = 1; i < users.size(); ++i) {
      const auto &one = users[i - 1], &other = users[i];
      if (one[0] == other[0] && one[1] == other[1])
        return complain({rank_, other[2], -1}, "tb {} and tb {} both {} gpu {} on channel {}", one[2],
                        other[2], verb, one[0], one[1]);
    }
  }

  const Program& program_;
  const Collective& collective_;
  std::int32_t rank_ = -1, block_ = -1, step_ = -1;
  std::array<std::int32_t, 3> reach_{};
  std::optional<Finding> found_;
};

}  // namespace

std::optional<Finding> check_form(const Program& program) { return FormCheck(program).find(); }

}  // namespace weft::collective
