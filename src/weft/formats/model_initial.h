// weft/formats/model_initial.h -- initial values of a model file's weights.
//
// The files contain no numbers. Weights of products start as normal(0, 1/sqrt(fan in)), so that
// sums have the magnitude of their addends. Scales of norms, and variances of batch norms, start
// around 1. Weights that are added start around 0.
#pragma once
#include <vector>

#include "weft/formats/model_file.h"
#include "weft/plan/ops/build.h"

namespace weft::formats {

// Per value; meaningful only for weights.
std::vector<ops::Initial> initial_values(const ModelFile& file);

}  // namespace weft::formats
