// weft/runtime/run/schedule.h -- how the learning rate changes from step to step.
//
//   rate 1 |   /‾‾‾\__            linear  falls to `end` in a straight line
//          |  /       \__         cosine  falls to `end` along half a wave
//          | /           \__      step    is multiplied by `factor` every `every` steps
//        0 |/_______________\     constant
//          first  warmup   first + steps
//
// The rate multiplies the learning rate of the optimizer. It depends on the step's number alone, so a run in
// parts is the run at once; past the end it stays what it was there.
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
  std::int64_t warmup = 0;            // steps in which the rate climbs to 1
  std::int64_t first = 0, steps = 0;  // which steps it runs over, the warm-up's among them
  double end = 0;                     // what linear and cosine fall to
  std::int64_t every = 0;             // of step: so many steps; 0: a third of them all
  double factor = 0.1;                // of step

  bool changes() const { return kind != ScheduleKind::constant || warmup > 0; }
};

// In the step with that number, counted from 0.
double rate_at(const Schedule& schedule, std::int64_t step);

// Writes the rate where a plan that was made for a schedule reads it; other plans read none.
Status write_rate(exec::Rank& rank, const Schedule& schedule, std::int64_t step);

}  // namespace weft::run
