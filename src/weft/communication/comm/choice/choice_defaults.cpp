// Sources of a choice table: shipped figures, overridden by the statistics database.
#include <algorithm>

#include <fmt/format.h>

#include "weft/base/machine.h"
#include "weft/base/median.h"
#include "weft/communication/comm/choice/choice.h"
#include "weft/predict/cost/statistics.h"

namespace weft::comm {
namespace {

// Between the figures of two machines measured in November 2026 (2 cores of a Neoverse-V1 and 2 of
// a Sapphire Rapids, Linux 6.18): a copy at 25.5 and about 9 GB/s, a sum at 17.3 and 9 GB/s of
// bytes read; a step through shared memory in 0.13 and 0.6 us, about 1 and 2 us if a core switches
// ranks. A frame of a chunk program is copied in by one end and out by the other, hence two copies.
// Over loopback TCP two ranks swap 256 bytes in 4.8 and 5.4 us and large messages at 5 and 2.9 GB/s
// each way; on oversubscribed cores a step takes 2.5 us per rank that a core must switch to. Not
// measured at every start: the choice, and so the order of floating-point additions, would change
// from run to run.
constexpr double kCopy = 1 / 15e9, kReduce = 1 / 12.5e9;

Figures default_figures(double step, double oversubscribed_step, double wire) {
  return {.cores = available_processors(),
          .step = step,
          .oversubscribed_step = oversubscribed_step,
          .wire = wire,
          .copy = kCopy,
          .reduce = kReduce,
          .source = "default figures"};
}

// Seconds per byte of `what` on one thread with the largest measured buffers, which exceed all
// caches.
std::optional<double> seconds_per_byte_of(std::span<const cost::Rate> rates, std::string_view what) {
  const cost::Rate* largest = nullptr;
  for (const cost::Rate& rate : rates)
    if (rate.what == what && rate.threads == 1 && (largest == nullptr || rate.bytes > largest->bytes))
      largest = &rate;
  if (largest == nullptr) return std::nullopt;
  return 1 / largest->per_second;
}

void calibrate(Figures& figures, std::string_view transport, std::span<const cost::LinkTime> links,
               std::span<const cost::Rate> rates) {
  std::vector<double> steps, oversubscribed, wires;
  std::int64_t latest = 0;
  for (const cost::LinkTime& link : links) {
    if (link.transport != transport || link.together) continue;
    const double oversubscription = static_cast<double>(link.ranks) / figures.cores;
    if (oversubscription > 1)
      oversubscribed.push_back(link.latency_seconds / oversubscription);
    else
      steps.push_back(link.latency_seconds);
    wires.push_back(1 / link.bytes_per_second);
    latest = std::max(latest, link.measured_at);
  }
  if (wires.empty()) return;
  const double ratio = figures.oversubscribed_step / figures.step;
  if (!steps.empty()) figures.step = median(steps);
  figures.oversubscribed_step =
      oversubscribed.empty() ? figures.step * ratio : std::max(median(oversubscribed), figures.step);
  figures.wire = median(wires);
  if (const auto copy = seconds_per_byte_of(rates, "copy")) figures.copy = *copy;
  if (const auto reduce = seconds_per_byte_of(rates, "reduce f32")) figures.reduce = *reduce;
  figures.source = fmt::format("profile of {}", cost::print_date(latest));
}

std::map<Setting, std::vector<Candidate>> by_setting(std::span<const cost::CollectiveTime> times) {
  std::map<Setting, std::vector<Candidate>> settings;
  for (const cost::CollectiveTime& time : times) {
    auto& candidates = settings[{time.kind, time.ranks, time.hosts, time.transport, time.allocated}];
    // Times are sorted by algorithm, then by size.
    if (candidates.empty() || candidates.back().name != time.algorithm)
      candidates.push_back({.name = time.algorithm});
    candidates.back().times.push_back({time.bytes, time.seconds});
    candidates.back().source = fmt::format("measured {}", cost::print_date(time.measured_at));
  }
  return settings;
}

constexpr std::string_view kKnownTransports[] = {"inproc", "shm", "tcp", "mpi"};

}  // namespace

ChoiceTable ChoiceTable::defaults() {
  ChoiceTable table;
  table.set_figures("inproc", default_figures(0.28e-6, 1.4e-6, 2 * kCopy));
  table.set_figures("shm", default_figures(0.28e-6, 1.4e-6, 2 * kCopy));
  table.set_figures("tcp", default_figures(5e-6, 2.5e-6, 1 / 3.8e9));
  table.set_figures("mixed", table.figures_of("tcp"));  // the slower of its two transports
  table.set_figures("mpi", default_figures(1e-6, 4e-6, 1 / 7.4e9));
  return table;
}

LoadedChoices load_choices(const std::string& path) {
  LoadedChoices loaded{ChoiceTable::defaults(), {}};
  if (path == "none") return loaded;
  const auto load = [&]() -> Status {
    WEFT_TRY(statistics, cost::Statistics::open(path, cost::Access::read));
    WEFT_TRY(times, statistics.collective_times());
    WEFT_TRY(links, statistics.links());
    WEFT_TRY(rates, statistics.rates());
    for (auto& [setting, candidates] : by_setting(times)) loaded.table.set(setting, std::move(candidates));
    for (const std::string_view transport : kKnownTransports) {
      Figures figures = loaded.table.figures_of(transport);
      calibrate(figures, transport, links, rates);
      loaded.table.set_figures(std::string(transport), std::move(figures));
    }
    loaded.table.set_figures("mixed", loaded.table.figures_of("tcp"));
    return {};
  };
  if (const Status done = load(); !done.ok()) loaded.trouble = done.error().message;
  return loaded;
}

}  // namespace weft::comm
