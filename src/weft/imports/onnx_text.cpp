// An ONNX model's nodes as the entries of a query; elementwise ones go into the entry of what they read alone.
#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "weft/formats/model_names.h"
#include "weft/formats/model_reshape.h"
#include "weft/imports/model_text.h"
#include "weft/imports/onnx_blocks.h"
#include "weft/imports/onnx_model.h"
#include "weft/language/print.h"

namespace weft::imports {
namespace {

using formats::ModelNode;
using formats::ModelOperation;
using formats::ModelShape;
using Operation = ModelOperation;
using Names = std::vector<std::string>;

// A value that is not an entry yet.
struct Piece {
  std::string text;
  bool sum = false;               // needs parentheses as a factor
  std::vector<std::string> from;  // sources
  std::string joins = {};         // behind them
  bool grouped = false;           // GROUP BY its indices
};

bool holds(const Names& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

class OnnxPrinter {
 public:
  OnnxPrinter(const OnnxModel& model, std::string name)
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
    for (const std::uint32_t output : file_.outputs) uses_[output] += 2;  // an entry of its own
    if (model.repeated) {
      uses_[file_.nodes[model.repeated->node].operands[0]] += 2;
      for (const std::uint32_t value : model.repeated->shared) uses_[value] += 2;
    }
    for (const std::uint32_t input : model.positions) names_[input].pop_back();
  }

  // `layer`: what is repeated, where something is.
  Result<OnnxText> print(std::string_view kind, const std::string& layer = {}) {
    declare_sources();
    for (std::size_t n = 0; n < file_.nodes.size(); ++n) {
      if (model_.repeated && model_.repeated->node == n) {
        repeat(n, layer);
        continue;
      }
      WEFT_TRY(piece, piece_of(n));
      const std::uint32_t value = file_.result(n);
      if (uses_[value] == 1 && is_read_inline(value))
        pieces_.emplace(value, std::move(piece));
      else
        add_entry(value, model_.stems[n], std::move(piece));
    }
    std::vector<std::string> items, sources;
    for (const std::uint32_t output : file_.outputs) {
      const std::string as = unique(plain(file_.values[output].id));
      items.push_back(fmt::format("{} AS {}", entry_[output], as));
      if (!holds(sources, entry_[output])) sources.push_back(entry_[output]);
    }
    body_.select(fmt::format("SELECT {} FROM {}", fmt::join(items, ", "), fmt::join(sources, ", ")));
    for (const auto& [size, number] : order_) body_.size(size, number);
    OnnxText made;
    made.text = body_.print(kind);
    made.parameters = parameters_;
    made.names = std::move(weights_);
    return made;
  }

  // Of a layer: what goes from one to the next has the same indices on both sides.
  bool goes_on() const { return names_[0] == names_[file_.outputs[0]]; }

 private:
  // -- names --------------------------------------------------------------------------------------

  // "features.0.weight" is features_0_weight.
  static std::string plain(std::string_view id) {
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

  std::string unique(std::string name) {
    while (taken_.contains(name) || language::print_name(name) != name) name += '_';
    taken_.insert(name);
    return name;
  }

  // Sizes are declared once: an index that is of another size here gets another name.
  std::string sized(const std::string& index, std::int64_t size, const Names& others) {
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

  void declare_sources() {
    for (const Names& names : names_) taken_.insert(names.begin(), names.end());
    std::vector<std::string> inputs;
    std::set<std::uint32_t> ones;  // what norms multiply and divide by
    for (const ModelNode& node : file_.nodes)
      if (node.operation == Operation::layernorm || node.operation == Operation::batchnorm)
        for (std::size_t i = 1; i < node.operands.size(); i += 3) ones.insert(node.operands[i]);
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
        inputs.push_back(
            fmt::format("{}{}{}", entry_[v], indices, model_.positions.contains(v) ? " OF int32" : ""));
        continue;
      }
      weights_.emplace(v, entry_[v]);
      if (model_.states.contains(v)) {
        body_.state(entry_[v] + indices + (ones.contains(v) ? " INIT ones" : ""));
        continue;
      }
      body_.parameter(entry_[v], own,
                      ones.contains(v) ? "ones"
                      : own.size() > 1 ? "normal(0, 0.02)"
                                       : "",
                      {});
      std::int64_t elements = 1;
      for (const std::int64_t size : file_.shape(v)) elements *= size;
      parameters_ += elements;
    }
    body_.arguments(fmt::format("{}", fmt::join(inputs, ", ")));
  }

  // x AS (.. of x ..): what goes in and what comes out have one name.
  void repeat(std::size_t n, const std::string& layer) {
    const std::uint32_t x = file_.nodes[n].operands[0];
    entry_[file_.result(n)] = entry_[x];
    Names arguments = {entry_[x]};
    for (const std::uint32_t value : model_.repeated->shared) arguments.push_back(entry_[value]);
    body_.with(entry_[x], fmt::format("SELECT * FROM {}({})", layer, fmt::join(arguments, ", ")),
               fmt::format("REPEAT {} TIMES ", model_.repeated->times));
  }

  std::string free_name(std::initializer_list<std::string> names, const Names& others) {
    for (const std::string& name : names)
      if (!holds(others, name)) return name;
    for (;;)
      if (std::string name = fmt::format("u{}", fresh_++); !taken_.contains(name) && !holds(others, name))
        return name;
  }

  // -- sources ------------------------------------------------------------------------------------

  // The value as a query sees it under these names; returns what the query calls it.
  std::string source(Piece& piece, std::uint32_t value, const Names& names) {
    const Names& own = names_[value];
    std::vector<std::string> uses;
    for (std::size_t d = 0; d < own.size(); ++d)
      uses.push_back(own[d] == names[d] ? own[d] : fmt::format("{} AS {}", own[d], names[d]));
    return source(piece, value, own == names ? "" : fmt::format("[{}]", fmt::join(uses, ", ")));
  }

  std::string source(Piece& piece, std::uint32_t value, const std::string& indices) {
    const std::string text = entry_[value] + indices;
    if (holds(piece.from, text)) return entry_[value];
    const bool again = std::ranges::any_of(piece.from, [&](const std::string& other) {
      return other == entry_[value] || other.starts_with(entry_[value] + "[");
    });
    const std::string name = again ? unique(entry_[value] + "_again") : entry_[value];
    piece.from.push_back(again ? fmt::format("{} AS {}", text, name) : text);
    return name;
  }

  bool is_read_inline(std::uint32_t value) const {
    const std::size_t n = reader_[value];
    const ModelNode& node = file_.nodes[n];
    const bool two = node.operation == Operation::add || node.operation == Operation::mul;
    const bool one = node.operation == Operation::relu || node.operation == Operation::sigmoid ||
                     node.operation == Operation::tanh || node.operation == Operation::gelu;
    return (one ||
            (two && node.operands[0] == value && file_.shape(value) == file_.shape(file_.result(n)))) &&
           names_[value] == names_[file_.result(n)];
  }

  void add_entry(std::uint32_t value, const std::string& stem, Piece piece) {
    entry_[value] = unique(fmt::format("{}{}", stem, ++counts_[stem]));
    body_.with(entry_[value],
               fmt::format("SELECT {} FROM {}{}{}", piece.text, fmt::join(piece.from, ", "), piece.joins,
                           piece.grouped ? fmt::format(" GROUP BY {}", fmt::join(names_[value], ", ")) : ""));
  }

  // What is pending, or the value as it is.
  Piece start(std::uint32_t value, const Names& names) {
    if (const auto found = pieces_.find(value); found != pieces_.end()) {
      Piece piece = std::move(found->second);
      pieces_.erase(found);
      return piece;
    }
    Piece piece;
    piece.text = source(piece, value, names);
    return piece;
  }

  // -- nodes --------------------------------------------------------------------------------------

  Result<Piece> piece_of(std::size_t n) {
    const ModelNode& node = file_.nodes[n];
    const Names& wanted = names_[file_.result(n)];
    switch (node.operation) {
      case Operation::matmul: return matmul(node, wanted);
      case Operation::conv2d: return conv2d(n, node, wanted);
      case Operation::add:
      case Operation::mul: return two(n, node, wanted);
      case Operation::layernorm: return layer_norm(node, wanted);
      case Operation::batchnorm: return batch_norm(node, wanted);
      case Operation::reshape: return reshape(node, file_.shape(file_.result(n)), wanted);
      case Operation::transpose: return transpose(node, wanted);
      case Operation::concat: return concat(node, wanted);
      case Operation::embedding_sum: return embedding(node, wanted);
      default: return one(n, node, wanted);
    }
  }

  Piece one(std::size_t n, const ModelNode& node, const Names& wanted) {
    const auto function = model_.functions.find(n);
    // What a form has twice is an entry, not a text that is written twice.
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

  static std::string over(const Names& all, const Names& without) {
    Names kept;
    for (const std::string& name : all)
      if (!holds(without, name)) kept.push_back(name);
    return kept.empty() ? " OVER ()" : fmt::format(" OVER (PARTITION BY {})", fmt::join(kept, ", "));
  }

  // Dims of size 1 that the other operand has more of are merged with a neighbour: names repeat what lacks them.
  std::string repeated(Piece& piece, std::uint32_t value, const ModelShape& result, const Names& wanted) {
    const ModelShape& shape = file_.shape(value);
    const std::size_t less = result.size() - shape.size();
    const Names &own = names_[value], names(wanted.begin() + static_cast<std::ptrdiff_t>(less), wanted.end());
    bool narrow = false;
    for (std::size_t d = 0; d < shape.size(); ++d) narrow |= shape[d] != result[less + d];
    if (!narrow) return source(piece, value, names);
    std::vector<std::string> uses;
    Names pending;
    std::string kept;
    const auto close = [&] {
      if (kept.empty()) return;
      uses.push_back(pending.size() > 1   ? fmt::format("({}) AS {}", fmt::join(pending, ", "), kept)
                     : pending[0] == kept ? kept
                                          : fmt::format("{} AS {}", pending[0], kept));
      pending.clear();
      kept.clear();
    };
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const bool stays = shape[d] == result[less + d];
      if (stays) close();
      pending.push_back(own[d]);
      if (stays) kept = names[d];
    }
    close();
    if (uses.empty()) {  // one number: the sum of its one element
      const std::string sum = unique(entry_[value] + "_number");
      body_.with(sum, fmt::format("SELECT sum({0}) FROM {0}", entry_[value]));
      piece.from.push_back(sum);
      return sum;
    }
    return source(piece, value, fmt::format("[{}]", fmt::join(uses, ", ")));
  }

  Piece two(std::size_t n, const ModelNode& node, const Names& wanted) {
    const std::string& infix = model_.infixes.at(n);
    const ModelShape& result = file_.shape(file_.result(n));
    Piece piece;
    if (pieces_.contains(node.operands[0])) {
      piece = start(node.operands[0], wanted);
    } else {
      piece.text = repeated(piece, node.operands[0], result, wanted);
      piece.grouped = file_.shape(node.operands[0]).size() < result.size();
    }
    if (pieces_.contains(node.operands[1]))
      add_entry(node.operands[1], "part", start(node.operands[1], wanted));
    const std::string other = repeated(piece, node.operands[1], result, wanted);
    const bool factor = infix == " * " || infix == " / ";
    piece.text = fmt::format("{}{}{}", factor && piece.sum ? fmt::format("({})", piece.text) : piece.text,
                             infix, other);
    piece.sum = !factor;
    return piece;
  }

  Piece matmul(const ModelNode& node, const Names& wanted) {
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

  Piece conv2d(std::size_t n, const ModelNode& node, const Names& wanted) {
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
    if (const auto bias = model_.biases.find(n); bias != model_.biases.end()) {
      piece.text += " + " + source(piece, bias->second, Names{wanted[1]});
      piece.sum = true;
    }
    return piece;
  }

  Piece layer_norm(const ModelNode& node, const Names& wanted) {
    Piece piece;
    const std::string x = source(piece, node.operands[0], wanted);
    piece.text =
        fmt::format("layer_norm({}, epsilon => {}){}", x, node.number, over(wanted, {wanted[node.axis]}));
    scale_and_shift(piece, node, wanted[node.axis]);
    return piece;
  }

  void scale_and_shift(Piece& piece, const ModelNode& node, const std::string& along) {
    if (node.operands.size() > 1) piece.text += " * " + source(piece, node.operands[1], Names{along});
    if (node.operands.size() < 3) return;
    piece.text += " + " + source(piece, node.operands[2], Names{along});
    piece.sum = true;
  }

  Piece batch_norm(const ModelNode& node, const Names& wanted) {
    Piece piece;
    const std::string x = source(piece, node.operands[0], wanted);
    const std::string mean = source(piece, node.operands[3], Names{wanted[1]});
    const std::string variance = source(piece, node.operands[4], Names{wanted[1]});
    piece.text = fmt::format("batch_norm({}, {}, {}, epsilon => {}) OVER (PARTITION BY {})", x, mean,
                             variance, node.number, wanted[1]);
    scale_and_shift(piece, node, wanted[1]);
    return piece;
  }

  Piece transpose(const ModelNode& node, const Names& wanted) {
    Names names(wanted.size());
    for (std::size_t d = 0; d < wanted.size(); ++d) names[node.order[d]] = wanted[d];
    Piece piece;
    piece.text = source(piece, node.operands[0], names);
    piece.grouped = true;
    return piece;
  }

  Piece concat(const ModelNode& node, const Names& wanted) {
    Piece piece;
    std::vector<std::string> parts;
    for (const std::uint32_t operand : node.operands) parts.push_back(source(piece, operand, wanted));
    piece.text = fmt::format("concat({}, along => {})", fmt::join(parts, ", "), wanted[node.axis]);
    return piece;
  }

  Piece embedding(const ModelNode& node, const Names& wanted) {
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

  // Blocks of dims are merged, or cut into sizes that are declared, or first the one and then the other.
  Result<Piece> reshape(const ModelNode& node, const ModelShape& to, const Names& wanted) {
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
        const auto declared = sizes_.find(wanted[d]);
        if (block.to_count > 1 && declared != sizes_.end() && declared->second != to[d])
          return user_error(fmt::format("a reshape to {} cuts {} into {}, which is {} elsewhere",
                                        formats::print_shape(to), parts[0], wanted[d], declared->second));
        if (block.to_count > 1) sized(wanted[d], to[d], {});
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

  const OnnxModel& model_;
  const formats::ModelFile& file_;
  LayerText body_;
  std::vector<int> uses_;
  std::vector<std::size_t> reader_;  // by value: the last node that reads it
  std::vector<Names> names_;         // by value: its indices in the text
  std::vector<std::string> entry_;   // by value: what the text calls it
  std::map<std::uint32_t, Piece> pieces_;
  std::map<std::uint32_t, std::string> weights_;
  std::set<std::string, std::less<>> taken_;
  std::map<std::string, std::int64_t, std::less<>> sizes_;
  std::vector<std::pair<std::string, std::int64_t>> order_;
  std::map<std::string, int> counts_;
  std::int64_t parameters_ = 0;
  int fresh_ = 0;
};

}  // namespace

Result<OnnxText> print_onnx(const OnnxModel& model, const std::string& name) {
  const std::optional<OnnxBlocks> blocks = find_blocks(model);
  if (blocks) {
    const std::string called = name + "_block";
    OnnxPrinter layer(blocks->layer, called);
    auto block = layer.print("LAYER");
    auto rest = block.ok() ? OnnxPrinter(blocks->rest, name).print("MODEL", called) : block;
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
