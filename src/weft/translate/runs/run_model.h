// weft/translate/runs/run_model.h -- the model of a row as a config.json of Hugging Face's.
//
// Fields of the row come first. What it does not state of a mixture of experts is that of the published model which
// its column `model` names (published_models.h); a width that neither states is an error.
#pragma once
#include <string>

#include "weft/translate/runs/run_fields.h"

namespace weft::runs {

// Errors are in `fields`.
std::string config_of(Fields& fields);

}  // namespace weft::runs
