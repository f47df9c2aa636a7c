// weft/app/explain/description.h -- what DESCRIBE prints: a model's sizes, tensors and forward FLOPs.
#pragma once
#include <string>

#include "weft/app/explain/lines.h"
#include "weft/language/bind.h"

namespace weft::explain {

struct Description {
  std::int64_t parameters = 0;  // elements of PARAMETER tensors
  std::int64_t parameter_tensors = 0;
  double parameter_bytes = 0;
  std::int64_t states = 0;   // elements of STATE tensors
  double multiply_adds = 0;  // of contractions and convolutions in one forward pass
  // A model's FLOPs as usually stated: two per multiply-add, nothing else counted.
  double forward_flops() const { return 2 * multiply_adds; }
  double other_flops = 0;  // norms, activations, softmax, loss
};

Description describe(const plan::Graph& graph);

std::string print_text(const language::BoundModel& model, const std::string& name,
                       std::size_t width = kUsualWidth);
std::string print_json(const language::BoundModel& model, const std::string& name);  // one line

}  // namespace weft::explain
