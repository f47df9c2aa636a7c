#include "weft/parallel/pipeline/route_search.h"

#include <algorithm>
#include <cmath>

#include "weft/base/random.h"
#include "weft/parallel/pipeline/exhaustive.h"

namespace weft::pipeline {
namespace {

constexpr double kPassesToTime = 1.2e7;  // at effort 1, over all variations of one route
constexpr std::int64_t kMostExhaustiveSteps = 300000;
constexpr std::int32_t kFewPasses = 40;  // over all stages, for an exhaustive search

constexpr std::string_view kGreedy = "greedy", kSlopes = "slopes", kTurns = "turns";

// The time from a stage to the last one and back, without the stage itself.
double round_trip(const Times& times, std::size_t stage) {
  double way = 0;
  for (std::size_t next = stage + 1; next < times.forward.size(); ++next)
    way += times.forward[next] + times.backward[next] + 2 * times.transfer[next - 1];
  return way;
}

void nudge(Slopes& slopes, Random& random, double size) {
  for (auto* list : {&slopes.forward, &slopes.backward})
    for (double& number : *list)
      if (random.below(2) == 0) number = std::max(0.0, number + (random.uniform() - 0.5) * size);
}

void nudge(std::vector<StagePolicy>& policies, Random& random) {
  const std::size_t first = random.below(policies.size());
  const std::size_t last =
      random.below(3) == 0 ? policies.size() - 1 : std::min(policies.size() - 1, first + random.below(4));
  const std::uint64_t what = random.below(3);
  const double by = static_cast<double>(random.between(-2, 2)), to = random.uniform() * 1.2;
  for (std::size_t stage = first; stage <= last; ++stage) {
    if (what == 0) policies[stage].patience = to;
    if (what == 1) policies[stage].lead = std::max(1.0, policies[stage].lead + by);
    if (what == 2) policies[stage].eager = std::max(0.0, policies[stage].eager + by);
  }
}

void nudge(TurnsPolicy& turns, Random& random, double most_idle) {
  const std::size_t first = random.below(turns.spare.size());
  const std::size_t last = random.below(2) == 0 ? turns.spare.size() - 1
                                                : std::min(turns.spare.size() - 1, first + random.below(4));
  const double to = random.uniform() * 1.1 * most_idle;
  for (std::size_t stage = first; stage <= last; ++stage) turns.spare[stage] = to;
  if (random.below(4) == 0) turns.delay_forward = !turns.delay_forward;
  if (random.below(4) == 0) turns.delay_backward = !turns.delay_backward;
  if (random.below(3) == 0) turns.patience = random.below(2) == 0 ? 1 : 0.5 + random.uniform();
}

}  // namespace

double memory_limit(const SynthesisRequest& request, std::size_t stage) {
  if (request.memory.empty()) return request.micro_batches + 1;
  return request.memory[request.memory.size() == 1 ? 0 : stage];
}

RouteSearch::RouteSearch(const SynthesisRequest& request, Schedule shape)
    : request_(request), shape_(std::move(shape)), network_(shape_, request.times, false) {
  limits_.weight_share = request.weight_share;
  for (std::size_t stage = 0; stage < request.times.forward.size(); ++stage) {
    limits_.held.push_back(memory_limit(request, stage) / shape_.share());
    period_ = std::max(period_, request.times.work(stage));
  }
  variations_ = static_cast<std::int64_t>(std::clamp(kPassesToTime * request.effort / network_.count(),
                                                     30.0 * request.effort, 4000.0 * request.effort));
}

void RouteSearch::run(double enough) {
  if (shape_.route == Route::line) greedy_grid();
  if (shape_.route == Route::v && shape_.chunks == 2) turns_grid();
  if (cost_ > enough) slope_grid();
  vary(enough);
  if (shape_.route == Route::line && network_.count() <= kFewPasses && cost_ > enough) search_through();
}

bool RouteSearch::judge(const Orders& orders, std::string_view from) {
  ++tried_;
  if (!network_.time(orders, begin_)) return false;
  double span = 0, end = 0;
  for (const auto& order : orders) {
    const double last = begin_[static_cast<std::size_t>(order.back())] + network_.seconds(order.back());
    span = std::max(span, last - begin_[static_cast<std::size_t>(order.front())]);
    end = std::max(end, last);
  }
  const double cost = request_.clock == Clock::span ? span : end;
  const double other = request_.clock == Clock::span ? end : span;
  if (cost > cost_ * (1 + 1e-12) || (cost >= cost_ * (1 - 1e-12) && other >= other_)) return false;
  cost_ = cost;
  other_ = other;
  orders_ = orders;
  from_ = from;
  return true;
}

bool RouteSearch::try_policies(const std::vector<StagePolicy>& policies) {
  if (!judge(greedy(shape_, network_, limits_, policies), kGreedy)) return false;
  policies_ = policies;
  return true;
}

bool RouteSearch::try_line(const Line& line) {
  Orders orders;
  if (line.window > 0) {
    const std::vector<double> nominal = nominal_times(shape_, network_, line.slopes, period_);
    orders = greedy_by_time(shape_, network_, limits_, nominal, line.window, line.patience);
    std::size_t made = 0;
    for (const auto& order : orders) made += order.size();
    if (made < static_cast<std::size_t>(network_.count())) orders.clear();  // memory deadlock
  } else if (auto filled = fill(network_, limits_, slope_orders(shape_, network_, line.slopes, period_),
                                line.patience)) {
    orders = std::move(*filled);
  }
  if (orders.empty()) ++tried_;
  if (orders.empty() || !judge(orders, kSlopes)) return false;
  line_ = line;
  return true;
}

bool RouteSearch::try_turns(const TurnsPolicy& turns) {
  const auto made = take_turns(shape_, network_, limits_, turns);
  if (!made) return false;
  idle_ = made->idle;
  if (!judge(made->orders, kTurns)) return false;
  turns_ = turns;
  return true;
}

void RouteSearch::greedy_grid() {
  const std::size_t stages = request_.times.forward.size();
  for (const double reach : {0.5, 0.75, 1.0, 1.25, 9.0})
    for (const double patience : {0.0, 0.5, 0.75, 1.0})
      for (const double eager : {0.0, 0.5, 1.0}) {
        if (tried_ > 20 && tried_ > variations_) return;
        std::vector<StagePolicy> policies(stages);
        for (std::size_t stage = 0; stage < stages; ++stage) {
          const double forward = std::max(request_.times.forward[stage], 1e-9 * period_ + 1e-300);
          const double lead = std::ceil(1 + reach * round_trip(request_.times, stage) / forward - 1e-9);
          policies[stage] = {lead, std::ceil(lead * eager), patience, 0, true};
        }
        try_policies(policies);
      }
}

void RouteSearch::slope_grid() {
  const double unit = period_ / (3 * shape_.chunks);
  const auto least = static_cast<std::int64_t>(60 * std::min(1.0, request_.effort));
  // If turns fit in memory, slopes are seldom better, and they take longer to try.
  const std::int64_t until = tried_ + std::max(from_ == kTurns ? variations_ / 8 : variations_, least);
  for (const double patience : {0.6, 0.3, 1.0, 0.0})
    for (const double there : {2.0, 4.0, 3.0, 1.0, 2.5, 1.5})
      for (const double back : {4.0, 2.0, 3.0, 1.0, 3.5, 1.5}) {
        if (tried_ > until) return;
        if (shape_.route == Route::line && back != 4.0) continue;
        try_line({{{there * unit, back * unit}, {back * unit, there * unit}}, patience});
        if (shape_.route == Route::line) {
          for (const double up : {1.0, 1.5, 2.0, 3.0})
            for (const double window : {0.0, 1.0, 9.0})
              try_line({{{there * unit, 0}, {up * unit, 0}}, patience, window * period_});
        } else {
          for (const double window : {0.25, 1.0, 3.0})
            try_line(
                {{{there * unit, back * unit}, {back * unit, there * unit}}, patience, window * period_});
        }
      }
}

// At first no stage may idle longer than the worst so far. Then each may idle for about as long as
// the worst stage finally did, which is spent where it helps other stages most.
void RouteSearch::turns_grid() {
  const auto stages = static_cast<std::size_t>(shape_.stages);
  for (const bool delay_forward : {true, false})
    for (const bool delay_backward : {true, false}) {
      TurnsPolicy turns{std::vector<double>(stages, 0), delay_forward, delay_backward};
      try_turns(turns);
      if (idle_.empty()) return;  // turns need more memory
      double longest = 0;
      for (std::size_t stage = 0; stage < stages; ++stage)
        longest = std::max(longest, idle_[stage] + shape_.micro_batches * request_.times.work(stage));
      for (const double share : {0.5, 0.8, 0.9, 0.95, 1.0}) {
        for (std::size_t stage = 0; stage < stages; ++stage)
          turns.spare[stage] =
              std::max(0.0, share * (longest - shape_.micro_batches * request_.times.work(stage)));
        try_turns(turns);
      }
    }
}

// Perturbs the parameters of the best candidate and keeps improvements.
void RouteSearch::vary(double enough) {
  Random random(24, static_cast<std::uint64_t>(shape_.route));
  for (std::int64_t round = 0; round < variations_ && cost_ > enough; ++round) {
    const double step = 1.0 - 0.9 * static_cast<double>(round) / static_cast<double>(variations_);
    if (from_ == kSlopes) {
      Line line = line_;
      nudge(line.slopes, random, step * period_ / 3);
      if (random.below(3) == 0) line.patience = random.uniform();
      if (random.below(3) == 0) line.window = random.below(4) == 0 ? 0 : random.uniform() * 4 * period_;
      try_line(line);
    } else if (from_ == kGreedy) {
      std::vector<StagePolicy> policies = policies_;
      nudge(policies, random);
      try_policies(policies);
    } else if (from_ == kTurns) {
      TurnsPolicy turns = turns_;
      nudge(turns, random, cost_ - shape_.micro_batches * period_);
      try_turns(turns);
    }
  }
}

void RouteSearch::search_through() {
  Exhausted found = exhaust(shape_, network_, limits_, cost_, kMostExhaustiveSteps);
  proven_ = found.complete;
  if (found.orders) judge(*found.orders, "exhaustive search");
}

}  // namespace weft::pipeline
