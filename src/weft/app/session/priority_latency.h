// weft/app/session/priority_latency.h -- latency of high-priority work beside a step on the same device.
#pragma once
#include <functional>
#include <memory>

#include "weft/app/explain/report.h"
#include "weft/base/result.h"
#include "weft/device/device.h"
#include "weft/runtime/exec/rank.h"

namespace weft::session {

// Creates the rank whose step is measured against, with its weights; `gives_way`: at low priority.
using MakeRank = std::function<Result<std::unique_ptr<exec::Rank>>(bool gives_way)>;

// Runs the rank's step in a loop and measures the latency of a small unit of another rank. The unit
// runs on a stream of equal priority, on a high-priority stream, and on a high-priority stream
// beside a low-priority step.
Result<explain::PriorityLatency> measure_priority_latency(const MakeRank& make,
                                                          const std::shared_ptr<device::Device>& device,
                                                          const std::function<bool()>& interrupted);

}  // namespace weft::session
