#include "weft/app/explain/summary.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/app/explain/lines.h"
#include "weft/app/explain/predicted_step.h"
#include "weft/base/units.h"
#include "weft/predict/cost/mesh_links.h"
#include "weft/predict/cost/roofline.h"

namespace weft::explain {
namespace {

using Parts = std::vector<std::pair<std::string, double>>;

// "activations 9.1 GiB, optimizer 1.4 GiB": three at most, the largest first, each a hundredth at least.
std::string largest_parts(Parts parts, double whole) {
  constexpr std::size_t kMost = 3;
  std::ranges::stable_sort(parts, std::ranges::greater{}, &Parts::value_type::second);
  std::vector<std::string> shown;
  for (const auto& [what, bytes] : parts)
    if (shown.size() < kMost && bytes > 0 && bytes >= whole / 100)
      shown.push_back(fmt::format("{} {}", what, print_bytes(bytes)));
  return fmt::format("{}", fmt::join(shown, ", "));
}

// "14 % of 80 GiB", "1.3 times 80 GiB"
std::string part_of(double bytes, double limit) {
  return bytes <= limit ? fmt::format("{} of {}", rounded_percent(bytes / limit), print_bytes(limit))
                        : fmt::format("{:.1f} times {}", bytes / limit, print_bytes(limit));
}

// A narrower type that the device computes faster in; empty where it is used already or there is none.
std::string faster_precision(const cluster::Device& device, plan::DType precision) {
  if (precision != plan::DType::f32) return {};
  const double gain = cost::peak_rate(device, plan::DType::bf16) / cost::peak_rate(device, precision);
  if (!(gain > 1.5) || !std::isfinite(gain)) return {};
  return fmt::format("precision = bf16: {} computes {:.0f} times as fast in it", device.name, gain);
}

// A plan that would be faster if there were more memory.
std::string faster_with_memory(const DistributedExplanation& explanation) {
  const search::Alternative* best = nullptr;
  for (const search::Alternative& other : explanation.choice->alternatives)
    if (!other.fits && (best == nullptr || other.evaluation.seconds < best->evaluation.seconds))
      best = &other;
  const double seconds = explanation.choice->chosen.prediction.seconds;
  if (best == nullptr || best->evaluation.seconds > 0.95 * seconds) return {};
  return fmt::format("{} a rank instead of {}: {} would take {}", print_bytes(best->evaluation.peak_bytes),
                     print_bytes(explanation.memory_bytes), best->name,
                     print_seconds(best->evaluation.seconds));
}

std::string next_of(const DistributedExplanation& explanation) {
  const search::DistributionChoice& choice = *explanation.choice;
  if (explanation.measured && explanation.measured->predicted_after > 0) {  // else nothing was kept
    const double ratio = explanation.measured->seconds / choice.chosen.prediction.seconds;
    if (ratio > 1.25 || ratio < 0.8)
      return "it once more: what this run measured is remembered, and the next prediction is made of it";
  }
  switch (choice.outcome.ended) {
    case search::Ended::settled: break;
    case search::Ended::estimate_limit:
      return fmt::format("a larger search_limit: the search stopped for {}",
                         search::name(choice.outcome.ended));
    case search::Ended::time_limit: return "more seconds: when they were up, the search was not over";
    case search::Ended::interrupted:
      return "it again and wait: the search was interrupted, this is the best it had found";
  }
  if (std::string text = faster_precision(explanation.cluster.device, explanation.precision); !text.empty())
    return text;
  if (std::string text = faster_with_memory(explanation); !text.empty()) return text;
  if (cost::is_local(explanation.cluster) && !explanation.measured)
    return "EXPLAIN ANALYZE: it runs here, and measured stands beside predicted";
  return "(PAGE 'step.html') draws the timeline; distribution = '...' prices a plan of yours";
}

// What most of a step at best is bound by: "memory: 63 % of it".
std::string bound_of(const Explanation& explanation) {
  double by_limit[4] = {}, all = 0;
  for (const plan::Phase phase : explanation.phases) {
    const Entry entry = outline(explanation, phase);
    for (std::size_t i = 0; i < 4; ++i) by_limit[i] += entry.seconds_by_limit[i];
    all += entry.seconds;
  }
  if (!(all > 0)) return "nothing: it computes nothing";
  const auto most = static_cast<std::size_t>(std::ranges::max_element(by_limit) - by_limit);
  return fmt::format("{}: {} of the step", cost::name(static_cast<cost::Limit>(most)),
                     rounded_percent(by_limit[most] / all));
}

std::string chosen_of(const Explanation& explanation) {
  if (!explanation.rewriting)
    return fmt::format("one {}, the plan as it is written", explanation.cluster.device.name);
  const Rewriting& rewriting = *explanation.rewriting;
  if (rewriting.trail.empty())
    return fmt::format("one {}, the plan as it is written: no rule makes it cheaper",
                       explanation.cluster.device.name);
  return fmt::format("one {}, the plan that {} rule{} led to: {} instead of {}",
                     explanation.cluster.device.name, rewriting.trail.size(),
                     rewriting.trail.size() == 1 ? "" : "s", print_seconds(rewriting.seconds_after),
                     print_seconds(rewriting.seconds_before));
}

}  // namespace

Summary summarize(const Explanation& explanation) {
  Summary summary;
  summary.chosen = chosen_of(explanation);
  const cluster::Device& device = explanation.cluster.device;
  double seconds = 0;
  for (const plan::Phase phase : explanation.phases) seconds += outline(explanation, phase).seconds;
  summary.step = fmt::format("{} at best, by the roofline of {}", print_seconds(seconds), device.name);
  // Units fuse nodes, each of which the roofline counts by itself.
  if (explanation.predicted_seconds > 0)
    summary.step = fmt::format("{} predicted; {} node by node, by the roofline of {}",
                               print_seconds(explanation.predicted_seconds + explanation.spilled_seconds),
                               print_seconds(seconds), device.name);
  if (explanation.measurement) {
    const program::Attribution& times = explanation.measurement->times;
    summary.step = fmt::format("{}, measured on {} thread{}; {}", print_seconds(times.step_seconds),
                               times.workers, times.workers == 1 ? "" : "s", summary.step);
  }
  summary.bound = bound_of(explanation);
  Parts parts;
  double bytes = 0;
  for (const MemoryItem& item : explanation.memory) {
    parts.emplace_back(item.what, item.bytes);
    bytes += item.bytes;
  }
  bytes -= explanation.spilled_bytes;
  const double limit = explanation.memory_limit > 0 ? explanation.memory_limit : device.memory_bytes;
  summary.memory = fmt::format("{}{}: {}", print_bytes(bytes),
                               limit > 0 ? fmt::format(", {}", part_of(bytes, limit)) : std::string(),
                               largest_parts(std::move(parts), bytes));
  if (limit > 0 && bytes > limit)
    summary.next =
        fmt::format("ON pod: it does not fit one {}, and there it is spread over 32 devices", device.name);
  else if (std::string text = faster_precision(device, explanation.precision); !text.empty())
    summary.next = std::move(text);
  else if (explanation.measurement)
    summary.next = "ON LOCAL 2: the same step on two ranks of this machine";
  else if (!cost::is_local(explanation.cluster))
    summary.next = "(PAGE 'step.html') draws the timeline; ON pod plans it for 32 devices";
  else
    summary.next = "EXPLAIN ANALYZE to measure it here; ON h100, ON pod or SET device to plan it for others";
  return summary;
}

Summary summarize(const sim::Prediction& prediction, double of_peak, double memory_bytes) {
  Summary summary;
  summary.step = fmt::format("{}, predicted; {} of the peak rate; computing {}, waiting for others {}",
                             print_seconds(prediction.seconds), rounded_percent(of_peak),
                             print_seconds(prediction.compute_seconds),
                             print_seconds(prediction.exposed_communication_seconds));
  summary.bound = prediction.bound;
  Parts parts;
  for (const auto& [what, bytes] : prediction.memory.kinds()) parts.emplace_back(what, bytes);
  summary.memory =
      fmt::format("{} a rank{}: {}", print_bytes(prediction.peak_bytes),
                  memory_bytes > 0 ? ", " + part_of(prediction.peak_bytes, memory_bytes) : std::string(),
                  largest_parts(std::move(parts), prediction.peak_bytes));
  return summary;
}

Summary summarize(const DistributedExplanation& explanation) {
  const search::DistributionChoice& choice = *explanation.choice;
  const sim::Prediction& prediction = choice.chosen.prediction;
  Summary summary =
      summarize(prediction, explanation.utilization(prediction.seconds), explanation.memory_bytes);
  summary.parallelism = explanation.parallelism;
  summary.chosen = print(choice.distribution);
  if (explanation.measured)
    summary.step =
        fmt::format("{}, measured; {}", print_seconds(explanation.measured->seconds), summary.step);
  summary.bound += fmt::format("; no plan takes less than {}", print_seconds(choice.lower_bound_seconds));
  summary.next = next_of(explanation);
  return summary;
}

std::string print_summary(const Summary& summary, std::size_t width) {
  constexpr std::size_t kLabel = 10;
  std::string out;
  const auto line = [&](std::string_view label, std::string_view text) {
    if (text.empty()) return;
    out += wrap(fmt::format("{:{}}{}", label, kLabel, text), width, kLabel);
  };
  line("plan", summary.parallelism);
  line("chosen", summary.chosen);
  line("step", summary.step);
  line("bound by", summary.bound);
  line("memory", summary.memory);
  line("try", summary.next);
  return out;
}

std::string headline(std::string_view task, std::string_view model, std::string_view target,
                     const std::vector<std::pair<std::string, std::int64_t>>& sizes,
                     const std::vector<std::pair<std::string, std::string>>& settings) {
  std::vector<std::string> shown;
  for (const auto& [name, size] : sizes) shown.push_back(fmt::format("{} = {}", name, size));
  std::string text = fmt::format("{} {}{}{} ({})", task, model, target.empty() ? "" : " ON ", target,
                                 fmt::join(shown, ", "));
  for (const auto& [name, value] : settings) text += fmt::format(", {} {}", name, value);
  return text;
}

}  // namespace weft::explain
