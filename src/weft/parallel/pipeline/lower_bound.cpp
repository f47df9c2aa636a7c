// Lower bounds on the cost of any schedule of these stages.
#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/parallel/pipeline/network.h"
#include "weft/parallel/pipeline/route_search.h"

namespace weft::pipeline {
namespace {

double bound_of(const SynthesisRequest& request, const Schedule& shape) {
  const Network network(shape, request.times, false);
  const std::int32_t positions = shape.positions();
  // When F begins and B ends at each position if the first micro-batch never waits.
  std::vector<double> forward(static_cast<std::size_t>(positions)), backward(forward.size());
  double now = 0;
  for (std::int32_t place = 0; place < positions; ++place) {
    now += network.wire(network.number(0, 0, place));
    forward[static_cast<std::size_t>(place)] = now;
    now += network.seconds(network.number(0, 0, place));
  }
  for (std::int32_t place = positions; place-- > 0;) {
    now += network.wire(network.number(1, 0, place)) + network.seconds(network.number(1, 0, place));
    backward[static_cast<std::size_t>(place)] = now;
  }
  double bound = 0;
  for (std::int32_t stage = 0; stage < shape.stages; ++stage) {
    const auto at = static_cast<std::size_t>(stage);
    const double limit = memory_limit(request, at), share = shape.share();
    const double work = request.micro_batches * request.times.work(at);
    // Until the first B can begin, a stage can only run Fs, and only as many as fit in memory.
    const std::int32_t first = shape.position(stage, {Kind::forward, 0, 0});
    const std::int32_t last = shape.position(stage, {Kind::forward, 0, shape.chunks - 1});
    const double until = backward[static_cast<std::size_t>(last)] -
                         network.seconds(network.number(1, 0, last)) -
                         forward[static_cast<std::size_t>(first)];
    const double room =
        std::min<double>(request.micro_batches * shape.chunks, std::floor(limit / share + 1e-9));
    double least = work + std::max(0.0, until - room * share * request.times.forward[at]);
    // The minimum time for which a micro-batch is held, with this many held at once; W holds only
    // its share.
    double held = request.weight_share * request.times.weight[at] * share;
    for (std::int32_t chunk = 0; chunk < shape.chunks; ++chunk) {
      const auto place = static_cast<std::size_t>(shape.position(stage, {Kind::forward, 0, chunk}));
      held += (backward[place] - forward[place]) * share;
    }
    least = std::max(least, request.micro_batches * held / std::max(1.0, limit));
    bound =
        std::max(bound, least + (request.clock == Clock::end ? forward[static_cast<std::size_t>(first)] : 0));
  }
  return bound;
}

}  // namespace

double lower_bound(const SynthesisRequest& request) {
  double bound = std::numeric_limits<double>::infinity();
  for (const Route route : routes_of(request)) {
    // One micro-batch determines the path; the number comes from the request.
    const std::int32_t chunks = route == Route::line ? 1 : request.chunks;
    bound = std::min(bound, bound_of(request, {"", request.stages, 1, chunks, route, request.clock, {}}));
  }
  return bound;
}

}  // namespace weft::pipeline
