// weft/device/cuda/stream.h -- streams and events of a GPU.
#pragma once
#include <memory>

#include "weft/device/cuda/gpu.h"

namespace weft::device::cuda {

Result<std::unique_ptr<Stream>> make_stream(std::shared_ptr<Gpu> gpu, const StreamOptions& options);
// The driver's handle.
Handle raw_stream(const Stream& stream);
Result<std::unique_ptr<Event>> make_event(std::shared_ptr<Gpu> gpu);

}  // namespace weft::device::cuda
