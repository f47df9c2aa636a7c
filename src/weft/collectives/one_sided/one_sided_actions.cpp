#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "weft/collectives/one_sided/one_sided.h"
#include "weft/collectives/one_sided/one_sided_memory.h"

namespace weft::collective {
namespace {

using Steps = std::vector<OneSidedStep>;

bool is_packet(char letter) { return letter == 'p' || letter == 'q' || letter == 't'; }

class OneSidedActionWriter {
 public:
  OneSidedActionWriter(const OneSided& plan, Grain grain, std::int32_t turns)
      : plan_(plan),
        grain_(grain),
        turns_(turns),
        parts_(parts_of_chunk(plan, std::numeric_limits<std::int32_t>::max())) {}

  Actions write() {
    answer_.collective = plan_.collective;
    answer_.collective.chunks *= parts_;
    answer_.placement = placement(plan_);
    answer_.memory = memory_of(plan_);
    for (RankMemory& memory : answer_.memory)
      for (std::int32_t& chunks : memory.chunks) chunks *= parts_;
    add_counters();
    for (std::size_t rank = 0; rank < plan_.ranks.size(); ++rank) add_rank(static_cast<std::int32_t>(rank));
    return std::move(answer_);
  }

 private:
  // The counters of a rank: one per memory channel, one per port channel, then its semaphores.
  struct RankCounters {
    std::int32_t memory = 0, port = 0, semaphores = 0;  // the first of each
  };

  void add_counters() {
    for (std::size_t r = 0; r < plan_.ranks.size(); ++r) {
      const OneSidedRank& own = plan_.ranks[r];
      const auto rank = static_cast<std::int32_t>(r);
      const auto next = [&] { return static_cast<std::int32_t>(answer_.counters.size()); };
      RankCounters first;
      first.memory = next();
      for (std::size_t i = 0; i < own.memory_peers.size(); ++i)
        add_channel(rank, Path::memory, i, own.memory_peers[i]);
      first.port = next();
      for (std::size_t i = 0; i < own.port_peers.size(); ++i)
        add_channel(rank, Path::port, i, own.port_peers[i]);
      first.semaphores = next();
      for (std::size_t i = 0; i < own.semaphores.size(); ++i)
        answer_.counters.push_back({own.semaphores[i], rank, rank, fmt::format("semaphore {}", i)});
      counters_.push_back(first);
    }
    for (const Path path : {Path::memory, Path::port}) pair_ends(path);
  }

  void add_channel(std::int32_t rank, Path path, std::size_t index, std::int32_t peer) {
    answer_.counters.push_back(
        {0, rank, peer, fmt::format("{} channel {} from gpu {}", name(path), index, peer)});
  }

  const std::vector<std::int32_t>& peers(std::int32_t rank, Path path) const {
    return path == Path::memory ? plan_.ranks[rank].memory_peers : plan_.ranks[rank].port_peers;
  }
  std::int32_t counter(std::int32_t rank, Path path, std::int32_t channel) const {
    return (path == Path::memory ? counters_[rank].memory : counters_[rank].port) + channel;
  }

  // Finds the counter at the other end of each channel; -1: the peer has no matching channel.
  void pair_ends(Path path) {
    std::map<std::pair<std::int32_t, std::int32_t>, std::vector<std::int32_t>> channels;  // by (rank, peer)
    for (std::int32_t rank = 0; rank < plan_.collective.ranks; ++rank)
      for (std::int32_t i = 0; i < static_cast<std::int32_t>(peers(rank, path).size()); ++i)
        channels[{rank, peers(rank, path)[i]}].push_back(i);
    other_end_.resize(answer_.counters.size(), -1);
    for (const auto& [ends, own] : channels) {
      const auto [rank, peer] = ends;
      const auto theirs = channels.find({peer, rank});
      for (std::size_t k = 0; theirs != channels.end() && k < own.size() && k < theirs->second.size(); ++k)
        other_end_[counter(rank, path, own[k])] = counter(peer, path, theirs->second[k]);
    }
  }

  void add_rank(std::int32_t rank) {
    barriers_.clear();
    for (std::size_t block = 0; block < plan_.ranks[rank].blocks.size(); ++block) {
      rank_ = rank;
      agent_ = static_cast<std::int32_t>(answer_.agents.size());
      step_ = -1;
      const auto first = static_cast<std::int32_t>(answer_.actions.size());
      answer_.agents.push_back({rank, static_cast<std::int32_t>(block), first, first});
      add_steps(plan_.ranks[rank].blocks[block]);
      answer_.agents.back().end = static_cast<std::int32_t>(answer_.actions.size());
    }
  }

  void add_steps(const Steps& steps) {
    for (const OneSidedStep& step : steps) {
      ++step_;
      add_step(step);
      const std::int32_t before = step_;
      for (std::int32_t turn = 0; step.verb == Verb::pipeline && turn < turns_; ++turn) {
        step_ = before;
        add_steps(step.body);
      }
    }
  }

  void add_step(const OneSidedStep& step) {
    switch (step.verb) {
      case Verb::nop:       // orders the threads of a block, which is one agent here
      case Verb::flush:     // here a put completes before the next operation
      case Verb::pipeline:  // its body follows
        return;
      case Verb::barrier: {
        Action& action = add_action();
        action.barrier = barrier(step.barrier);
        return;
      }
      case Verb::signal:
      case Verb::relaxed_signal:
        for (const std::int32_t channel : step.channels) raise(step.path, channel);
        return;
      case Verb::wait:
      case Verb::relaxed_wait:
        for (const std::int32_t channel : step.channels)
          add_action().consume = counter(rank_, step.path, channel);
        return;
      case Verb::release:
        for (const std::int32_t id : step.semaphores) add_action().raise = counters_[rank_].semaphores + id;
        return;
      case Verb::acquire:
        for (const std::int32_t id : step.semaphores) add_action().consume = counters_[rank_].semaphores + id;
        return;
      default: add_data(step);
    }
  }

  Action& add_action() {
    Action action;
    action.agent = agent_;
    action.step = step_;
    action.first_cell = static_cast<std::int32_t>(answer_.cells.size());
    return answer_.actions.emplace_back(action);
  }

  void raise(Path path, std::int32_t channel) {
    add_action().raise = other_end_[counter(rank_, path, channel)];
  }

  std::int32_t barrier(std::int32_t id) {
    const auto [at, fresh] = barriers_.try_emplace(id, static_cast<std::int32_t>(answer_.barriers.size()));
    if (fresh) answer_.barriers.push_back({rank_, {}});
    std::vector<std::int32_t>& members = answer_.barriers[at->second].members;
    if (members.empty() || members.back() != agent_) members.push_back(agent_);
    return at->second;
  }

  void add_data(const OneSidedStep& step) {
    const Shape operands = shape(step.verb);
    // The port copies bytes unchanged, so packets that it puts must already be packets at the
    // source.
    const bool source_packets = step.verb == Verb::put_packets && step.path == Path::port;
    std::vector<Cell> sources, targets;
    for (std::size_t i = 0; i < step.sources.size(); ++i)
      add_cells(step, step.sources[i], source_packets || is_packet(letter(operands.sources, i)), sources);
    for (std::size_t i = 0; i < step.targets.size(); ++i)
      add_cells(step, step.targets[i], is_packet(letter(operands.targets, i)), targets);
    // In place, a copy from input to output may have the same source and target: nothing moves.
    if (step.verb == Verb::copy && sources == targets) return;
    if (!operands.in_pairs) return add_combination(step, step.sources.front().count, sources, targets);
    const bool signals = step.verb == Verb::put_signal || step.verb == Verb::put_signal_flush;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      add_combination(step, step.sources[i].count, {&sources[i], 1}, {&targets[i], 1});
      if (signals) raise(step.path, step.channels[i]);
    }
  }

  // The first cell of this step's part of an operand, on each rank that holds it.
  void add_cells(const OneSidedStep& step, const Operand& operand, bool packet,
                 std::vector<Cell>& cells) const {
    const std::int32_t offset = operand.count * parts_ / step.parts * step.part;
    const auto add = [&](std::int32_t rank) {
      const Slot slot = resolve(plan_.collective, placement(plan_), rank, {operand.buffer, operand.index});
      cells.push_back({rank, slot.buffer, packet, slot.index * parts_ + offset});
    };
    if (operand.where == Operand::Where::local) return add(rank_);
    if (operand.where == Operand::Where::remote) return add(operand.peer);
    for (const std::int32_t member : plan_.ranks[rank_].switches[operand.peer].ranks) add(member);
  }

  void add_combination(const OneSidedStep& step, std::int32_t chunks, std::span<const Cell> sources,
                       std::span<const Cell> targets) {
    const std::int32_t count = chunks * parts_ / step.parts;
    const std::int32_t grain = grain_ == Grain::chunk ? 1 : count;
    for (std::int32_t done = 0; done < count; done += grain) {
      Action& action = add_action();
      action.count = grain;
      action.sources = static_cast<std::int16_t>(sources.size());
      action.targets = static_cast<std::int16_t>(targets.size());
      for (const auto& cells : {sources, targets})
        for (Cell cell : cells) {
          cell.index += done;
          answer_.cells.push_back(cell);
        }
    }
  }

  const OneSided& plan_;
  Grain grain_;
  std::int32_t turns_;
  std::int32_t parts_;
  Actions answer_;
  std::vector<RankCounters> counters_;             // by rank
  std::vector<std::int32_t> other_end_;            // per counter of a channel: the counter it raises
  std::map<std::int32_t, std::int32_t> barriers_;  // of the current rank: id -> index in answer_
  std::int32_t rank_ = 0, agent_ = 0, step_ = -1;
};

void collect_parts(const Steps& steps, std::int64_t most, std::int64_t& parts) {
  for (const OneSidedStep& step : steps) {
    if (step.parts >= 1 && parts <= most) parts = std::lcm(parts, std::int64_t{step.parts});
    collect_parts(step.body, most, parts);
  }
}

}  // namespace

std::int32_t parts_of_chunk(const OneSided& plan, std::int32_t most) {
  std::int64_t parts = 1;
  for (const OneSidedRank& rank : plan.ranks)
    for (const Steps& steps : rank.blocks) collect_parts(steps, most, parts);
  return parts <= most ? static_cast<std::int32_t>(parts) : 0;
}

std::vector<RankMemory> memory_of(const OneSided& plan) {
  Program buffers;
  buffers.collective = plan.collective;
  for (const OneSidedRank& rank : plan.ranks)
    buffers.ranks.push_back({rank.input_chunks, rank.output_chunks, rank.scratch_chunks, {}});
  std::vector<RankMemory> memory(plan.ranks.size());
  for (std::size_t rank = 0; rank < memory.size(); ++rank)
    for (const Buffer buffer : {Buffer::input, Buffer::output, Buffer::scratch})
      memory[rank].chunks[static_cast<std::size_t>(buffer)] =
          memory_chunks(buffers, placement(plan), static_cast<std::int32_t>(rank), buffer);
  return memory;
}

Actions to_actions(const OneSided& plan, Grain grain, std::int32_t turns) {
  return OneSidedActionWriter(plan, grain, turns).write();
}

}  // namespace weft::collective
