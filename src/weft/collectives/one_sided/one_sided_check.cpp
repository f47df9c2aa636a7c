// check() of a one-sided plan: form, counters, termination, access order, result.
#include <algorithm>

#include <fmt/format.h>

#include "weft/collectives/one_sided/memory_order.h"
#include "weft/collectives/one_sided/one_sided.h"
#include "weft/collectives/one_sided/one_sided_races.h"

namespace weft::collective {
namespace {

constexpr std::int32_t kTurns = 3;          // iterations: a first, a middle and a last one
constexpr std::int64_t kScratch = 1 << 26;  // bytes of MSCCL++'s scratch for plans that reuse resources
constexpr std::int32_t kSlotsTried[] = {4, 16, 64};

// The number of pipeline slices that fit a chunk's scratch if plans share it; 0: all fit.
std::int32_t slots_of(const OneSided& plan) {
  if (!plan.reuse_resources) return 0;
  std::int64_t slots = 0;
  for (const OneSidedRank& rank : plan.ranks) {
    if (rank.scratch_chunks == 0) continue;
    const std::int64_t bytes = (plan.double_scratch ? kScratch / 2 : kScratch) / rank.scratch_chunks;
    const std::int32_t chunks = std::max({rank.input_chunks, rank.output_chunks, 1});
    if (plan.max_bytes / static_cast<std::uint64_t>(chunks) <= static_cast<std::uint64_t>(bytes)) continue;
    for (const auto& block : rank.blocks)
      for (const OneSidedStep& step : block) {
        if (step.verb != Verb::pipeline || step.unit_bytes <= 0) continue;
        const std::int64_t fit = std::max<std::int64_t>(1, bytes / step.unit_bytes);
        slots = slots == 0 ? fit : std::min(slots, fit);
      }
  }
  return static_cast<std::int32_t>(std::min<std::int64_t>(slots, 1 << 20));
}

std::optional<Finding> find_memory_race(const OneSided& plan) {
  const std::int32_t runs = plan.double_scratch ? 3 : 2;
  if (auto finding = find_race(memory_order(plan, {runs, kTurns, 0}))) return finding;
  const std::int32_t slots = slots_of(plan);
  if (slots == 0) return std::nullopt;
  // If no block is overtaken by more than a few slices, none is overtaken by more than many.
  std::optional<Finding> finding;
  for (const std::int32_t tried : kSlotsTried) {
    const std::int32_t few = std::min(tried, slots);
    finding = find_race(memory_order(plan, {1, few + 2, few}));
    if (!finding) return std::nullopt;
    if (few == slots) break;
  }
  finding->text +=
      fmt::format("; scratch of {} slices is reused by later iterations without flow control", slots);
  return finding;
}

}  // namespace

Report check(const OneSided& plan, const CheckOptions& options) {
  Report report;
  if ((report.finding = check_form(plan))) return report;
  const Actions chunks = to_actions(plan, Grain::chunk);
  const Actions whole = to_actions(plan, Grain::step);
  report = check_end(chunks, &whole, options);
  if (!report.finding) report.finding = check_counters(plan);
  if (!report.finding)
    report.finding = check_end(to_actions(plan, Grain::chunk, kTurns), nullptr, options).finding;
  if (!report.finding) report.finding = find_memory_race(plan);
  if (!report.finding) report.finding = check_result(chunks, whole, options);
  return report;
}

}  // namespace weft::collective
