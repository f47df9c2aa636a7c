// weft/parallel/pipeline/synthesized.h -- names for synthesized schedules.
//
//   synthesized_f10_9x6_12_b20x8_w10x8_t1x8_m45x8
//
// By stage: the times of F, B and W, of a transfer to the next stage, and the memory in forward
// passes of the whole stage, in tenths. 9x6 stands for six stages with 9. Times share an arbitrary
// unit. A distribution with such a schedule name is complete, since synthesis is deterministic.
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

// Times are rounded to fractions of the longest pass, memory down to tenths. REQUIRES: times and
// memory for each stage.
std::string synthesized_name(const SynthesisRequest& request);

// Fails on an invalid name. The same name gives the same address.
Result<const ScheduleText*> find_synthesized(std::string_view name);

// Synthesized once per number of micro-batches. Fails if the name is for another number of stages.
Result<Schedule> synthesized_schedule(const ScheduleText& text, std::int32_t stages,
                                      std::int32_t micro_batches, std::int32_t chunks);

}  // namespace weft::pipeline
