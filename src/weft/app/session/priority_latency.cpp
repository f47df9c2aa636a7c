#include "weft/app/session/priority_latency.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "weft/base/random.h"
#include "weft/plan/ops/build.h"
#include "weft/runtime/run/fit_program.h"

namespace weft::session {
namespace {

using Now = std::chrono::steady_clock;

double since(Now::time_point begin) { return std::chrono::duration<double>(Now::now() - begin).count(); }

// A single unit: y = relu(x) on a quarter of a megabyte.
Result<std::unique_ptr<exec::Rank>> small_rank(const std::shared_ptr<device::Device>& device,
                                               bool high_priority) {
  auto graph = std::make_shared<plan::Graph>();
  graph->name = "urgent";
  const plan::Dim rows{graph->symbol("r"), 256}, width{graph->symbol("k"), 256};
  WEFT_TRY(type, graph->intern_type(plan::DType::f32, std::array{rows, width}));
  WEFT_TRY(x, ops::add_parameter(*graph, "x", type));
  WEFT_TRY(y, ops::add_pointwise(*graph, ops::relu(), {x}));
  graph->add_output(graph->symbol("y"), y);
  WEFT_TRY(fitted, run::fit_program(graph, run::rank_compiling(1, true), 0));
  return exec::Rank::start(std::move(fitted.program), {.device = device, .high_priority = high_priority});
}

// Runs steps of a rank back to back until destroyed.
class InBackground {
 public:
  explicit InBackground(exec::Rank& rank) : thread_([this, &rank] { run(rank); }) {}
  ~InBackground() { (void)stop(); }

  Status stop() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
    return status_;
  }
  const std::vector<double>& seconds() const { return seconds_; }

 private:
  void run(exec::Rank& rank) {
    while (!stopping_ && status_.ok()) {
      const auto begin = Now::now();
      status_ = rank.step();
      seconds_.push_back(since(begin));
    }
  }
  std::atomic<bool> stopping_ = false;
  Status status_;
  std::vector<double> seconds_;
  std::thread thread_;  // declared last: it uses the members above
};

explain::Latency latency_of(std::vector<double> seconds) {
  std::ranges::sort(seconds);
  const auto at = [&](double share) {
    return seconds[static_cast<std::size_t>(share * static_cast<double>(seconds.size() - 1))];
  };
  return {at(0.5), at(0.99)};
}

constexpr int kLatencyRounds = 200;

Result<explain::Latency> latency(exec::Rank& urgent, double pause, const std::function<bool()>& interrupted) {
  Random random(1);
  std::vector<double> seconds;
  for (int turn = 0; turn < kLatencyRounds; ++turn) {
    if (interrupted && interrupted()) return user_error("interrupted");
    std::this_thread::sleep_for(std::chrono::duration<double>(pause * random.uniform()));
    const auto begin = Now::now();
    WEFT_TRY_STATUS(urgent.step());
    seconds.push_back(since(begin));
  }
  return latency_of(std::move(seconds));
}

}  // namespace

Result<explain::PriorityLatency> measure_priority_latency(const MakeRank& make,
                                                          const std::shared_ptr<device::Device>& device,
                                                          const std::function<bool()>& interrupted) {
  explain::PriorityLatency found;
  for (const bool gives_way : {false, true}) {
    WEFT_TRY(rank, make(gives_way));
    constexpr int kAlone = 12;
    std::vector<double> alone;
    for (int turn = 0; turn < 3 + kAlone; ++turn) {
      const auto begin = Now::now();
      WEFT_TRY_STATUS(rank->step());
      if (turn >= 3) alone.push_back(since(begin));
    }
    const double step = latency_of(std::move(alone)).median;
    (gives_way ? found.step_at_low_priority : found.step) = step;
    // Up to two steps, so that requests arrive at random points of a step.
    const double pause = std::clamp(2 * step, 1e-3, 20e-3);
    for (const bool first : {false, true}) {
      if (gives_way && !first) continue;
      WEFT_TRY(urgent, small_rank(device, first));
      for (int warm_up = 0; warm_up < 3; ++warm_up) WEFT_TRY_STATUS(urgent->step());
      WEFT_TRY(undisturbed, latency(*urgent, 0, interrupted));
      found.alone = undisturbed;
      InBackground job(*rank);
      WEFT_TRY(seen, latency(*urgent, pause, interrupted));
      WEFT_TRY_STATUS(job.stop());
      (gives_way ? found.beside_low_priority : first ? found.at_high_priority : found.in_turn) = seen;
    }
  }
  return found;
}

}  // namespace weft::session
