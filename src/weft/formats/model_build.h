// weft/formats/model_build.h -- a model file's nodes as the nodes of a plan.
#pragma once
#include "weft/base/result.h"
#include "weft/formats/model_file.h"
#include "weft/plan/graph/graph.h"

namespace weft::formats {

// Fails where a node's operands do not give the shape the file states; the error begins with its id.
Result<plan::Graph> build_plan(const ModelFile& file);

}  // namespace weft::formats
