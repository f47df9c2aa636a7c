#include "weft/parallel/pipeline/schedule_cost.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "weft/parallel/pipeline/network.h"
#include "weft/parallel/pipeline/verify.h"

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
          fmt::format("{} needs one time or one per stage: {} stages, {} times", word, stages, list->size()));
    for (const double time : *list)
      if (!std::isfinite(time) || time < 0)
        return user_error(fmt::format("expected a {} time of 0 or more, found {}", word, time));
  }
  if (!(times.overlap >= 0 && times.overlap <= 1))
    return user_error(fmt::format("overlap must be from 0 to 1, found {}", times.overlap));
  return {};
}

namespace {

// Runs every pass as early as possible. The schedule has been verified, so this terminates.
class Timing {
 public:
  Timing(const Schedule& schedule, const Times& times)
      : schedule_(schedule),
        overlap_(schedule.overlaps ? times.overlap : 0),
        apart_(schedule, times, false),
        together_(schedule, times, true),
        end_(static_cast<std::size_t>(apart_.count()), -1) {}

  // The slots of each stage, and its busy time.
  std::vector<std::vector<Slot>> run(std::vector<double>& busy) {
    std::vector<std::vector<Slot>> slots(schedule_.orders.size());
    for (std::size_t stage = 0; stage < slots.size(); ++stage)
      slots[stage].reserve(schedule_.orders[stage].size());
    busy.assign(slots.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t stage = 0; stage < slots.size(); ++stage) {
        const auto& order = schedule_.orders[stage];
        while (slots[stage].size() < order.size()) {
          const std::size_t place = slots[stage].size();
          const std::size_t passes = overlap_ > 0 && schedule_.is_pair(order, place) ? 2 : 1;
          double begin = slots[stage].empty() ? 0 : slots[stage].back().end, length = 0, shorter = 0;
          bool waits = false;
          for (std::size_t one = place; one < place + passes; ++one) {
            const std::int32_t pass = number(stage, order[one]);
            if (const std::int32_t need = apart_.needs(pass); need >= 0) {
              waits = waits || end_[static_cast<std::size_t>(need)] < 0;
              begin = std::max(begin, end_[static_cast<std::size_t>(need)] + apart_.wire(pass));
            }
            const double seconds = seconds_of(order[one], pass);
            shorter = one == place ? seconds : std::min(shorter, seconds);
            length += seconds;
          }
          if (waits) break;
          if (passes == 2) length -= overlap_ * shorter;
          for (std::size_t one = place; one < place + passes; ++one) {
            end_[static_cast<std::size_t>(number(stage, order[one]))] = begin + length;
            slots[stage].push_back({begin, begin + length});
          }
          busy[stage] += length;
          moved = true;
        }
      }
    }
    return slots;
  }

 private:
  std::int32_t number(std::size_t stage, const Pass& pass) const {
    const std::int32_t kind = pass.kind == Kind::forward ? 0 : pass.kind == Kind::weight ? 2 : 1;
    return apart_.number(kind, pass.micro_batch, schedule_.position(static_cast<std::int32_t>(stage), pass));
  }
  double seconds_of(const Pass& pass, std::int32_t number) const {
    return (pass.kind == Kind::whole_backward ? together_ : apart_).seconds(number);
  }

  const Schedule& schedule_;
  double overlap_;
  Network apart_, together_;  // W and BW of a position differ in length; a schedule may have both
  std::vector<double> end_;
};

}  // namespace

Price time_verified(const Schedule& schedule, const Times& times) {
  Price priced;
  std::vector<double> busy;
  priced.slots = Timing(schedule, times).run(busy);
  double work = 0;
  for (std::size_t stage = 0; stage < schedule.orders.size(); ++stage) {
    const auto& slots = priced.slots[stage];
    const double span = slots.back().end - slots.front().begin;
    priced.end = std::max(priced.end, slots.back().end);
    priced.span = std::max(priced.span, span);
    priced.idle.push_back(std::max(0.0, span - busy[stage]));
    work = std::max(work, busy[stage]);
  }
  priced.cost = schedule.clock == Clock::end ? priced.end : priced.span;
  priced.bubble_rate = priced.cost > 0 ? std::max(0.0, (priced.cost - work) / priced.cost) : 0;
  return priced;
}

Result<Price> price(const Schedule& schedule, const Times& times) {
  WEFT_TRY_STATUS(check(times, schedule.stages));
  WEFT_TRY_STATUS(verify(schedule));
  Price priced = time_verified(schedule, times);
  priced.peak_in_flight = peak_in_flight(schedule);
  return priced;
}

}  // namespace weft::pipeline
