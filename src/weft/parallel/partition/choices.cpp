#include "weft/parallel/partition/choices.h"

#include <algorithm>
#include <limits>

#include "weft/parallel/partition/ideals.h"

namespace weft::partition {
namespace {

constexpr double kTooMuch = std::numeric_limits<double>::infinity();

// The exchange of an item's option for the next smaller one on the lower convex hull of cost over
// bytes.
struct Exchange {
  std::int32_t item = 0, option = 0;
  double cost = 0, bytes = 0;  // additional cost, bytes saved

  double rate() const { return cost / bytes; }
};

// The options on the hull, from the cheapest to the smallest, with increasing cost per byte saved.
std::vector<std::int32_t> hull(const std::vector<Option>& options) {
  std::vector<std::int32_t> order(options.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int32_t>(i);
  std::ranges::sort(order, [&](std::int32_t a, std::int32_t b) {
    const Option &x = options[slot(a)], &y = options[slot(b)];
    return x.cost != y.cost ? x.cost < y.cost : x.bytes != y.bytes ? x.bytes < y.bytes : a < b;
  });
  std::vector<std::int32_t> kept;
  const auto rate = [&](std::int32_t a, std::int32_t b) {
    return (options[slot(b)].cost - options[slot(a)].cost) /
           (options[slot(a)].bytes - options[slot(b)].bytes);
  };
  for (const std::int32_t option : order) {
    if (!kept.empty() && options[slot(option)].bytes >= options[slot(kept.back())].bytes) continue;
    while (kept.size() > 1 && rate(kept.back(), option) <= rate(kept[kept.size() - 2], kept.back()))
      kept.pop_back();
    kept.push_back(option);
  }
  return kept;
}

std::vector<Exchange> exchanges_of(const Items& items, std::vector<std::int32_t>& cheapest) {
  std::vector<Exchange> exchanges;
  for (std::size_t item = 0; item < items.size(); ++item) {
    const std::vector<std::int32_t> kept = hull(items[item]);
    cheapest.push_back(kept.front());
    for (std::size_t i = 1; i < kept.size(); ++i) {
      const Option &from = items[item][slot(kept[i - 1])], &to = items[item][slot(kept[i])];
      exchanges.push_back(
          {static_cast<std::int32_t>(item), kept[i], to.cost - from.cost, from.bytes - to.bytes});
    }
  }
  std::ranges::stable_sort(exchanges, {}, &Exchange::rate);
  return exchanges;
}

class ExactChoice {
 public:
  ExactChoice(const Items& items, double room, const Choices& known, std::int32_t most_steps)
      : items_(items), room_(room), best_(known), steps_(most_steps), chosen_(items.size()) {
    std::vector<std::int32_t> cheapest;
    exchanges_ = exchanges_of(items, cheapest);
    rest_.resize(items.size() + 1);
    for (std::size_t item = items.size(); item-- > 0;) {
      const Option& first = items[item][slot(cheapest[item])];
      rest_[item] = {rest_[item + 1].cost + first.cost, rest_[item + 1].bytes + first.bytes};
    }
  }

  Choices run() {
    descend(0, 0, 0);
    if (steps_ > 0) best_.bound = best_.cost;
    return best_;
  }

 private:
  // A lower bound on the cost of items from `first` on: the LP relaxation, in which one exchange
  // may be fractional.
  double least_cost(std::size_t first, double bytes) const {
    double cost = rest_[first].cost, over = bytes + rest_[first].bytes - room_;
    for (const Exchange& exchange : exchanges_) {
      if (over <= 0) return cost;
      if (slot(exchange.item) < first) continue;
      cost += exchange.cost * std::min(1.0, over / exchange.bytes);
      over -= exchange.bytes;
    }
    return over <= 0 ? cost : kTooMuch;
  }

  void descend(std::size_t item, double cost, double bytes) {
    if (steps_ <= 0 || cost + least_cost(item, bytes) >= best_.cost) return;
    --steps_;
    if (item == items_.size()) {
      best_.cost = cost;
      best_.options = chosen_;
      return;
    }
    for (std::size_t option = 0; option < items_[item].size(); ++option) {
      chosen_[item] = static_cast<std::int32_t>(option);
      descend(item + 1, cost + items_[item][option].cost, bytes + items_[item][option].bytes);
    }
  }

  const Items& items_;
  double room_;
  Choices best_;
  std::int32_t steps_;
  std::vector<std::int32_t> chosen_;
  std::vector<Exchange> exchanges_;
  std::vector<Option> rest_;  // by item: the cheapest options of this and all later items
};

}  // namespace

Choices choose(const Items& items, double room) {
  Choices choices;
  const std::vector<Exchange> exchanges = exchanges_of(items, choices.options);
  double over = -room;
  for (std::size_t item = 0; item < items.size(); ++item) {
    const Option& first = items[item][slot(choices.options[item])];
    over += first.bytes;
    choices.cost += first.cost;
  }
  choices.bound = choices.cost;
  std::vector<Exchange> made;
  std::vector<std::int32_t> before;
  for (const Exchange& exchange : exchanges) {
    if (over <= 0) break;
    choices.bound = choices.cost + exchange.cost * std::min(1.0, over / exchange.bytes);
    before.push_back(choices.options[slot(exchange.item)]);
    made.push_back(exchange);
    choices.options[slot(exchange.item)] = exchange.option;
    choices.cost += exchange.cost;
    over -= exchange.bytes;
  }
  if (over > 0) return {{}, kTooMuch, kTooMuch};
  // The last exchange may have saved more than needed: undo exchanges that are not necessary.
  for (std::size_t i = made.size(); i-- > 0;) {
    if (over + made[i].bytes > 0 || choices.options[slot(made[i].item)] != made[i].option) continue;
    choices.options[slot(made[i].item)] = before[i];
    choices.cost -= made[i].cost;
    over += made[i].bytes;
  }
  return choices;
}

Choices choose_exactly(const Items& items, double room, const Choices& known, std::int32_t most_steps) {
  if (known.options.empty() || known.cost <= known.bound) return known;
  return ExactChoice(items, room, known, most_steps).run();
}

}  // namespace weft::partition
