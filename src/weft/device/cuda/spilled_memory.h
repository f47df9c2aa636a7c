// weft/device/cuda/spilled_memory.h -- a stretch of addresses of which a part is the host's memory.
//
//   |  of the host  |  of the GPU             |  of the host  |      one program's memory: kernels see no difference
//   0            from                        to           bytes     but the speed of the bus between
//
// Pages are large (2 MiB): a page that both have a part in is the GPU's.
#pragma once
#include <cstdint>
#include <memory>

#include "weft/base/result.h"
#include "weft/device/cuda/gpu.h"

namespace weft::device::cuda {

// Zero until written. Fails where there is no memory, or the driver lays none of the host's there.
Result<std::unique_ptr<Memory>> allocate_spilled(std::shared_ptr<Gpu> gpu, std::int64_t bytes,
                                                 std::int64_t from, std::int64_t to);

}  // namespace weft::device::cuda
