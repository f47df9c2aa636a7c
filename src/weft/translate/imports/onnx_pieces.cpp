// Prints a node of an ONNX model as part of a query.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "weft/formats/model_reshape.h"
#include "weft/translate/imports/onnx_printer.h"

namespace weft::imports {

Result<OnnxPrinter::Piece> OnnxPrinter::piece_of(std::size_t n) {
  const ModelNode& node = file_.nodes[n];
  const Names& wanted = names_[file_.result(n)];
  switch (node.operation) {
    case Operation::matmul: return matmul(node, wanted);
    case Operation::conv2d: return conv2d(n, node, wanted);
    case Operation::add:
    case Operation::mul: return two(n, node, wanted);
    case Operation::select: return several(n, node, wanted);
    case Operation::slice: return slice(node, wanted);
    case Operation::reduce: return reduce(n, node, wanted);
    case Operation::broadcast: return broadcast(node, file_.shape(file_.result(n)), wanted);
    case Operation::einsum:
      return model_.functions.contains(n) ? function(n, node, wanted) : einsum(node, wanted);
    case Operation::conv2d_transpose: return conv2d_transpose(n, node, wanted);
    case Operation::layernorm: return layer_norm(node, wanted);
    case Operation::batchnorm: return batch_norm(node, wanted);
    case Operation::reshape: return reshape(node, file_.shape(file_.result(n)), wanted);
    case Operation::transpose: return transpose(node, wanted);
    case Operation::concat: return concat(node, wanted);
    case Operation::embedding_sum: return embedding(node, wanted);
    default: return one(n, node, wanted);
  }
}

OnnxPrinter::Piece OnnxPrinter::one(std::size_t n, const ModelNode& node, const Names& wanted) {
  const auto function = model_.functions.find(n);
  // An operand that occurs twice in a form becomes an entry, so that its text is not duplicated.
  const bool several =
      function != model_.functions.end() && function->second.find("{}") != function->second.rfind("{}");
  if (several && pieces_.contains(node.operands[0]))
    add_entry(node.operands[0], "part", start(node.operands[0], wanted));
  Piece piece = start(node.operands[0], wanted);
  std::string form =
      function != model_.functions.end() ? function->second : std::string(name(node.operation)) + "({})";
  if (node.operation == Operation::pool_max || node.operation == Operation::pool_avg)
    form = fmt::format("{}({{}}, size => {}, stride => {}, padding => {})",
                       node.operation == Operation::pool_max ? "max_pool" : "avg_pool", node.window,
                       node.stride, node.pad_high);
  if (node.operation == Operation::softmax)
    form = fmt::format("softmax({{}}){}", over(wanted, {wanted[node.axis]}));
  if ((form.starts_with('(') || form.find("{} ") != std::string::npos) && piece.sum)
    piece.text = fmt::format("({})", piece.text);
  for (std::size_t hole = form.find("{}"); hole != std::string::npos;
       hole = form.find("{}", hole + piece.text.size()))
    form.replace(hole, 2, piece.text);
  piece.text = std::move(form);
  piece.sum = false;
  return piece;
}

std::string OnnxPrinter::over(const Names& all, const Names& without) {
  Names kept;
  for (const std::string& name : all)
    if (!holds(without, name)) kept.push_back(name);
  return kept.empty() ? " OVER ()" : fmt::format(" OVER (PARTITION BY {})", fmt::join(kept, ", "));
}

std::string OnnxPrinter::repeated(Piece& piece, std::uint32_t value, const ModelShape& result,
                                  const Names& wanted) {
  const ModelShape& shape = file_.shape(value);
  const std::size_t less = result.size() - shape.size();
  const Names &own = names_[value], names(wanted.begin() + static_cast<std::ptrdiff_t>(less), wanted.end());
  bool narrow = false;
  for (std::size_t d = 0; d < shape.size(); ++d) narrow |= shape[d] != result[less + d];
  if (!narrow) return source(piece, value, names);
  struct Group {
    Names parts;       // the value's dims: one that is kept, and those of size 1 merged into it
    std::string kept;  // its index in the query
    std::int64_t size;
  };
  std::vector<Group> groups;
  Names before;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == result[less + d]) {
      groups.push_back({std::exchange(before, {}), names[d], shape[d]});
      groups.back().parts.push_back(own[d]);
    } else {
      (groups.empty() ? before : groups.back().parts).push_back(own[d]);
    }
  }
  if (groups.empty()) {  // a single element, printed as its sum
    const std::string sum = unique(entry_[value] + "_number");
    body_.with(sum, fmt::format("SELECT sum({0}) FROM {0}", entry_[value]));
    piece.from.push_back(sum);
    return sum;
  }
  // If the text declares this index with another size, dims are first merged into an index with a
  // new name.
  const bool twice = std::ranges::any_of(groups, [&](const Group& group) {
    const auto declared = sizes_.find(group.kept);
    return group.parts.size() > 1 && declared != sizes_.end() && declared->second != group.size;
  });
  std::vector<std::string> merges, renames;
  for (const Group& group : groups) {
    const bool merged = group.parts.size() > 1;
    const std::string parts = merged ? fmt::format("({})", fmt::join(group.parts, ", ")) : group.parts[0];
    const std::string to = !twice ? group.kept : merged ? free_name({}, own) : group.parts[0];
    merges.push_back(parts == to ? to : fmt::format("{} AS {}", parts, to));
    renames.push_back(to == group.kept ? to : fmt::format("{} AS {}", to, group.kept));
  }
  if (!twice) return source(piece, value, fmt::format("[{}]", fmt::join(merges, ", ")));
  const std::string entry = unique(fmt::format("flat{}", ++counts_["flat"]));
  body_.with(entry, fmt::format("SELECT {0} FROM {0}[{1}]", entry_[value], fmt::join(merges, ", ")));
  piece.from.push_back(fmt::format("{}[{}]", entry, fmt::join(renames, ", ")));
  return entry;
}

OnnxPrinter::Piece OnnxPrinter::two(std::size_t n, const ModelNode& node, const Names& wanted) {
  const std::string& infix = model_.infixes.at(n);
  const ModelShape& result = file_.shape(file_.result(n));
  Piece piece;
  if (pieces_.contains(node.operands[0])) {
    piece = start(node.operands[0], wanted);
  } else {
    piece.text = repeated(piece, node.operands[0], result, wanted);
    piece.grouped = file_.shape(node.operands[0]) != result;
  }
  if (pieces_.contains(node.operands[1]))
    add_entry(node.operands[1], "part", start(node.operands[1], wanted));
  const std::string other = repeated(piece, node.operands[1], result, wanted);
  const bool factor = infix == " * " || infix == " / ", addend = infix == " + " || infix == " - ";
  piece.text = fmt::format("{}{}{}", !addend && piece.sum ? fmt::format("({})", piece.text) : piece.text,
                           infix, other);
  piece.sum = !factor;
  return piece;
}

OnnxPrinter::Piece OnnxPrinter::matmul(const ModelNode& node, const Names& wanted) {
  const std::uint32_t a = node.operands[0], b = node.operands[1];
  Names left = wanted, right(wanted.end() - static_cast<std::ptrdiff_t>(names_[b].size()), wanted.end());
  const std::size_t inner = right.size() - 2;
  left.back() = right[inner] = free_name({names_[a].back(), names_[b][inner]}, wanted);
  Piece piece;
  const std::string x = source(piece, a, left), y = source(piece, b, right);
  piece.text = fmt::format("sum({} * {})", x, y);
  piece.grouped = true;
  return piece;
}

OnnxPrinter::Piece OnnxPrinter::conv2d(std::size_t n, const ModelNode& node, const Names& wanted) {
  const std::uint32_t x = node.operands[0], w = node.operands[1];
  Names image = wanted, weight = {wanted[1], {}, {}, {}}, others = wanted;
  image[1] = free_name({names_[x][1], names_[w][1]}, wanted);
  others.push_back(image[1]);
  weight[1] = node.groups == 1 ? image[1] : free_name({names_[w][1]}, others);
  for (const std::size_t d : {2u, 3u}) {
    others.push_back(weight[d - 1]);
    weight[d] = free_name({names_[w][d]}, others);
  }
  Piece piece;
  const std::string a = source(piece, x, image), b = source(piece, w, weight);
  piece.text = fmt::format("conv2d({}, {}", a, b);
  if (node.stride != 1) piece.text += fmt::format(", stride => {}", node.stride);
  if (node.pad_high != 0) piece.text += fmt::format(", padding => {}", node.pad_high);
  if (node.pad_wide != node.pad_high) piece.text += fmt::format(", padding_w => {}", node.pad_wide);
  if (node.groups != 1) piece.text += fmt::format(", groups => {}", node.groups);
  piece.text += ")";
  add_bias(piece, n, wanted);
  return piece;
}

void OnnxPrinter::add_bias(Piece& piece, std::size_t n, const Names& wanted) {
  const auto bias = model_.biases.find(n);
  if (bias == model_.biases.end()) return;
  piece.text += " + " + source(piece, bias->second, Names{wanted[1]});
  piece.sum = true;
}

OnnxPrinter::Piece OnnxPrinter::layer_norm(const ModelNode& node, const Names& wanted) {
  Piece piece;
  const std::string x = source(piece, node.operands[0], wanted);
  piece.text =
      fmt::format("layer_norm({}, epsilon => {}){}", x, node.number, over(wanted, {wanted[node.axis]}));
  scale_and_shift(piece, node, wanted[node.axis]);
  return piece;
}

void OnnxPrinter::scale_and_shift(Piece& piece, const ModelNode& node, const std::string& along) {
  if (node.operands.size() > 1) piece.text += " * " + source(piece, node.operands[1], Names{along});
  if (node.operands.size() < 3) return;
  piece.text += " + " + source(piece, node.operands[2], Names{along});
  piece.sum = true;
}

OnnxPrinter::Piece OnnxPrinter::batch_norm(const ModelNode& node, const Names& wanted) {
  Piece piece;
  const std::string x = source(piece, node.operands[0], wanted);
  const std::string mean = source(piece, node.operands[3], Names{wanted[1]});
  const std::string variance = source(piece, node.operands[4], Names{wanted[1]});
  piece.text = fmt::format("batch_norm({}, {}, {}, epsilon => {}) OVER (PARTITION BY {})", x, mean, variance,
                           node.number, wanted[1]);
  scale_and_shift(piece, node, wanted[1]);
  return piece;
}

OnnxPrinter::Piece OnnxPrinter::transpose(const ModelNode& node, const Names& wanted) {
  Names names(wanted.size());
  for (std::size_t d = 0; d < wanted.size(); ++d) names[node.order[d]] = wanted[d];
  Piece piece;
  piece.text = source(piece, node.operands[0], names);
  piece.grouped = true;
  return piece;
}

OnnxPrinter::Piece OnnxPrinter::concat(const ModelNode& node, const Names& wanted) {
  Piece piece;
  std::vector<std::string> parts;
  for (const std::uint32_t operand : node.operands) parts.push_back(source(piece, operand, wanted));
  piece.text = fmt::format("concat({}, along => {})", fmt::join(parts, ", "), wanted[node.axis]);
  return piece;
}

OnnxPrinter::Piece OnnxPrinter::embedding(const ModelNode& node, const Names& wanted) {
  Piece piece;
  const std::uint32_t positions = node.operands[0], table = node.operands[1];
  const std::string x = source(piece, positions, Names(wanted.begin(), wanted.end() - 1));
  const std::string rows = free_name({names_[table][0]}, wanted);
  Piece joined;
  piece.text = source(joined, table, Names{rows, wanted.back()});
  piece.joins = fmt::format(" JOIN {} ON {} = {}", joined.from.front(), rows, x);
  piece.grouped = true;
  return piece;
}

Result<OnnxPrinter::Piece> OnnxPrinter::reshape(const ModelNode& node, const ModelShape& to,
                                                const Names& wanted) {
  const std::uint32_t x = node.operands[0];
  const auto blocks = formats::reshape_blocks(file_.shape(x), to);
  const Names& own = names_[x];
  const bool both = std::ranges::any_of(
      blocks, [](const auto& block) { return block.from_count > 1 && block.to_count > 1; });
  std::vector<std::string> merges, cuts;
  Names between;
  for (const formats::ReshapeBlock& block : blocks) {
    const Names parts(own.begin() + static_cast<std::ptrdiff_t>(block.from),
                      own.begin() + static_cast<std::ptrdiff_t>(block.from + block.from_count));
    Names into;
    for (std::size_t d = block.to; d < block.to + block.to_count; ++d) {
      if (block.to_count > 1) WEFT_TRY_STATUS(declare(wanted[d], to[d], to));
      into.push_back(wanted[d]);
    }
    const std::string cut = into.size() == 1 ? into[0] : fmt::format("({})", fmt::join(into, ", "));
    const std::string merged = parts.size() == 1 ? parts[0] : fmt::format("({})", fmt::join(parts, ", "));
    if (!both) {
      merges.push_back(merged == cut ? cut : fmt::format("{} AS {}", merged, cut));
      continue;
    }
    const std::string whole = parts.size() == 1 ? parts[0] : free_name({}, own);
    between.push_back(whole);
    merges.push_back(merged == whole ? whole : fmt::format("{} AS {}", merged, whole));
    cuts.push_back(whole == cut ? cut : fmt::format("{} AS {}", whole, cut));
  }
  Piece piece;
  piece.text = source(piece, x, fmt::format("[{}]", fmt::join(merges, ", ")));
  if (!both) return piece;
  const std::string entry = unique(fmt::format("flat{}", ++counts_["flat"]));
  body_.with(entry, fmt::format("SELECT {} FROM {}", piece.text, piece.from.front()));
  return Piece{entry, false, {fmt::format("{}[{}]", entry, fmt::join(cuts, ", "))}};
}

}  // namespace weft::imports
