#include "weft/parallel/pipeline/schedule.h"

#include <fmt/format.h>

namespace weft::pipeline {

std::string_view name(Kind kind) {
  switch (kind) {
    case Kind::forward: return "F";
    case Kind::backward: return "B";
    case Kind::weight: return "W";
    case Kind::whole_backward: return "BW";
  }
  return "?";
}

std::string_view name(Route route) {
  switch (route) {
    case Route::line: return "line";
    case Route::loop: return "loop";
    case Route::v: return "v";
    case Route::both_ways: return "both_ways";
  }
  return "?";
}

std::string_view name(Clock clock) { return clock == Clock::end ? "end" : "span"; }

std::string print(const Pass& pass, bool with_chunk) {
  if (with_chunk) return fmt::format("{}{}.{}", name(pass.kind), pass.micro_batch, pass.chunk);
  return fmt::format("{}{}", name(pass.kind), pass.micro_batch);
}

namespace {

// The first half of the micro-batches, rounded up, goes down.
bool goes_up(const Schedule& schedule, std::int32_t micro_batch) {
  return schedule.route == Route::both_ways && micro_batch >= (schedule.micro_batches + 1) / 2;
}

}  // namespace

bool Schedule::is_pair(const std::vector<Pass>& order, std::size_t place) const {
  if (!overlaps || place + 1 >= order.size() || order[place].kind != Kind::forward) return false;
  const Pass& next = order[place + 1];
  const bool goes_back = next.kind == Kind::backward || next.kind == Kind::whole_backward;
  return goes_back && next.micro_batch != order[place].micro_batch;
}

std::int32_t Schedule::stage_at(std::int32_t position, std::int32_t micro_batch) const {
  const std::int32_t within = position % stages;
  const bool back = route == Route::v ? (position / stages) % 2 == 1 : goes_up(*this, micro_batch);
  return back ? stages - 1 - within : within;
}

std::int32_t Schedule::chunk_at(std::int32_t position, std::int32_t micro_batch) const {
  if (route == Route::both_ways) return goes_up(*this, micro_batch) ? 1 : 0;
  return position / stages;
}

std::int32_t Schedule::position(std::int32_t stage, const Pass& pass) const {
  switch (route) {
    case Route::line: return pass.chunk == 0 ? stage : -1;
    case Route::loop: return pass.chunk * stages + stage;
    case Route::v: return pass.chunk * stages + (pass.chunk % 2 == 0 ? stage : stages - 1 - stage);
    case Route::both_ways:
      if (goes_up(*this, pass.micro_batch) != (pass.chunk == 1)) return -1;
      return pass.chunk == 0 ? stage : stages - 1 - stage;
  }
  return -1;
}

}  // namespace weft::pipeline
