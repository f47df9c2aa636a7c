// weft/runtime/measure/bench_gpu.h -- collectives among ranks on one GPU, compared with its memory limit.
//
//   direct   one kernel reads and writes every rank's memory               comm/gpu/gpu_direct.h
//   chunks   a shipped chunk program; its threadblocks become the kernel's   comm/gpu/gpu_program.h
//
// The limit is the time of a driver copy of the bytes that any algorithm must read and write
// (bench_machine.h), measured in the same run. NCCL does not support several ranks on one GPU, so
// there is no peer to compare with.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/device/element_type.h"
#include "weft/runtime/measure/bench_row.h"

namespace weft::measure {

struct GpuTurn {
  collective::Kind kind = collective::Kind::all_reduce;
  std::int32_t ranks = 2;
  std::int64_t bytes = 0;  // message size
  device::ElementType type = device::ElementType::f32;
  bool in_place = false;
  std::int32_t repeats = 7;
};

// One row per algorithm, compared.
Result<std::vector<BenchRow>> bench_on_gpu(const GpuTurn& turn);

}  // namespace weft::measure
