// Nodes of any rank or arity: choices, slices, reductions, broadcasts, einsums.
#include <algorithm>

#include <fmt/format.h>

#include "weft/translate/imports/onnx_printer.h"

namespace weft::imports {

OnnxPrinter::Piece OnnxPrinter::several(std::size_t n, const ModelNode& node, const Names& wanted) {
  const ModelShape& result = file_.shape(file_.result(n));
  for (const std::uint32_t operand : node.operands)
    if (pieces_.contains(operand)) add_entry(operand, "part", start(operand, names_[operand]));
  Piece piece;
  const std::string& form = model_.functions.at(n);
  std::size_t from = 0;
  for (const std::uint32_t operand : node.operands) {
    const std::size_t hole = form.find("{}", from);
    piece.text += form.substr(from, hole - from) + repeated(piece, operand, result, wanted);
    from = hole + 2;
  }
  piece.text += form.substr(from);
  piece.grouped = !wanted.empty();
  piece.alone = true;
  return piece;
}

OnnxPrinter::Piece OnnxPrinter::slice(const ModelNode& node, const Names& wanted) {
  Piece piece;
  piece.text = source(piece, node.operands[0], wanted);
  piece.joins = fmt::format(" WHERE {} BETWEEN {} AND {}", wanted[node.axis], node.begin, node.end - 1);
  piece.grouped = true;
  piece.alone = true;
  return piece;
}

OnnxPrinter::Piece OnnxPrinter::reduce(std::size_t n, const ModelNode& node, const Names& wanted) {
  Names names = names_[node.operands[0]];
  for (std::size_t d = 0; d < names.size(); ++d) {
    const auto kept = std::ranges::find(node.order, d);
    if (kept != node.order.end())
      names[d] = wanted[static_cast<std::size_t>(kept - node.order.begin())];
    else if (holds(wanted, names[d]))
      names[d] = free_name({}, wanted);
  }
  Piece piece;
  const std::string x = source(piece, node.operands[0], names), form = model_.functions.at(n);
  piece.text = form.substr(0, form.find('(') + 1) + x + ")";
  piece.grouped = !wanted.empty();
  piece.alone = true;
  return piece;
}

Status OnnxPrinter::declare(const std::string& index, std::int64_t size, const ModelShape& to) {
  const auto declared = sizes_.find(index);
  if (declared != sizes_.end() && declared->second != size)
    return user_error(fmt::format("a result {}: {} is {} here and {} elsewhere", formats::print_shape(to),
                                  index, size, declared->second));
  sized(index, size, {});
  return {};
}

Result<OnnxPrinter::Piece> OnnxPrinter::broadcast(const ModelNode& node, const ModelShape& to,
                                                  const Names& wanted) {
  const ModelShape& from = file_.shape(node.operands[0]);
  const std::size_t less = to.size() - from.size();
  Names repeats;
  for (std::size_t d = 0; d < to.size(); ++d) {
    if (d >= less && from[d - less] == to[d]) continue;
    WEFT_TRY_STATUS(declare(wanted[d], to[d], to));
    repeats.push_back(wanted[d]);
  }
  Piece piece;
  piece.text =
      repeated(piece, node.operands[0], to, wanted) + fmt::format(" + zeros({})", fmt::join(repeats, ", "));
  piece.sum = true;
  piece.grouped = true;
  piece.alone = true;
  return piece;
}

OnnxPrinter::Piece OnnxPrinter::einsum(const ModelNode& node, const Names& wanted) {
  Names of_label = wanted;
  bool sums = false;
  Piece piece;
  std::vector<std::string> factors;
  for (std::size_t i = 0; i < node.operands.size(); ++i) {
    Names names;
    for (std::size_t d = 0; d < node.labels[i].size(); ++d) {
      const std::size_t label = node.labels[i][d];
      while (of_label.size() <= label) of_label.emplace_back();
      if (of_label[label].empty()) of_label[label] = free_name({names_[node.operands[i]][d]}, of_label);
      sums |= label >= wanted.size();
      names.push_back(of_label[label]);
    }
    factors.push_back(source(piece, node.operands[i], names));
  }
  piece.text = fmt::format("{}", fmt::join(factors, " * "));
  if (sums) piece.text = fmt::format("sum({})", piece.text);
  piece.grouped = !wanted.empty();
  piece.alone = true;
  return piece;
}

OnnxPrinter::Piece OnnxPrinter::conv2d_transpose(std::size_t n, const ModelNode& node, const Names& wanted) {
  const std::uint32_t x = node.operands[0], w = node.operands[1];
  Names image = wanted, others = wanted;
  image[1] = free_name({names_[x][1], names_[w][0]}, wanted);
  others.push_back(image[1]);
  Names weight = {image[1], wanted[1], {}, {}};
  for (const std::size_t d : {2u, 3u}) {
    weight[d] = free_name({names_[w][d]}, others);
    others.push_back(weight[d]);
  }
  Piece piece;
  const std::string a = source(piece, x, image), b = source(piece, w, weight);
  piece.text = fmt::format("conv2d_transpose({}, {}", a, b);
  if (node.stride != 1) piece.text += fmt::format(", stride => {}", node.stride);
  if (node.pad_high != 0) piece.text += fmt::format(", padding => {}", node.pad_high);
  if (node.pad_wide != node.pad_high) piece.text += fmt::format(", padding_w => {}", node.pad_wide);
  if (node.begin != 0) piece.text += fmt::format(", extra => {}", node.begin);
  piece.text += ")";
  add_bias(piece, n, wanted);
  return piece;
}

}  // namespace weft::imports
