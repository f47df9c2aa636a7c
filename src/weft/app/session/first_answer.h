// weft/app/session/first_answer.h -- time to the first answer when weights are not yet on the device.
#pragma once
#include "weft/app/explain/report.h"
#include "weft/base/result.h"
#include "weft/device/device.h"
#include "weft/runtime/exec/rank.h"

namespace weft::session {

// Reloads the rank's weights from page-locked memory: first all before computing, then in groups
// that overlap with computing. The values do not change. REQUIRES: the rank has run, on a device
// whose memory the host cannot access.
Result<explain::FirstAnswer> measure_first_answer(exec::Rank& rank, device::Device& device);

}  // namespace weft::session
