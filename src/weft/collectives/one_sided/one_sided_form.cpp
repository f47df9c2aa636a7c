#include <algorithm>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "weft/collectives/one_sided/one_sided.h"
#include "weft/collectives/one_sided/one_sided_memory.h"

namespace weft::collective {
namespace {

// A plan beyond these limits is a mistake or an attack: the result of to_actions() would not fit in
// memory.
constexpr std::int32_t kMostOneSidedRanks = 1 << 16;
constexpr std::int32_t kMostOneSidedChunks = 1 << 24;  // per buffer, parts included
constexpr std::int32_t kMostParts = 1 << 12;
constexpr std::size_t kMostOperands = 1 << 14;  // per side of a step, counting the ranks of switches
constexpr std::int64_t kMostDeeds = 1 << 23;    // chunk accesses, signals and waits of all steps

Operand::Where where_of(char letter) {
  switch (letter) {
    case 'r':
    case 'q': return Operand::Where::remote;
    case 's':
    case 't': return Operand::Where::switched;
    default: return Operand::Where::local;
  }
}

std::string_view name(Operand::Where where) {
  constexpr std::array<std::string_view, 3> kNames = {"local", "remote", "switch"};
  return kNames[static_cast<std::size_t>(where)];
}

class OneSidedForm {
 public:
  explicit OneSidedForm(const OneSided& plan)
      : plan_(plan), ranks_(static_cast<std::int32_t>(plan.ranks.size())) {}

  std::optional<Finding> find() {
    if (ranks_ < 1 || ranks_ > kMostOneSidedRanks || ranks_ != plan_.collective.ranks)
      return malformed({}, fmt::format("expected {} ranks, found {}", plan_.collective.ranks, ranks_));
    parts_ = parts_of_chunk(plan_, kMostParts);
    if (parts_ == 0)
      return malformed(
          {}, fmt::format("expected groups of threadblocks that divide a chunk into at most {} parts, "
                          "found more",
                          kMostParts));
    for (std::int32_t rank = 0; rank < ranks_; ++rank)
      if (auto finding = of_buffers(rank)) return finding;
    if (auto finding = of_collective()) return finding;
    memory_ = memory_of(plan_);
    for (std::int32_t rank = 0; rank < ranks_; ++rank)
      if (auto finding = of_rank(rank)) return finding;
    return std::nullopt;
  }

 private:
  using Steps = std::vector<OneSidedStep>;

  static Finding malformed(Where where, std::string text) {
    return {Verdict::malformed, where, std::move(text)};
  }

  bool is_rank(std::int32_t rank) const { return rank >= 0 && rank < ranks_; }

  // Buffers with a block per rank must respect the chunk limit too.
  std::optional<Finding> of_collective() const {
    const Collective& collective = plan_.collective;
    if (!collective.counts.empty()) return malformed({}, "expected blocks of one size, found several");
    const bool blocks = collective.kind != Kind::all_reduce && collective.kind != Kind::custom;
    const std::int64_t chunks = std::int64_t{collective.chunks} * (blocks ? ranks_ : 1);
    if (collective.chunks >= 1 && chunks <= kMostOneSidedChunks / parts_) return std::nullopt;
    return malformed({}, fmt::format("expected 1 to {} chunks in a buffer, found {}",
                                     kMostOneSidedChunks / parts_, chunks));
  }

  std::optional<Finding> of_buffers(std::int32_t rank) const {
    const OneSidedRank& own = plan_.ranks[rank];
    for (const std::int32_t chunks : {own.input_chunks, own.output_chunks, own.scratch_chunks})
      if (chunks < 0 || chunks > kMostOneSidedChunks / parts_)
        return malformed({rank}, fmt::format("expected at most {} chunks in a buffer, found {}",
                                             kMostOneSidedChunks / parts_, chunks));
    for (const auto* peers : {&own.memory_peers, &own.port_peers})
      for (const std::int32_t peer : *peers)
        if (!is_rank(peer))
          return malformed({rank},
                           fmt::format("expected a channel to one of {} ranks, found {}", ranks_, peer));
    for (const Switch& group : own.switches)
      for (const std::int32_t member : group.ranks)
        if (!is_rank(member))
          return malformed({rank}, fmt::format("expected a switch of {} ranks, found {}", ranks_, member));
    return std::nullopt;
  }

  std::optional<Finding> of_rank(std::int32_t rank) {
    barriers_.clear();
    const OneSidedRank& own = plan_.ranks[rank];
    for (std::size_t block = 0; block < own.blocks.size(); ++block) {
      Where where{rank, static_cast<std::int32_t>(block), -1};
      if (auto finding = of_steps(where, own.blocks[block], false)) return finding;
    }
    for (const auto& [barrier, use] : barriers_) {
      if (static_cast<std::int32_t>(use.comes.size()) != use.members)
        return malformed({rank}, fmt::format("expected {} threadblocks at barrier {}, found {}", use.members,
                                             barrier, use.comes.size()));
      const auto [least, most] =
          std::ranges::minmax_element(use.comes, {}, [](const auto& c) { return c.second; });
      if (least->second != most->second)
        return malformed({rank, least->first},
                         fmt::format("reaches barrier {} {} times, tb {} reaches it {} times", barrier,
                                     least->second, most->first, most->second));
    }
    return std::nullopt;
  }

  std::optional<Finding> of_steps(Where& where, const Steps& steps, bool in_pipeline) {
    for (const OneSidedStep& step : steps) {
      ++where.step;
      if (auto finding = of_step(where, step)) return finding;
      if (step.verb != Verb::pipeline) continue;
      if (in_pipeline) return malformed(where, "expected no pipeline inside a pipeline, found one");
      if (step.unit_chunks < 1 || step.unit_bytes < 1)
        return malformed(where,
                         fmt::format("expected a pipeline over at least 1 chunk and 1 byte, found {} and {}",
                                     step.unit_chunks, step.unit_bytes));
      pipeline_ = &step;
      if (auto finding = of_steps(where, step.body, true)) return finding;
      pipeline_ = nullptr;
    }
    return std::nullopt;
  }

  std::optional<Finding> of_step(Where where, const OneSidedStep& step) {
    const OneSidedRank& own = plan_.ranks[where.rank];
    const Shape operands = shape(step.verb);
    if (auto finding = of_operands(where, step, operands.sources, step.sources, "sources")) return finding;
    if (auto finding = of_operands(where, step, operands.targets, step.targets, "targets")) return finding;
    if (operands.in_pairs && step.sources.size() != step.targets.size())
      return malformed(where, fmt::format("expected as many sources as targets, found {} and {}",
                                          step.sources.size(), step.targets.size()));
    if (auto finding = of_counts(where, step, operands.in_pairs)) return finding;
    if (step.parts < 1 || step.part < 0 || step.part >= step.parts)
      return malformed(where, fmt::format("expected a part of {}, found {}", step.parts, step.part));
    if (auto finding = of_channels(where, step)) return finding;
    if (auto finding = of_path(where, step, operands)) return finding;
    if (auto finding = of_packets(where, step, operands)) return finding;
    if (auto finding = of_turns(where, step, operands)) return finding;
    for (const std::int32_t semaphore : step.semaphores)
      if (semaphore < 0 || semaphore >= static_cast<std::int32_t>(own.semaphores.size()))
        return malformed(
            where, fmt::format("expected one of {} semaphores, found {}", own.semaphores.size(), semaphore));
    deeds_ += static_cast<std::int64_t>(1 + step.channels.size() + step.semaphores.size());
    if (deeds_ > kMostDeeds)
      return malformed(where,
                       fmt::format("expected at most {} chunks touched in all, found more", kMostDeeds));
    if (step.verb == Verb::barrier) {
      if (step.barrier < 0) return malformed(where, "expected a barrier, found none");
      BarrierUse& use = barriers_.try_emplace(step.barrier, BarrierUse{step.members, {}}).first->second;
      if (use.members != step.members)
        return malformed(where, fmt::format("expected {} threadblocks at barrier {} as before, found {}",
                                            use.members, step.barrier, step.members));
      ++use.comes[where.block];
    }
    return std::nullopt;
  }

  std::optional<Finding> of_channels(Where where, const OneSidedStep& step) const {
    const OneSidedRank& own = plan_.ranks[where.rank];
    const std::size_t known = step.path == Path::memory ? own.memory_peers.size()
                              : step.path == Path::port ? own.port_peers.size()
                                                        : 0;
    for (const std::int32_t channel : step.channels)
      if (channel < 0 || channel >= static_cast<std::int64_t>(known))
        return malformed(
            where, fmt::format("expected one of {} {} channels, found {}", known, name(step.path), channel));
    const bool signals = step.verb == Verb::put_signal || step.verb == Verb::put_signal_flush;
    if (signals && step.channels.size() != step.targets.size())
      return malformed(where, fmt::format("expected a channel for each of {} targets, found {}",
                                          step.targets.size(), step.channels.size()));
    return std::nullopt;
  }

  // Over a port the executor only supports put. Everything else uses memory channels.
  std::optional<Finding> of_path(Where where, const OneSidedStep& step, const Shape& operands) const {
    const bool signals = step.verb == Verb::put_signal || step.verb == Verb::put_signal_flush;
    const bool puts = signals || step.verb == Verb::put || step.verb == Verb::put_packets ||
                      step.verb == Verb::read_put_packets;
    const bool remote = operands.sources.find_first_of("rq") != std::string_view::npos ||
                        operands.targets.find_first_of("rq") != std::string_view::npos;
    if (step.path == Path::port && remote && !puts)
      return malformed(where,
                       fmt::format("expected a memory channel type for {}, found port", word(step.verb)));
    if (step.path != Path::port && (signals || (step.verb == Verb::flush && !step.channels.empty())))
      return malformed(where, fmt::format("expected a port channel type for {}, found {}", word(step.verb),
                                          name(step.path)));
    if (step.path != Path::port || !puts) return std::nullopt;
    if (step.channels.size() != step.targets.size())
      return malformed(where, fmt::format("expected a channel for each of {} targets, found {}",
                                          step.targets.size(), step.channels.size()));
    for (std::size_t i = 0; i < step.targets.size(); ++i)
      if (const std::int32_t peer = plan_.ranks[where.rank].port_peers[step.channels[i]];
          peer != step.targets[i].peer)
        return malformed(where, fmt::format("expected port channel {} to lead to gpu {}, found gpu {}",
                                            step.channels[i], step.targets[i].peer, peer));
    return std::nullopt;
  }

  // Packets are stored in scratch and take twice their payload because of the flags. A plain put to
  // double-buffered scratch does not address the half in use.
  std::optional<Finding> of_packets(Where where, const OneSidedStep& step, const Shape& operands) const {
    const auto look = [&](std::string_view letters,
                          const std::vector<Operand>& list) -> std::optional<Finding> {
      for (std::size_t i = 0; i < list.size(); ++i) {
        const Operand& operand = list[i];
        const char kind = letter(letters, i);
        const bool packets = kind == 'p' || kind == 'q' || kind == 't';
        if (!packets && operand.where != Operand::Where::local && operand.buffer == Buffer::scratch &&
            plan_.double_scratch)
          return malformed(where, fmt::format("expected packets in double-buffered scratch, found {} "
                                              "of plain data to another rank's",
                                              word(step.verb)));
        if (!packets) continue;
        if (operand.buffer != Buffer::scratch)
          return malformed(
              where, fmt::format("expected packets in scratch, found them in {}", name(operand.buffer)));
        if (plan_.protocol == Protocol::ll) continue;
        const std::int32_t rank = operand.where == Operand::Where::remote ? operand.peer : where.rank;
        if (2 * (std::int64_t{operand.index} + operand.count) > plan_.ranks[rank].scratch_chunks)
          return malformed(
              where,
              fmt::format(
                  "expected protocol LL, which has room for flags, found Simple: packets {} to {} need "
                  "{} chunks of scratch, gpu {} has {}",
                  operand.index, operand.index + operand.count - 1, 2 * (operand.index + operand.count), rank,
                  plan_.ranks[rank].scratch_chunks));
      }
      return std::nullopt;
    };
    if (auto finding = look(operands.sources, step.sources)) return finding;
    return look(operands.targets, step.targets);
  }

  // An iteration of a pipeline moves one slice. Its steps must have as many slices as the pipeline
  // has iterations; otherwise they stop short or run past their end.
  std::optional<Finding> of_turns(Where where, const OneSidedStep& step, const Shape& operands) const {
    if (pipeline_ == nullptr || operands.sources.empty()) return std::nullopt;
    if (operands.sources.find_first_of("pqt") != std::string_view::npos ||
        operands.targets.find_first_of("pqt") != std::string_view::npos)
      return malformed(
          where,
          fmt::format("expected no packets in a pipeline, found {}: every iteration would repeat all of them",
                      word(step.verb)));
    if (step.parts > 1)
      return malformed(where,
                       fmt::format("expected whole chunks in a pipeline, found a part of {}", step.parts));
    for (const Operand& operand : step.sources)
      if (operand.count != pipeline_->unit_chunks)
        return malformed(where, fmt::format("expected {} chunks, as the pipeline iterates over, found {}",
                                            pipeline_->unit_chunks, operand.count));
    return std::nullopt;
  }

  std::optional<Finding> of_operands(Where where, const OneSidedStep& step, std::string_view letters,
                                     const std::vector<Operand>& operands, std::string_view what) {
    const bool repeats = letters.ends_with('*');
    const std::size_t least = letters.size() - (repeats ? 2 : 0);
    if (operands.size() < least || (!repeats && operands.size() > least))
      return malformed(where, fmt::format("expected {}{} {} of {}, found {}", repeats ? "at least " : "",
                                          least, what, word(step.verb), operands.size()));
    std::size_t places = 0;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Operand& operand = operands[i];
      const Operand::Where expected = where_of(letter(letters, i));
      if (operand.where != expected)
        return malformed(where, fmt::format("expected {} buffers among the {} of {}, found a {} one",
                                            name(expected), what, word(step.verb), name(operand.where)));
      if (auto finding = of_operand(where, step, operand)) return finding;
      places += expected == Operand::Where::switched
                    ? plan_.ranks[where.rank].switches[operand.peer].ranks.size()
                    : 1;
    }
    if (places > kMostOperands)
      return malformed(where, fmt::format("expected at most {} {}, found {}", kMostOperands, what, places));
    return std::nullopt;
  }

  std::optional<Finding> of_operand(Where where, const OneSidedStep& step, const Operand& operand) {
    const OneSidedRank& own = plan_.ranks[where.rank];
    const auto lies = [&](std::int32_t rank) -> std::optional<Finding> {
      const Slot slot = resolve(plan_.collective, placement(plan_), rank, {operand.buffer, operand.index});
      const std::int64_t chunks = memory_[rank].chunks[static_cast<std::size_t>(slot.buffer)];
      if (operand.index >= 0 && operand.count >= 1 && std::int64_t{slot.index} + operand.count <= chunks)
        return std::nullopt;
      return malformed(
          where, fmt::format("expected a range within {} chunks of {} of gpu {}, found {} from {}", chunks,
                             name(slot.buffer), rank, operand.count, slot.index));
    };
    if (operand.index < 0 || operand.index >= kMostOneSidedChunks)  // so that sums cannot overflow
      return malformed(
          where, fmt::format("expected an index below {}, found {}", kMostOneSidedChunks, operand.index));
    std::int64_t cells = operand.count;
    switch (operand.where) {
      case Operand::Where::local:
        if (auto finding = lies(where.rank)) return finding;
        break;
      case Operand::Where::remote:
        if (!is_rank(operand.peer))
          return malformed(
              where, fmt::format("expected a buffer of one of {} ranks, found {}", ranks_, operand.peer));
        if (step.path != Path::memory && step.path != Path::port)
          return malformed(where, "expected a memory or port channel type for a remote buffer, found none");
        if (auto finding = lies(operand.peer)) return finding;
        break;
      case Operand::Where::switched: {
        if (operand.peer < 0 || operand.peer >= static_cast<std::int32_t>(own.switches.size()))
          return malformed(where, fmt::format("expected one of {} switch channels, found {}",
                                              own.switches.size(), operand.peer));
        const Switch& group = own.switches[operand.peer];
        if (group.buffer != operand.buffer || step.path != Path::switched || group.ranks.empty())
          return malformed(where, "expected a switch channel of its own buffer and ranks, found another");
        for (const std::int32_t member : group.ranks)
          if (auto finding = lies(member)) return finding;
        cells *= static_cast<std::int64_t>(group.ranks.size());
        break;
      }
    }
    deeds_ += cells * parts_;
    return std::nullopt;
  }

  static std::optional<Finding> of_counts(Where where, const OneSidedStep& step, bool in_pairs) {
    const auto differ = [&](std::int32_t one, std::int32_t other) {
      return malformed(where, fmt::format("expected equal sizes, found {} and {}", one, other));
    };
    for (std::size_t i = 0; in_pairs && i < step.sources.size(); ++i)
      if (step.sources[i].count != step.targets[i].count)
        return differ(step.sources[i].count, step.targets[i].count);
    if (in_pairs || step.sources.empty()) return std::nullopt;
    const std::int32_t count = step.sources.front().count;
    for (const auto* operands : {&step.sources, &step.targets})
      for (const Operand& operand : *operands)
        if (operand.count != count) return differ(count, operand.count);
    return std::nullopt;
  }

  struct BarrierUse {
    std::int32_t members = 0;
    std::map<std::int32_t, std::int32_t> comes;  // block -> arrivals
  };

  const OneSided& plan_;
  std::int32_t ranks_;
  std::int32_t parts_ = 1;
  std::int64_t deeds_ = 0;
  std::vector<RankMemory> memory_;
  const OneSidedStep* pipeline_ = nullptr;       // the enclosing pipeline
  std::map<std::int32_t, BarrierUse> barriers_;  // of the current rank
};

}  // namespace

std::optional<Finding> check_form(const OneSided& plan) { return OneSidedForm(plan).find(); }

}  // namespace weft::collective
