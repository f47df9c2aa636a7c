#include <algorithm>
#include <array>

#include "weft/collectives/chunks/actions.h"

namespace weft::collective {
namespace {

bool any_step(const Threadblock& block, bool (*does)(Op)) {
  return std::ranges::any_of(block.steps, [does](const Step& step) { return does(step.op); });
}

// One end of a connection. Ranks and channels have at most 20 bits: see the limits of check_form().
struct End {
  std::uint64_t connection;  // sender, receiver, channel
  std::int32_t agent;
  bool gives;
  const std::vector<std::int32_t>* links;

  End(std::int32_t from, std::int32_t to, std::int32_t channel, std::int32_t who, const Threadblock& block,
      bool sends_there)
      : connection((static_cast<std::uint64_t>(from) << 40) | (static_cast<std::uint64_t>(to) << 20) |
                   static_cast<std::uint64_t>(channel)),
        agent(who),
        gives(sends_there),
        links(&block.links) {}
};

Connection unpack(std::uint64_t connection) {
  constexpr std::uint64_t kPart = (1 << 20) - 1;
  return {static_cast<std::int32_t>(connection >> 40),
          static_cast<std::int32_t>(connection >> 20 & kPart),
          static_cast<std::int32_t>(connection & kPart),
          -1,
          -1,
          {}};
}

struct Ends {
  std::vector<std::int32_t> give, take;  // connections per agent; -1: none
};

// Numbers the connections by sender, receiver and channel.
Ends connect_ends(const Program& program, Actions& actions) {
  std::vector<End> ends;
  std::int32_t agent = 0;
  for (std::int32_t rank = 0; rank < program.collective.ranks; ++rank) {
    for (const Threadblock& block : program.ranks[rank].blocks) {
      if (any_step(block, sends)) ends.emplace_back(rank, block.send_to, block.channel, agent, block, true);
      if (any_step(block, receives))
        ends.emplace_back(block.receive_from, rank, block.channel, agent, block, false);
      ++agent;
    }
  }
  std::ranges::sort(ends, {}, &End::connection);

  Ends result{std::vector<std::int32_t>(agent, -1), std::vector<std::int32_t>(agent, -1)};
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const End& end = ends[i];
    if (i == 0 || ends[i - 1].connection != end.connection)
      actions.connections.push_back(unpack(end.connection));
    const auto connection = static_cast<std::int32_t>(actions.connections.size()) - 1;
    (end.gives ? result.give : result.take)[end.agent] = connection;
    (end.gives ? actions.connections.back().giver : actions.connections.back().taker) = end.agent;
    if (end.gives) actions.connections.back().links = *end.links;
  }
  return result;
}

// The location of each buffer of a rank after aliases are resolved.
using Bases = std::array<Slot, 3>;

Bases bases_of(const Program& program, Placement placement, std::int32_t rank) {
  Bases bases;
  for (const Buffer buffer : {Buffer::input, Buffer::output, Buffer::scratch})
    bases[static_cast<std::size_t>(buffer)] = resolve(program.collective, placement, rank, {buffer, 0});
  return bases;
}

class ActionWriter {
 public:
  ActionWriter(const Program& program, Placement placement, Grain grain) : program_(program), grain_(grain) {
    actions_.collective = program.collective;
    actions_.placement = placement;
    ends_ = connect_ends(program, actions_);
    reserve();
    for (std::int32_t rank = 0; rank < program.collective.ranks; ++rank) write(rank);
  }

  Actions take() && { return std::move(actions_); }

 private:
  std::int32_t actions_of(const Step& step) const {
    return grain_ == Grain::step || step.op == Op::nop ? 1 : step.count;
  }

  void reserve() {
    std::int64_t actions = 0, cells = 0;
    for (const RankProgram& rank : program_.ranks) {
      for (const Threadblock& block : rank.blocks) {
        for (const Step& step : block.steps) {
          actions += actions_of(step);
          cells +=
              actions_of(step) * (reads_source(step.op) + reads_target(step.op) + writes_target(step.op));
        }
      }
    }
    actions_.actions.reserve(actions);
    actions_.cells.reserve(cells);
    actions_.agents.reserve(ends_.give.size());
  }

  void write(std::int32_t rank) {
    RankMemory& memory = actions_.memory.emplace_back();
    for (const Buffer buffer : {Buffer::input, Buffer::output, Buffer::scratch})
      memory.chunks[static_cast<std::size_t>(buffer)] =
          memory_chunks(program_, actions_.placement, rank, buffer);
    const Bases bases = bases_of(program_, actions_.placement, rank);
    const auto first_agent = static_cast<std::int32_t>(actions_.agents.size());
    const std::vector<Threadblock>& blocks = program_.ranks[rank].blocks;
    for (std::size_t block = 0; block < blocks.size(); ++block) {
      const auto first = static_cast<std::int32_t>(actions_.actions.size());
      for (std::size_t step = 0; step < blocks[block].steps.size(); ++step)
        write(rank, bases, first_agent, static_cast<std::int32_t>(block), static_cast<std::int32_t>(step));
      actions_.agents.push_back({rank, static_cast<std::int32_t>(block), first,
                                 static_cast<std::int32_t>(actions_.actions.size())});
    }
  }

  void write(std::int32_t rank, const Bases& bases, std::int32_t first_agent, std::int32_t block,
             std::int32_t place) {
    const Step& step = program_.ranks[rank].blocks[block].steps[place];
    const std::int32_t agent = first_agent + block, times = actions_of(step);
    const auto resolved = [&](Slot slot) {
      const Slot& base = bases[static_cast<std::size_t>(slot.buffer)];
      return Slot{base.buffer, base.index + slot.index};
    };
    const Slot source = resolved(step.source), target = resolved(step.target);
    // In place, a copy from input to output may have the same source and target: nothing moves.
    const bool moves = step.op != Op::copy || source != target;
    const auto cell = [&](Slot slot, std::int32_t chunk) {
      actions_.cells.push_back({rank, slot.buffer, false, slot.index + chunk});
      return std::int16_t{1};
    };
    for (std::int32_t chunk = 0; chunk < times; ++chunk) {
      Action action;
      action.agent = agent;
      action.step = place;
      action.count = grain_ == Grain::step && step.op != Op::nop ? step.count : 1;
      if (chunk == 0 && step.wait_block >= 0) {
        action.wait_agent = first_agent + step.wait_block;
        action.wait_step = step.wait_step;
      }
      action.take = receives(step.op) ? ends_.take[agent] : -1;
      action.give = sends(step.op) ? ends_.give[agent] : -1;
      action.first_cell = static_cast<std::int32_t>(actions_.cells.size());
      if (moves && reads_target(step.op)) action.sources += cell(target, chunk);
      if (moves && reads_source(step.op)) action.sources += cell(source, chunk);
      if (moves && writes_target(step.op)) action.targets += cell(target, chunk);
      action.publishes = step.publishes && chunk == times - 1;
      actions_.actions.push_back(action);
    }
  }

  const Program& program_;
  const Grain grain_;
  Actions actions_;
  Ends ends_;
};

}  // namespace

Actions to_actions(const Program& program, Placement placement, Grain grain) {
  return ActionWriter(program, placement, grain).take();
}

}  // namespace weft::collective
