#include "weft/pipeline/price.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "weft/pipeline/network.h"
#include "weft/pipeline/verify.h"

namespace weft::pipeline {

Times Times::alike(std::int32_t stages, double forward, double backward, double weight, double transfer) {
  const std::size_t count = static_cast<std::size_t>(stages);
  return {std::vector<double>(count, forward), std::vector<double>(count, backward),
          std::vector<double>(count, weight), std::vector<double>(count, transfer)};
}

double Times::between(std::int32_t from, std::int32_t to) const {
  if (from == to) return 0;
  const std::int32_t low = std::min(from, to), high = std::max(from, to);
  return transfer[static_cast<std::size_t>(high - low == 1 ? low : high)];
}

Status check(const Times& times, std::int32_t stages) {
  const std::pair<std::string_view, const std::vector<double>*> lists[] = {{"forward", &times.forward},
                                                                           {"backward", &times.backward},
                                                                           {"weight", &times.weight},
                                                                           {"transfer", &times.transfer}};
  for (const auto& [word, list] : lists) {
    if (list->size() != static_cast<std::size_t>(stages))
      return user_error(
          fmt::format("{} needs one time or one a stage: {} stages, {} times", word, stages, list->size()));
    for (const double time : *list)
      if (!std::isfinite(time) || time < 0)
        return user_error(fmt::format("a {} time is a number and not negative: {}", word, time));
  }
  return {};
}

Result<Price> price(const Schedule& schedule, const Times& times) {
  WEFT_TRY_STATUS(check(times, schedule.stages));
  WEFT_TRY_STATUS(verify(schedule));
  // W and BW of one position differ in length, so the two kinds of networks do; a schedule may mix them.
  const Network apart(schedule, times, false), together(schedule, times, true);
  const std::int32_t count = apart.count();
  std::vector<double> end(static_cast<std::size_t>(count), -1);
  Price priced;
  std::vector<std::size_t> next(schedule.orders.size(), 0);
  std::vector<double> free(schedule.orders.size(), 0);
  priced.slots.resize(schedule.orders.size());
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t stage = 0; stage < schedule.orders.size(); ++stage) {
      const auto& order = schedule.orders[stage];
      for (; next[stage] < order.size(); ++next[stage]) {
        const Pass& pass = order[next[stage]];
        const std::int32_t kind = pass.kind == Kind::forward ? 0 : pass.kind == Kind::weight ? 2 : 1;
        const std::int32_t number =
            apart.number(kind, pass.micro_batch, schedule.position(static_cast<std::int32_t>(stage), pass));
        double begin = free[stage];
        if (const std::int32_t need = apart.needs(number); need >= 0) {
          if (end[static_cast<std::size_t>(need)] < 0) break;
          begin = std::max(begin, end[static_cast<std::size_t>(need)] + apart.wire(number));
        }
        const Network& network = pass.kind == Kind::whole_backward ? together : apart;
        free[stage] = end[static_cast<std::size_t>(number)] = begin + network.seconds(number);
        priced.slots[stage].push_back({begin, free[stage]});
        moved = true;
      }
    }
  }
  double work = 0;
  for (std::size_t stage = 0; stage < schedule.orders.size(); ++stage) {
    const auto& slots = priced.slots[stage];
    const double span = slots.back().end - slots.front().begin;
    double busy = 0;
    for (const Slot& slot : slots) busy += slot.end - slot.begin;
    priced.end = std::max(priced.end, slots.back().end);
    priced.span = std::max(priced.span, span);
    priced.idle.push_back(std::max(0.0, span - busy));
    work = std::max(work, busy);
  }
  priced.cost = schedule.clock == Clock::end ? priced.end : priced.span;
  priced.bubble_rate = priced.cost > 0 ? std::max(0.0, (priced.cost - work) / priced.cost) : 0;
  priced.peak_in_flight = peak_in_flight(schedule);
  return priced;
}

}  // namespace weft::pipeline
