// What of an ONNX graph is known before it runs: shapes of shapes, and numbers.
#include <cstring>

#include "weft/imports/onnx_resolver.h"

namespace weft::imports {
namespace {

template <class T>
std::vector<T> elements_of(const OnnxTensor& tensor) {
  std::vector<T> values(tensor.data().size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), tensor.data().data(), values.size() * sizeof(T));
  return values;
}

}  // namespace

bool OnnxResolver::fold(const std::string& name, const OnnxTensor& tensor) {
  if (!tensor.location.empty()) return false;
  if (tensor.dtype == plan::DType::i64) {
    folded_[name].wholes = elements_of<std::int64_t>(tensor);
  } else if (tensor.dtype == plan::DType::i32) {
    const auto values = elements_of<std::int32_t>(tensor);
    folded_[name].wholes.assign(values.begin(), values.end());
  } else if (tensor.dtype == plan::DType::f32 && tensor.data().size() == sizeof(float)) {
    folded_[name].number = as_written(elements_of<float>(tensor).front());
  } else {
    return false;
  }
  Folded& made = folded_[name];
  if (made.wholes.size() == 1 && !made.number) made.number = static_cast<double>(made.wholes.front());
  return true;
}

bool OnnxResolver::fold_shapes(const OnnxNode& node) {
  const std::string& to = node.outputs.front();
  if (node.operation == "Shape" && given(0) && at_.contains(node.inputs[0])) {
    const std::uint32_t value = at_.find(node.inputs[0])->second;
    folded_[to].wholes = shape(value);
    if (model_.positions.contains(value)) folded_[to].wholes.pop_back();
    return true;
  }
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    if (known(i) == nullptr) return false;
  if (node.inputs.empty()) return false;
  const auto& first = known(0)->wholes;
  if (node.operation == "Cast" || node.operation == "Unsqueeze" || node.operation == "Squeeze" ||
      node.operation == "Identity") {
    folded_[to] = *known(0);
    return true;
  }
  if (node.operation == "Concat") {
    std::vector<std::int64_t> all;
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      all.insert(all.end(), known(i)->wholes.begin(), known(i)->wholes.end());
    folded_[to] = {all, all.size() == 1 ? std::optional(static_cast<double>(all[0])) : std::nullopt};
    return true;
  }
  if (node.operation == "Gather" && known(1)->wholes.size() == 1) {
    std::int64_t place = known(1)->wholes.front();
    const auto size = static_cast<std::int64_t>(first.size());
    if (place < 0) place += size;
    if (place < 0 || place >= size) return false;
    const std::int64_t value = first[static_cast<std::size_t>(place)];
    folded_[to] = {{value}, static_cast<double>(value)};
    return true;
  }
  return false;
}

}  // namespace weft::imports
