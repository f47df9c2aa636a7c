// weft/formats/model_initial.h -- what a model file's weights start as.
//
// The files hold no numbers. Weights that are multiplied and summed start as normal(0, 1/sqrt(fan in)),
// so that sums are as large as their addends; what a norm scales by, and the variance of a batch norm,
// start around 1, what is added around 0.
#pragma once
#include <vector>

#include "weft/formats/model_file.h"
#include "weft/plan/ops/build.h"

namespace weft::formats {

// By value; of weights alone.
std::vector<ops::Initial> initial_values(const ModelFile& file);

}  // namespace weft::formats
