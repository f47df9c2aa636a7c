// weft/parallel/pipeline/library.h -- the schedules shipped in `schedules/*.schedule`.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "weft/base/embedded.h"
#include "weft/base/result.h"
#include "weft/parallel/pipeline/schedule_text.h"

namespace weft::pipeline {

// Parses each file; fails with the name of the first invalid one.
Result<std::vector<ScheduleText>> parse_library(std::span<const EmbeddedFile> files);

const std::vector<ScheduleText>& shipped_schedules();

// By file name or common name: "1F1B", "1F1B-I", "ZB-H1"; a synthesized schedule by what it was
// made for (synthesized.h). An error names the closest match.
Result<const ScheduleText*> find_schedule(std::string_view name);

}  // namespace weft::pipeline
