// weft/formats/model_attributes.h -- reads the attributes of a model file's node.
#pragma once
#include "weft/base/result.h"
#include "weft/formats/json_node.h"
#include "weft/formats/model_file.h"

namespace weft::formats {

// Reads the attributes that the node's operation has. REQUIRES: the node's operation and operands
// are set.
Status read_attributes(const JsonNode& from, const ModelFile& file, ModelNode& node);

}  // namespace weft::formats
