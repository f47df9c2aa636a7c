#include "weft/collectives/one_sided/lower_one_sided.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

namespace weft::collective {
namespace {

constexpr std::int64_t kMostChunksSent = 1 << 24;  // each has its own scratch chunk

// A connection of the program: the scratch of its messages and the channel that signals them.
struct Link {
  std::int32_t from = 0, to = 0;
  Path path = Path::memory;
  std::int32_t sender_channel = 0, receiver_channel = 0;  // index among each rank's channels of this path
  std::int32_t slot = 0;                                  // its first chunk of scratch at the receiver
  std::int32_t chunks = 0;                                // in all its messages
};

using LinkKey = std::tuple<std::int32_t, std::int32_t, std::int32_t>;  // channel, from, to

// The semaphores that synchronize the blocks of one rank.
struct Semaphores {
  // By block and step: the semaphores to release after it, and the one to acquire before it.
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<std::int32_t>> released;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> acquired;
  std::int32_t count = 0;
};

Semaphores assign_semaphores(const RankProgram& rank) {
  Semaphores semaphores;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> of_pair;  // publishing block, waiting block
  for (std::size_t block = 0; block < rank.blocks.size(); ++block) {
    const auto waiter = static_cast<std::int32_t>(block);
    std::map<std::int32_t, std::int32_t> known;  // block -> its last step that is certainly done
    const std::vector<Step>& steps = rank.blocks[block].steps;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const std::int32_t other = steps[i].wait_block;
      if (other < 0 || other == waiter) continue;
      const std::vector<Step>& theirs = rank.blocks[other].steps;
      std::int32_t published = steps[i].wait_step;
      while (published + 1 < static_cast<std::int32_t>(theirs.size()) && !theirs[published].publishes)
        ++published;
      std::int32_t& done = known.try_emplace(other, -1).first->second;
      if (published <= done) continue;
      done = published;
      const auto [semaphore, fresh] = of_pair.try_emplace({other, waiter}, semaphores.count);
      if (fresh) ++semaphores.count;
      semaphores.released[{other, published}].push_back(semaphore->second);
      semaphores.acquired[{waiter, static_cast<std::int32_t>(i)}] = semaphore->second;
    }
  }
  return semaphores;
}

Operand local(const Slot& slot, std::int32_t count) {
  return {Operand::Where::local, 0, slot.buffer, slot.index, count};
}

// Writes the steps of one threadblock. All threads of a block share a data operation; one of them
// waits and signals. A nop synchronizes them in between, and between operations that conflict.
class BlockWriter {
 public:
  const std::vector<OneSidedStep>& steps() const { return steps_; }

  void wait(Verb verb, Path path, std::int32_t channel) {
    add({.verb = verb, .path = path, .channels = {channel}});
    waited_ = true;
  }
  void acquire(std::int32_t semaphore) {
    add({.verb = Verb::acquire, .semaphores = {semaphore}});
    waited_ = true;
  }
  void signal(Verb verb, Path path, std::int32_t channel) {
    if (!touched_.empty() || waited_) nop();
    add({.verb = verb, .path = path, .channels = {channel}});
  }
  void release(std::vector<std::int32_t> semaphores) {
    if (!touched_.empty() || waited_) nop();
    add({.verb = Verb::release, .semaphores = std::move(semaphores)});
  }

  void data(OneSidedStep step) {
    if (waited_ || conflicts(step)) nop();
    for (const Operand& operand : step.sources) touched_.push_back({operand, false});
    for (const Operand& operand : step.targets) touched_.push_back({operand, true});
    add(std::move(step));
  }

 private:
  struct Touch {
    Operand operand;
    bool writes = false;
  };

  void nop() {
    add({});
    touched_.clear();
    waited_ = false;
  }

  void add(OneSidedStep step) { steps_.push_back(std::move(step)); }

  static bool overlap(const Operand& one, const Operand& other) {
    if (one.where != other.where || one.peer != other.peer) return false;
    // In place, input and output may be the same memory.
    if (one.buffer != other.buffer) return one.buffer != Buffer::scratch && other.buffer != Buffer::scratch;
    return one.index < other.index + other.count && other.index < one.index + one.count;
  }

  bool conflicts(const OneSidedStep& step) const {
    return std::ranges::any_of(touched_, [&](const Touch& touch) {
      const auto meets = [&](const Operand& operand) { return overlap(operand, touch.operand); };
      return std::ranges::any_of(step.targets, meets) ||
             (touch.writes && std::ranges::any_of(step.sources, meets));
    });
  }

  std::vector<OneSidedStep> steps_;
  std::vector<Touch> touched_;  // since the last nop
  bool waited_ = false;         // since the last nop
};

class Lowering {
 public:
  Lowering(const Program& program, const OneSidedOptions& options) : program_(program), options_(options) {}

  OneSided lower() {
    plan_.name = program_.name;
    plan_.collective_word = word_of(program_.collective.kind);
    plan_.collective = program_.collective;
    plan_.in_place = program_.placement != Placement::out_of_place;
    plan_.min_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(program_.min_bytes, 0));
    if (program_.max_bytes > 0) plan_.max_bytes = static_cast<std::uint64_t>(program_.max_bytes);
    for (std::size_t rank = 0; rank < program_.ranks.size(); ++rank)
      add_buffers(static_cast<std::int32_t>(rank));
    add_links();
    for (std::size_t rank = 0; rank < program_.ranks.size(); ++rank)
      add_blocks(static_cast<std::int32_t>(rank));
    return std::move(plan_);
  }

 private:
  // MSCCL++'s spelling: without underscores, and sendrecv.
  static std::string word_of(Kind kind) { return kind == Kind::send ? "sendrecv" : field_name(kind); }

  void add_buffers(std::int32_t rank) {
    const RankProgram& own = program_.ranks[rank];
    OneSidedRank& made = plan_.ranks.emplace_back();
    made.input_chunks = std::max(own.input_chunks, extent(program_.collective, Buffer::input, rank));
    made.output_chunks = std::max(own.output_chunks, extent(program_.collective, Buffer::output, rank));
    made.scratch_chunks = own.scratch_chunks;
  }

  // Adds the channels of both ends in the same order, so that the k-th of one matches the k-th of
  // the other.
  void add_links() {
    for (std::size_t rank = 0; rank < program_.ranks.size(); ++rank)
      for (const Threadblock& block : program_.ranks[rank].blocks) {
        if (block.send_to < 0) continue;
        std::int32_t& chunks = links_[{block.channel, static_cast<std::int32_t>(rank), block.send_to}].chunks;
        for (const Step& step : block.steps) chunks += sends(step.op) ? step.count : 0;
      }
    std::erase_if(links_, [](const auto& link) { return link.second.chunks == 0; });
    for (auto& entry : links_) {
      const LinkKey& key = entry.first;
      Link& link = entry.second;
      link.from = std::get<1>(key);
      link.to = std::get<2>(key);
      link.path = path(link.from, link.to);
      const auto channel = [&](std::int32_t rank, std::int32_t peer) {
        OneSidedRank& end = plan_.ranks[rank];
        std::vector<std::int32_t>& peers = link.path == Path::memory ? end.memory_peers : end.port_peers;
        peers.push_back(peer);
        return static_cast<std::int32_t>(peers.size()) - 1;
      };
      link.sender_channel = channel(link.from, link.to);
      link.receiver_channel = channel(link.to, link.from);
      std::int32_t& scratch = plan_.ranks[link.to].scratch_chunks;
      link.slot = scratch;
      scratch += link.chunks;
    }
  }

  Path path(std::int32_t from, std::int32_t to) const {
    const std::int32_t node = options_.ranks_per_node;
    return node > 0 && from / node != to / node ? Path::port : Path::memory;
  }

  const Link* find(std::int32_t channel, std::int32_t from, std::int32_t to) const {
    const auto at = links_.find({channel, from, to});
    return at == links_.end() ? nullptr : &at->second;
  }

  void add_blocks(std::int32_t rank) {
    const Semaphores semaphores = assign_semaphores(program_.ranks[rank]);
    plan_.ranks[rank].semaphores.assign(static_cast<std::size_t>(semaphores.count), 0);
    const std::vector<Threadblock>& blocks = program_.ranks[rank].blocks;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const auto id = static_cast<std::int32_t>(i);
      const Threadblock& block = blocks[i];
      outgoing_ = {find(block.channel, rank, block.send_to)};
      incoming_ = {find(block.channel, block.receive_from, rank)};
      BlockWriter writer;
      if (incoming_.link)
        writer.signal(Verb::relaxed_signal, incoming_.link->path, incoming_.link->receiver_channel);
      for (std::size_t s = 0; s < block.steps.size(); ++s) {
        const std::pair place(id, static_cast<std::int32_t>(s));
        if (const auto at = semaphores.acquired.find(place); at != semaphores.acquired.end())
          writer.acquire(at->second);
        if (moves(rank, block.steps[s])) add_step(writer, block.steps[s]);
        if (const auto at = semaphores.released.find(place); at != semaphores.released.end())
          writer.release(at->second);
      }
      plan_.ranks[rank].blocks.push_back(writer.steps());
    }
  }

  // In place, a copy from input to output may have the same source and target.
  bool moves(std::int32_t rank, const Step& step) const {
    const Placement placement = plan_.in_place ? Placement::in_place : Placement::out_of_place;
    return step.op != Op::copy || resolve(program_.collective, placement, rank, step.source) !=
                                      resolve(program_.collective, placement, rank, step.target);
  }

  void add_step(BlockWriter& writer, const Step& step) {
    const Operand source = local(step.source, step.count), target = local(step.target, step.count);
    const Operand message = receives(step.op) ? receive(writer, step.count) : Operand{};
    switch (step.op) {
      case Op::nop: return;
      case Op::copy: return writer.data({.verb = Verb::copy, .sources = {source}, .targets = {target}});
      case Op::reduce:
        return writer.data({.verb = Verb::reduce, .sources = {target, source}, .targets = {target}});
      case Op::send: return send(writer, source);
      case Op::receive: return writer.data({.verb = Verb::copy, .sources = {message}, .targets = {target}});
      case Op::receive_copy_send:
        writer.data({.verb = Verb::copy, .sources = {message}, .targets = {target}});
        return send(writer, message);
      case Op::receive_reduce_copy:
        return writer.data({.verb = Verb::reduce, .sources = {source, message}, .targets = {target}});
      case Op::receive_reduce_send: return reduce_send(writer, source, message, message);
      case Op::receive_reduce_copy_send: return reduce_send(writer, source, message, target);
    }
  }

  // Waits for the next message; returns its location.
  Operand receive(BlockWriter& writer, std::int32_t count) {
    const Link& link = *incoming_.link;
    writer.wait(Verb::wait, link.path, link.receiver_channel);
    const Operand message{Operand::Where::local, 0, Buffer::scratch, link.slot + incoming_.chunks, count};
    incoming_.chunks += count;
    return message;
  }

  // The target of the next message. Before the first one, waits for the receiver.
  Operand next_slot(BlockWriter& writer, std::int32_t count) {
    const Link& link = *outgoing_.link;
    if (outgoing_.chunks == 0) writer.wait(Verb::relaxed_wait, link.path, link.sender_channel);
    const Operand slot{Operand::Where::remote, link.to, Buffer::scratch, link.slot + outgoing_.chunks, count};
    outgoing_.chunks += count;
    return slot;
  }

  void send(BlockWriter& writer, const Operand& source) {
    const Link& link = *outgoing_.link;
    const Operand slot = next_slot(writer, source.count);
    if (link.path == Path::port)
      return writer.data({.verb = Verb::put_signal_flush,
                          .path = link.path,
                          .sources = {source},
                          .targets = {slot},
                          .channels = {link.sender_channel}});
    writer.data({.verb = Verb::put, .path = link.path, .sources = {source}, .targets = {slot}});
    writer.signal(Verb::signal, link.path, link.sender_channel);
  }

  void reduce_send(BlockWriter& writer, const Operand& source, const Operand& message, const Operand& kept) {
    const Link& link = *outgoing_.link;
    if (link.path == Path::port) {
      writer.data({.verb = Verb::reduce, .sources = {source, message}, .targets = {kept}});
      return send(writer, kept);
    }
    const Operand slot = next_slot(writer, source.count);
    writer.data({.verb = Verb::reduce_send,
                 .path = link.path,
                 .sources = {source, message},
                 .targets = {kept, slot}});
    writer.signal(Verb::signal, link.path, link.sender_channel);
  }

  // The progress of the block being written on a connection.
  struct Progress {
    const Link* link = nullptr;
    std::int32_t chunks = 0;
  };

  const Program& program_;
  const OneSidedOptions& options_;
  OneSided plan_;
  std::map<LinkKey, Link> links_;
  Progress outgoing_, incoming_;
};

}  // namespace

Result<OneSided> lower_one_sided(const Program& program, const OneSidedOptions& options) {
  if (!program.collective.counts.empty())
    return user_error("expected blocks of one size, found several", "MSCCL++ has no collective with counts");
  if (const std::int64_t sent = count(program).chunks_sent; sent > kMostChunksSent)
    return user_error(fmt::format("expected at most {} chunks sent, found {}", kMostChunksSent, sent));
  OneSided plan = Lowering(program, options).lower();
  WEFT_TRY_STATUS(check_limits(plan));
  return plan;
}

}  // namespace weft::collective
