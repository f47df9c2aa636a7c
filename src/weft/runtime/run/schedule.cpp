#include "weft/runtime/run/schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "weft/parallel/train/training_plan.h"

namespace weft::run {
namespace {

constexpr std::array<std::string_view, 4> kSchedules = {"constant", "linear", "cosine", "step"};

}  // namespace

std::span<const std::string_view> schedule_names() { return kSchedules; }
std::string_view name(ScheduleKind kind) { return kSchedules[static_cast<std::size_t>(kind)]; }

std::optional<ScheduleKind> find_schedule(std::string_view text) {
  for (std::size_t i = 0; i < kSchedules.size(); ++i)
    if (kSchedules[i] == text) return static_cast<ScheduleKind>(i);
  return std::nullopt;
}

double rate_at(const Schedule& schedule, std::int64_t step) {
  const std::int64_t at = std::max<std::int64_t>(step - schedule.first, 0);
  if (at < schedule.warmup) return static_cast<double>(at + 1) / static_cast<double>(schedule.warmup);
  const std::int64_t after = at - schedule.warmup;
  const std::int64_t length = std::max<std::int64_t>(schedule.steps - schedule.warmup, 1);
  const double part = std::min(1.0, static_cast<double>(after) / static_cast<double>(length));
  const double span = 1 - schedule.end;
  switch (schedule.kind) {
    case ScheduleKind::constant: return 1;
    case ScheduleKind::linear: return schedule.end + span * (1 - part);
    case ScheduleKind::cosine: return schedule.end + span * (1 + std::cos(std::numbers::pi * part)) / 2;
    case ScheduleKind::step: {
      const std::int64_t every = schedule.every > 0 ? schedule.every : std::max<std::int64_t>(length / 3, 1);
      return std::pow(schedule.factor, static_cast<double>(after / every));
    }
  }
  return 1;
}

Status write_rate(exec::Rank& rank, const Schedule& schedule, std::int64_t step) {
  const auto& states = rank.program().states;
  const auto found = std::ranges::find(states, train::kRateName, &program::Port::name);
  if (found == states.end()) return {};
  const auto rate = static_cast<float>(rate_at(schedule, step));
  return rank.write(*found, std::as_bytes(std::span(&rate, 1)));
}

}  // namespace weft::run
