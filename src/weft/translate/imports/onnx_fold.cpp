// Constant folding of an ONNX graph: shapes computed from shapes, and numbers.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "weft/translate/imports/onnx_resolver.h"

namespace weft::imports {
namespace {

template <class T>
std::vector<T> elements_of(const OnnxTensor& tensor) {
  std::vector<T> values(tensor.data().size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), tensor.data().data(), values.size() * sizeof(T));
  return values;
}

}  // namespace

bool OnnxResolver::fold(const std::string& name, const OnnxTensor& tensor, bool learns) {
  if (!tensor.location.empty()) return false;
  if (tensor.dtype == plan::DType::i64) {
    folded_[name].wholes = elements_of<std::int64_t>(tensor);
  } else if (tensor.dtype == plan::DType::i32) {
    const auto values = elements_of<std::int32_t>(tensor);
    folded_[name].wholes.assign(values.begin(), values.end());
  } else if (tensor.dtype == plan::DType::f32 && tensor.data().size() == sizeof(float)) {
    // A bias of one class is trained like any other; a number without dims is printed in the text.
    folded_[name] = {.number = as_written(elements_of<float>(tensor).front()),
                     .is_real = true,
                     .is_tensor = learns && !tensor.shape.empty()};
  } else if (tensor.dtype == plan::DType::boolean && tensor.data().size() == 1) {
    folded_[name] = {.wholes = {tensor.data().front() != 0}, .is_tensor = true};
  } else {
    return false;
  }
  Folded& made = folded_[name];
  made.rank = tensor.shape.size();
  if (made.wholes.size() == 1 && !made.number) made.number = static_cast<double>(made.wholes.front());
  return !made.is_tensor;
}

bool OnnxResolver::fold_shapes(const OnnxNode& node) {
  const std::string& to = node.outputs.front();
  if (node.operation == "Shape" && given(0) && at_.contains(node.inputs[0])) {
    const std::uint32_t value = at_.find(node.inputs[0])->second;
    ModelShape sizes = shape(value);
    if (model_.positions.contains(value)) sizes.pop_back();
    const auto rank = static_cast<std::int64_t>(sizes.size());
    const auto place = [&](std::int64_t at) {
      return std::clamp<std::int64_t>(at < 0 ? std::max(at, -rank) + rank : at, 0, rank);
    };
    const std::int64_t begin = place(whole("start", 0)), end = place(whole("end", rank));
    if (begin < end)
      folded_[to] = {.wholes = {sizes.begin() + begin, sizes.begin() + end}};
    else
      folded_[to] = {};
    return true;
  }
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    if (known(i) == nullptr) return false;
  if (node.inputs.empty()) return false;
  if (node.operation == "Cast") return fold_cast(node);
  if (node.operation == "Identity") {
    folded_[to] = Folded(*known(0));
    return true;
  }
  for (std::size_t i = 0; i < node.inputs.size(); ++i)  // the order of multi-dimensional tables is not kept
    if (known(i)->rank > 1 && known(i)->wholes.size() > 1) return false;
  if (fold_numbers(node)) return true;
  const auto& first = known(0)->wholes;
  if (node.operation == "Unsqueeze" || node.operation == "Squeeze") {
    Folded same = *known(0);
    const std::size_t all = same.rank;
    const std::size_t named = given(1) ? known(1)->wholes.size() : all - (same.wholes.size() > 1 ? 1 : 0);
    if (node.operation == "Squeeze" && named > all) return false;
    same.rank = node.operation == "Unsqueeze" ? all + named : all - named;
    folded_[to] = std::move(same);
    return true;
  }
  if (node.operation == "Reshape" && !first.empty() && known(1)->wholes.size() == 1) {
    const std::int64_t size = known(1)->wholes[0];
    if (size != -1 && size != static_cast<std::int64_t>(first.size())) return false;
    Folded same = *known(0);
    same.rank = 1;
    folded_[to] = std::move(same);
    return true;
  }
  if (node.operation == "Concat") {
    std::vector<std::int64_t> all;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (known(i)->is_real) return false;
      all.insert(all.end(), known(i)->wholes.begin(), known(i)->wholes.end());
    }
    folded_[to] = {.wholes = all,
                   .number = all.size() == 1 ? std::optional(static_cast<double>(all[0])) : std::nullopt};
    return true;
  }
  if (node.operation == "Gather" && known(1)->wholes.size() == 1) {
    std::int64_t place = known(1)->wholes.front();
    const auto size = static_cast<std::int64_t>(first.size());
    if (place < 0) place += size;
    if (place < 0 || place >= size) return false;
    const std::int64_t value = first[static_cast<std::size_t>(place)];
    folded_[to] = {.wholes = {value},
                   .number = static_cast<double>(value),
                   .rank = known(1)->rank,
                   .is_real = known(0)->is_real};
    return true;
  }
  return fold_arithmetic(node);
}

// A cast to integers drops fractions; a cast to bool gives 0 and 1.
bool OnnxResolver::fold_cast(const OnnxNode& node) {
  const OnnxCast to = static_cast<OnnxCast>(whole("to", 0));
  Folded made = *known(0);
  if (is_real_cast(to)) {
    made.is_real = true;
  } else if (to == OnnxCast::boolean) {
    for (std::int64_t& value : made.wholes) value = value != 0;
    if (made.wholes.empty() && made.number) made.wholes = {*made.number != 0};
    made.is_real = false;
  } else if (to == OnnxCast::i32 || to == OnnxCast::i64) {
    constexpr double kMostWhole = 9e18;
    if (made.wholes.empty()) {
      if (!made.number || !(std::abs(*made.number) < kMostWhole)) return false;
      made.wholes = {static_cast<std::int64_t>(*made.number)};
    }
    made.is_real = false;
  } else {
    return false;
  }
  if (made.wholes.size() == 1) made.number = static_cast<double>(made.wholes[0]);
  folded_[node.outputs.front()] = std::move(made);
  return true;
}

// Scalars that exporters compute from a size, such as the square root of a head's width and its
// reciprocal.
bool OnnxResolver::fold_numbers(const OnnxNode& node) {
  std::size_t rank = 0;
  bool is_real = false;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (!known(i)->number) return false;
    rank = std::max(rank, known(i)->rank);
    is_real |= known(i)->is_real;
  }
  if (!is_real || node.inputs.size() > 2) return false;
  const double a = *known(0)->number, b = node.inputs.size() > 1 ? *known(1)->number : 0;
  std::optional<double> made;
  if (node.inputs.size() == 1) {
    if (node.operation == "Sqrt") made = std::sqrt(a);
    if (node.operation == "Reciprocal") made = 1 / a;
    if (node.operation == "Neg") made = -a;
  } else {
    if (node.operation == "Add") made = a + b;
    if (node.operation == "Sub") made = a - b;
    if (node.operation == "Mul") made = a * b;
    if (node.operation == "Div") made = a / b;
    if (node.operation == "Pow") made = std::pow(a, b);
  }
  if (!made || !std::isfinite(*made)) return false;
  folded_[node.outputs.front()] = {
      .number = as_written(static_cast<float>(*made)), .rank = rank, .is_real = true};
  return true;
}

// Integer arithmetic that exporters apply to sizes: sums, products, quotients, comparisons, choices
// and ranges.
bool OnnxResolver::fold_arithmetic(const OnnxNode& node) {
  const auto keep = [&](std::vector<std::int64_t> wholes, bool is_scalar) {
    const auto number = wholes.size() == 1 ? std::optional(static_cast<double>(wholes[0])) : std::nullopt;
    folded_[node.outputs.front()] = {
        .wholes = std::move(wholes), .number = number, .rank = is_scalar ? 0u : 1u};
    return true;
  };
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    if (given(i) && (known(i)->wholes.empty() || known(i)->is_real)) return false;
  const auto at = [&](std::size_t i, std::size_t place) {
    const auto& wholes = known(i)->wholes;
    return wholes[wholes.size() == 1 ? 0 : place];
  };
  const auto scalars = [&](std::size_t count) {
    bool all = true;
    for (std::size_t i = 0; i < count; ++i) all &= known(i)->rank == 0;
    return all;
  };
  if (node.operation == "ConstantOfShape" && known(0)->wholes.size() == 1) {
    const std::int64_t count = known(0)->wholes[0];
    std::int64_t value = 0;
    if (const auto stated = node.attributes.find("value"); stated != node.attributes.end()) {
      if (stated->second.tensor.dtype != plan::DType::i64) return false;
      const auto values = elements_of<std::int64_t>(stated->second.tensor);
      if (values.size() != 1) return false;
      value = values[0];
    }
    if (count < 1 || count > static_cast<std::int64_t>(formats::kMostModelRank)) return false;
    return keep(std::vector<std::int64_t>(static_cast<std::size_t>(count), value), false);
  }
  if (node.operation == "Slice" && node.inputs.size() >= 3) {
    const auto& values = known(0)->wholes;
    const auto size = static_cast<std::int64_t>(values.size());
    if (known(1)->wholes.size() != 1 || known(2)->wholes.size() != 1) return false;
    if ((given(3) && known(3)->wholes != std::vector<std::int64_t>{0}) ||
        (given(4) && known(4)->wholes != std::vector<std::int64_t>{1}))
      return false;
    const auto place = [&](std::int64_t from) {
      return std::clamp<std::int64_t>(from < 0 ? std::max(from, -size) + size : from, 0, size);
    };
    const std::int64_t begin = place(known(1)->wholes[0]), end = place(known(2)->wholes[0]);
    if (begin >= end) return false;
    return keep({values.begin() + begin, values.begin() + end}, false);
  }
  if (node.operation == "ReduceProd" && node.inputs.size() == 1) {
    std::int64_t product = 1;
    for (const std::int64_t value : known(0)->wholes)
      if (__builtin_mul_overflow(product, value, &product)) return false;
    return keep({product}, whole("keepdims", 1) == 0);
  }
  if (node.operation == "Where" && node.inputs.size() == 3) {
    const std::size_t size =
        std::max({known(0)->wholes.size(), known(1)->wholes.size(), known(2)->wholes.size()});
    std::vector<std::int64_t> chosen;
    for (std::size_t i = 0; i < size; ++i) {
      for (std::size_t k = 0; k < 3; ++k)
        if (known(k)->wholes.size() != 1 && known(k)->wholes.size() != size) return false;
      chosen.push_back(at(0, i) != 0 ? at(1, i) : at(2, i));
    }
    return keep(std::move(chosen), scalars(3));
  }
  if (node.inputs.size() != 2) return false;
  const std::size_t left = known(0)->wholes.size(), right = known(1)->wholes.size(),
                    size = std::max(left, right);
  if ((left != 1 && left != size) || (right != 1 && right != size)) return false;
  std::vector<std::int64_t> values;
  for (std::size_t i = 0; i < size; ++i) {
    const std::int64_t a = at(0, i), b = at(1, i);
    std::int64_t value = 0;
    bool fits = true;
    if (node.operation == "Add")
      fits = !__builtin_add_overflow(a, b, &value);
    else if (node.operation == "Sub")
      fits = !__builtin_sub_overflow(a, b, &value);
    else if (node.operation == "Mul")
      fits = !__builtin_mul_overflow(a, b, &value);
    else if (node.operation == "Div")
      fits = b != 0 && !(b == -1 && a == INT64_MIN) && (value = a / b, true);
    else if (node.operation == "Equal")
      value = a == b;
    else
      return false;
    if (!fits) return false;
    values.push_back(value);
  }
  return keep(std::move(values), scalars(2));
}

}  // namespace weft::imports
