// weft/device/cuda/spilled_memory.h -- an address range partly backed by host memory.
//
//   |  host memory  |  GPU memory             |  host memory  |      one program's memory: only its
//   0            from                        to           bytes     speed differs for kernels
//
// Pages are large (2 MiB): a page that straddles a limit is in GPU memory.
#pragma once
#include <cstdint>
#include <memory>

#include "weft/base/result.h"
#include "weft/device/cuda/gpu.h"

namespace weft::device::cuda {

// Zero-initialized. Fails if there is not enough memory, or the driver cannot map host memory.
Result<std::unique_ptr<Memory>> allocate_spilled(std::shared_ptr<Gpu> gpu, std::int64_t bytes,
                                                 std::int64_t from, std::int64_t to);

}  // namespace weft::device::cuda
