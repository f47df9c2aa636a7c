#include "weft/app/explain/step_order.h"

#include <algorithm>
#include <array>
#include <map>

namespace weft::explain {
namespace {

using collective::Program;
using collective::Step;
using collective::Threadblock;

// The sends and receives of one connection, each in order.
struct Traffic {
  std::vector<std::int32_t> sends, receives;
};

std::vector<StepMessage> match(const Traffic& traffic, const std::vector<const Step*>& steps) {
  std::vector<StepMessage> messages;
  std::size_t send = 0, receive = 0;
  std::int32_t sent = 0, received = 0;  // chunks matched so far of the current send and receive
  while (send < traffic.sends.size() && receive < traffic.receives.size()) {
    const std::int32_t sender = traffic.sends[send], receiver = traffic.receives[receive];
    const std::int32_t left = steps[static_cast<std::size_t>(sender)]->count - sent;
    const std::int32_t room = steps[static_cast<std::size_t>(receiver)]->count - received;
    const std::int32_t chunks = std::min(left, room);
    if (chunks > 0) messages.push_back({sender, receiver, chunks});
    sent += chunks;
    received += chunks;
    if (chunks == left) ++send, sent = 0;
    if (chunks == room) ++receive, received = 0;
  }
  return messages;
}

class Orderer {
 public:
  explicit Orderer(const Program& program) : program_(program) {}

  StepOrder order() && {
    place_steps();
    find_messages();
    find_depths();
    return std::move(order_);
  }

 private:
  void place_steps() {
    for (std::size_t rank = 0; rank < program_.ranks.size(); ++rank) {
      auto& starts = block_starts_.emplace_back();
      const auto& blocks = program_.ranks[rank].blocks;
      for (std::size_t block = 0; block < blocks.size(); ++block) {
        starts.push_back(static_cast<std::int32_t>(order_.steps.size()));
        const Threadblock& threadblock = blocks[block];
        for (std::size_t step = 0; step < threadblock.steps.size(); ++step) {
          const auto id = static_cast<std::int32_t>(order_.steps.size());
          order_.steps.push_back({static_cast<std::int32_t>(rank), static_cast<std::int32_t>(block),
                                  static_cast<std::int32_t>(step)});
          const Step& each = threadblock.steps[step];
          steps_.push_back(&each);
          const auto me = static_cast<std::int32_t>(rank);
          if (collective::sends(each.op))
            traffic_[{me, threadblock.send_to, threadblock.channel}].sends.push_back(id);
          if (collective::receives(each.op))
            traffic_[{threadblock.receive_from, me, threadblock.channel}].receives.push_back(id);
        }
      }
    }
  }

  void find_messages() {
    // A receive that is sent fewer chunks than it expects never runs.
    wanted_.assign(steps_.size(), 0);
    for (std::size_t id = 0; id < steps_.size(); ++id)
      if (collective::receives(steps_[id]->op)) wanted_[id] = steps_[id]->count;
    for (const auto& [connection, traffic] : traffic_) {
      for (const StepMessage& message : match(traffic, steps_)) {
        order_.messages.push_back(message);
        wanted_[static_cast<std::size_t>(message.receiver)] -= message.chunks;
      }
    }
  }

  void find_depths() {
    const std::size_t count = steps_.size();
    std::vector<std::vector<std::int32_t>> after(count);
    std::vector<std::int32_t> missing(count, 0);
    const auto add = [&](std::int32_t before, std::size_t id) {
      after[static_cast<std::size_t>(before)].push_back(static_cast<std::int32_t>(id));
      ++missing[id];
    };
    for (std::size_t id = 0; id < count; ++id) {
      const PlacedStep& place = order_.steps[id];
      if (place.step > 0) add(static_cast<std::int32_t>(id) - 1, id);
      if (steps_[id]->wait_block >= 0)
        add(block_starts_[static_cast<std::size_t>(place.rank)]
                         [static_cast<std::size_t>(steps_[id]->wait_block)] +
                steps_[id]->wait_step,
            id);
      if (wanted_[id] > 0) ++missing[id];
    }
    for (const StepMessage& message : order_.messages)
      add(message.sender, static_cast<std::size_t>(message.receiver));
    order_.depths.assign(count, -1);
    std::vector<std::int32_t> depth(count, 0), ready;
    for (std::size_t id = 0; id < count; ++id)
      if (missing[id] == 0) ready.push_back(static_cast<std::int32_t>(id));
    while (!ready.empty()) {
      const auto id = static_cast<std::size_t>(ready.back());
      ready.pop_back();
      order_.depths[id] = depth[id];
      for (const std::int32_t next : after[id]) {
        const auto to = static_cast<std::size_t>(next);
        depth[to] = std::max(depth[to], depth[id] + 1);
        if (--missing[to] == 0) ready.push_back(next);
      }
    }
  }

  const Program& program_;
  StepOrder order_;
  std::vector<const Step*> steps_;  // parallel to order_.steps
  std::vector<std::vector<std::int32_t>> block_starts_;
  std::vector<std::int32_t> wanted_;                        // expected chunks that no step sends
  std::map<std::array<std::int32_t, 3>, Traffic> traffic_;  // by sender, receiver, channel
};

}  // namespace

StepOrder order_steps(const Program& program) { return Orderer(program).order(); }

}  // namespace weft::explain
