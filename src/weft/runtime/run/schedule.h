// weft/runtime/run/schedule.h -- learning rate schedules.
//
//   rate 1 |   /‾‾‾\__            linear  decreases linearly to `end`
//          |  /       \__         cosine  decreases to `end` along half a cosine wave
//          | /           \__      step    is multiplied by `factor` every `every` steps
//        0 |/_______________\     constant
//          first  warmup   first + steps
//
// The rate multiplies the optimizer's learning rate. It depends only on the step's number, so a run
// in parts equals a single run. After the end it stays at its last value.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "weft/base/result.h"
#include "weft/runtime/exec/rank.h"

namespace weft::run {

enum class ScheduleKind : std::uint8_t { constant, linear, cosine, step };

std::span<const std::string_view> schedule_names();
std::string_view name(ScheduleKind kind);
std::optional<ScheduleKind> find_schedule(std::string_view name);

struct Schedule {
  ScheduleKind kind = ScheduleKind::constant;
  std::int64_t warmup = 0;            // steps in which the rate rises to 1
  std::int64_t first = 0, steps = 0;  // range of steps, including the warm-up
  double end = 0;                     // final rate of linear and cosine
  std::int64_t every = 0;             // for step: interval; 0: a third of the steps
  double factor = 0.1;                // for step

  bool changes() const { return kind != ScheduleKind::constant || warmup > 0; }
};

// The rate at a step, counted from 0.
double rate_at(const Schedule& schedule, std::int64_t step);

// Writes the rate to the rank's state for it; does nothing if the plan has none.
Status write_rate(exec::Rank& rank, const Schedule& schedule, std::int64_t step);

}  // namespace weft::run
