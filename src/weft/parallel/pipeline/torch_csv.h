// weft/parallel/pipeline/torch_csv.h -- schedules as the CSV of torch.distributed.pipelining.
//
//   print_torch_csv(schedule, TorchFormat::compute_only)   0F0,0F1,0B0,0B1
//                                                          1F0,1B0,1F1,1B1
//
// _PipelineScheduleRuntime._load_csv(file, format) reads it. compute_only has the passes of each
// rank; PyTorch adds what moves data. compute_comms has those actions too (torch_messages.h).
//
// PyTorch needs the same number of stages on each rank and each stage on one rank, and its last stage
// must run the micro-batches in order. DualPipe keeps two copies of each stage, so it has no CSV.
#pragma once
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/parallel/pipeline/schedule.h"

namespace weft::pipeline {

enum class TorchFormat : std::uint8_t { compute_only, compute_comms };
std::string_view name(TorchFormat format);

// Verifies the schedule first. Fails if PyTorch cannot run it.
Result<std::string> print_torch_csv(const Schedule& schedule, TorchFormat format);

struct TorchSchedule {
  Schedule schedule;
  TorchFormat format = TorchFormat::compute_only;
};
// Reads and verifies either format. Errors name row and cell.
Result<TorchSchedule> parse_torch_csv(std::string_view text);

}  // namespace weft::pipeline
