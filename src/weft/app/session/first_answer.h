// weft/app/session/first_answer.h -- how soon a model answers whose weights are not on the device yet.
#pragma once
#include "weft/app/explain/report.h"
#include "weft/base/result.h"
#include "weft/device/device.h"
#include "weft/runtime/exec/rank.h"

namespace weft::session {

// Loads the weights that the rank has once more, from page-locked memory: all before computing, and in groups while
// it computes. They stay as they are. REQUIRES: the rank has run, on a device that the host does not reach.
Result<explain::FirstAnswer> measure_first_answer(exec::Rank& rank, device::Device& device);

}  // namespace weft::session
