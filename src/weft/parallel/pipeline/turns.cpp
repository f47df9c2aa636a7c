#include "weft/parallel/pipeline/turns.h"

#include <algorithm>
#include <array>

namespace weft::pipeline {
namespace {

constexpr double kMemorySlack = 1e-9;

class TakingTurns {
 public:
  TakingTurns(const Schedule& shape, const Network& network, const Limits& limits, const TurnsPolicy& policy)
      : shape_(shape),
        network_(network),
        limits_(limits),
        policy_(policy),
        end_(index(network.count()), -1),
        stages_(index(shape.stages)) {
    for (std::int32_t stage = 0; stage < shape.stages; ++stage)
      for (std::int32_t kind = 0; kind < 3; ++kind)
        for (std::int32_t chunk = 0; chunk < 2; ++chunk)
          at(stage).work += shape.micro_batches * network_.seconds(pass_of(kind, chunk, stage, 0));
  }

  std::optional<Turns> run() {
    if (!warm_up()) return {};
    for (std::size_t left = 2 * index(shape_.micro_batches) * stages_.size(), before = left + 1; left > 0;) {
      if (left == before) return {};  // deadlock
      before = left;
      backward_turn(left);
      if (!forward_turn()) return {};
    }
    Turns made;
    for (Stage& stage : stages_) {
      while (stage.weighed < stage.weights.size()) weigh(stage);
      made.orders.push_back(std::move(stage.order));
      made.idle.push_back(stage.idle);
    }
    return made;
  }

 private:
  struct Stage {
    double now = 0, held = 0, idle = 0, work = 0;
    std::array<std::array<std::int32_t, 2>, 2> done{};  // F and B of chunks 0 and 1
    std::vector<std::int32_t> order, weights;
    std::size_t weighed = 0;
  };

  static std::size_t index(std::int32_t number) { return static_cast<std::size_t>(number); }
  Stage& at(std::int32_t stage) { return stages_[index(stage)]; }

  std::int32_t pass_of(std::int32_t kind, std::int32_t chunk, std::int32_t stage, std::int32_t micro) const {
    return network_.number(kind, micro, chunk == 0 ? stage : 2 * shape_.stages - 1 - stage);
  }
  // The next F or B of a chunk; -1: all are done.
  std::int32_t next(std::int32_t kind, std::int32_t chunk, std::int32_t stage) {
    const std::int32_t done = at(stage).done[index(kind)][index(chunk)];
    return done < shape_.micro_batches ? pass_of(kind, chunk, stage, done) : -1;
  }
  bool may_begin(std::int32_t pass) const {
    return pass >= 0 && (network_.needs(pass) < 0 || end_[index(network_.needs(pass))] >= 0);
  }
  double arrival(std::int32_t pass) const {
    const std::int32_t need = network_.needs(pass);
    return need < 0 ? 0 : end_[index(need)] + network_.wire(pass);
  }
  bool has_room(std::int32_t stage, double passes) {
    return at(stage).held + passes <= limits_.held[index(stage)] + kMemorySlack;
  }

  void weigh(Stage& stage) {
    const std::int32_t weight = stage.weights[stage.weighed++];
    stage.order.push_back(weight);
    stage.now += network_.seconds(weight);
    stage.held -= limits_.weight_share;
  }

  // False if its input is not ready or memory is full.
  bool put(std::int32_t kind, std::int32_t chunk, std::int32_t stage) {
    const std::int32_t pass = next(kind, chunk, stage);
    if (!may_begin(pass)) return false;
    Stage& here = at(stage);
    if (kind == 0) {
      while (!has_room(stage, 1) && here.weighed < here.weights.size()) weigh(here);
      if (!has_room(stage, 1)) return false;
    }
    const double begin = std::max(here.now, arrival(pass));
    if (!here.order.empty() || shape_.clock == Clock::end) here.idle += begin - here.now;
    here.now = end_[index(pass)] = begin + network_.seconds(pass);
    here.order.push_back(pass);
    ++here.done[index(kind)][index(chunk)];
    here.held += kind == 0 ? 1 : limits_.weight_share - 1;
    if (kind == 1)
      here.weights.push_back(network_.number(2, network_.micro_batch(pass), network_.position(pass)));
    longest_ = std::max(longest_, here.work + here.idle);
    return true;
  }

  bool warm_up() {
    for (std::int32_t stage = 0; stage < shape_.stages; ++stage)
      if (!put(0, 0, stage)) return false;
    for (std::int32_t stage = shape_.stages - 1; stage >= 0; --stage) {
      // More Fs fit until micro-batch 0 returns; each stage reserves memory for later passes.
      const double back = arrival(next(0, 1, stage));
      while (at(stage).done[0][0] < shape_.micro_batches && has_room(stage, 2 + 2 * stage) &&
             at(stage).now + network_.seconds(next(0, 0, stage)) <= back)
        for (std::int32_t before = 0; before <= stage; ++before)
          if (!put(0, 0, before)) return false;
      if (!put(0, 1, stage)) return false;
    }
    // The first B goes down. Before it arrives, a stage runs everything that the stage above it
    // will need.
    std::int32_t chunk = 0;
    for (std::int32_t stage = 1; stage < shape_.stages; ++stage) {
      const auto &above = at(stage - 1).done[0], &here = at(stage).done[0];
      while (here[0] + here[1] < above[0] + above[1] ||
             (here[1] <= above[1] && above[1] < shape_.micro_batches)) {
        bool moved = false;
        for (std::int32_t below = shape_.stages - 1; below >= stage; --below) {
          const std::int32_t pass = next(0, chunk, below);
          if (pass < 0) continue;
          if (!put(0, chunk, below)) return false;
          moved = true;
        }
        if (!moved && at(stage).done[0][index(1 - chunk)] == shape_.micro_batches) return false;
        chunk = 1 - chunk;
      }
    }
    return true;
  }

  // Runs Ws that fit before `pass` arrives, and one more if waiting would exceed the stage's idle
  // time limit.
  void fill_before(std::int32_t stage, std::int32_t pass, bool may_delay) {
    Stage& here = at(stage);
    const double arrives = arrival(pass);
    while (here.weighed < here.weights.size() &&
           arrives >= here.now + policy_.patience * network_.seconds(here.weights[here.weighed]))
      weigh(here);
    const double gap = arrives - here.now;
    if (!may_delay || gap <= 0 || here.weighed == here.weights.size()) return;
    if (here.idle + gap > std::max(longest_ - here.work, policy_.spare[index(stage)])) weigh(here);
  }

  // One B on each stage: those of chunk 1 downwards from stage 0, then those of chunk 0 upwards.
  void backward_turn(std::size_t& left) {
    const auto turn = [&](std::int32_t stage, std::int32_t chunk) {
      const std::int32_t pass = next(1, chunk, stage);
      if (!may_begin(pass)) return false;
      fill_before(stage, pass, chunk == 1 || policy_.delay_backward);
      put(1, chunk, stage);
      --left;
      return true;
    };
    std::vector<bool> waits(stages_.size());
    for (std::int32_t stage = 0; stage < shape_.stages; ++stage)
      waits[index(stage)] = may_begin(next(1, 0, stage)) || !turn(stage, 1);
    for (std::int32_t stage = shape_.stages - 1; stage >= 0; --stage)
      if (waits[index(stage)]) turn(stage, 0);
  }

  // One F on each stage, of chunk 1 if it has arrived. False if memory is full.
  bool forward_turn() {
    for (std::int32_t stage = 0; stage < shape_.stages; ++stage) {
      const std::int32_t chunk = may_begin(next(0, 1, stage)) ? 1 : 0;
      const std::int32_t pass = next(0, chunk, stage);
      if (!may_begin(pass)) continue;
      Stage& here = at(stage);
      while (!has_room(stage, 1) && here.weighed < here.weights.size()) weigh(here);
      fill_before(stage, pass, policy_.delay_forward);
      if (!put(0, chunk, stage)) return false;
    }
    return true;
  }

  const Schedule& shape_;
  const Network& network_;
  const Limits& limits_;
  const TurnsPolicy& policy_;
  std::vector<double> end_;
  std::vector<Stage> stages_;
  double longest_ = 0;  // work plus idle time, maximum over stages so far
};

}  // namespace

std::optional<Turns> take_turns(const Schedule& shape, const Network& network, const Limits& limits,
                                const TurnsPolicy& policy) {
  return TakingTurns(shape, network, limits, policy).run();
}

}  // namespace weft::pipeline
