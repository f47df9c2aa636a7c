#include "weft/parallel/pipeline/exhaustive.h"

#include <algorithm>
#include <array>
#include <vector>

namespace weft::pipeline {
namespace {

class Exhaustion {
 public:
  Exhaustion(const Schedule& shape, const Network& network, const Limits& limits, double to_beat,
             std::int64_t most_steps)
      : shape_(shape), network_(network), limits_(limits), left_(most_steps), orders_(count(shape.stages)) {
    found_.cost = to_beat;
    state_.stages.resize(orders_.size());
    state_.end.assign(count(network.count()), -1);
    for (std::size_t stage = 0; stage < orders_.size(); ++stage)
      for (std::int32_t kind = 0; kind < 3; ++kind)
        state_.stages[stage].remaining +=
            shape.micro_batches * network.seconds(network.number(kind, 0, static_cast<std::int32_t>(stage)));
  }

  Exhausted run() {
    found_.complete = search();
    return std::move(found_);
  }

 private:
  struct Stage {
    std::array<std::int32_t, 3> done{};
    std::int32_t decided = -1;  // kind of the next pass, whose input has not arrived yet
    double free = 0, held = 0, first = -1, remaining = 0;
  };
  struct State {
    std::vector<Stage> stages;
    std::vector<double> end;
  };

  static std::size_t count(std::int32_t number) { return static_cast<std::size_t>(number); }

  // False if it gave up.
  bool search() {
    if (--left_ < 0) return false;
    const State before = state_;
    const Orders orders_before = orders_;
    run_decided();
    bool complete = true;
    if (bound() < found_.cost - 1e-9 * found_.cost) {
      std::int32_t chosen = -1;
      bool finished = true;
      for (std::size_t stage = 0; stage < state_.stages.size(); ++stage) {
        const Stage& at = state_.stages[stage];
        if (at.done[2] < shape_.micro_batches) finished = false;
        if (at.decided >= 0 || at.done[2] == shape_.micro_batches) continue;
        if (chosen < 0 || at.free < state_.stages[count(chosen)].free)
          chosen = static_cast<std::int32_t>(stage);
      }
      if (finished) {
        found_.cost = bound();
        found_.orders = orders_;
      } else if (chosen >= 0) {  // otherwise all wait for one another
        complete = branch(count(chosen));
      }
    }
    state_ = before;
    orders_ = orders_before;
    return complete;
  }

  bool branch(std::size_t chosen) {
    for (const std::int32_t kind : {1, 0, 2}) {
      Stage& at = state_.stages[chosen];
      const auto which = count(kind);
      const std::int32_t most = kind == 0 ? shape_.micro_batches : at.done[which - 1];
      if (at.done[which] >= most) continue;
      if (kind == 0 && at.held + 1 > limits_.held[chosen] + 1e-9) continue;
      at.decided = kind;
      const bool complete = search();
      state_.stages[chosen].decided = -1;
      if (!complete) return false;
    }
    return true;
  }

  void run_decided() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t stage = 0; stage < state_.stages.size(); ++stage) {
        Stage& at = state_.stages[stage];
        if (at.decided < 0) continue;
        const auto kind = count(at.decided);
        const std::int32_t pass =
            network_.number(at.decided, at.done[kind], static_cast<std::int32_t>(stage));
        double begin = at.free;
        if (const std::int32_t need = network_.needs(pass); need >= 0) {
          if (state_.end[count(need)] < 0) continue;
          begin = std::max(begin, state_.end[count(need)] + network_.wire(pass));
        }
        if (at.first < 0) at.first = begin;
        at.free = state_.end[count(pass)] = begin + network_.seconds(pass);
        at.remaining -= network_.seconds(pass);
        at.held += kind == 0 ? 1 : kind == 1 ? limits_.weight_share - 1 : -limits_.weight_share;
        ++at.done[kind];
        at.decided = -1;
        orders_[stage].push_back(pass);
        moved = true;
      }
    }
  }

  double bound() const {
    double most = 0;
    for (const Stage& at : state_.stages)
      most = std::max(most, at.free + at.remaining -
                                (shape_.clock == Clock::span && at.first >= 0 ? at.first
                                 : at.first < 0                               ? at.free
                                                                              : 0));
    return most;
  }

  const Schedule& shape_;
  const Network& network_;
  const Limits& limits_;
  std::int64_t left_;
  Orders orders_;
  State state_;
  Exhausted found_;
};

}  // namespace

Exhausted exhaust(const Schedule& shape, const Network& network, const Limits& limits, double to_beat,
                  std::int64_t most_steps) {
  return Exhaustion(shape, network, limits, to_beat, most_steps).run();
}

}  // namespace weft::pipeline
