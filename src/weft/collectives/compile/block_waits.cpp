#include "weft/collectives/compile/block_waits.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace weft::collective {
namespace {

// The known progress of the rank's other blocks: (block, step), sorted by block.
using Known = std::vector<std::pair<std::int32_t, std::int32_t>>;

// Limit on the entries of all Known lists of a rank. Beyond it blocks no longer inherit the
// knowledge of others, which costs some extra waits.
constexpr std::size_t kMostKnown = std::size_t{1} << 24;

std::int32_t step_known(const Known& known, std::int32_t block) {
  const auto at = std::ranges::lower_bound(known, block, {}, &Known::value_type::first);
  return at == known.end() || at->first != block ? -1 : at->second;
}

void learn(Known& known, const Known& other) {
  Known both;
  both.reserve(known.size() + other.size());
  auto a = known.begin();
  for (const auto& [block, step] : other) {
    while (a != known.end() && a->first < block) both.push_back(*a++);
    both.emplace_back(block, step);
    if (a != known.end() && a->first == block) both.back().second = std::max(step, (a++)->second);
  }
  both.insert(both.end(), a, known.end());
  known = std::move(both);
}

// Limits on the instructions visited when tracing a message back: per search, and per rank for each
// of its instructions.
constexpr std::int32_t kMostHops = 1024, kMostHopsEach = 64;

// Data per instruction.
struct Written {
  explicit Written(std::size_t size) : step(size, -1), version(size, -1), search(size, 0) {}

  std::vector<std::int32_t> step;     // its index in its block
  std::vector<std::int32_t> version;  // its block's knowledge at that time
  std::vector<std::int64_t> search;   // the last search that visited it
  std::int64_t searches = 0;
};

// Writes the blocks of one rank step by step in the order of the list.
class WaitWriter {
 public:
  WaitWriter(const Instructions& instructions, std::int32_t first_block, RankProgram& rank, Written& written)
      : all_(instructions), first_block_(first_block), rank_(rank), written_(written) {
    version_of_.assign(rank.blocks.size(), -1);
  }

  void write(std::int32_t i) {
    hops_left_ += kMostHopsEach;
    const Instruction& it = all_.list[i];
    const std::int32_t block = it.block - first_block_;
    std::vector<Step>& text = rank_.blocks[block].steps;
    needed_.assign(all_.dependences(i).begin(), all_.dependences(i).end());
    // Latest first: it often implies the others.
    std::ranges::reverse(needed_);
    bool waits = false;
    Step step;
    for (const std::int32_t before : needed_) {
      const std::int32_t other = all_.list[before].block - first_block_;
      const std::int32_t awaited = written_.step[before];
      if (other == block || step_known(known(block), other) >= awaited || message_tells(i, before)) continue;
      if (waits) text.push_back(step);
      waits = true;
      step.wait_block = other;
      step.wait_step = awaited;
      rank_.blocks[other].steps[awaited].publishes = true;
      remember(block, other, awaited, written_.version[before]);
    }
    step.op = it.op;
    step.source = it.source;
    step.target = it.target;
    step.count = it.count;
    written_.step[i] = static_cast<std::int32_t>(text.size());
    written_.version[i] = version_of_[block];
    text.push_back(step);
  }

 private:
  const Known& known(std::int32_t block) const {
    static const Known kNothing;
    return version_of_[block] < 0 ? kNothing : versions_[version_of_[block]];
  }

  // Whether the message that i receives implies that `before` is done, because the message, or one
  // of its inputs, passed through that block later. Searches backwards over senders and
  // dependences. An instruction that precedes `before` in the list cannot have run after it. If the
  // sender sends several chunks, the first to arrive only implies that the first was sent.
  bool message_tells(std::int32_t i, std::int32_t before) {
    const std::int64_t search = ++written_.searches;
    way_back_.clear();
    const auto visit = [&](std::int32_t at) {
      if (at >= before && std::exchange(written_.search[at], search) != search) way_back_.push_back(at);
    };
    const auto visit_giver = [&](std::int32_t at) {
      const std::int32_t giver = all_.list[at].giver;
      if (giver != before || all_.list[giver].count == 1) visit(giver);
    };
    visit_giver(i);
    for (std::int32_t hops = 0; !way_back_.empty() && hops < kMostHops && hops_left_ > 0;
         ++hops, --hops_left_) {
      const std::int32_t at = way_back_.back();
      way_back_.pop_back();
      if (all_.list[at].rank == all_.list[i].rank && knows(at, before)) return true;
      for (const std::int32_t earlier : all_.dependences(at)) visit(earlier);
      visit_giver(at);
    }
    return false;
  }

  // Whether `before` was certainly done when `at`, of the same rank, ran.
  bool knows(std::int32_t at, std::int32_t before) const {
    const std::int32_t block = all_.list[before].block, version = written_.version[at];
    return all_.list[at].block == block ||
           (version >= 0 && step_known(versions_[version], block - first_block_) >= written_.step[before]);
  }

  // After a wait, the block knows a step of the other block and everything that block knew then.
  void remember(std::int32_t block, std::int32_t other, std::int32_t step, std::int32_t version) {
    Known next = known(block);
    if (version >= 0 && kept_ < kMostKnown) learn(next, versions_[version]);
    learn(next, {{other, step}});
    kept_ += next.size();
    version_of_[block] = static_cast<std::int32_t>(versions_.size());
    versions_.push_back(std::move(next));
  }

  const Instructions& all_;
  const std::int32_t first_block_;
  RankProgram& rank_;
  Written& written_;
  std::vector<Known> versions_;           // snapshots of what a block knew
  std::vector<std::int32_t> version_of_;  // per block: its latest snapshot; -1: none
  std::vector<std::int32_t> needed_;
  std::size_t kept_ = 0;
  std::vector<std::int32_t> way_back_;
  std::int64_t hops_left_ = 0;
};

void declare_buffers(const Instructions& instructions, Program& program) {
  for (std::int32_t rank = 0; rank < instructions.collective.ranks; ++rank) {
    RankProgram& declared = program.ranks[rank];
    declared.input_chunks = instructions.input[rank];
    declared.output_chunks = instructions.output[rank];
    declared.scratch_chunks = instructions.scratch[rank];
    if (program.placement != Placement::in_place) continue;
    // Shared memory is declared once, under the buffer that resolved slots name.
    const bool in_output = memory_chunks(program, Placement::in_place, rank, Buffer::input) == 0;
    const std::int32_t shared =
        memory_chunks(program, Placement::in_place, rank, in_output ? Buffer::output : Buffer::input);
    declared.input_chunks = in_output ? 0 : shared;
    declared.output_chunks = in_output ? shared : 0;
  }
}

}  // namespace

Program add_waits(const Instructions& ordered) {
  Program program;
  program.name = ordered.name;
  program.collective = ordered.collective;
  program.placement = ordered.placement;
  program.ranks.resize(static_cast<std::size_t>(ordered.collective.ranks));
  declare_buffers(ordered, program);
  std::vector<std::int32_t> first_block(program.ranks.size() + 1, 0);
  for (const InstructionBlock& block : ordered.blocks) {
    ++first_block[block.rank + 1];
    program.channels = std::max(program.channels, block.channel + 1);
    program.ranks[block.rank].blocks.push_back({block.send_to, block.receive_from, block.channel, {}});
  }
  for (std::size_t rank = 1; rank < first_block.size(); ++rank) first_block[rank] += first_block[rank - 1];

  std::vector<std::vector<std::int32_t>> of_rank(program.ranks.size());
  for (std::int32_t i = 0; i < ordered.size(); ++i) of_rank[ordered.list[i].rank].push_back(i);
  Written written(ordered.list.size());
  for (std::size_t rank = 0; rank < of_rank.size(); ++rank) {
    WaitWriter writer(ordered, first_block[rank], program.ranks[rank], written);
    for (const std::int32_t i : of_rank[rank]) writer.write(i);
  }
  return program;
}

}  // namespace weft::collective
