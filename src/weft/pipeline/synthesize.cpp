#include "weft/pipeline/synthesize.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "weft/base/random.h"
#include "weft/pipeline/exhaustive.h"
#include "weft/pipeline/greedy.h"
#include "weft/pipeline/library.h"
#include "weft/pipeline/skeleton.h"
#include "weft/pipeline/verify.h"

namespace weft::pipeline {
namespace {

constexpr double kMostSynthesized = 2e6;  // passes: more would take minutes
constexpr double kPassesToTime = 1.2e7;   // at effort 1, over all variations of one route
constexpr std::int64_t kMostExhaustiveSteps = 300000;
constexpr std::int32_t kFewPasses = 40;  // of all stages, that are searched through

double limit_of(const SynthesisRequest& request, std::size_t stage) {
  if (request.memory.empty()) return request.micro_batches + 1;
  return request.memory[request.memory.size() == 1 ? 0 : stage];
}

// The way from a stage to the last and back again, without the stage itself.
double round_trip(const SynthesisRequest& request, std::size_t stage) {
  double way = 0;
  for (std::size_t next = stage + 1; next < request.times.forward.size(); ++next)
    way += request.times.forward[next] + request.times.backward[next] + 2 * request.times.transfer[next - 1];
  return way;
}

// One route, and the best found on it.
class RouteSearch {
 public:
  RouteSearch(const SynthesisRequest& request, Schedule shape)
      : request_(request), shape_(std::move(shape)), network_(shape_, request.times, false) {
    limits_.weight_share = request.weight_share;
    for (std::size_t stage = 0; stage < request.times.forward.size(); ++stage) {
      limits_.held.push_back(limit_of(request, stage) / shape_.share());
      period_ = std::max(period_, request.times.work(stage));
    }
    variations_ = static_cast<std::int64_t>(
        std::clamp(kPassesToTime * request.effort / network_.count(), 30.0 * request.effort, 4000.0));
  }

  void run(double enough) {
    if (shape_.route == Route::line) greedy_grid();
    slope_grid();
    vary(enough);
    if (shape_.route == Route::line && network_.count() <= kFewPasses && cost_ > enough) search_through();
  }

  double cost() const { return cost_; }
  const std::string& from() const { return from_; }
  std::int64_t tried() const { return tried_; }
  bool is_proven() const { return proven_; }
  Schedule schedule() const { return to_schedule(shape_, network_, orders_); }
  bool found() const { return !orders_.empty(); }

 private:
  void judge(const Orders& orders, std::string_view from) {
    ++tried_;
    if (!network_.time(orders, begin_)) return;
    double span = 0, end = 0;
    for (const auto& order : orders) {
      const double last = begin_[static_cast<std::size_t>(order.back())] + network_.seconds(order.back());
      span = std::max(span, last - begin_[static_cast<std::size_t>(order.front())]);
      end = std::max(end, last);
    }
    const double cost = request_.clock == Clock::span ? span : end;
    const double other = request_.clock == Clock::span ? end : span;
    if (cost > cost_ * (1 + 1e-12) || (cost >= cost_ * (1 - 1e-12) && other >= other_)) return;
    cost_ = cost;
    other_ = other;
    orders_ = orders;
    from_ = from;
  }

  bool improves(double before) const { return cost_ < before; }

  void try_policies(const std::vector<StagePolicy>& policies) {
    const double before = cost_;
    judge(greedy(shape_, network_, limits_, policies), "greedy");
    if (improves(before) || policies_.empty()) policies_ = policies;
  }

  struct Line {
    Slopes slopes;
    double patience = 0;
    double window = 0;  // 0: exactly in the order of the lines
  };
  void try_line(const Line& line) {
    const double before = cost_;
    if (line.window > 0) {
      const std::vector<double> nominal = nominal_times(shape_, network_, line.slopes, period_);
      const Orders orders = greedy_by_time(shape_, network_, limits_, nominal, line.window, line.patience);
      std::size_t made = 0;
      for (const auto& order : orders) made += order.size();
      if (made < static_cast<std::size_t>(network_.count())) return;  // memory got stuck
      judge(orders, "slopes");
      if (improves(before) || !has_line_) line_ = line;
      has_line_ = true;
      return;
    }
    const Orders bones = skeleton(shape_, network_, line.slopes, period_);
    if (const auto orders = fill(network_, limits_, bones, line.patience)) {
      judge(*orders, "slopes");
      if (improves(before) || !has_line_) line_ = line;
      has_line_ = true;
    }
  }

  void greedy_grid() {
    const std::size_t stages = request_.times.forward.size();
    for (const double reach : {0.5, 0.75, 1.0, 1.25, 9.0})
      for (const double patience : {0.0, 0.5, 0.75, 1.0})
        for (const double eager : {0.0, 0.5, 1.0}) {
          if (tried_ > 20 && tried_ > variations_) return;
          std::vector<StagePolicy> policies(stages);
          for (std::size_t stage = 0; stage < stages; ++stage) {
            const double forward = std::max(request_.times.forward[stage], 1e-9 * period_ + 1e-300);
            const double lead = std::ceil(1 + reach * round_trip(request_, stage) / forward - 1e-9);
            policies[stage] = {lead, std::ceil(lead * eager), patience, 0, true};
          }
          try_policies(policies);
        }
  }

  void slope_grid() {
    const double unit = period_ / (3 * shape_.chunks);
    const std::int64_t until = tried_ + std::max<std::int64_t>(variations_, 60);
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

  // Changes a few numbers of the best policy or the best line, and keeps what is better.
  void vary(double enough) {
    Random random(24, static_cast<std::uint64_t>(shape_.route));
    double step = 1;
    for (std::int64_t round = 0; round < variations_ && cost_ > enough; ++round) {
      step = 1.0 - 0.9 * static_cast<double>(round) / static_cast<double>(variations_);
      const bool by_line = has_line_ && (policies_.empty() || from_ == "slopes");
      if (by_line) {
        Line line = line_;
        const auto nudge = [&](double& number) {
          if (random.below(2) == 0)
            number = std::max(0.0, number + (random.uniform() - 0.5) * step * period_ / 3);
        };
        for (auto* list : {&line.slopes.forward, &line.slopes.backward})
          for (double& number : *list) nudge(number);
        if (random.below(3) == 0) line.patience = random.uniform();
        if (random.below(3) == 0) line.window = random.below(4) == 0 ? 0 : random.uniform() * 4 * period_;
        try_line(line);
      } else {
        std::vector<StagePolicy> policies = policies_;
        const std::size_t first = random.below(policies.size());
        const std::size_t last = random.below(3) == 0
                                     ? policies.size() - 1
                                     : std::min(policies.size() - 1, first + random.below(4));
        const std::uint64_t what = random.below(3);
        const double by = static_cast<double>(random.between(-2, 2)), to = random.uniform() * 1.2;
        for (std::size_t stage = first; stage <= last; ++stage) {
          if (what == 0) policies[stage].patience = to;
          if (what == 1) policies[stage].lead = std::max(1.0, policies[stage].lead + by);
          if (what == 2) policies[stage].eager = std::max(0.0, policies[stage].eager + by);
        }
        try_policies(policies);
      }
    }
  }

  void search_through() {
    Exhausted found = exhaust(shape_, network_, limits_, cost_, kMostExhaustiveSteps);
    proven_ = found.complete;
    if (found.orders) judge(*found.orders, "exhaustive search");
  }

  const SynthesisRequest& request_;
  Schedule shape_;
  Network network_;
  Limits limits_;
  double period_ = 0;
  std::int64_t variations_ = 0, tried_ = 0;
  double cost_ = std::numeric_limits<double>::infinity(), other_ = cost_;
  Orders orders_;
  std::string from_;
  std::vector<StagePolicy> policies_;
  Line line_;
  bool has_line_ = false, proven_ = false;
  std::vector<double> begin_;
};

Status check_request(const SynthesisRequest& request) {
  if (request.stages < 1 || request.micro_batches < 1 || request.chunks < 1)
    return user_error(fmt::format("stages, micro-batches and chunks are at least 1: {}, {}, {}",
                                  request.stages, request.micro_batches, request.chunks));
  if (3.0 * request.stages * request.micro_batches * request.chunks > kMostSynthesized)
    return user_error(fmt::format("too many passes to synthesize: {} stages, {} micro-batches, {} chunks",
                                  request.stages, request.micro_batches, request.chunks),
                      fmt::format("at most {} passes", kMostSynthesized));
  WEFT_TRY_STATUS(check(request.times, request.stages));
  if (!(request.weight_share >= 0 && request.weight_share <= 1))
    return user_error(fmt::format("the share that waits for W is from 0 to 1: {}", request.weight_share));
  if (!(request.effort > 0 && request.effort <= 1000))
    return user_error(fmt::format("effort is above 0, up to 1000: {}", request.effort));
  if (request.memory.size() > 1 && request.memory.size() != static_cast<std::size_t>(request.stages))
    return user_error(fmt::format("memory is one limit or one a stage: {} stages, {} limits", request.stages,
                                  request.memory.size()));
  for (std::size_t stage = 0; stage < request.memory.size(); ++stage)
    if (!(request.memory[stage] >= 1))
      return user_error(
          fmt::format("stage {} holds less than one forward pass: {}", stage, request.memory[stage]));
  return {};
}

// The best shipped schedule that keeps to the memory.
void try_shipped(const SynthesisRequest& request, Synthesis& best) {
  for (const ScheduleText& text : shipped_schedules()) {
    if (text.route == Route::both_ways) continue;  // holds the parameters twice
    std::map<std::string, double> parameters = {{"stages", request.stages},
                                                {"micro_batches", request.micro_batches}};
    if (text.route != Route::line) parameters["chunks"] = request.chunks;
    if (text.route != Route::line && request.chunks == 1) continue;
    auto schedule = unfold(text, parameters);
    if (!schedule.ok()) continue;
    const std::vector<double> peaks = peak_memory(*schedule, request.weight_share);
    bool fits = true;
    for (std::size_t stage = 0; stage < peaks.size(); ++stage)
      fits = fits && peaks[stage] <= limit_of(request, stage) + 1e-9;
    schedule->clock = request.clock;
    auto priced = fits ? price(*schedule, request.times) : Result<Price>(user_error(""));
    ++best.tried;
    if (!priced.ok() || (!best.from.empty() && priced->cost >= best.price.cost)) continue;
    best.schedule = std::move(schedule).value();
    best.price = std::move(priced).value();
    best.from = text.name;
  }
}

}  // namespace

std::vector<double> peak_memory(const Schedule& schedule, double weight_share) {
  std::vector<double> peaks;
  for (const auto& order : schedule.orders) {
    double held = 0, most = 0;
    for (const Pass& pass : order) {
      if (pass.kind == Kind::forward) most = std::max(most, held += 1);
      if (pass.kind == Kind::backward) held -= 1 - weight_share;
      if (pass.kind == Kind::weight) held -= weight_share;
      if (pass.kind == Kind::whole_backward) held -= 1;
    }
    peaks.push_back(most * schedule.share());
  }
  return peaks;
}

double lower_bound(const SynthesisRequest& request) {
  const double micro_batches = request.micro_batches;
  double bound = 0, before = 0;
  for (std::size_t stage = 0; stage < request.times.forward.size(); ++stage) {
    const double forward = request.times.forward[stage], work = micro_batches * request.times.work(stage);
    const double start = request.clock == Clock::end ? before / request.chunks : 0;
    double least = work;
    if (request.chunks == 1) {
      // Until the first B can begin there is nothing to do but Fs, as many as there is room for.
      const double way = forward + round_trip(request, stage);
      const double room = std::min(micro_batches, std::floor(limit_of(request, stage) + 1e-9));
      least = work + std::max(0.0, way - room * forward);
      // A micro-batch is held at least this long, and so many are held at once; W holds only its share.
      const double held =
          (way + request.times.backward[stage]) + request.weight_share * request.times.weight[stage];
      least = std::max(least, micro_batches * held / std::max(1.0, limit_of(request, stage)));
    }
    bound = std::max(bound, start + least);
    before += forward + request.times.transfer[stage];
  }
  return bound;
}

Result<Synthesis> synthesize(const SynthesisRequest& request) {
  WEFT_TRY_STATUS(check_request(request));
  Synthesis best;
  best.lower_bound = lower_bound(request);
  const double enough = best.lower_bound * (1 + 1e-9);
  try_shipped(request, best);
  std::vector<Route> routes = {Route::line};
  if (request.chunks > 1) routes = {Route::v, Route::loop, Route::line};
  bool proven = false;
  for (const Route route : routes) {
    if (!best.from.empty() && best.price.cost <= enough) break;
    Schedule shape{"synthesized",
                   request.stages,
                   request.micro_batches,
                   route == Route::line ? 1 : request.chunks,
                   route,
                   request.clock,
                   {}};
    SynthesisRequest part = request;
    if (route != routes.front()) part.effort *= 0.1;  // seldom better than a v
    RouteSearch search(part, std::move(shape));
    search.run(enough);
    best.tried += search.tried();
    proven = proven || (search.is_proven() && request.chunks == 1);
    if (!search.found() || (!best.from.empty() && search.cost() >= best.price.cost)) continue;
    best.schedule = search.schedule();
    WEFT_TRY(priced, price(best.schedule, request.times));
    best.price = std::move(priced);
    best.from = search.from();
  }
  if (best.from.empty())
    return user_error("no schedule found that fits the memory", "give stages more memory, or fewer chunks");
  best.schedule.name = "synthesized";
  WEFT_TRY_STATUS(verify(best.schedule));
  best.peak_memory = peak_memory(best.schedule, request.weight_share);
  if (proven) best.lower_bound = best.price.cost;
  best.why_stopped = best.price.cost <= enough ? "no schedule is better: the lower bound is reached"
                     : proven                  ? "no schedule is better: all were searched through"
                                               : fmt::format("tried {} schedules", best.tried);
  return best;
}

}  // namespace weft::pipeline
