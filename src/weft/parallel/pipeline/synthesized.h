// weft/parallel/pipeline/synthesized.h -- a synthesized schedule by name: what it was made for, so that all make the same.
//
//   synthesized_f10_9x6_12_b20x8_w10x8_t1x8_m45x8
//
// Of each stage the times of F, B and W, of a transfer to the next, and the forward passes of the whole stage that it has
// memory for, in tenths: 9x6 is six stages of 9. Times are in one unit of any size. A distribution that names such a
// schedule is complete, as synthesis gives the same answer everywhere.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/parallel/pipeline/schedule_text.h"
#include "weft/parallel/pipeline/synthesize.h"

namespace weft::pipeline {

inline constexpr std::string_view kSynthesized = "synthesized";

bool is_synthesized(std::string_view schedule);

// Times are rounded to parts of the longest pass, memory down to tenths. REQUIRES: times and memory of each stage.
std::string synthesized_name(const SynthesisRequest& request);

// Fails on what is no such name. The same name gives the same address.
Result<const ScheduleText*> find_synthesized(std::string_view name);

// Synthesized once for each number of micro-batches. Fails where the name is of another number of stages.
Result<Schedule> synthesized_schedule(const ScheduleText& text, std::int32_t stages,
                                      std::int32_t micro_batches, std::int32_t chunks);

}  // namespace weft::pipeline
