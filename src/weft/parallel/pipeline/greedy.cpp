#include "weft/parallel/pipeline/greedy.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <queue>
#include <utility>

namespace weft::pipeline {
namespace {

constexpr double kSlack = 1e-9;  // for rounding errors in accumulated memory shares
constexpr double kNever = std::numeric_limits<double>::infinity();

class Greedy {
 public:
  Greedy(const Schedule& shape, const Network& network, const Limits& limits,
         const std::vector<StagePolicy>& policies)
      : shape_(shape),
        network_(network),
        limits_(limits),
        policies_(policies),
        stages_(static_cast<std::size_t>(shape.stages)),
        orders_(stages_.size()) {
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
      stages_[stage].forward.resize(static_cast<std::size_t>(shape.chunks));
      stages_[stage].backward.resize(static_cast<std::size_t>(shape.chunks));
      orders_[stage].reserve(3 * static_cast<std::size_t>(shape.micro_batches * shape.chunks));
    }
    for (std::int32_t micro = 0; micro < shape.micro_batches; ++micro) arrive(network.number(0, micro, 0), 0);
  }

  void go_by(const std::vector<double>& nominal, double window) {
    nominal_ = &nominal;
    window_ = window;
    done_.assign(static_cast<std::size_t>(network_.count()), false);
    sorted_.assign(stages_.size(), {});
    first_.assign(stages_.size(), 0);
    for (std::int32_t pass = 0; pass < network_.count() / 3 * 2; ++pass)
      sorted_[static_cast<std::size_t>(network_.stage(pass))].push_back(pass);
    for (auto& list : sorted_)
      std::sort(list.begin(), list.end(), [&](std::int32_t a, std::int32_t b) {
        return std::pair(time_of(a), a) < std::pair(time_of(b), b);
      });
  }

  Orders run() {
    while (!events_.empty()) {
      const auto [time, stage] = events_.top();
      events_.pop();
      if (time != stages_[stage].wake) continue;  // outdated: it was woken earlier
      stages_[stage].wake = kNever;
      decide(stage, time);
    }
    return std::move(orders_);
  }

 private:
  struct Arrival {
    std::int32_t pass = -1;
    double time = 0;
  };
  struct Stage {
    double free = 0, wake = kNever;
    std::int32_t ahead = 0;
    double held = 0;
    std::vector<std::deque<Arrival>> forward, backward;  // a queue per chunk, in order of micro-batches
    std::deque<std::int32_t> weights;
  };
  using Event = std::pair<double, std::size_t>;

  void wake(std::size_t at, double time) {
    Stage& stage = stages_[at];
    time = std::max(time, stage.free);
    if (time >= stage.wake && stage.wake >= stage.free) return;
    stage.wake = time;
    events_.emplace(time, at);
  }

  void arrive(std::int32_t pass, double time) {
    const std::size_t at = static_cast<std::size_t>(network_.stage(pass));
    const auto chunk = static_cast<std::size_t>(network_.position(pass) / shape_.stages);
    Stage& stage = stages_[at];
    (network_.kind(pass) == 0 ? stage.forward : stage.backward)[chunk].push_back({pass, time});
    wake(at, time);
  }

  // A chunk whose first pass has arrived by `time`; among several, the one that the policy prefers.
  // -1: none.
  std::int32_t ready(const std::vector<std::deque<Arrival>>& queues, double time, bool later_first,
                     double room, double reserve) const {
    const std::int32_t chunks = static_cast<std::int32_t>(queues.size());
    for (std::int32_t step = 0; step < chunks; ++step) {
      const std::int32_t chunk = later_first ? chunks - 1 - step : step;
      const auto& queue = queues[static_cast<std::size_t>(chunk)];
      // Later chunks need memory too, or no micro-batch could ever finish.
      const double least = std::max<double>(chunks - chunk, chunk == 0 ? 1 + reserve : 1) - kSlack;
      if (!queue.empty() && queue.front().time <= time && room >= least) return chunk;
    }
    return -1;
  }

  double next_arrival(const Stage& stage, double time, bool with_forward) const {
    double next = kNever;
    for (const auto* queues : {&stage.backward, &stage.forward}) {
      if (queues == &stage.forward && !with_forward) continue;
      for (const auto& queue : *queues)
        if (!queue.empty() && queue.front().time > time) next = std::min(next, queue.front().time);
    }
    return next;
  }

  double time_of(std::int32_t pass) const { return (*nominal_)[static_cast<std::size_t>(pass)]; }

  // By nominal times: the queue to take from, and whether it is a forward queue; null if no
  // permitted pass has arrived.
  std::deque<Arrival>* first_in_time(std::size_t at, double time, double room, bool& is_forward) {
    auto& next = first_[at];
    const auto& order = sorted_[at];
    while (next < order.size() && done_[static_cast<std::size_t>(order[next])]) ++next;
    if (next == order.size()) return nullptr;
    double best = time_of(order[next]) + window_;
    std::deque<Arrival>* chosen = nullptr;
    for (auto* queues : {&stages_[at].forward, &stages_[at].backward})
      for (auto& queue : *queues) {
        if (queue.empty() || queue.front().time > time || time_of(queue.front().pass) > best) continue;
        if (queues == &stages_[at].forward && room < 1 - kSlack) continue;
        best = time_of(queue.front().pass);
        chosen = &queue;
        is_forward = queues == &stages_[at].forward;
      }
    if (chosen) done_[static_cast<std::size_t>(chosen->front().pass)] = true;
    return chosen;
  }

  void decide(std::size_t at, double time) {
    if (nominal_) return decide_by_time(at, time);
    Stage& stage = stages_[at];
    const StagePolicy& policy = policies_[at];
    const double room = limits_.held[at] - stage.held;
    const std::int32_t backward = ready(stage.backward, time, policy.later_chunk_first, kNever, 0);
    const bool may_lead = stage.ahead < policy.lead || stage.ahead < shape_.chunks;
    const std::int32_t forward =
        may_lead ? ready(stage.forward, time, policy.later_chunk_first, room, policy.reserve) : -1;
    if (forward >= 0 && (backward < 0 || stage.ahead < policy.eager)) {
      ++stage.ahead;
      ++stage.held;
      return take(at, stage.forward[static_cast<std::size_t>(forward)], time);
    }
    if (backward >= 0) {
      --stage.ahead;
      stage.held -= 1 - limits_.weight_share;
      return take(at, stage.backward[static_cast<std::size_t>(backward)], time);
    }
    const double next = next_arrival(stage, time, may_lead && room >= 1 - kSlack);
    if (!stage.weights.empty()) {
      const std::int32_t weight = stage.weights.front();
      const bool is_crowded = room < 1 - kSlack || ready(stage.forward, time, true, kNever, 0) >= 0;
      if (is_crowded || next - time >= policy.patience * network_.seconds(weight)) {
        stage.weights.pop_front();
        stage.held -= limits_.weight_share;
        return begin(at, weight, time);
      }
    }
    if (next < kNever) wake(at, next);
  }

  void decide_by_time(std::size_t at, double time) {
    Stage& stage = stages_[at];
    const double room = limits_.held[at] - stage.held;
    bool is_forward = false;
    if (auto* queue = first_in_time(at, time, room, is_forward)) {
      stage.held += is_forward ? 1 : limits_.weight_share - 1;
      return take(at, *queue, time);
    }
    const double next = next_arrival(stage, time, true);
    if (!stage.weights.empty()) {
      const std::int32_t weight = stage.weights.front();
      if (room < 1 - kSlack || next - time >= policies_[at].patience * network_.seconds(weight)) {
        stage.weights.pop_front();
        stage.held -= limits_.weight_share;
        return begin(at, weight, time);
      }
    }
    if (next < kNever) wake(at, next);
  }

  void take(std::size_t at, std::deque<Arrival>& queue, double time) {
    const std::int32_t pass = queue.front().pass;
    queue.pop_front();
    begin(at, pass, time);
  }

  void begin(std::size_t at, std::int32_t pass, double time) {
    Stage& stage = stages_[at];
    orders_[at].push_back(pass);
    stage.free = time + network_.seconds(pass);
    if (network_.kind(pass) == 1)
      stage.weights.push_back(network_.number(2, network_.micro_batch(pass), network_.position(pass)));
    if (const std::int32_t fed = network_.feeds(pass); fed >= 0) arrive(fed, stage.free + network_.wire(fed));
    wake(at, stage.free);
  }

  const Schedule& shape_;
  const Network& network_;
  const Limits& limits_;
  const std::vector<StagePolicy>& policies_;
  const std::vector<double>* nominal_ = nullptr;
  double window_ = 0;
  std::vector<bool> done_;
  std::vector<std::vector<std::int32_t>> sorted_;
  std::vector<std::size_t> first_;
  std::vector<Stage> stages_;
  Orders orders_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

}  // namespace

Orders greedy(const Schedule& shape, const Network& network, const Limits& limits,
              const std::vector<StagePolicy>& policies) {
  return Greedy(shape, network, limits, policies).run();
}

Orders greedy_by_time(const Schedule& shape, const Network& network, const Limits& limits,
                      const std::vector<double>& nominal, double window, double patience) {
  const std::vector<StagePolicy> policies(static_cast<std::size_t>(shape.stages),
                                          StagePolicy{.patience = patience});
  Greedy greedy(shape, network, limits, policies);
  greedy.go_by(nominal, window);
  return greedy.run();
}

Schedule to_schedule(const Schedule& shape, const Network& network, const Orders& orders) {
  Schedule made = shape;
  made.orders.assign(orders.size(), {});
  constexpr Kind kKinds[] = {Kind::forward, Kind::backward, Kind::weight};
  for (std::size_t stage = 0; stage < orders.size(); ++stage)
    for (const std::int32_t pass : orders[stage])
      made.orders[stage].push_back({kKinds[network.kind(pass)], network.micro_batch(pass),
                                    shape.chunk_at(network.position(pass), network.micro_batch(pass))});
  return made;
}

}  // namespace weft::pipeline
