// weft/parallel/pipeline/library.h -- the schedules that ship: `schedules/*.schedule`, inside the program.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "weft/base/embedded.h"
#include "weft/base/result.h"
#include "weft/parallel/pipeline/schedule_text.h"

namespace weft::pipeline {

// Reads each file; the first that is wrong fails with its name.
Result<std::vector<ScheduleText>> parse_library(std::span<const EmbeddedFile> files);

const std::vector<ScheduleText>& shipped_schedules();

// By name, as the files have it or as papers do: "1F1B", "1F1B-I", "ZB-H1"; one that is synthesized by what it is made
// for (synthesized.h). Fails with the nearest name.
Result<const ScheduleText*> find_schedule(std::string_view name);

}  // namespace weft::pipeline
