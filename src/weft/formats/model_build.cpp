#include "weft/formats/model_build.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/formats/model_initial.h"
#include "weft/formats/model_names.h"
#include "weft/formats/model_reshape.h"
#include "weft/plan/ops/build.h"
#include "weft/plan/ops/loops.h"

namespace weft::formats {
namespace {

using Operation = ModelOperation;
using plan::Dim;
using plan::ValueId;
using Names = std::vector<Symbol>;

const ops::Operator* pointwise(Operation operation) {
  switch (operation) {
    case Operation::add: return &ops::add();
    case Operation::mul: return &ops::mul();
    case Operation::relu: return &ops::relu();
    case Operation::sigmoid: return &ops::sigmoid();
    case Operation::tanh: return &ops::tanh();
    case Operation::gelu: return &ops::gelu();
    default: return nullptr;
  }
}

class PlanBuilder {
 public:
  explicit PlanBuilder(const ModelFile& file) : file_(file), names_(file) {}

  Result<plan::Graph> build() {
    graph_.name = file_.name;
    WEFT_TRY_STATUS(add_sources());
    for (std::size_t n = 0; n < file_.nodes.size(); ++n) {
      const ModelValue& value = file_.values[file_.result(n)];
      graph_.set_label(graph_.symbol(value.id));
      auto made = add_node(n);
      if (!made.ok())
        return user_error(fmt::format("{}: {}", value.id, made.error().message), made.error().hint);
      const ModelShape shape = ops::sizes_of(graph_.type(*made).dims);
      if (shape != value.shape)
        return user_error(fmt::format("{}: the file states shape {}, {} gives {}", value.id,
                                      print_shape(value.shape), name(file_.nodes[n].operation),
                                      print_shape(shape)));
      made_.push_back(*made);
    }
    graph_.set_label({});
    for (const std::uint32_t output : file_.outputs)
      graph_.add_output(graph_.symbol(file_.values[output].id), made_[output]);
    return std::move(graph_);
  }

 private:
  Status add_sources() {
    std::vector<bool> is_position(file_.values.size(), false);
    for (const ModelNode& node : file_.nodes)
      if (node.operation == Operation::embedding_sum) is_position[node.operands[0]] = true;
    const std::vector<ops::Initial> initial = initial_values(file_);
    for (std::uint32_t v = 0; v < file_.inputs + file_.weights; ++v) {
      const Names names = symbols(v);
      std::vector<Dim> dims;
      for (std::size_t d = 0; d < names.size(); ++d) dims.push_back({names[d], file_.shape(v)[d]});
      WEFT_TRY(type, graph_.intern_type(is_position[v] ? plan::DType::i32 : plan::DType::f32, dims));
      const std::string& id = file_.values[v].id;
      WEFT_TRY(value, v < file_.inputs ? ops::add_input(graph_, id, type)
                                       : ops::add_parameter(graph_, id, type, initial[v]));
      made_.push_back(value);
    }
    return {};
  }

  Result<ValueId> add_node(std::size_t n) {
    const ModelNode& node = file_.nodes[n];
    wanted_ = symbols(file_.result(n));
    if (const ops::Operator* op = pointwise(node.operation)) return add_pointwise(node, *op);
    switch (node.operation) {
      case Operation::matmul: return add_matmul(node);
      case Operation::conv2d: return add_conv2d(node);
      case Operation::layernorm: return add_layer_norm(node);
      case Operation::batchnorm: return add_batch_norm(node);
      case Operation::reshape: return add_reshape(node, file_.shape(file_.result(n)));
      case Operation::transpose: return add_transpose(node);
      case Operation::concat: return add_concat(node);
      case Operation::embedding_sum: return add_embedding_sum(node);
      default: break;
    }
    WEFT_TRY(x, renamed(made_[node.operands[0]], wanted_));
    const ops::PoolWindow window{node.window, node.stride, node.pad_high};
    switch (node.operation) {
      case Operation::pool_max: return ops::add_max_pool(graph_, x, window);
      case Operation::pool_avg: return ops::add_avg_pool(graph_, x, window);
      case Operation::softmax: return ops::add_softmax(graph_, x, axis(node));
      case Operation::scale: {
        WEFT_TRY(factor, ops::add_constant(graph_, node.number, plan::DType::f32));
        return ops::add_pointwise(graph_, ops::mul(), {x, factor});
      }
      default: return x;  // dropout
    }
  }

  // -- names --------------------------------------------------------------------------------------

  Names symbols(std::uint32_t value) {
    Names found;
    for (const std::string& text : names_.of(value)) found.push_back(graph_.symbol(text));
    return found;
  }

  // A value's index names in the plan. They equal the file's, unless an operation returned its
  // operand.
  Names names_of(ValueId value) const { return ops::indices_of(graph_.type(value).dims); }

  Result<ValueId> renamed(ValueId value, const Names& names) {
    const Names own = names_of(value);
    Names from, to;
    for (std::size_t d = 0; d < own.size(); ++d)
      if (own[d] != names[d]) from.push_back(own[d]), to.push_back(names[d]);
    return ops::add_rename(graph_, value, from, to);
  }

  // The first of `names` that is not in `taken`, else a fresh name.
  Symbol free_name(std::initializer_list<Symbol> names, const Names& taken) {
    for (const Symbol name : names)
      if (!ops::contains(taken, name)) return name;
    return graph_.symbol(fmt::format("u{}", fresh_++));
  }

  std::span<const Symbol> axis(const ModelNode& node) const { return {&wanted_[node.axis], 1}; }

  // -- operations ---------------------------------------------------------------------------------

  Result<ValueId> with_act(const ModelNode& node, ValueId value) {
    return node.act ? ops::add_pointwise(graph_, *pointwise(*node.act), {value}) : Result<ValueId>(value);
  }

  Result<ValueId> add_matmul(const ModelNode& node) {
    const ValueId a = made_[node.operands[0]], b = made_[node.operands[1]];
    Names a_names = wanted_,
          b_names(wanted_.end() - static_cast<std::ptrdiff_t>(graph_.type(b).rank()), wanted_.end());
    const std::size_t inner = b_names.size() - 2;
    const Symbol summed = free_name({names_of(a).back(), names_of(b)[inner]}, wanted_);
    a_names.back() = b_names[inner] = summed;
    WEFT_TRY(left, renamed(a, a_names));
    WEFT_TRY(right, renamed(b, b_names));
    WEFT_TRY(product, ops::add_contract(graph_, {left, right}, wanted_));
    return with_act(node, product);
  }

  Result<ValueId> add_conv2d(const ModelNode& node) {
    const ValueId x = made_[node.operands[0]], w = made_[node.operands[1]];
    const Names own = names_of(w);
    Names x_names = wanted_, w_names = {wanted_[1], {}, {}, {}};
    x_names[1] = free_name({names_of(x)[1], own[1]}, wanted_);
    Names taken = wanted_;
    taken.push_back(x_names[1]);
    w_names[1] = node.groups == 1 ? x_names[1] : free_name({own[1]}, taken);
    for (const std::size_t d : {2u, 3u}) {
      taken.push_back(w_names[d - 1]);
      w_names[d] = free_name({own[d]}, taken);
    }
    WEFT_TRY(image, renamed(x, x_names));
    WEFT_TRY(weight, renamed(w, w_names));
    const ops::ConvWindow window{node.stride, node.pad_high, node.groups, node.pad_wide};
    WEFT_TRY(y, ops::add_conv2d(graph_, image, weight, window));
    return with_act(node, y);
  }

  Result<ValueId> add_pointwise(const ModelNode& node, const ops::Operator& op) {
    std::vector<ValueId> operands;
    for (const std::uint32_t operand : node.operands) {
      const ModelShape& shape = file_.shape(operand);
      const Names names(wanted_.end() - static_cast<std::ptrdiff_t>(shape.size()), wanted_.end());
      WEFT_TRY(value, renamed(made_[operand], names));
      if (node.operands.size() == 2) {
        WEFT_TRY(narrow,
                 without_repeated(value, file_.shape(node.operands[0]), file_.shape(node.operands[1])));
        value = narrow;
      }
      operands.push_back(value);
    }
    WEFT_TRY(y, ops::add_pointwise(graph_, op, operands));
    return ops::add_transpose(graph_, y, wanted_);
  }

  // Drops dims of size 1 for which the other operand is larger: pointwise operators broadcast over
  // missing indices.
  Result<ValueId> without_repeated(ValueId value, const ModelShape& a, const ModelShape& b) {
    const auto size_at = [](const ModelShape& shape, std::size_t from_last) {
      return from_last < shape.size() ? shape[shape.size() - 1 - from_last] : 1;
    };
    const std::vector<Dim> dims(graph_.type(value).dims.begin(), graph_.type(value).dims.end());
    Names kept, pending;
    std::vector<Names> merges;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      const std::size_t from_last = dims.size() - 1 - d;
      pending.push_back(dims[d].index);
      if (dims[d].size < std::max(size_at(a, from_last), size_at(b, from_last))) continue;
      kept.push_back(dims[d].index);
      merges.push_back(std::move(pending));
      pending.clear();
    }
    if (kept.size() == dims.size()) return value;
    if (kept.empty()) return ops::add_reduce(graph_, "sum", value, {});
    merges.back().insert(merges.back().end(), pending.begin(), pending.end());
    for (std::size_t k = 0; k < kept.size(); ++k) {
      if (merges[k].size() == 1) continue;
      WEFT_TRY(merged, ops::add_merge(graph_, value, merges[k], kept[k]));
      value = merged;
    }
    return value;
  }

  Result<ValueId> scaled_and_shifted(ValueId y, ValueId scale, ValueId shift, Symbol along) {
    WEFT_TRY(by, renamed(scale, {along}));
    WEFT_TRY(more, renamed(shift, {along}));
    WEFT_TRY(scaled, ops::add_pointwise(graph_, ops::mul(), {y, by}));
    return ops::add_pointwise(graph_, ops::add(), {scaled, more});
  }

  Result<ValueId> add_layer_norm(const ModelNode& node) {
    WEFT_TRY(x, renamed(made_[node.operands[0]], wanted_));
    WEFT_TRY(normal, ops::add_layer_norm(graph_, x, axis(node), node.number));
    if (node.operands.size() == 1) return normal.y;
    const Symbol along = wanted_[node.axis];
    if (node.operands.size() == 3)
      return scaled_and_shifted(normal.y, made_[node.operands[1]], made_[node.operands[2]], along);
    WEFT_TRY(scale, renamed(made_[node.operands[1]], {along}));
    return ops::add_pointwise(graph_, ops::mul(), {normal.y, scale});
  }

  Result<ValueId> add_batch_norm(const ModelNode& node) {
    WEFT_TRY(x, renamed(made_[node.operands[0]], wanted_));
    WEFT_TRY(mean, renamed(made_[node.operands[3]], {wanted_[1]}));
    WEFT_TRY(variance, renamed(made_[node.operands[4]], {wanted_[1]}));
    Names over = wanted_;
    over.erase(over.begin() + 1);
    WEFT_TRY(normal,
             ops::add_batch_norm(graph_, x, mean, variance, over, ops::BatchNormMode::infer, node.number));
    return scaled_and_shifted(normal.y, made_[node.operands[1]], made_[node.operands[2]], wanted_[1]);
  }

  Result<ValueId> add_transpose(const ModelNode& node) {
    Names names(wanted_.size());
    for (std::size_t d = 0; d < wanted_.size(); ++d) names[node.order[d]] = wanted_[d];
    WEFT_TRY(x, renamed(made_[node.operands[0]], names));
    return ops::add_transpose(graph_, x, wanted_);
  }

  Result<ValueId> add_concat(const ModelNode& node) {
    std::vector<ValueId> operands;
    for (const std::uint32_t operand : node.operands) {
      WEFT_TRY(value, renamed(made_[operand], wanted_));
      operands.push_back(value);
    }
    return ops::add_concat(graph_, operands, wanted_[node.axis]);
  }

  Result<ValueId> add_embedding_sum(const ModelNode& node) {
    const ValueId positions = made_[node.operands[0]], table = made_[node.operands[1]];
    Names places = wanted_, taken = wanted_;
    places.back() = free_name({names_of(positions).back()}, taken);
    taken.push_back(places.back());
    const Symbol rows = free_name({names_of(table)[0]}, taken);
    WEFT_TRY(picked, renamed(positions, places));
    WEFT_TRY(from, renamed(table, {rows, wanted_.back()}));
    WEFT_TRY(found, ops::add_gather(graph_, picked, from, rows));
    return ops::add_reduce(graph_, "sum", found, wanted_);
  }

  // Merges each block into one index and splits it into the result's indices, with names that are
  // unused in the value at that point.
  Result<ValueId> add_reshape(const ModelNode& node, const ModelShape& to) {
    ValueId value = made_[node.operands[0]];
    const Names own = names_of(value);
    const auto others = [&](const Names& than) {
      Names left = names_of(value);
      std::erase_if(left, [&](Symbol name) { return ops::contains(than, name); });
      return left;
    };
    for (const ReshapeBlock& block : reshape_blocks(file_.shape(node.operands[0]), to)) {
      if (block.from_count == 1 && block.to_count == 1) continue;
      const Names parts(own.begin() + static_cast<std::ptrdiff_t>(block.from),
                        own.begin() + static_cast<std::ptrdiff_t>(block.from + block.from_count));
      Symbol whole = parts[0];
      if (parts.size() > 1) {
        whole = free_name({wanted_[block.to]}, others(parts));
        WEFT_TRY(merged, ops::add_merge(graph_, value, parts, whole));
        value = merged;
      }
      if (block.to_count == 1) continue;
      Names taken = others({whole});
      std::vector<Dim> into;
      for (std::size_t d = block.to; d < block.to + block.to_count; ++d) {
        into.push_back({free_name({wanted_[d]}, taken), to[d]});
        taken.push_back(into.back().index);
      }
      WEFT_TRY(cut, ops::add_split(graph_, value, whole, into));
      value = cut;
    }
    return renamed(value, wanted_);
  }

  const ModelFile& file_;
  const ModelNames names_;
  plan::Graph graph_;
  std::vector<ValueId> made_;  // per value of the file
  Names wanted_;               // index names of the result being added
  int fresh_ = 0;
};

}  // namespace

Result<plan::Graph> build_plan(const ModelFile& file) { return PlanBuilder(file).build(); }

}  // namespace weft::formats
