// weft/formats/model_build.h -- builds a plan from a model file's nodes.
#pragma once
#include "weft/base/result.h"
#include "weft/formats/model_file.h"
#include "weft/plan/graph/graph.h"

namespace weft::formats {

// Fails if a node's operands do not give the shape that the file states; the error begins with its
// id.
Result<plan::Graph> build_plan(const ModelFile& file);

}  // namespace weft::formats
