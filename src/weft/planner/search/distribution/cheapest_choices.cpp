#include "weft/planner/search/distribution/cheapest_choices.h"

#include <limits>

namespace weft::search {
namespace {

constexpr double kNoWay = std::numeric_limits<double>::infinity();

// Least cost up to a step, per choice at that step, and the choices that lead there.
struct Ways {
  std::vector<double> cost;
  std::vector<std::vector<std::size_t>> choices;

  explicit Ways(std::size_t count) : cost(count, kNoWay), choices(count) {}

  void offer(std::size_t choice, double price, const std::vector<std::size_t>& before) {
    // Accepts a first path even of infinite cost, so that there is always a path.
    if (!choices[choice].empty() && !(price < cost[choice])) return;
    cost[choice] = price;
    choices[choice] = before;
    choices[choice].push_back(choice);
  }
};

class Planner {
 public:
  explicit Planner(const ChainCosts& costs) : costs_(costs) {}

  std::vector<std::size_t> run() {
    Ways ways(0);
    std::size_t step = 0;
    for (std::size_t r = 0; r < costs_.stretches.size(); ++r) {
      ways = through(ways, r, step);
      step += costs_.stretches[r].steps;
    }
    std::size_t best = 0;
    for (std::size_t a = 1; a < ways.cost.size(); ++a)
      if (ways.cost[a] < ways.cost[best]) best = a;
    return ways.choices.empty() ? std::vector<std::size_t>() : ways.choices[best];
  }

 private:
  // Extends the cheapest paths by one step. Within a repeated stretch, costs are multiplied by its
  // number of repetitions.
  Ways next(const Ways& before, std::size_t step, double node_times, double join_times) const {
    const std::vector<double>& nodes = costs_.nodes[step];
    Ways after(nodes.size());
    for (std::size_t b = 0; b < nodes.size(); ++b) {
      if (step == 0) after.offer(b, nodes[b] * node_times, {});
      for (std::size_t a = 0; step > 0 && a < before.cost.size(); ++a) {
        if (before.choices[a].empty()) continue;
        after.offer(b, before.cost[a] + costs_.joins[step - 1][a][b] * join_times + nodes[b] * node_times,
                    before.choices[a]);
      }
    }
    return after;
  }

  Ways through(const Ways& before, std::size_t stretch, std::size_t first) const {
    const auto [steps, count] = costs_.stretches[stretch];
    const auto times = static_cast<double>(count);
    const Ways entered = next(before, first, times, 1);
    if (count == 1) {
      Ways ways = entered;
      for (std::size_t s = first + 1; s < first + steps; ++s) ways = next(ways, s, 1, 1);
      return ways;
    }
    Ways found(costs_.nodes[first + steps - 1].size());
    for (std::size_t start = 0; start < entered.cost.size(); ++start) {
      Ways ways(entered.cost.size());
      ways.cost[start] = entered.cost[start];
      ways.choices[start] = entered.choices[start];
      for (std::size_t s = first + 1; s < first + steps; ++s) ways = next(ways, s, times, times);
      for (std::size_t a = 0; a < ways.cost.size(); ++a) {
        if (ways.choices[a].empty()) continue;
        std::vector<std::size_t> way = std::move(ways.choices[a]);
        way.pop_back();
        found.offer(a, ways.cost[a] + costs_.back[stretch][a][start] * (times - 1), way);
      }
    }
    return found;
  }

  const ChainCosts& costs_;
};

}  // namespace

double ChainCosts::total(std::span<const std::size_t> choices) const {
  double sum = 0;
  std::size_t step = 0;
  for (std::size_t r = 0; r < stretches.size(); ++r) {
    const auto times = static_cast<double>(stretches[r].times);
    const std::size_t first = step, end = step + stretches[r].steps;
    for (; step < end; ++step) {
      sum += nodes[step][choices[step]] * times;
      if (step + 1 < choices.size())
        sum += joins[step][choices[step]][choices[step + 1]] * (step + 1 < end ? times : 1);
    }
    if (times > 1) sum += back[r][choices[end - 1]][choices[first]] * (times - 1);
  }
  return sum;
}

std::vector<std::size_t> cheapest_choices(const ChainCosts& costs) { return Planner(costs).run(); }

}  // namespace weft::search
