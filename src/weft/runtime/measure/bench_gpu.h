// weft/runtime/measure/bench_gpu.h -- collectives among ranks that share this machine's GPU, against what its memory allows.
//
//   direct   every rank's memory read and written by one kernel          comm/gpu/gpu_direct.h
//   chunks   a shipped chunk program, its threadblocks as the kernel's   comm/gpu/gpu_program.h
//
// The limit is a copy of as many bytes as every algorithm must read and write (bench_machine.h), by the driver, in the
// same run. NCCL takes no two ranks on one GPU, so there is nobody to compare with.
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
  std::int64_t bytes = 0;  // of the message
  device::ElementType type = device::ElementType::f32;
  bool in_place = false;
  std::int32_t repeats = 7;
};

// A row a side, compared.
Result<std::vector<BenchRow>> bench_on_gpu(const GpuTurn& turn);

}  // namespace weft::measure
