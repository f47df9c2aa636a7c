// weft/communication/comm/gpu/gpu_program.h -- a chunk program on the memory of one GPU, for all of its ranks.
//
//   WEFT_TRY(ready, GpuProgram::bind(gpu, program, calls, {}));    calls[rank] has places of the GPU's memory
//   ready->start(*stream);
//   WEFT_TRY_STATUS(ready->finish(*stream));
//
// Ranks are places in the memory of one process: their blocks run side by side in one kernel (chunk_text.h), as on
// several GPUs they would in several. NCCL refuses two ranks on one GPU; nothing here needs two.
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
  std::int32_t slots = 2;               // that the program needs a connection, at least
  std::int64_t slot_bytes = 512 << 10;  // at most
};

class GpuProgram {
 public:
  // The program was checked, and check() holds for every call; the calls differ in their memory alone, which must
  // stay where it is. Fails where there is no memory, or the program has more blocks than run at once.
  static Result<std::unique_ptr<GpuProgram>> bind(std::shared_ptr<device::cuda::Gpu> gpu,
                                                  std::shared_ptr<const collective::Program> program,
                                                  std::span<const Call> calls, const GpuSlots& slots);
  ~GpuProgram();

  // One after another: the last one must have finished.
  void start(device::Stream& stream);
  // Waits for it. A block that could not go on for long is named.
  Status finish(device::Stream& stream);

 private:
  struct State;
  explicit GpuProgram(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace weft::comm::gpu
