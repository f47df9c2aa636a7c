#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "weft/formats/model_names.h"
#include "weft/formats/model_reshape.h"
#include "weft/language/print.h"
#include "weft/translate/imports/onnx_blocks.h"
#include "weft/translate/imports/onnx_printer.h"

namespace weft::imports {

OnnxPrinter::OnnxPrinter(const OnnxModel& model, std::string name)
    : model_(model),
      file_(model.file),
      body_(std::move(name), {}),
      uses_(file_.values.size(), 0),
      reader_(file_.values.size(), 0) {
  const formats::ModelNames names(file_);
  for (std::uint32_t v = 0; v < file_.values.size(); ++v)
    names_.emplace_back(names.of(v).begin(), names.of(v).end());
  for (std::size_t n = 0; n < file_.nodes.size(); ++n)
    for (const std::uint32_t operand : file_.nodes[n].operands) {
      ++uses_[operand];
      reader_[operand] = n;
    }
  for (const auto& [node, bias] : model.biases) {
    ++uses_[bias];
    names_[bias] = {names_[file_.result(node)][1]};
  }
  for (const std::uint32_t output : file_.outputs) uses_[output] += 2;  // outputs need an entry
  if (model.repeated) {
    uses_[file_.nodes[model.repeated->node].operands[0]] += 2;
    for (const std::uint32_t value : model.repeated->shared) uses_[value] += 2;
  }
  for (const std::uint32_t input : model.positions) names_[input].pop_back();
  if (model.loss && model.loss->labels) {
    if (*model.loss->labels < file_.inputs) names_[*model.loss->labels] = rows_of(names_[file_.outputs[0]]);
    ++uses_[*model.loss->labels];
  }
}

Result<OnnxText> OnnxPrinter::print(std::string_view kind) {
  declare_sources();
  for (std::size_t n = 0; n < file_.nodes.size(); ++n) {
    if (model_.repeated && model_.repeated->node == n) {
      repeat(n);
      continue;
    }
    const std::uint32_t value = file_.result(n);
    if (uses_[value] == 0) continue;
    if (is_transposed_inline(n)) {
      turned_.emplace(value, n);
      continue;
    }
    rename_sizes(n);
    name_sizes(n);
    WEFT_TRY(piece, piece_of(n));
    if (uses_[value] == 1 && !piece.alone && is_read_inline(value))
      pieces_.emplace(value, std::move(piece));
    else
      add_entry(value, model_.stems[n], std::move(piece));
  }
  body_.select(model_.loss ? loss() : outputs());
  for (const auto& [size, number] : order_) body_.size(size, number);
  OnnxText made;
  made.text = body_.print(kind);
  made.parameters = parameters_;
  made.names = std::move(weights_);
  return made;
}

// The result of a reshape declares the indices that are merged or split, that of a broadcast those that
// are repeated. If the text has such a name with another size, the index gets another name.
void OnnxPrinter::rename_sizes(std::size_t n) {
  const Operation operation = file_.nodes[n].operation;
  if (operation != Operation::reshape && operation != Operation::broadcast) return;
  const std::uint32_t value = file_.result(n);
  const ModelShape& to = file_.shape(value);
  if (operation == Operation::broadcast) {
    const ModelShape& from = file_.shape(file_.nodes[n].operands[0]);
    for (std::size_t d = 0; d < to.size(); ++d) {
      const bool kept = d >= to.size() - from.size() && from[d - (to.size() - from.size())] == to[d];
      const auto declared = sizes_.find(names_[value][d]);
      if (!kept && declared != sizes_.end() && declared->second != to[d])
        names_[value][d] = free_name({}, names_[value]);
    }
    return;
  }
  for (const formats::ReshapeBlock& block :
       formats::reshape_blocks(file_.shape(file_.nodes[n].operands[0]), to)) {
    if (block.from_count == 1 && block.to_count == 1) continue;
    for (std::size_t d = block.to; d < block.to + block.to_count; ++d) {
      const auto declared = sizes_.find(names_[value][d]);
      if (declared != sizes_.end() && declared->second != to[d])
        names_[value][d] = free_name({}, names_[value]);
    }
  }
}

std::string OnnxPrinter::outputs() {
  std::vector<std::string> items, sources;
  for (const std::uint32_t output : file_.outputs) {
    const std::string as = unique(plain(file_.values[output].id));
    items.push_back(fmt::format("{} AS {}", entry_[output], as));
    if (!holds(sources, entry_[output])) sources.push_back(entry_[output]);
  }
  return fmt::format("SELECT {} FROM {}", fmt::join(items, ", "), fmt::join(sources, ", "));
}

std::string OnnxPrinter::loss() {
  const std::uint32_t scores = file_.outputs[0];
  const Names& names = names_[scores];
  Piece piece;
  std::string of = source(piece, scores, names);
  if (model_.loss->labels) {
    const std::string label = source(piece, *model_.loss->labels, rows_of(names));
    of = fmt::format("cross_entropy({}, {}){}", of, label, over(names, {names[model_.loss->classes]}));
  }
  return fmt::format("SELECT mean({}) AS {} FROM {}", of, unique("loss"), fmt::join(piece.from, ", "));
}

OnnxPrinter::Names OnnxPrinter::rows_of(Names scores) const {
  scores.erase(scores.begin() + static_cast<std::ptrdiff_t>(model_.loss->classes));
  return scores;
}

bool OnnxPrinter::is_transposed_inline(std::size_t n) const {
  const std::uint32_t value = file_.result(n);
  if (file_.nodes[n].operation != Operation::transpose) return false;
  if (model_.loss && file_.outputs[0] == value) return uses_[value] == 2;
  if (uses_[value] != 1) return false;
  const std::size_t reader = reader_[value];
  if (model_.repeated && model_.repeated->node == reader) return false;
  return file_.nodes[reader].operation == Operation::matmul ||
         (file_.nodes[reader].operation == Operation::transpose && is_transposed_inline(reader));
}

std::string OnnxPrinter::plain(std::string_view id) {
  std::string name;
  for (const char c : id.substr(0, 80)) {
    const auto letter = static_cast<unsigned char>(c);
    if (letter < 128 && std::isalnum(letter) != 0)
      name += c;
    else if (!name.empty() && name.back() != '_')
      name += '_';
  }
  while (name.ends_with('_')) name.pop_back();
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0) name.insert(0, "t");
  return name;
}

std::string OnnxPrinter::unique(std::string name) {
  while (taken_.contains(name) || language::print_name(name) != name) name += '_';
  taken_.insert(name);
  return name;
}

std::string OnnxPrinter::sized(const std::string& index, std::int64_t size, const Names& others) {
  for (int i = 0;; ++i) {
    const std::string name = i == 0 ? index : fmt::format("{}_{}", index, i);
    const auto found = sizes_.find(name);
    if (holds(others, name) || (found != sizes_.end() && found->second != size)) continue;
    if (found == sizes_.end()) {
      sizes_.emplace(name, size);
      order_.emplace_back(name, size);
    }
    return name;
  }
}

bool OnnxPrinter::is_whole(std::uint32_t input) const {
  return model_.positions.contains(input) || model_.labels.contains(input);
}

void OnnxPrinter::declare_sources() {
  for (const Names& names : names_) taken_.insert(names.begin(), names.end());
  std::vector<std::string> inputs;
  std::set<std::uint32_t> ones;  // scales of norms, initialized to 1
  for (const ModelNode& node : file_.nodes)
    if (node.operation == Operation::layernorm || node.operation == Operation::batchnorm)
      for (std::size_t i = 1; i < node.operands.size(); i += 3) ones.insert(node.operands[i]);
  std::set<std::uint32_t> normed;
  for (const auto& [n, form] : model_.functions)
    if (form.starts_with("rms_norm ")) normed.insert(file_.result(n));
  for (const ModelNode& node : file_.nodes)
    if (node.operation == Operation::mul && node.operands.size() == 2)
      for (const std::size_t i : {0u, 1u})
        if (normed.contains(node.operands[i]) && file_.shape(node.operands[1 - i]).size() == 1)
          ones.insert(node.operands[1 - i]);
  entry_.resize(file_.values.size());
  for (std::uint32_t v = 0; v < file_.inputs + file_.weights; ++v) {
    if (v >= file_.inputs && uses_[v] == 0) continue;
    Names own;
    for (std::size_t d = 0; d < names_[v].size(); ++d)
      own.push_back(sized(names_[v][d], file_.shape(v)[d], own));
    names_[v] = own;
    entry_[v] = unique(plain(file_.values[v].id));
    const std::string indices = own.empty() ? "" : fmt::format("[{}]", fmt::join(own, ", "));
    if (v < file_.inputs) {
      inputs.push_back(fmt::format("{}{}{}", entry_[v], indices, is_whole(v) ? " OF int32" : ""));
      continue;
    }
    weights_.emplace(v, entry_[v]);
    if (model_.states.contains(v)) {
      body_.state(entry_[v] + indices + (ones.contains(v) ? " INIT ones" : ""));
      continue;
    }
    body_.parameter(entry_[v], own, ones.contains(v) ? "ones" : own.size() > 1 ? "normal(0, 0.02)" : "", {});
    std::int64_t elements = 1;
    for (const std::int64_t size : file_.shape(v)) elements *= size;
    parameters_ += elements;
  }
  body_.arguments(fmt::format("{}", fmt::join(inputs, ", ")));
}

void OnnxPrinter::calls(std::string layer, std::vector<Names> arguments) {
  layer_ = std::move(layer);
  layer_arguments_ = std::move(arguments);
  // A value that only the layer reads is named as in the layer.
  const std::vector<std::uint32_t>& shared = model_.repeated->shared;
  for (std::size_t i = 0; i < shared.size(); ++i)
    if (shared[i] < file_.inputs + file_.weights && uses_[shared[i]] == 2)
      names_[shared[i]] = layer_arguments_[i + 1];
  // An index of several arguments is one index outside, too.
  std::map<std::string, std::string> outer;
  const std::uint32_t first = file_.nodes[model_.repeated->node].operands[0];
  for (std::size_t i = 0; i <= shared.size(); ++i) {
    const Names& inner = layer_arguments_[i];
    for (std::size_t d = 0; d < inner.size(); ++d) {
      const std::string name = names_[i == 0 ? first : shared[i - 1]][d];
      const std::string& kept = outer.emplace(inner[d], name).first->second;
      if (kept != name) unite(name, kept);
    }
  }
  // An index that is called as another one of the layer's gets a name of its own.
  Names& x = names_[file_.nodes[model_.repeated->node].operands[0]];
  for (std::size_t d = 0; d < x.size(); ++d)
    if (is_other_index(x[d], layer_arguments_[0][d])) x[d] = free_name({}, x);
  names_[file_.result(model_.repeated->node)] = x;
}

// Calls an index by another one's name, unless a value has both.
void OnnxPrinter::unite(const std::string& name, const std::string& kept) {
  if (std::ranges::any_of(names_,
                          [&](const Names& names) { return holds(names, name) && holds(names, kept); }))
    return;
  for (Names& names : names_) std::ranges::replace(names, name, kept);
}

bool OnnxPrinter::is_other_index(const std::string& name, const std::string& of_layer) const {
  return name != of_layer &&
         std::ranges::any_of(layer_arguments_, [&](const Names& names) { return holds(names, name); });
}

void OnnxPrinter::repeat(std::size_t n) {
  const std::uint32_t x = file_.nodes[n].operands[0];
  entry_[file_.result(n)] = entry_[x];
  // Each index of the layer maps to one index outside, the same for all arguments.
  std::map<std::string, std::string> outside;
  for (std::size_t d = 0; d < names_[x].size(); ++d) outside.emplace(layer_arguments_[0][d], names_[x][d]);
  Names arguments = {entry_[x]};
  const std::vector<std::uint32_t>& shared = model_.repeated->shared;
  for (std::size_t i = 0; i < shared.size(); ++i) {
    Names names = names_[shared[i]];
    for (std::size_t d = 0; d < names.size(); ++d) {
      const std::string& index = layer_arguments_[i + 1][d];
      const bool taken =
          is_other_index(names[d], index) || std::ranges::any_of(outside, [&](const auto& pair) {
            return pair.first != index && pair.second == names[d];
          });
      if (!outside.contains(index)) outside.emplace(index, taken ? free_name({}, names) : names[d]);
      names[d] = outside.at(index);
    }
    arguments.push_back(entry_[shared[i]] + under(names_[shared[i]], names));
  }
  body_.with(entry_[x], fmt::format("SELECT * FROM {}({})", layer_, fmt::join(arguments, ", ")),
             fmt::format("REPEAT {} TIMES ", model_.repeated->times));
}

std::string OnnxPrinter::under(const Names& own, const Names& names) {
  if (own == names) return {};
  Names uses;
  for (std::size_t d = 0; d < own.size(); ++d)
    uses.push_back(own[d] == names[d] ? own[d] : fmt::format("{} AS {}", own[d], names[d]));
  return fmt::format("[{}]", fmt::join(uses, ", "));
}

std::string OnnxPrinter::free_name(std::initializer_list<std::string> names, const Names& others) {
  for (const std::string& name : names)
    if (!holds(others, name)) return name;
  for (;;)
    if (std::string name = fmt::format("u{}", fresh_++); !taken_.contains(name) && !holds(others, name))
      return name;
}

std::string OnnxPrinter::source(Piece& piece, std::uint32_t value, const Names& names) {
  if (const auto found = turned_.find(value); found != turned_.end()) {
    const ModelNode& node = file_.nodes[found->second];
    Names before(names.size());
    for (std::size_t d = 0; d < names.size(); ++d) before[node.order[d]] = names[d];
    return source(piece, node.operands[0], before);
  }
  return source(piece, value, under(names_[value], names));
}

std::string OnnxPrinter::source(Piece& piece, std::uint32_t value, const std::string& indices) {
  const std::string text = entry_[value] + indices;
  if (holds(piece.from, text)) return entry_[value];
  const bool again = std::ranges::any_of(piece.from, [&](const std::string& other) {
    return other == entry_[value] || other.starts_with(entry_[value] + "[");
  });
  const std::string name = again ? unique(entry_[value] + "_again") : entry_[value];
  piece.from.push_back(again ? fmt::format("{} AS {}", text, name) : text);
  return name;
}

// Whether the node of this value keeps the names of an image's indices but not their sizes. In one query
// with other images, a name would have two sizes.
bool OnnxPrinter::resizes(std::uint32_t value) const {
  const ModelNode& node = file_.nodes[value - file_.inputs - file_.weights];
  const bool windows = node.operation == Operation::conv2d || node.operation == Operation::conv2d_transpose ||
                       node.operation == Operation::pool_max || node.operation == Operation::pool_avg;
  if (!windows) return false;
  const ModelShape &from = file_.shape(node.operands[0]), &to = file_.shape(value);
  return from[2] != to[2] || from[3] != to[3];
}

bool OnnxPrinter::is_read_inline(std::uint32_t value) const {
  const std::size_t n = reader_[value];
  const ModelNode& node = file_.nodes[n];
  const bool two = node.operation == Operation::add || node.operation == Operation::mul;
  if (two && resizes(value)) return false;
  const bool one = node.operation == Operation::relu || node.operation == Operation::sigmoid ||
                   node.operation == Operation::tanh || node.operation == Operation::gelu;
  return (one || (two && node.operands[0] == value && file_.shape(value) == file_.shape(file_.result(n)))) &&
         names_[value] == names_[file_.result(n)];
}

void OnnxPrinter::add_entry(std::uint32_t value, const std::string& stem, Piece piece) {
  entry_[value] = unique(fmt::format("{}{}", stem, ++counts_[stem]));
  body_.with(entry_[value],
             fmt::format("SELECT {} FROM {}{}{}", piece.text, fmt::join(piece.from, ", "), piece.joins,
                         piece.grouped ? fmt::format(" GROUP BY {}", fmt::join(names_[value], ", ")) : ""));
}

OnnxPrinter::Piece OnnxPrinter::start(std::uint32_t value, const Names& names) {
  if (const auto found = pieces_.find(value); found != pieces_.end()) {
    Piece piece = std::move(found->second);
    pieces_.erase(found);
    return piece;
  }
  Piece piece;
  piece.text = source(piece, value, names);
  return piece;
}

Result<OnnxText> print_onnx(const OnnxModel& model, const std::string& name) {
  const std::optional<OnnxBlocks> blocks = find_blocks(model);
  if (blocks) {
    const std::string called = name + "_block";
    OnnxPrinter layer(blocks->layer, called);
    auto block = layer.print("LAYER");
    OnnxPrinter around(blocks->rest, name);
    around.calls(called, layer.arguments());
    auto rest = block.ok() ? around.print("MODEL") : block;
    if (rest.ok() && layer.goes_on()) {
      rest->text = block->text + "\n" + rest->text;
      rest->parameters += block->parameters * blocks->rest.repeated->times;
      for (std::size_t i = 0; i < blocks->weights.size(); ++i)
        for (std::size_t w = 0; w < blocks->weights[i].size(); ++w)
          rest->names.emplace(
              blocks->weights[i][w],
              fmt::format("{}.{}.{}", called, i,
                          block->names.at(blocks->layer.file.inputs + static_cast<std::uint32_t>(w))));
      return rest;
    }
  }
  return OnnxPrinter(model, name).print("MODEL");
}

}  // namespace weft::imports
