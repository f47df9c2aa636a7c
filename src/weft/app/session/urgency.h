// weft/app/session/urgency.h -- how soon an urgent step gets through while another step runs on the same device.
#pragma once
#include <functional>
#include <memory>

#include "weft/app/explain/report.h"
#include "weft/base/result.h"
#include "weft/device/device.h"
#include "weft/runtime/exec/rank.h"

namespace weft::session {

// Makes the rank whose step it is, with its weights; whether it gives way to others.
using MakeRank = std::function<Result<std::unique_ptr<exec::Rank>>(bool gives_way)>;

// Runs its step over and over, and meanwhile, now and then, a small unit of another rank: on a stream like the
// step's own, on one that goes first, and so beside a step that gives way.
Result<explain::Urgency> measure_urgency(const MakeRank& make, const std::shared_ptr<device::Device>& device,
                                         const std::function<bool()>& interrupted);

}  // namespace weft::session
