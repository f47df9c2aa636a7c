// weft/app/session/read_plan.h -- reads a plan for one device in any format: the input of `weft rules`.
//
//   encoder.json    a model graph (`weft-graph-1`)
//   block.plan      plan text
//   resnet50        a shipped model, as INFER would run it
//
// The format is detected from a file's first characters, not from its name.
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
