// weft/communication/comm/gpu/gpu_program.h -- a chunk program on the memory of one GPU, for all of
// its ranks.
//
//   WEFT_TRY(ready, GpuProgram::bind(gpu, program, calls, {}));    calls[rank] point to the GPU's memory
//   ready->start(*stream);
//   WEFT_TRY_STATUS(ready->finish(*stream));
//
// Ranks are buffers in the memory of one process. Their blocks run side by side in one kernel
// (chunk_source.h), as they would in one kernel per GPU. NCCL refuses two ranks on one GPU; this
// works with a single GPU.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/chunks/program.h"
#include "weft/communication/comm/call.h"
#include "weft/device/cuda/gpu.h"

namespace weft::comm::gpu {

struct GpuSlots {
  std::int32_t slots = 2;               // per connection; at least what the program needs
  std::int64_t slot_bytes = 512 << 10;  // at most
};

class GpuProgram {
 public:
  // REQUIRES: the program was checked, and check() holds for every call; calls differ only in their
  // memory, which stays allocated. Fails if memory is short, or if the program has more blocks than
  // can be resident.
  static Result<std::unique_ptr<GpuProgram>> bind(std::shared_ptr<device::cuda::Gpu> gpu,
                                                  std::shared_ptr<const collective::Program> program,
                                                  std::span<const Call> calls, const GpuSlots& slots);
  ~GpuProgram();

  // The previous run must have finished.
  void start(device::Stream& stream);
  // Waits for completion. The error names a block that waited too long.
  Status finish(device::Stream& stream);

 private:
  struct State;
  explicit GpuProgram(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace weft::comm::gpu
