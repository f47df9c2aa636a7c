#include "weft/collectives/compile/order.h"

#include <algorithm>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "weft/base/check.h"
#include "weft/collectives/compile/fuse.h"

namespace weft::collective {
namespace {

// Rounds that unfuse only blocked instructions; after them all fused instructions are unfused.
constexpr int kMostRounds = 6;

// Costs in duration(): per step, per chunk over a link, and per chunk within memory.
constexpr std::int64_t kStep = 2, kLink = 4, kMemory = 1;

// The reason why a candidate instruction cannot run.
struct Obstacle {
  enum class What : std::uint8_t { none, receiver, room, itself } what = What::none;
  std::int32_t which = -1;  // the receiver that is not ready, or the full connection
  std::int32_t chain = -1;  // the fused instruction blocked there; -1: the sender itself
};

// Simulates the run. A connection is identified by the block that sends on it.
class Play {
 public:
  Play(const Instructions& instructions, std::int32_t slots)
      : all_(instructions), list_(instructions.list), slots_(slots), successors_(successors(instructions)) {
    const std::size_t size = list_.size(), blocks = all_.blocks.size();
    waits_.resize(size);
    for (std::int32_t i = 0; i < all_.size(); ++i)
      waits_[i] = static_cast<std::int32_t>(all_.dependences(i).size());
    time_.assign(size, 0);
    parked_.assign(size, false);
    woken_on_.assign(size, -1);
    sender_of_.assign(size, -1);
    next_.assign(size, -1);
    queues_.resize(blocks);
    walked_.assign(blocks, 0);
    order_.reserve(size);
    for (std::int32_t i = 0; i < all_.size(); ++i)
      if (waits_[i] == 0 && list_[i].giver < 0) offer(i);
  }

  // Runs until no instruction can run; returns whether all have run.
  bool run() {
    while (!ready_.empty()) {
      const std::int32_t i = std::get<3>(ready_.top());
      ready_.pop();
      const Obstacle obstacle = find_obstacle(i);
      const std::int32_t connection = std::exchange(woken_on_[i], -1);
      if (obstacle.what == Obstacle::What::none)
        execute(i);
      else
        park(i, obstacle);
      const bool full = obstacle.what == Obstacle::What::room && obstacle.which == connection;
      if (connection >= 0 && !full) wake_next(connection, time_[i]);  // there may be room for another
    }
    return order_.size() == list_.size();
  }

  const std::vector<std::int32_t>& order() const { return order_; }

  // The fused instructions that are blocked or block others.
  std::vector<std::int32_t> in_the_way() {
    std::vector<std::int32_t> result;
    for (std::int32_t i = 0; i < all_.size(); ++i) {
      if (!parked_[i]) continue;
      if (fused(list_[i].op)) result.push_back(i);
      if (const std::int32_t chain = find_obstacle(i).chain; chain >= 0) result.push_back(chain);
    }
    std::ranges::sort(result);
    result.erase(std::unique(result.begin(), result.end()), result.end());
    return result;
  }

 private:
  // Time, then whether it does not send, then the chunk, then the position in the list.
  using Entry = std::tuple<std::int32_t, bool, std::int32_t, std::int32_t>;
  using Heap = std::priority_queue<Entry, std::vector<Entry>, std::greater<>>;

  struct Queue {
    std::int32_t head = -1, tail = -1;  // receivers of the messages in flight
    std::int32_t chunks = 0;            // in flight
    Heap waiting;                       // for room; forwarded messages before new ones
  };

  Entry entry(std::int32_t i) const { return {time_[i], !sends(list_[i].op), list_[i].target.index, i}; }
  void offer(std::int32_t i) { ready_.push(entry(i)); }

  // Whether `receiver` waits for nothing but the message.
  bool expects(std::int32_t receiver) const { return waits_[receiver] == 0; }

  bool fits(std::int32_t sender) const {
    const Instruction& it = list_[sender];
    const bool starts = it.giver < 0, goes_on = sends(list_[it.taker].op);
    const std::int32_t limit = starts && goes_on ? slots_ - 1 : slots_;
    return queues_[it.block].chunks + it.count <= limit;
  }

  // Instructions that run concurrently with i are adjacent to it, so a block must not have two of
  // them.
  Obstacle find_obstacle(std::int32_t i) {
    ++walk_;
    for (std::int32_t at = i; sends(list_[at].op); at = list_[at].taker) {
      const std::int32_t chain = at == i ? -1 : at;
      walked_[list_[at].block] = walk_;
      if (!expects(list_[at].taker)) return {Obstacle::What::receiver, list_[at].taker, chain};
      if (fits(at)) return {};
      if (queues_[list_[at].block].chunks > 0) return {Obstacle::What::room, list_[at].block, chain};
      if (walked_[list_[list_[at].taker].block] == walk_) return {Obstacle::What::itself, -1, at};
    }
    return {};
  }

  void park(std::int32_t i, const Obstacle& obstacle) {
    parked_[i] = true;
    if (obstacle.what == Obstacle::What::receiver)
      sender_of_[obstacle.which] = i;
    else if (obstacle.what == Obstacle::What::room)
      queues_[obstacle.which].waiting.push({list_[i].giver < 0 ? 1 : 0, false, time_[i], i});
  }

  void wake_next(std::int32_t connection, std::int32_t time) {
    Heap& waiting = queues_[connection].waiting;
    if (waiting.empty()) return;
    const std::int32_t sender = std::get<3>(waiting.top());
    waiting.pop();
    woken_on_[sender] = connection;
    wake(sender, time);
  }

  void wake(std::int32_t i, std::int32_t time) {
    parked_[i] = false;
    time_[i] = std::max(time_[i], time);
    offer(i);
  }

  // Runs i and, if its message does not fit the connection, its receiver concurrently.
  void execute(std::int32_t i) {
    for (bool along = true; along;) {
      along = sends(list_[i].op) && !fits(i);
      order_.push_back(i);
      if (receives(list_[i].op)) take(i);
      if (sends(list_[i].op)) give(i, along);
      for (const std::int32_t later : successors_.of(i)) release(later, time_[i] + 1);
      i = list_[i].taker;
    }
  }

  void give(std::int32_t i, bool along) {
    const std::int32_t taker = list_[i].taker;
    Queue& queue = queues_[list_[i].block];
    queue.chunks += list_[i].count;
    time_[taker] = std::max(time_[taker], time_[i] + 1);
    if (queue.head < 0)
      queue.head = queue.tail = taker;
    else
      queue.tail = next_[queue.tail] = taker;
    if (queue.head == taker && !along) offer(taker);
  }

  void take(std::int32_t i) {
    const std::int32_t connection = list_[list_[i].giver].block;
    Queue& queue = queues_[connection];
    queue.chunks -= list_[i].count;
    queue.head = next_[i];
    if (queue.head >= 0) offer(queue.head);
    wake_next(connection, time_[i] + 1);
  }

  void release(std::int32_t later, std::int32_t time) {
    time_[later] = std::max(time_[later], time);
    if (--waits_[later] > 0) return;
    if (list_[later].giver < 0) offer(later);
    if (sender_of_[later] >= 0) wake(std::exchange(sender_of_[later], -1), time);
  }

  const Instructions& all_;
  const std::vector<Instruction>& list_;
  const std::int32_t slots_;
  const Successors successors_;
  std::vector<std::int32_t> waits_;  // unfinished dependences per instruction
  std::vector<std::int32_t> time_;   // earliest time it can run, in steps
  std::vector<bool> parked_;
  std::vector<std::int32_t> woken_on_;   // the connection whose free slot woke it; -1: none
  std::vector<std::int32_t> sender_of_;  // per receiver: the sender parked until it is ready
  std::vector<std::int32_t> next_;       // per receiver: the next in its queue
  std::vector<Queue> queues_;
  std::vector<std::int64_t> walked_;  // per block: the last chain walk that visited it
  std::int64_t walk_ = 0;
  Heap ready_;
  std::vector<std::int32_t> order_;
};

Instructions permuted(const Instructions& instructions, const std::vector<std::int32_t>& order) {
  std::vector<std::int32_t> now(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) now[order[i]] = static_cast<std::int32_t>(i);
  Instructions result = instructions;
  result.first.assign(1, 0);
  result.after.clear();
  for (std::size_t i = 0; i < order.size(); ++i) {
    Instruction& it = result.list[i];
    it = instructions.list[order[i]];
    if (it.giver >= 0) it.giver = now[it.giver];
    if (it.taker >= 0) it.taker = now[it.taker];
    for (const std::int32_t before : instructions.dependences(order[i])) result.after.push_back(now[before]);
    std::sort(result.after.begin() + static_cast<std::ptrdiff_t>(result.first.back()), result.after.end());
    result.first.push_back(static_cast<std::int64_t>(result.after.size()));
  }
  return result;
}

}  // namespace

Instructions order(const Instructions& assigned, std::int32_t slots) {
  Instructions current = assigned;
  for (int round = 0;; ++round) {
    Play play(current, slots);
    if (play.run()) return permuted(current, play.order());
    std::vector<std::int32_t> apart = play.in_the_way();
    WEFT_CHECK(!apart.empty(), "instructions have a circular dependency");
    if (round >= kMostRounds) {
      apart.clear();
      for (std::int32_t i = 0; i < current.size(); ++i)
        if (fused(current.list[i].op)) apart.push_back(i);
    }
    current = unfuse_instructions(current, apart);
  }
}

std::int64_t duration(const Instructions& ordered, std::int32_t slots) {
  std::vector<std::int64_t> start(ordered.list.size(), 0), end(ordered.list.size(), 0);
  std::vector<std::int64_t> free(ordered.blocks.size(), 0);
  std::int64_t last = 0;
  const auto earliest = [&](std::int32_t i) {
    std::int64_t time = free[ordered.list[i].block];
    for (const std::int32_t before : ordered.dependences(i)) time = std::max(time, end[before]);
    return time;
  };
  for (std::int32_t i = 0; i < ordered.size(); ++i) {
    const Instruction& it = ordered.list[i];
    start[i] = earliest(i);
    if (it.taker >= 0 && it.count > slots) start[i] = std::max(start[i], earliest(it.taker) - 1);
    if (it.giver >= 0) start[i] = std::max(start[i], start[it.giver] + 1);
    end[i] = start[i] + kStep + it.count * (sends(it.op) ? kLink : kMemory);
    if (it.giver >= 0) end[i] = std::max(end[i], end[it.giver] + 1);
    free[it.block] = end[i];
    last = std::max(last, end[i]);
  }
  return last;
}

}  // namespace weft::collective
