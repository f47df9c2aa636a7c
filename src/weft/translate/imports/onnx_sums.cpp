// Reductions, and Einsum.
#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "weft/translate/imports/onnx_resolver.h"

namespace weft::imports {

Result<std::set<std::size_t>> OnnxResolver::reduced_axes(std::size_t rank) const {
  std::vector<std::int64_t> axes = wholes("axes");
  if (given(1)) {
    if (known(1) == nullptr) return user_error("expected constant axes");
    axes = known(1)->wholes;
  }
  std::set<std::size_t> along;
  for (const std::int64_t place : axes) {
    WEFT_TRY(at, axis(place, rank));
    along.insert(at);
  }
  if (axes.empty() && whole("noop_with_empty_axes", 0) == 0)
    for (std::size_t d = 0; d < rank; ++d) along.insert(d);
  return along;
}

Status OnnxResolver::reduce(std::string_view function) {
  WEFT_TRY(x, operand(0));
  const ModelShape from = shape(x);
  WEFT_TRY(along, reduced_axes(from.size()));
  if (along.empty()) return alias();
  ModelNode node = made(Operation::reduce, {x});
  ModelShape kept, with_ones = from;
  for (std::size_t d = 0; d < from.size(); ++d) {
    if (along.contains(d)) {
      with_ones[d] = 1;
      continue;
    }
    node.order.push_back(d);
    kept.push_back(from[d]);
  }
  model_.functions[model_.file.nodes.size()] = fmt::format("{}({{}})", function);
  if (whole("keepdims", 1) == 0) return push(std::move(node), std::move(kept), std::string(function));
  if (kept.empty()) return user_error("keepdims: expected 0 where all dims are reduced");
  WEFT_TRY(inner, push_inner(std::move(node), std::move(kept), std::string(function)));
  return push(made(Operation::reshape, {inner}), std::move(with_ones), "shaped");
}

// "bhqd, bhkd -> bhqk". Without an arrow, the result has the letters that occur once, in order.
Status OnnxResolver::add_einsum() {
  const auto attribute = node_->attributes.find("equation");
  std::string equation = attribute == node_->attributes.end() ? "" : attribute->second.word;
  std::erase(equation, ' ');
  const std::string shown = formats::shown(equation);
  const std::size_t arrow = equation.find("->");
  const std::string terms = equation.substr(0, arrow);
  std::map<char, std::int64_t> size;
  std::map<char, int> times;
  std::vector<std::string> operands(1);
  for (const char c : terms) {
    if (c == ',') {
      operands.emplace_back();
    } else if (std::isalpha(static_cast<unsigned char>(c)) == 0) {
      return user_error(fmt::format("equation: expected letters, found '{}'", shown));
    } else if (operands.back().find(c) != std::string::npos) {
      return user_error(fmt::format("equation: expected a letter once per operand, found '{}'", shown));
    } else {
      operands.back() += c;
      ++times[c];
    }
  }
  if (operands.size() != node_->inputs.size())
    return user_error(fmt::format("equation: expected {} operands, found '{}'", node_->inputs.size(), shown));
  std::string result;
  if (arrow != std::string::npos) {
    result = equation.substr(arrow + 2);
  } else {
    for (const auto& [letter, count] : times)
      if (count == 1) result += letter;
  }
  ModelNode node = made(Operation::einsum, {});
  for (std::size_t i = 0; i < operands.size(); ++i) {
    WEFT_TRY(x, operand(i));
    node.operands.push_back(x);
    if (shape(x).size() != operands[i].size())
      return user_error(
          fmt::format("equation: '{}' does not fit {}", operands[i], formats::print_shape(shape(x))));
    for (std::size_t d = 0; d < operands[i].size(); ++d)
      if (const std::int64_t known = size.emplace(operands[i][d], shape(x)[d]).first->second;
          known != shape(x)[d])
        return user_error(fmt::format("equation: '{}' is {} and {}", operands[i][d], known, shape(x)[d]));
  }
  ModelShape to;
  std::map<char, std::size_t> label;
  for (const char c : result) {
    if (!size.contains(c) || !label.emplace(c, label.size()).second)
      return user_error(fmt::format(
          "equation: expected each letter of the result once, and in an operand, found '{}'", shown));
    to.push_back(size[c]);
  }
  for (const std::string& term : operands) {
    node.labels.emplace_back();
    for (const char c : term) node.labels.back().push_back(label.emplace(c, label.size()).first->second);
  }
  return push(std::move(node), std::move(to), "product");
}

}  // namespace weft::imports
