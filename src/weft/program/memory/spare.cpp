#include "weft/program/memory/spare.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "weft/base/units.h"

namespace weft::memory {
namespace {

constexpr double kNoPlacement = std::numeric_limits<double>::infinity();
constexpr std::size_t kMostStages = 20, kMostPlacedExactly = 8;

struct Sides {
  std::vector<std::size_t> senders, receivers;  // stages
};

Sides sides_of(std::span<const StageMemory> stages) {
  Sides sides;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    if (stages[s].overflow > 0)
      sides.senders.push_back(s);
    else if (stages[s].room > 0)
      sides.receivers.push_back(s);
  }
  return sides;
}

// By max-flow and min-cut: some senders need more than what their best receivers hold and their other links carry.
// For given senders a receiver is on the cheaper side of the cut, which depends on the time; so the time is raised
// until no set of senders asks for more.
double seconds_of(std::span<const StageMemory> stages, const Sides& sides, const LinkRates& links,
                  std::span<const std::int32_t> device_of, double give_up_at) {
  double seconds = 0;
  std::vector<double> rate(sides.receivers.size());
  for (std::uint32_t some = 1; some < 1u << sides.senders.size(); ++some) {
    double overflow = 0;
    std::ranges::fill(rate, 0.0);
    for (std::size_t i = 0; i < sides.senders.size(); ++i) {
      if ((some >> i & 1) == 0) continue;
      overflow += static_cast<double>(stages[sides.senders[i]].overflow);
      for (std::size_t r = 0; r < rate.size(); ++r)
        rate[r] += links.rate(static_cast<std::size_t>(device_of[sides.senders[i]]),
                              static_cast<std::size_t>(device_of[sides.receivers[r]]));
    }
    // Newton's steps on a concave, piecewise linear sum: each ends at the root of one more piece.
    for (;;) {
      double held = 0, slope = 0, carried = 0;
      for (std::size_t r = 0; r < rate.size(); ++r) {
        const auto room = static_cast<double>(stages[sides.receivers[r]].room);
        if (rate[r] * seconds < room)
          slope += rate[r], carried += rate[r] * seconds;
        else
          held += room;
      }
      if (held + carried >= overflow * (1 - 1e-12)) break;
      if (slope == 0) return kNoPlacement;
      seconds = (overflow - held) / slope;
      if (seconds > give_up_at) return kNoPlacement;
    }
  }
  return seconds;
}

// A flow of whole bytes through links that carry as much as they can in this time.
class StripeFlow {
 public:
  StripeFlow(std::span<const StageMemory> stages, const Sides& sides, const LinkRates& links,
             std::span<const std::int32_t> device_of, double seconds)
      : sides_(sides), senders_(sides.senders.size()), receivers_(sides.receivers.size()) {
    for (const std::size_t s : sides.senders) left_.push_back(stages[s].overflow);
    for (const std::size_t r : sides.receivers) room_.push_back(stages[r].room);
    flow_.assign(senders_ * receivers_, 0);
    for (const std::size_t s : sides.senders)
      for (const std::size_t r : sides.receivers) {
        const double rate =
            links.rate(static_cast<std::size_t>(device_of[s]), static_cast<std::size_t>(device_of[r]));
        // A byte more than the time allows: bytes are whole.
        carries_.push_back(rate > 0 ? static_cast<std::int64_t>(std::ceil(rate * seconds)) + 1 : 0);
      }
  }

  std::vector<Stripe> run() {
    for (std::size_t s = 0; s < senders_; ++s)
      while (left_[s] > 0 && push(s)) {
      }
    std::vector<Stripe> stripes;
    for (std::size_t s = 0; s < senders_; ++s)
      for (std::size_t r = 0; r < receivers_; ++r)
        if (flow_[s * receivers_ + r] > 0)
          stripes.push_back({static_cast<std::int32_t>(sides_.senders[s]),
                             static_cast<std::int32_t>(sides_.receivers[r]), flow_[s * receivers_ + r]});
    return stripes;
  }

  bool done() const {
    return std::ranges::all_of(left_, [](std::int64_t bytes) { return bytes == 0; });
  }

 private:
  // The shortest way from a sender to a receiver with room, over links that carry more or take back.
  bool push(std::size_t from) {
    constexpr std::size_t kNone = ~std::size_t{0};
    std::vector<std::size_t> by_sender(receivers_, kNone), by_receiver(senders_, kNone), open{from};
    std::vector<bool> seen(senders_);
    seen[from] = true;
    std::size_t end = kNone;
    for (std::size_t next = 0; next < open.size() && end == kNone; ++next) {
      const std::size_t s = open[next];
      for (std::size_t r = 0; r < receivers_ && end == kNone; ++r) {
        if (by_sender[r] != kNone || flow_[s * receivers_ + r] >= carries_[s * receivers_ + r]) continue;
        by_sender[r] = s;
        if (room_[r] > 0) end = r;
        for (std::size_t other = 0; other < senders_; ++other)
          if (!seen[other] && flow_[other * receivers_ + r] > 0)
            seen[other] = true, by_receiver[other] = r, open.push_back(other);
      }
    }
    if (end == kNone) return false;
    std::int64_t bytes = std::min(left_[from], room_[end]);
    const auto each = [&](auto visit) {
      for (std::size_t r = end;;) {
        const std::size_t s = by_sender[r];
        visit(flow_[s * receivers_ + r], carries_[s * receivers_ + r], true);
        if (s == from) return;
        r = by_receiver[s];
        visit(flow_[s * receivers_ + r], carries_[s * receivers_ + r], false);
      }
    };
    each([&](std::int64_t flow, std::int64_t most, bool more) {
      bytes = std::min(bytes, more ? most - flow : flow);
    });
    each([&](std::int64_t& flow, std::int64_t, bool more) { flow += more ? bytes : -bytes; });
    left_[from] -= bytes;
    room_[end] -= bytes;
    return true;
  }

  const Sides& sides_;
  const std::size_t senders_, receivers_;
  std::vector<std::int64_t> left_, room_, carries_, flow_;
};

// Better placements come to stay. Which of two stages with nothing to send or hold sits where does not matter, but
// a permutation of eight is quickly judged.
std::pair<std::vector<std::int32_t>, double> best_of_all(std::span<const StageMemory> stages,
                                                         const Sides& sides, const LinkRates& links) {
  std::vector<std::int32_t> order(stages.size());
  std::iota(order.begin(), order.end(), 0);
  std::pair<std::vector<std::int32_t>, double> best{order, kNoPlacement};
  do {
    const double seconds = seconds_of(stages, sides, links, order, best.second);
    if (seconds < best.second) best = {order, seconds};
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

std::pair<std::vector<std::int32_t>, double> best_by_exchanges(std::span<const StageMemory> stages,
                                                               const Sides& sides, const LinkRates& links) {
  std::vector<std::int32_t> order(stages.size());
  std::iota(order.begin(), order.end(), 0);
  std::pair<std::vector<std::int32_t>, double> best{order,
                                                    seconds_of(stages, sides, links, order, kNoPlacement)};
  for (bool better = true; better;) {
    better = false;
    for (std::size_t a = 0; a < order.size(); ++a)
      for (std::size_t b = a + 1; b < order.size(); ++b) {
        std::vector<std::int32_t> changed = best.first;
        std::swap(changed[a], changed[b]);
        const double seconds = seconds_of(stages, sides, links, changed, best.second);
        if (seconds < best.second) best = {std::move(changed), seconds}, better = true;
      }
  }
  return best;
}

Status accept(std::span<const StageMemory> stages, const LinkRates& links) {
  if (links.rates.size() != links.devices * links.devices)
    return user_error(fmt::format("expected a rate for every pair of {} devices, found {}", links.devices,
                                  links.rates.size()));
  for (const double rate : links.rates)
    if (!(rate >= 0) || !std::isfinite(rate))
      return user_error(fmt::format("rates of links must be numbers from 0, found {}", rate));
  if (stages.size() != links.devices)
    return user_error(fmt::format("expected a stage for every device, found {} stages, {} devices",
                                  stages.size(), links.devices));
  if (stages.size() > kMostStages)
    return user_error(fmt::format("expected at most {} stages, found {}", kMostStages, stages.size()));
  double overflow = 0, room = 0;
  for (const StageMemory& stage : stages) {
    if (stage.overflow < 0 || stage.room < 0 || (stage.overflow > 0 && stage.room > 0))
      return user_error(
          fmt::format("a stage must overflow or have room, found {} and {}", stage.overflow, stage.room));
    overflow += static_cast<double>(stage.overflow);
    room += static_cast<double>(stage.room);
  }
  if (overflow > room)
    return world_error(fmt::format("the stages overflow by {}, and there is room for {}",
                                   print_bytes(overflow), print_bytes(room)),
                       "recompute more or send the rest to the host");
  return {};
}

}  // namespace

double spare_seconds(std::span<const StageMemory> stages, const LinkRates& links,
                     std::span<const std::int32_t> device_of) {
  return seconds_of(stages, sides_of(stages), links, device_of, kNoPlacement);
}

Result<SparePlan> place_in_spare_memory(std::span<const StageMemory> stages, const LinkRates& links) {
  WEFT_TRY_STATUS(accept(stages, links));
  const Sides sides = sides_of(stages);
  auto [device_of, seconds] = stages.size() <= kMostPlacedExactly ? best_of_all(stages, sides, links)
                                                                  : best_by_exchanges(stages, sides, links);
  if (!std::isfinite(seconds))
    return world_error("no placement has links from all stages that overflow to enough room",
                       "recompute more or send the rest to the host");
  StripeFlow flow(stages, sides, links, device_of, seconds);
  SparePlan plan{std::move(device_of), flow.run(), seconds};
  WEFT_CHECK(flow.done());
  return plan;
}

std::vector<bool> free_swaps(std::span<const SwapWindow> windows, double seconds_away, double seconds_back) {
  std::vector<std::size_t> by_forward(windows.size());
  std::iota(by_forward.begin(), by_forward.end(), std::size_t{0});
  std::ranges::stable_sort(by_forward, {}, [&](std::size_t m) { return windows[m].forward_end; });
  std::vector<bool> is_free(windows.size(), true);
  // Whoever is first found not to fit is left out, and the rest looked at again.
  for (;;) {
    std::vector<double> away_by(windows.size());
    double link = -kNoPlacement;
    for (const std::size_t m : by_forward)
      if (is_free[m]) away_by[m] = link = std::max(link, windows[m].forward_end) + seconds_away;
    std::vector<std::size_t> by_backward;
    for (const std::size_t m : by_forward)
      if (is_free[m]) by_backward.push_back(m);
    std::ranges::stable_sort(by_backward, std::greater<>(),
                             [&](std::size_t m) { return windows[m].backward_begin; });
    double before = kNoPlacement;
    bool all_fit = true;
    for (const std::size_t m : by_backward) {
      before = std::min(before, windows[m].backward_begin) - seconds_back;
      if (before >= away_by[m]) continue;
      is_free[m] = all_fit = false;
      break;
    }
    if (all_fit) return is_free;
  }
}

}  // namespace weft::memory
