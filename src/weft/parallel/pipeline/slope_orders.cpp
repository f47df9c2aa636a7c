#include "weft/parallel/pipeline/slope_orders.h"

#include <algorithm>
#include <utility>

namespace weft::pipeline {

std::vector<double> nominal_times(const Schedule& shape, const Network& network, const Slopes& slopes,
                                  double period) {
  const std::int32_t positions = shape.positions();
  // The times of F and B of micro-batch 0 at each position.
  std::vector<double> forward(static_cast<std::size_t>(positions)), backward(forward.size());
  const auto step = [&](std::int32_t from, std::int32_t to, std::int32_t kind, double slope) {
    const std::int32_t pass = network.number(kind, 0, to), before = network.number(kind, 0, from);
    const double least = network.seconds(before) + network.wire(pass);
    return network.stage(pass) == network.stage(before) ? least : std::max(least, slope);
  };
  for (std::int32_t place = 1; place < positions; ++place)
    forward[static_cast<std::size_t>(place)] =
        forward[static_cast<std::size_t>(place - 1)] +
        step(place - 1, place, 0, slopes.forward[static_cast<std::size_t>(place / shape.stages % 2)]);
  backward.back() = forward.back() + network.seconds(network.number(0, 0, positions - 1));
  for (std::int32_t place = positions - 2; place >= 0; --place)
    backward[static_cast<std::size_t>(place)] =
        backward[static_cast<std::size_t>(place + 1)] +
        step(place + 1, place, 1, slopes.backward[static_cast<std::size_t>(place / shape.stages % 2)]);
  std::vector<double> times(static_cast<std::size_t>(network.count()), 0);
  for (std::int32_t micro = 0; micro < shape.micro_batches; ++micro)
    for (std::int32_t place = 0; place < positions; ++place) {
      const auto at = static_cast<std::size_t>(place);
      times[static_cast<std::size_t>(network.number(0, micro, place))] = micro * period + forward[at];
      times[static_cast<std::size_t>(network.number(1, micro, place))] = micro * period + backward[at];
    }
  return times;
}

Orders slope_orders(const Schedule& shape, const Network& network, const Slopes& slopes, double period) {
  const std::vector<double> times = nominal_times(shape, network, slopes, period);
  std::vector<std::vector<std::pair<double, std::int32_t>>> timed(static_cast<std::size_t>(shape.stages));
  for (std::int32_t pass = 0; pass < network.count() / 3 * 2; ++pass)
    timed[static_cast<std::size_t>(network.stage(pass))].emplace_back(times[static_cast<std::size_t>(pass)],
                                                                      pass);
  Orders orders(timed.size());
  for (std::size_t stage = 0; stage < timed.size(); ++stage) {
    std::sort(timed[stage].begin(), timed[stage].end());
    for (const auto& [time, pass] : timed[stage]) orders[stage].push_back(pass);
  }
  return orders;
}

std::optional<Orders> fill(const Network& network, const Limits& limits, const Orders& slope_orders,
                           double patience) {
  struct Stage {
    std::size_t next = 0, done = 0;  // index into the given order; number of Ws done
    double free = 0, held = 0;
    std::vector<std::int32_t> weights;
  };
  const auto index = [](std::int32_t pass) { return static_cast<std::size_t>(pass); };
  std::vector<double> end(index(network.count()), -1);
  std::vector<Stage> stages(slope_orders.size());
  Orders orders(slope_orders.size());
  std::vector<std::size_t> awake;
  for (std::size_t stage = slope_orders.size(); stage-- > 0;) awake.push_back(stage);
  std::size_t left = 0;
  for (const auto& order : slope_orders) left += order.size();
  while (!awake.empty()) {
    const std::size_t at = awake.back();
    awake.pop_back();
    Stage& stage = stages[at];
    const auto weigh = [&] {
      const std::int32_t weight = stage.weights[stage.done++];
      orders[at].push_back(weight);
      stage.free += network.seconds(weight);
      stage.held -= limits.weight_share;
    };
    while (stage.next < slope_orders[at].size()) {
      const std::int32_t pass = slope_orders[at][stage.next];
      double arrival = 0;
      if (const std::int32_t need = network.needs(pass); need >= 0) {
        if (end[index(need)] < 0) break;
        arrival = end[index(need)] + network.wire(pass);
      }
      while (stage.done < stage.weights.size() &&
             arrival - stage.free > patience * network.seconds(stage.weights[stage.done]) + 1e-12)
        weigh();
      if (network.kind(pass) == 0) {
        while (stage.held + 1 > limits.held[at] + 1e-9 && stage.done < stage.weights.size()) weigh();
        if (stage.held + 1 > limits.held[at] + 1e-9) return {};
        stage.held += 1;
      } else {
        stage.held -= 1 - limits.weight_share;
        stage.weights.push_back(network.number(2, network.micro_batch(pass), network.position(pass)));
      }
      orders[at].push_back(pass);
      stage.free = end[index(pass)] = std::max(stage.free, arrival) + network.seconds(pass);
      ++stage.next;
      --left;
      if (const std::int32_t fed = network.feeds(pass); fed >= 0)
        if (const auto other = index(network.stage(fed)); other != at) awake.push_back(other);
    }
    if (stage.next == slope_orders[at].size())
      while (stage.done < stage.weights.size()) weigh();
  }
  if (left > 0) return {};
  return orders;
}

}  // namespace weft::pipeline
