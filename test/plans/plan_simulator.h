// Executes a small MSCCL++ plan on numbers with a random schedule, to test the checker.
//
// It shares only the plan with the checker. Between two nops, operations run in any order, except
// those of the same thread. Other blocks may see a plain store at any time between its execution
// and the block's next release. A port processes its requests at any time, in the order of its
// channel. Every rank runs several times with new input, and starts again as soon as it is done.
#pragma once
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "plan_text.h"
#include "weft/collectives/one_sided/one_sided_memory.h"

namespace weft::plans {

class PlanSimulator {
 public:
  PlanSimulator(const OneSided& plan, std::uint64_t seed, std::int32_t runs = 3)
      : plan_(plan),
        runs_(runs),
        random_(seed),
        parts_(collective::parts_of_chunk(plan, 1 << 12)),
        memory_(plan.ranks.size()) {
    const auto chunks = collective::memory_of(plan);
    for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
      for (std::size_t bank = 0; bank < 4; ++bank)
        memory_[r][bank].resize(static_cast<std::size_t>(chunks[r].chunks[std::min<std::size_t>(bank, 2)]) *
                                static_cast<std::size_t>(parts_ * kSlices) * 2);
      ranks_.emplace_back();
      ranks_.back().semaphores.assign(plan.ranks[r].semaphores.begin(), plan.ranks[r].semaphores.end());
      for (std::size_t b = 0; b < plan.ranks[r].blocks.size(); ++b) {
        Block block;
        block.rank = static_cast<std::int32_t>(r);
        flatten(plan.ranks[r].blocks[b], -1, block.text);
        blocks_.push_back(block);
      }
    }
  }

  // The error, or empty if every run of every rank had the correct result.
  std::string run() {
    for (std::size_t r = 0; r < ranks_.size(); ++r) begin(static_cast<std::int32_t>(r));
    while (wrong_.empty()) {
      // All items that can run now.
      std::vector<std::pair<std::size_t, std::size_t>> ready;
      settle();
      for (std::size_t b = 0; b < blocks_.size(); ++b) {
        for (std::size_t i = 0; i < blocks_[b].items.size(); ++i)
          if (enabled(blocks_[b], i)) ready.push_back({b, i});
      }
      std::vector<std::size_t> ports;
      for (std::size_t q = 0; q < ports_.size(); ++q)
        if (!ports_[q].items.empty()) ports.push_back(q);
      bool ended = false;
      for (std::size_t r = 0; r < ranks_.size(); ++r) ended = try_end(static_cast<std::int32_t>(r)) || ended;
      if (ready.empty() && ports.empty()) {
        if (ended) continue;
        break;
      }
      const std::size_t pick = draw(ready.size() + ports.size());
      if (pick < ready.size())
        perform(ready[pick].first, ready[pick].second);
      else
        advance_port(ports_[ports[pick - ready.size()]]);
    }
    for (std::size_t r = 0; r < ranks_.size() && wrong_.empty(); ++r)
      if (ranks_[r].run <= runs_) wrong_ = "rank " + std::to_string(r) + " hangs";
    return wrong_;
  }

 private:
  static constexpr std::int32_t kSlices = 3;
  struct Cell {
    std::uint64_t value = 0;
    std::int32_t flag = 0;  // of packets: the run number
  };
  struct Item {  // one operation between two nops
    const OneSidedStep* step = nullptr;
    std::int32_t turn = -1, thread = -1;  // turn: pipeline iteration; thread -1: all
    std::size_t pair = 0;
    std::int32_t part = 0;
    bool done = false;
    bool issued = false;
  };
  struct Text {
    const OneSidedStep* step;
    std::int32_t turn;
  };
  struct Store {
    std::int32_t rank;
    std::size_t bank, cell;
    std::uint64_t value;
    bool earlier;  // from before the last nop
  };
  struct Block {
    std::int32_t rank = 0;
    std::vector<Text> text;
    std::size_t next = 0;
    std::vector<Item> items;
    std::vector<Store> stores;
    std::int32_t at_barrier = -1;
    bool running = false, done = false;
  };
  struct PortItem {
    std::vector<std::pair<std::size_t, Store>> puts;  // source cell; destination
    std::int32_t rank = 0;
    std::size_t source_bank = 0;
    bool packets = false, read = false;
    std::int32_t run = 0;
    std::int64_t* signal = nullptr;
  };
  struct Port {
    std::size_t block = 0;
    std::int32_t channel = 0;
    std::vector<PortItem> items;
  };
  struct Rank {
    std::int32_t run = 0;
    std::vector<std::int64_t> semaphores;
    std::map<std::pair<Path, std::int32_t>, std::int64_t> counters;
  };

  std::size_t draw(std::size_t n) { return random_() % n; }

  void flatten(const std::vector<OneSidedStep>& steps, std::int32_t turn, std::vector<Text>& text) {
    for (const OneSidedStep& step : steps) {
      if (step.verb != Verb::pipeline)
        text.push_back({&step, turn});
      else
        for (std::int32_t t = 0; t < kSlices; ++t) flatten(step.body, t, text);
    }
  }

  static std::uint64_t input(std::int32_t run, std::int32_t rank, std::int32_t chunk) {
    return (static_cast<std::uint64_t>(run) * 1000003 + static_cast<std::uint64_t>(rank) * 10007 +
            static_cast<std::uint64_t>(chunk) + 1) *
           0x9e3779b97f4a7c15ull;
  }

  std::size_t first_of(std::int32_t rank, Buffer buffer, std::int32_t index, std::size_t& bank) const {
    const collective::Slot slot =
        collective::resolve(plan_.collective, collective::placement(plan_), rank, {buffer, index});
    bank = static_cast<std::size_t>(slot.buffer);
    return static_cast<std::size_t>(slot.index) * static_cast<std::size_t>(parts_ * kSlices);
  }

  void begin(std::int32_t rank) {
    Rank& own = ranks_[rank];
    if (++own.run > runs_) return;
    for (std::int32_t chunk = 0; chunk < plan_.ranks[rank].input_chunks; ++chunk) {
      std::size_t bank = 0;
      const std::size_t first = first_of(rank, Buffer::input, chunk, bank);
      for (std::int32_t i = 0; i < parts_ * kSlices; ++i)
        memory_[rank][bank][first + i] = {input(own.run, rank, chunk), 0};
    }
    for (Block& block : blocks_)
      if (block.rank == rank) block.running = true, block.done = false, block.next = 0, block.items.clear();
  }

  bool try_end(std::int32_t rank) {
    if (ranks_[rank].run > runs_) return false;
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      if (blocks_[b].rank != rank) continue;
      refill(blocks_[b]);
      if (!blocks_[b].done) return false;
    }
    for (Port& port : ports_)
      if (blocks_[port.block].rank == rank)
        for (PortItem& item : port.items) read_port(item);
    verify(rank);
    begin(rank);
    return true;
  }

  void verify(std::int32_t rank) {
    const collective::Collective& wanted = plan_.collective;
    for (std::int32_t chunk = 0; chunk < plan_.ranks[rank].output_chunks; ++chunk) {
      const std::int32_t run = ranks_[rank].run, from = chunk / wanted.chunks, j = chunk % wanted.chunks;
      std::uint64_t expected = 0;
      using enum collective::Kind;
      if (wanted.kind == all_gather) expected = input(run, from, j);
      if (wanted.kind == all_to_all) expected = input(run, from, rank * wanted.chunks + j);
      for (std::int32_t r = 0; r < wanted.ranks; ++r) {
        if (wanted.kind == all_reduce) expected += input(run, r, chunk);
        if (wanted.kind == reduce_scatter) expected += input(run, r, rank * wanted.chunks + chunk);
      }
      std::size_t bank = 0;
      const std::size_t first = first_of(rank, Buffer::output, chunk, bank);
      for (std::int32_t i = 0; i < parts_ * kSlices; ++i)
        if (memory_[rank][bank][first + i].value != expected)
          wrong_ = "run " + std::to_string(run) + ": output[" + std::to_string(chunk) + "] of rank " +
                   std::to_string(rank) + " is wrong";
    }
  }

  // Adds the steps up to the next nop once all earlier ones are done.
  void refill(Block& block) {
    while (block.running && !block.done) {
      for (const Item& item : block.items)
        if (!item.done) return;
      if (block.at_barrier >= 0) join(block);
      if (block.at_barrier >= 0) return;
      block.items.clear();
      for (Store& store : block.stores) store.earlier = true;
      if (block.next == block.text.size()) {
        commit(block, true);
        block.done = true;
        block.running = false;
        return;
      }
      while (block.next < block.text.size()) {
        const Text& text = block.text[block.next++];
        if (text.step->verb == Verb::nop) break;
        if (text.step->verb == Verb::barrier) {
          block.at_barrier = text.step->barrier;
          break;
        }
        add_items(block, text);
      }
    }
  }

  // Refills blocks until nothing changes. The last block at a barrier releases the others.
  void settle() {
    for (bool moved = true; moved;) {
      moved = false;
      for (Block& block : blocks_) {
        const auto before = std::tuple(block.next, block.at_barrier, block.done);
        refill(block);
        moved = moved || before != std::tuple(block.next, block.at_barrier, block.done);
      }
    }
  }

  void join(Block& block) {
    for (const Item& item : block.items)
      if (!item.done) return;
    std::vector<Block*> members;
    std::size_t comes = 0;
    for (Block& other : blocks_) {
      if (other.rank != block.rank) continue;
      bool uses = false;
      for (const Text& text : other.text)
        uses = uses || (text.step->verb == Verb::barrier && text.step->barrier == block.at_barrier);
      if (!uses) continue;
      ++comes;
      bool idle = other.at_barrier == block.at_barrier;
      for (const Item& item : other.items) idle = idle && item.done;
      if (idle) members.push_back(&other);
    }
    if (members.size() < comes) return;
    for (Block* member : members) {
      for (Store& store : member->stores) store.earlier = true;
      commit(*member, true);
      member->at_barrier = -1;
    }
  }

  void add_items(Block& block, const Text& text) {
    const OneSidedStep& step = *text.step;
    const auto add = [&](std::int32_t thread, std::size_t pair, std::int32_t part) {
      block.items.push_back({text.step, text.turn, thread, pair, part, false, false});
    };
    const std::size_t alone = std::max(step.channels.size(), step.semaphores.size());
    if (step.sources.empty()) {
      for (std::size_t t = 0; t < alone; ++t) add(static_cast<std::int32_t>(t), t, 0);
      return;
    }
    const bool pairs = collective::shape(step.verb).in_pairs;
    for (std::size_t i = 0; i < (pairs ? step.sources.size() : 1); ++i) {
      if (pairs && step.path == Path::port) {
        add(static_cast<std::int32_t>(i), i, -1);
        continue;
      }
      const std::int32_t count = step.sources[i].count * parts_ / step.parts;
      for (std::int32_t part = 0; part < count; ++part) add(-1, i, part);
    }
  }

  bool enabled(Block& block, std::size_t i) {
    Item& item = block.items[i];
    if (item.done) return false;
    for (std::size_t k = 0; item.thread >= 0 && k < i; ++k)
      if (block.items[k].thread == item.thread && !block.items[k].done) return false;
    const OneSidedStep& step = *item.step;
    Rank& rank = ranks_[block.rank];
    switch (step.verb) {
      case Verb::wait:
      case Verb::relaxed_wait: return rank.counters[{step.path, step.channels[item.pair]}] > 0;
      case Verb::acquire: return rank.semaphores[step.semaphores[item.pair]] > 0;
      case Verb::flush: return empty_port(block, step.channels[item.pair]);
      case Verb::put_signal_flush:
        if (item.issued) return empty_port(block, step.channels[item.pair]);
        break;
      default: break;
    }
    if (item.part < 0) return true;
    const collective::Shape shape = collective::shape(step.verb);
    for (std::size_t s = shape.in_pairs ? item.pair : 0;
         s < (shape.in_pairs ? item.pair + 1 : step.sources.size()); ++s) {
      if (!is_packet(collective::letter(shape.sources, s))) continue;
      const Store at = place(block.rank, step, step.sources[s], item.part, true, block.rank);
      if (memory_[at.rank][at.bank][at.cell].flag != rank.run) return false;
    }
    return true;
  }

  static bool is_packet(char letter) { return letter == 'p' || letter == 'q' || letter == 't'; }

  bool empty_port(const Block& block, std::int32_t channel) {
    for (const Port& port : ports_)
      if (&blocks_[port.block] == &block && port.channel == channel && !port.items.empty()) return false;
    return true;
  }

  // The first cell of a part of an operand on rank `on`.
  Store place(std::int32_t rank, const OneSidedStep& step, const Operand& operand, std::int32_t part,
              bool packet, std::int32_t on) {
    Store at{};
    at.rank = on;
    at.cell = first_of(on, operand.buffer, operand.index, at.bank);
    const std::int32_t offset = operand.count * parts_ / step.parts * step.part + part;
    at.cell += static_cast<std::size_t>(offset * kSlices);
    if (packet) at.cell *= 2;
    const bool found = packet || operand.where == Operand::Where::local;  // plain remote puts: first half
    if (at.bank == 2 && plan_.double_scratch && found && ranks_[rank].run % 2 == 0) at.bank = 3;
    return at;
  }

  std::vector<std::size_t> slices_of(const Item& item, std::size_t bank, bool packet) const {
    if (packet) return {0};
    if (item.turn < 0) return {0, 1, 2};
    if (bank >= 2 && plan_.reuse_resources) return {0};
    return {static_cast<std::size_t>(item.turn)};
  }

  std::uint64_t load(const Block& block, const Store& at, std::size_t slice) {
    std::uint64_t value = memory_[at.rank][at.bank][at.cell + slice].value;
    for (const Block& other : blocks_)
      for (const Store& store : other.stores)
        if (store.rank == at.rank && store.bank == at.bank && store.cell == at.cell + slice &&
            (&other == &block || draw(2) == 0))
          value = store.value;
    return value;
  }

  void commit(Block& block, bool all) {
    std::vector<Store> left;
    for (const Store& store : block.stores) {
      if (all || store.earlier)
        memory_[store.rank][store.bank][store.cell].value = store.value;
      else
        left.push_back(store);
    }
    block.stores = left;
  }

  std::vector<std::int32_t> ranks_of(std::int32_t rank, const Operand& operand) const {
    if (operand.where == Operand::Where::local) return {rank};
    if (operand.where == Operand::Where::remote) return {operand.peer};
    return plan_.ranks[rank].switches[operand.peer].ranks;
  }

  std::int64_t* other_end(std::int32_t rank, Path path, std::int32_t channel) {
    const auto& peers = path == Path::memory ? plan_.ranks[rank].memory_peers : plan_.ranks[rank].port_peers;
    const std::int32_t peer = peers[channel];
    std::int32_t number = 0;
    for (std::int32_t i = 0; i < channel; ++i) number += peers[i] == peer;
    const auto& theirs = path == Path::memory ? plan_.ranks[peer].memory_peers : plan_.ranks[peer].port_peers;
    for (std::size_t i = 0; i < theirs.size(); ++i)
      if (theirs[i] == rank && number-- == 0)
        return &ranks_[peer].counters[{path, static_cast<std::int32_t>(i)}];
    return nullptr;
  }

  Port& port_of(std::size_t block, std::int32_t channel) {
    for (Port& port : ports_)
      if (port.block == block && port.channel == channel) return port;
    ports_.push_back({block, channel, {}});
    return ports_.back();
  }

  void perform(std::size_t b, std::size_t i) {
    Block& block = blocks_[b];
    Item& item = block.items[i];
    const OneSidedStep& step = *item.step;
    Rank& rank = ranks_[block.rank];
    if (draw(4) == 0 && !block.stores.empty()) {  // a store becomes visible at a random time
      const std::size_t s = draw(block.stores.size());
      const Store store = block.stores[s];
      memory_[store.rank][store.bank][store.cell].value = store.value;
      block.stores.erase(block.stores.begin() + static_cast<std::ptrdiff_t>(s));
    }
    switch (step.verb) {
      case Verb::signal:
      case Verb::relaxed_signal: {
        if (step.verb == Verb::signal || step.path == Path::port) commit(block, false);
        std::int64_t* counter = other_end(block.rank, step.path, step.channels[item.pair]);
        if (step.path == Path::port) {
          PortItem given;
          given.signal = counter;
          port_of(b, step.channels[item.pair]).items.push_back(given);
        } else if (counter != nullptr) {
          ++*counter;
        }
        break;
      }
      case Verb::wait:
      case Verb::relaxed_wait: --rank.counters[{step.path, step.channels[item.pair]}]; break;
      case Verb::acquire: --rank.semaphores[step.semaphores[item.pair]]; break;
      case Verb::release:
        commit(block, false);
        ++rank.semaphores[step.semaphores[item.pair]];
        break;
      case Verb::flush: break;
      default:
        if (item.part < 0) {
          if (!item.issued) issue(b, item);
          item.issued = true;
          if (step.verb == Verb::put_signal_flush && !empty_port(block, step.channels[item.pair])) return;
        } else {
          move(block, item);
        }
    }
    item.done = true;
  }

  void issue(std::size_t b, const Item& item) {
    Block& block = blocks_[b];
    const OneSidedStep& step = *item.step;
    commit(block, false);
    const bool packets = step.verb == Verb::put_packets;
    Port& port = port_of(b, step.channels[item.pair]);
    PortItem given;
    given.rank = block.rank;
    given.packets = packets;
    given.run = ranks_[block.rank].run;
    const std::int32_t count = step.sources[item.pair].count * parts_ / step.parts;
    for (std::int32_t part = 0; part < count; ++part) {
      Store from = place(block.rank, step, step.sources[item.pair], part, packets, block.rank);
      Store to =
          place(block.rank, step, step.targets[item.pair], part, packets, step.targets[item.pair].peer);
      given.source_bank = from.bank;
      for (const std::size_t slice : slices_of(item, from.bank, packets)) {
        Store one = to;
        one.cell += slice;
        given.puts.push_back({from.cell + slice, one});
      }
    }
    port.items.push_back(given);
    if (step.verb != Verb::put_signal && step.verb != Verb::put_signal_flush) return;
    PortItem signal;
    signal.signal = other_end(block.rank, Path::port, step.channels[item.pair]);
    port.items.push_back(signal);
  }

  void read_port(PortItem& item) {
    if (item.read) return;
    item.read = true;
    for (auto& [source, to] : item.puts) to.value = memory_[item.rank][item.source_bank][source].value;
  }

  void advance_port(Port& port) {
    PortItem& item = port.items.front();
    if (!item.puts.empty() && !item.read) return read_port(item);
    for (const auto& [source, to] : item.puts)
      memory_[to.rank][to.bank][to.cell] = {to.value, item.packets ? item.run : 0};
    if (item.signal != nullptr) ++*item.signal;
    port.items.erase(port.items.begin());
  }

  void move(Block& block, const Item& item) {
    const OneSidedStep& step = *item.step;
    const collective::Shape shape = collective::shape(step.verb);
    const auto each = [&](const std::vector<Operand>& operands, std::string_view letters, auto&& what) {
      for (std::size_t k = 0; k < operands.size(); ++k) {
        if (shape.in_pairs && k != item.pair) continue;
        const bool packet = is_packet(collective::letter(letters, k));
        for (const std::int32_t on : ranks_of(block.rank, operands[k]))
          what(place(block.rank, step, operands[k], item.part, packet, on), packet, operands[k]);
      }
    };
    // A packet step handles all slices at once.
    const bool packets = shape.sources.find_first_of("pqt") != std::string_view::npos ||
                         shape.targets.find_first_of("pqt") != std::string_view::npos;
    for (std::size_t slice = 0; slice < static_cast<std::size_t>(kSlices); ++slice) {
      if (item.turn >= 0 && slice != static_cast<std::size_t>(item.turn)) continue;
      if (packets && slice > 0) continue;
      const auto slot = [&](const Store& at) {
        return at.bank >= 2 && plan_.reuse_resources && item.turn >= 0 ? 0 : slice;
      };
      std::uint64_t value = 0;
      each(step.sources, shape.sources, [&](const Store& at, bool packet, const Operand&) {
        value += packet ? memory_[at.rank][at.bank][at.cell].value : load(block, at, slot(at));
      });
      each(step.targets, shape.targets, [&](Store at, bool packet, const Operand& operand) {
        if (packet) {
          memory_[at.rank][at.bank][at.cell] = {value, ranks_[block.rank].run};
          return;
        }
        for (std::size_t s = 0; s < (packets ? static_cast<std::size_t>(kSlices) : 1); ++s) {
          Store one = at;
          one.cell += packets ? s : slot(at);
          one.value = value;
          std::erase_if(block.stores, [&](const Store& old) {
            return old.rank == one.rank && old.bank == one.bank && old.cell == one.cell;
          });
          if (operand.where == Operand::Where::switched)
            memory_[one.rank][one.bank][one.cell].value = value;
          else
            block.stores.push_back(one);
        }
      });
    }
  }

  const OneSided& plan_;
  const std::int32_t runs_;
  std::mt19937_64 random_;
  const std::int32_t parts_;
  std::vector<std::array<std::vector<Cell>, 4>> memory_;  // by rank and bank: input, output, scratch twice
  std::vector<Rank> ranks_;
  std::vector<Block> blocks_;
  std::vector<Port> ports_;
  std::string wrong_;
};

}  // namespace weft::plans
