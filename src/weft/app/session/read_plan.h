// weft/app/session/read_plan.h -- a plan of one device, from wherever it is written: what `weft rules` is given.
//
//   encoder.json    a model graph (`weft-graph-1`)
//   block.plan      plan text
//   resnet50        a shipped model, as INFER would run it
//
// What a file holds is seen by its first characters, not by its name.
#pragma once
#include <string>

#include "weft/base/result.h"
#include "weft/plan/cluster/device.h"
#include "weft/plan/graph/graph.h"

namespace weft::session {

Result<plan::Graph> read_plan(const std::string& reference);

// A shipped device: a100, h100, cpu_core.
Result<cluster::Device> find_device(const std::string& name);

}  // namespace weft::session
