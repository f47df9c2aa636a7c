#include "weft/collectives/one_sided/memory_order.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "weft/collectives/check/order_edges.h"
#include "weft/collectives/one_sided/counter_matching.h"
#include "weft/collectives/one_sided/one_sided_memory.h"
#include "weft/collectives/one_sided/packet_matching.h"

namespace weft::collective {
namespace {

constexpr std::int32_t kBanks = 4;  // per rank: input, output, scratch of odd runs, scratch of even runs

bool has_packets(std::string_view letters) { return letters.find_first_of("pqt") != std::string_view::npos; }
bool is_packet_letter(char letter) { return letter == 'p' || letter == 'q' || letter == 't'; }

class MemoryOrderBuilder {
 public:
  MemoryOrderBuilder(const OneSided& plan, const MemoryOrderOptions& turns)
      : plan_(plan),
        turns_(turns),
        parts_(parts_of_chunk(plan, 1 << 30)),
        memory_(memory_of(plan)),
        counters_(plan) {
    number_cells();
    answer_.callers.resize(plan.ranks.size());
    for (const OneSidedRank& rank : plan.ranks) {
      rank_chains_.push_back(edges_.new_chain());
      for (std::size_t b = 0; b < rank.blocks.size(); ++b) block_chains_.push_back(edges_.new_chain());
    }
    for (std::size_t rank = 0; rank < plan.ranks.size(); ++rank)
      add_caller(static_cast<std::int32_t>(rank), 0);
    for (run_ = 1; run_ <= turns.runs; ++run_) add_run();
    match_packets(answer_.nodes, answer_.accesses, edges_);
    finish();
  }

  MemoryOrder take() && { return std::move(answer_); }

 private:
  using Kind = MemoryNode::Kind;
  // Operations queued at the port, per block and channel.
  struct PortQueue {
    std::vector<std::int32_t> writes;  // since the last signal
    std::int32_t signal = -1;
    std::int32_t segment = -1, thread = -1;  // of the last one queued
  };

  void number_cells() {
    bool pipelines = false;
    for (const OneSidedRank& rank : plan_.ranks)
      for (const auto& block : rank.blocks)
        pipelines = pipelines || std::ranges::any_of(
                                     block, [](const OneSidedStep& s) { return s.verb == Verb::pipeline; });
    answer_.parts = parts_;
    answer_.slices = pipelines ? (turns_.slots > 0 ? std::max(turns_.slots, turns_.turns) : turns_.turns) : 1;
    answer_.first_cell.push_back(0);
    for (const RankMemory& memory : memory_)
      for (const std::int64_t chunks :
           {memory.chunks[0], memory.chunks[1], memory.chunks[2], memory.chunks[2]}) {
        // Packets take twice the size of their payload: those of chunk i are stored in chunks 2i
        // and 2i + 1.
        const bool scratch =
            answer_.first_cell.size() % kBanks == 3 || answer_.first_cell.size() % kBanks == 0;
        answer_.first_cell.push_back(answer_.first_cell.back() +
                                     chunks * parts_ * answer_.slices * (scratch ? 2 : 1));
      }
  }

  // Nodes and edges

  std::int32_t note(std::int32_t node, Kind kind, Where where) {
    answer_.nodes.push_back({kind, where, run_, segment_, -1});
    return node;
  }
  std::int32_t add_node(Kind kind, Where where) { return note(edges_.add_node(), kind, where); }
  std::int32_t add_to_chain(std::int32_t chain, Kind kind, Where where) {
    return note(edges_.add_to_chain(chain), kind, where);
  }
  void edge(std::int32_t from, std::int32_t to, bool relaxed = false) { edges_.add(from, to, relaxed); }

  void add_caller(std::int32_t rank, std::int32_t run) {
    run_ = run;
    answer_.callers[rank].push_back(add_to_chain(rank_chains_[rank], Kind::caller, {rank}));
  }

  // Runs and blocks

  void add_run() {
    uses_.assign(static_cast<std::size_t>(counters_.count()), {});
    barriers_.clear();
    std::int32_t block_chain = 0;
    for (std::size_t r = 0; r < plan_.ranks.size(); ++r) {
      rank_ = static_cast<std::int32_t>(r);
      begin_ = add_to_chain(rank_chains_[r], Kind::order, {rank_});
      end_edges_.clear();
      for (std::size_t b = 0; b < plan_.ranks[r].blocks.size(); ++b)
        add_block(static_cast<std::int32_t>(b), block_chain++, plan_.ranks[r].blocks[b]);
      const std::int32_t end = add_to_chain(rank_chains_[r], Kind::order, {rank_});
      for (const std::int32_t node : end_edges_) edge(node, end);
      add_caller(rank_, run_);
    }
    for (std::size_t i = 0; i < uses_.size(); ++i)
      match_counters(uses_[i], counters_.initial(static_cast<std::int32_t>(i)), edges_);
  }

  void add_block(std::int32_t block, std::int32_t chain, const std::vector<OneSidedStep>& steps) {
    block_ = block;
    chain_ = block_chains_[static_cast<std::size_t>(chain)];
    queues_.clear();
    rounds_.clear();
    previous_ = -1;
    where_ = {rank_, block, -1};
    start_ = add_ordered(add_to_chain(chain_, Kind::order, where_));
    edge(begin_, start_);
    open_segment();
    turn_ = -1;
    add_steps(steps, 0);
    end_edges_.push_back(close_segment());
  }

  // Keeps the nodes of a block in program order in play().
  std::int32_t add_ordered(std::int32_t node) {
    if (previous_ >= 0) edges_.add_program_order(previous_, node);
    previous_ = node;
    return node;
  }

  void open_segment() {
    ++segment_;
    members_.clear();
    threads_.clear();
  }

  std::int32_t close_segment() {
    const std::int32_t node = add_ordered(add_to_chain(chain_, Kind::order, where_));
    for (const std::int32_t member : members_) edge(member, node);
    start_ = node;
    open_segment();
    return node;
  }

  void add_steps(const std::vector<OneSidedStep>& steps, std::int32_t first_step) {
    std::int32_t number = first_step;
    for (const OneSidedStep& step : steps) {
      where_.step = number++;
      if (step.verb == Verb::pipeline) {
        for (turn_ = 0; turn_ < turns_.turns; ++turn_) add_steps(step.body, number);
        turn_ = -1;
        number += static_cast<std::int32_t>(step.body.size());
      } else {
        add_step(step);
      }
    }
  }

  void add_step(const OneSidedStep& step) {
    switch (step.verb) {
      case Verb::nop: close_segment(); return;
      case Verb::barrier: return add_barrier(step);
      case Verb::signal:
      case Verb::relaxed_signal:
        for (std::size_t t = 0; t < step.channels.size(); ++t)
          add_signal(step.path, step.channels[t], static_cast<std::int32_t>(t),
                     step.verb == Verb::relaxed_signal);
        return;
      case Verb::wait:
      case Verb::relaxed_wait:
        for (std::size_t t = 0; t < step.channels.size(); ++t)
          take_from(counters_.channel(rank_, step.path, step.channels[t]), static_cast<std::int32_t>(t),
                    step.verb == Verb::relaxed_wait && step.path == Path::memory);
        return;
      case Verb::flush:
        for (std::size_t t = 0; t < step.channels.size(); ++t)
          add_flush(step.channels[t], static_cast<std::int32_t>(t));
        return;
      case Verb::release:
        for (std::size_t t = 0; t < step.semaphores.size(); ++t)
          raise(counters_.semaphore(rank_, step.semaphores[t]), in_thread(static_cast<std::int32_t>(t)),
                static_cast<std::int32_t>(t), false);
        return;
      case Verb::acquire:
        for (std::size_t t = 0; t < step.semaphores.size(); ++t)
          take_from(counters_.semaphore(rank_, step.semaphores[t]), static_cast<std::int32_t>(t), false);
        return;
      default: return add_data(step);
    }
  }

  void add_barrier(const OneSidedStep& step) {
    const std::int32_t arrival = close_segment();
    if (step.members <= 1) return;
    const std::int32_t round = rounds_[step.barrier]++;
    const auto [at, fresh] = barriers_.try_emplace({rank_, step.barrier, round}, 0);
    if (fresh) at->second = add_node(Kind::order, {rank_});
    edge(arrival, at->second);
    start_ = add_ordered(add_to_chain(chain_, Kind::order, where_));
    edge(at->second, start_);
  }

  // A node that thread t of the block executes alone.
  std::int32_t in_thread(std::int32_t thread) {
    const std::int32_t node = add_ordered(add_node(Kind::step, where_));
    edge(start_, node);
    if (const auto last = threads_.find(thread); last != threads_.end()) edge(last->second, node);
    threads_[thread] = node;
    members_.push_back(node);
    return node;
  }

  void raise(std::int32_t counter, std::int32_t node, std::int32_t thread, bool relaxed) {
    if (counter < 0) return;
    add_turn(uses_[static_cast<std::size_t>(counter)].raises, {node, block_, segment_, thread, relaxed});
  }
  void take_from(std::int32_t counter, std::int32_t thread, bool relaxed) {
    add_turn(uses_[static_cast<std::size_t>(counter)].takes,
             {in_thread(thread), block_, segment_, thread, relaxed});
  }
  // Two uses of a counter must be ordered; otherwise it is undefined which is the k-th.
  void add_turn(std::vector<CounterEvent>& turns, const CounterEvent& turn) {
    if (!turns.empty() && turns.back().block == turn.block && turns.back().segment == turn.segment &&
        turns.back().thread != turn.thread && answer_.nodes[turns.back().node].where.rank == rank_ &&
        !answer_.finding)
      answer_.finding = Finding{
          Verdict::race, where_,
          fmt::format(
              "uses a channel or semaphore that step {} also uses, in another thread and with no nop between",
              answer_.nodes[turns.back().node].where.step)};
    turns.push_back(turn);
  }

  void add_signal(Path path, std::int32_t channel, std::int32_t thread, bool relaxed) {
    const std::int32_t node = in_thread(thread), end = counters_.other_end(rank_, path, channel);
    if (path == Path::memory) return raise(end, node, thread, relaxed);
    raise(end, queue_signal(channel, thread, node), thread, false);
  }

  // Follows every operation that is certainly ahead of it in the queue.
  std::int32_t queue_signal(std::int32_t channel, std::int32_t thread, std::int32_t issue) {
    const std::int32_t node = add_ordered(add_node(Kind::order, where_));
    edge(issue, node);
    PortQueue& queue = queue_of(channel, thread);
    for (const std::int32_t write : queue.writes) edge(write, node);
    if (queue.signal >= 0) edge(queue.signal, node);
    queue.writes.clear();
    queue.signal = node;
    return node;
  }

  PortQueue& queue_of(std::int32_t channel, std::int32_t thread) {
    PortQueue& queue = queues_[channel];
    if (queue.segment == segment_ && queue.thread != thread) queue.writes.clear(), queue.signal = -1;
    queue.segment = segment_;
    queue.thread = thread;
    return queue;
  }

  void add_flush(std::int32_t channel, std::int32_t thread) {
    const std::int32_t node = in_thread(thread);
    PortQueue& queue = queue_of(channel, thread);
    for (const std::int32_t write : queue.writes) edge(write, node);
    if (queue.signal >= 0) edge(queue.signal, node);
  }

  // Data

  struct Range {
    std::int64_t base = 0, width = 1;  // in cells; `width` of them per part of a chunk
    bool whole = true;                 // all slices
    Operand::Where where = Operand::Where::local;
    bool packet = false;
  };

  void ranges_of(const OneSidedStep& step, const Operand& operand, bool packet, std::vector<Range>& ranges) {
    const std::int32_t offset = operand.count * parts_ / step.parts * step.part;
    const auto add = [&](std::int32_t rank) {
      const Slot slot = resolve(plan_.collective, placement(plan_), rank, {operand.buffer, operand.index});
      std::size_t bank = static_cast<std::size_t>(slot.buffer);
      if (slot.buffer == Buffer::scratch && plan_.double_scratch && run_ % 2 == 0) ++bank;
      const std::int64_t width = packet ? 2 : 1;
      const std::int64_t part = std::int64_t{slot.index} * parts_ + offset;
      ranges.push_back(
          {answer_.first_cell[static_cast<std::size_t>(rank) * kBanks + bank] + part * width * answer_.slices,
           width, slot.buffer == Buffer::scratch, operand.where, packet});
    };
    if (operand.where == Operand::Where::local) return add(rank_);
    if (operand.where == Operand::Where::remote) return add(operand.peer);
    for (const std::int32_t member : plan_.ranks[rank_].switches[operand.peer].ranks) add(member);
  }

  void add_data(const OneSidedStep& step) {
    const Shape operands = shape(step.verb);
    const bool port = step.path == Path::port;
    const bool source_packets = step.verb == Verb::put_packets && port;
    std::vector<std::vector<Range>> sources(step.sources.size()), targets(step.targets.size());
    for (std::size_t i = 0; i < sources.size(); ++i)
      ranges_of(step, step.sources[i], source_packets || is_packet_letter(letter(operands.sources, i)),
                sources[i]);
    for (std::size_t i = 0; i < targets.size(); ++i)
      ranges_of(step, step.targets[i], is_packet_letter(letter(operands.targets, i)), targets[i]);
    in_packets_ = has_packets(operands.sources) || has_packets(operands.targets);
    if (!operands.in_pairs) {
      std::vector<Range> from, to;
      for (const auto& ranges : sources) from.insert(from.end(), ranges.begin(), ranges.end());
      for (const auto& ranges : targets) to.insert(to.end(), ranges.begin(), ranges.end());
      if (step.verb == Verb::copy && from.front().base == to.front().base) return;
      return add_block_data(step, step.sources.front().count, from, to);
    }
    for (std::size_t i = 0; i < sources.size(); ++i) {
      if (port && (step.verb == Verb::put || step.verb == Verb::put_signal ||
                   step.verb == Verb::put_signal_flush || step.verb == Verb::put_packets))
        add_port_put(step, i, sources[i], targets[i]);
      else
        add_block_data(step, step.sources[i].count, sources[i], targets[i]);
    }
  }

  void add_block_data(const OneSidedStep& step, std::int32_t chunks, const std::vector<Range>& from,
                      const std::vector<Range>& to) {
    const std::int32_t count = chunks * parts_ / step.parts;
    // Packets are ordered part by part; other data only as a whole.
    const std::int32_t grain = in_packets_ ? 1 : count;
    for (std::int32_t done = 0; done < count; done += grain) {
      const std::int32_t node = add_ordered(add_node(Kind::step, where_));
      edge(start_, node);
      members_.push_back(node);
      for (const Range& range : from) touch(node, range, done, grain, false, false);
      for (const Range& range : to) {
        const bool copies =
            from.size() == 1 && range.packet && from.front().packet && from.front().base == range.base;
        source_ = from.size() == 1 ? from.front().base + done * from.front().width * answer_.slices : -1;
        touch(node, range, done, grain, true, copies);
      }
      source_ = -1;
    }
  }

  // Thread i of the block posts the i-th pair to the port.
  void add_port_put(const OneSidedStep& step, std::size_t i, const std::vector<Range>& from,
                    const std::vector<Range>& to) {
    const auto thread = static_cast<std::int32_t>(i);
    const std::int32_t count = step.sources[i].count * parts_ / step.parts;
    const std::int32_t issue = in_thread(thread);
    const std::int32_t channel = i < step.channels.size() ? step.channels[i] : -1;
    PortQueue& queue = queue_of(channel, thread);
    std::vector<std::int32_t> writes;
    const std::int32_t grain = in_packets_ ? 1 : count;
    for (std::int32_t done = 0; done < count; done += grain) {
      const std::int32_t read = add_ordered(add_node(Kind::port_read, where_));
      const std::int32_t write = add_ordered(add_node(Kind::port_write, where_));
      answer_.nodes[read].issue = answer_.nodes[write].issue = issue;
      edge(issue, read);
      edge(read, write);
      end_edges_.push_back(read);  // a port has read its source when the rank ends
      for (const Range& range : from) touch(read, range, done, grain, false, false);
      for (const Range& range : to) touch(write, range, done, grain, true, false);
      queue.writes.push_back(write);
    }
    if (step.verb != Verb::put_signal && step.verb != Verb::put_signal_flush) return;
    const std::int32_t signal = queue_signal(channel, thread, issue);
    raise(counters_.other_end(rank_, Path::port, channel), signal, thread, false);
    if (step.verb == Verb::put_signal_flush) add_flush(channel, thread);
  }

  void touch(std::int32_t node, const Range& range, std::int32_t done, std::int32_t count, bool writes,
             bool copies) {
    const std::int64_t slices = answer_.slices;
    const bool packets = in_packets_;
    const bool switched = writes && range.where == Operand::Where::switched;
    for (std::int64_t i = done * range.width; i < (done + count) * range.width; ++i) {
      const std::int64_t first = range.base + i * slices;
      const auto add = [&](std::int64_t slice) {
        answer_.accesses.push_back({first + slice, range.base + slice, node, writes, range.packet, copies,
                                    packets, source_, switched});
      };
      if (turn_ < 0) {
        for (std::int64_t slice = 0; slice < slices; ++slice) add(slice);
      } else {
        add(range.whole && turns_.slots > 0 ? turn_ % turns_.slots : turn_);
      }
    }
  }

  // Builds two graphs and one run from the collected nodes and edges.
  void finish() {
    const std::vector<std::int32_t> number = edges_.renumber();
    std::vector<MemoryNode> nodes(number.size());
    for (std::size_t i = 0; i < number.size(); ++i) {
      MemoryNode& node = nodes[static_cast<std::size_t>(number[i])];
      node = answer_.nodes[i];
      if (node.issue >= 0) node.issue = number[static_cast<std::size_t>(node.issue)];
    }
    answer_.nodes = std::move(nodes);
    for (MemoryAccess& access : answer_.accesses) access.node = number[static_cast<std::size_t>(access.node)];
    for (auto& callers : answer_.callers)
      for (std::int32_t& caller : callers) caller = number[static_cast<std::size_t>(caller)];
    answer_.control = edges_.graph(true);
    answer_.data = edges_.graph(false);
    answer_.order = edges_.play();
    answer_.position.assign(answer_.nodes.size(), -1);
    for (std::size_t at = 0; at < answer_.order.size(); ++at)
      answer_.position[static_cast<std::size_t>(answer_.order[at])] = static_cast<std::int32_t>(at);
    if (answer_.order.size() == answer_.nodes.size() || answer_.finding) return;
    const auto stuck = std::ranges::find(answer_.position, -1) - answer_.position.begin();
    answer_.finding = Finding{Verdict::deadlock, answer_.nodes[static_cast<std::size_t>(stuck)].where,
                              "waits for an operation that comes after it"};
  }

  const OneSided& plan_;
  const MemoryOrderOptions turns_;
  const std::int32_t parts_;
  const std::vector<RankMemory> memory_;
  MemoryOrder answer_;
  const CounterNumbers counters_;
  OrderEdges edges_;
  std::vector<std::int32_t> rank_chains_, block_chains_;

  std::int32_t run_ = 0, rank_ = 0, block_ = 0, chain_ = 0, turn_ = -1, segment_ = 0;
  std::int32_t begin_ = 0, start_ = 0, previous_ = -1;
  bool in_packets_ = false;
  std::int64_t source_ = -1;
  Where where_;
  std::vector<std::int32_t> members_, end_edges_;
  std::map<std::int32_t, std::int32_t> threads_;  // in this segment: thread -> its last node
  std::map<std::int32_t, std::int32_t> rounds_;   // per barrier, in this block
  std::map<std::int32_t, PortQueue> queues_;      // per channel, in this block
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, std::int32_t> barriers_;  // rank, id, round
  std::vector<CounterUse> uses_;                                                           // in this run
};

}  // namespace

MemoryOrder::Place MemoryOrder::place(std::int64_t cell) const {
  const auto after = std::upper_bound(first_cell.begin(), first_cell.end(), cell);
  const std::int64_t row = after - first_cell.begin() - 1;
  const auto bank = static_cast<std::int32_t>(row % kBanks);
  return {static_cast<std::int32_t>(row / kBanks), static_cast<Buffer>(std::min(bank, 2)),
          static_cast<std::int32_t>((cell - first_cell[static_cast<std::size_t>(row)]) /
                                    (std::int64_t{parts} * slices))};
}

MemoryOrder memory_order(const OneSided& plan, const MemoryOrderOptions& turns) {
  return MemoryOrderBuilder(plan, turns).take();
}

}  // namespace weft::collective
