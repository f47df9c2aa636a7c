#include "weft/parallel/pipeline/synthesize.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/parallel/pipeline/library.h"
#include "weft/parallel/pipeline/route_search.h"
#include "weft/parallel/pipeline/verify.h"

namespace weft::pipeline {
namespace {

constexpr double kMostSynthesized = 2e6;  // passes; more would take minutes

Status check_request(const SynthesisRequest& request) {
  if (request.stages < 1 || request.micro_batches < 1 || request.chunks < 1)
    return user_error(fmt::format("stages, micro-batches and chunks must be at least 1: {}, {}, {}",
                                  request.stages, request.micro_batches, request.chunks));
  if (3.0 * request.stages * request.micro_batches * request.chunks > kMostSynthesized)
    return user_error(fmt::format("too many passes to synthesize: {} stages, {} micro-batches, {} chunks",
                                  request.stages, request.micro_batches, request.chunks),
                      fmt::format("at most {} passes", kMostSynthesized));
  WEFT_TRY_STATUS(check(request.times, request.stages));
  if (!(request.weight_share >= 0 && request.weight_share <= 1))
    return user_error(
        fmt::format("the share that waits for W must be from 0 to 1: {}", request.weight_share));
  if (!(request.effort > 0 && request.effort <= 1000))
    return user_error(fmt::format("effort is above 0, up to 1000: {}", request.effort));
  if (request.memory.size() > 1 && request.memory.size() != static_cast<std::size_t>(request.stages))
    return user_error(fmt::format("expected one memory limit or one per stage: {} stages, {} limits",
                                  request.stages, request.memory.size()));
  for (std::size_t stage = 0; stage < request.memory.size(); ++stage)
    if (!(request.memory[stage] >= 1))
      return user_error(
          fmt::format("stage {} holds less than one forward pass: {}", stage, request.memory[stage]));
  return {};
}

// The best shipped schedule that fits in memory.
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
      fits = fits && peaks[stage] <= memory_limit(request, stage) + 1e-9;
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

std::vector<Route> routes_of(const SynthesisRequest& request) {
  if (request.chunks == 1) return {Route::line};
  return {Route::v, Route::loop, Route::line};
}

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

Result<Synthesis> synthesize(const SynthesisRequest& request) {
  WEFT_TRY_STATUS(check_request(request));
  Synthesis best;
  best.lower_bound = lower_bound(request);
  const double enough = best.lower_bound * (1 + 1e-9);
  try_shipped(request, best);
  const std::vector<Route> routes = routes_of(request);
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
    return user_error("no schedule found that fits the memory", "use more memory per stage, or fewer chunks");
  best.schedule.name = "synthesized";
  WEFT_TRY_STATUS(verify(best.schedule));
  best.peak_memory = peak_memory(best.schedule, request.weight_share);
  if (proven) best.lower_bound = best.price.cost;
  best.why_stopped = best.price.cost <= enough ? "optimal: the schedule reaches the lower bound"
                     : proven                  ? "optimal: the search was exhaustive"
                                               : fmt::format("tried {} schedules", best.tried);
  return best;
}

}  // namespace weft::pipeline
