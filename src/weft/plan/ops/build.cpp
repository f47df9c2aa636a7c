#include "weft/plan/ops/build.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "weft/plan/ops/loops.h"

namespace weft::ops {

using plan::AttributeValue;
using plan::Graph;
using plan::ValueId;

namespace {

using Attributes = std::initializer_list<AttributeValue>;
using Operands = std::initializer_list<ValueId>;

Values span_of(Operands operands) { return {operands.begin(), operands.size()}; }

Result<ValueId> one(Graph& graph, const Operator& op, Values operands, Attributes attributes = {}) {
  return graph.add_value(op, operands, {attributes.begin(), attributes.size()});
}

Result<ValueId> one(Graph& graph, const Operator& op, Operands operands, Attributes attributes = {}) {
  return one(graph, op, span_of(operands), attributes);
}

Result<plan::NodeId> several(Graph& graph, const Operator& op, Operands operands, Attributes attributes) {
  return graph.add(op, span_of(operands), {attributes.begin(), attributes.size()});
}

// Adds an optimizer's node without its last operand, the rate, if that is invalid.
Result<plan::NodeId> optimizer(Graph& graph, const Operator& op, Operands operands, Attributes attributes) {
  const std::size_t given = operands.size() - (operands.end()[-1].valid() ? 0 : 1);
  return graph.add(op, span_of(operands).first(given), {attributes.begin(), attributes.size()});
}

bool same_order(const plan::Type& type, Indices indices) {
  return std::ranges::equal(type.dims, indices, {}, &plan::Dim::index);
}

// True if a pointwise product of a and b, in that order, has exactly `indices`: those of the wider
// operand, then those that it lacks.
bool joins_to(const plan::Type& a, const plan::Type& b, Indices indices) {
  const plan::Type &wide = b.rank() > a.rank() ? b : a, &other = b.rank() > a.rank() ? a : b;
  std::vector<Symbol> joined = indices_of(wide.dims);
  for (const plan::Dim& dim : other.dims)
    if (!wide.has(dim.index)) joined.push_back(dim.index);
  return std::ranges::equal(joined, indices);
}

}  // namespace

Result<ValueId> add_input(Graph& graph, std::string_view name, plan::TypeId type, std::string_view layout) {
  return one(graph, input(), {}, {graph.symbol(name), type, graph.symbol(layout)});
}

Result<ValueId> add_parameter(Graph& graph, std::string_view name, plan::TypeId type,
                              const Initial& initial) {
  return one(graph, parameter(), {},
             {graph.symbol(name), type, graph.symbol(initial.kind), initial.a, initial.b});
}

Result<ValueId> add_state(Graph& graph, std::string_view name, plan::TypeId type, const Initial& initial) {
  return one(graph, state(), {},
             {graph.symbol(name), type, graph.symbol(initial.kind), initial.a, initial.b});
}

Result<ValueId> add_constant(Graph& graph, double value, plan::DType dtype) {
  return one(graph, constant(), {}, {value, dtype});
}

Result<ValueId> add_position(Graph& graph, plan::Dim along) {
  return one(graph, position(), {}, {along.index, along.size});
}

Result<ValueId> add_contract(Graph& graph, Values operands, Indices to) {
  return one(graph, contract(), operands, {to});
}

Result<ValueId> add_contract(Graph& graph, Operands operands, Indices to) {
  return add_contract(graph, span_of(operands), to);
}

Result<ValueId> add_reduce(Graph& graph, std::string_view kind, ValueId x, Indices to) {
  const plan::Type type = graph.type(x);
  if (to.size() == type.rank()) return add_transpose(graph, x, to);
  if (kind != "mean") return one(graph, reduce(), {x}, {graph.symbol(kind), to});
  const std::int64_t count = points_of(without(type.dims, to));
  return one(graph, reduce(), {x}, {graph.symbol(kind), to, count});
}

Result<ValueId> add_contract_spread(Graph& graph, Values operands, Dims to) {
  const auto has = [&](Symbol index) {
    return std::ranges::any_of(operands, [&](ValueId operand) { return graph.type(operand).has(index); });
  };
  std::vector<Symbol> kept = indices_of(to);
  std::erase_if(kept, [&](Symbol index) { return !has(index); });

  const auto product = [&]() -> Result<ValueId> {
    const plan::Type a = graph.type(operands[0]);
    if (operands.size() == 1) {
      const bool sums =
          std::ranges::any_of(a.dims, [&](const plan::Dim& dim) { return !contains(kept, dim.index); });
      return sums ? add_reduce(graph, "sum", operands[0], kept) : Result<ValueId>(operands[0]);
    }
    if (operands.size() == 2) {
      const plan::Type b = graph.type(operands[1]);
      if (joins_to(a, b, kept)) return add_pointwise(graph, mul(), {operands[0], operands[1]});
      if (joins_to(b, a, kept)) return add_pointwise(graph, mul(), {operands[1], operands[0]});
    }
    return add_contract(graph, operands, kept);
  };
  WEFT_TRY(value, product());
  return add_broadcast(graph, value, to);
}

Result<ValueId> add_contract_spread(Graph& graph, Operands operands, Dims to) {
  return add_contract_spread(graph, span_of(operands), to);
}

Result<ValueId> add_pointwise(Graph& graph, const Operator& op, Values operands) {
  return one(graph, op, operands);
}

Result<ValueId> add_pointwise(Graph& graph, const Operator& op, Operands operands) {
  return one(graph, op, operands);
}

Result<ValueId> add_cast(Graph& graph, ValueId x, plan::DType to) {
  return graph.type(x).dtype == to ? Result<ValueId>(x) : one(graph, cast(), {x}, {to});
}

Result<ValueId> add_broadcast(Graph& graph, ValueId x, Dims to) {
  const plan::Type type = graph.type(x);
  if (to.size() == type.rank()) return add_transpose(graph, x, indices_of(to));
  WEFT_TRY(target, graph.intern_type(type.dtype, to));
  return one(graph, broadcast(), {x}, {target});
}

Result<ValueId> add_transpose(Graph& graph, ValueId x, Indices to) {
  return same_order(graph.type(x), to) ? Result<ValueId>(x) : one(graph, transpose(), {x}, {to});
}

Result<ValueId> add_rename(Graph& graph, ValueId x, Indices from, Indices to) {
  return std::ranges::equal(from, to) ? Result<ValueId>(x) : one(graph, rename(), {x}, {from, to});
}

Result<ValueId> add_split(Graph& graph, ValueId x, Symbol along, Dims into) {
  WEFT_TRY(sizes, graph.intern_type(graph.type(x).dtype, into));
  return one(graph, split(), {x}, {along, sizes});
}

Result<ValueId> add_merge(Graph& graph, ValueId x, Indices along, Symbol into) {
  return one(graph, merge(), {x}, {along, into});
}

Result<ValueId> add_slice(Graph& graph, ValueId x, Symbol along, std::int64_t begin, std::int64_t end) {
  const plan::Type type = graph.type(x);
  if (type.has(along) && begin == 0 && end == type.size_of(along)) return x;
  return one(graph, slice(), {x}, {along, begin, end});
}

Result<ValueId> add_pad(Graph& graph, ValueId x, Symbol along, std::int64_t before, std::int64_t after) {
  if (before == 0 && after == 0) return x;
  return one(graph, pad(), {x}, {along, before, after});
}

Result<ValueId> add_concat(Graph& graph, Values operands, Symbol along) {
  return operands.size() == 1 ? Result<ValueId>(operands[0]) : one(graph, concat(), operands, {along});
}

Result<ValueId> add_concat(Graph& graph, Operands operands, Symbol along) {
  return add_concat(graph, span_of(operands), along);
}

Result<ValueId> add_softmax(Graph& graph, ValueId x, Indices over) {
  return one(graph, softmax(), {x}, {over});
}

Result<Normalized> add_layer_norm(Graph& graph, ValueId x, Indices over, double epsilon) {
  WEFT_TRY(node, several(graph, layer_norm(), {x}, {over, epsilon}));
  return Normalized{graph.result(node, 0), graph.result(node, 1)};
}

Result<Normalized> add_rms_norm(Graph& graph, ValueId x, Indices over, double epsilon) {
  WEFT_TRY(node, several(graph, rms_norm(), {x}, {over, epsilon}));
  return Normalized{graph.result(node, 0), graph.result(node, 1)};
}

Result<BatchNormalized> add_batch_norm(Graph& graph, ValueId x, ValueId mean, ValueId variance, Indices over,
                                       BatchNormMode mode, double epsilon, double momentum) {
  const Symbol word = graph.symbol(mode == BatchNormMode::train ? "train" : "infer");
  WEFT_TRY(node, several(graph, batch_norm(), {x, mean, variance}, {over, epsilon, momentum, word}));
  return BatchNormalized{graph.result(node, 0), graph.result(node, 1), graph.result(node, 2),
                         graph.result(node, 3)};
}

Result<ValueId> add_cross_entropy(Graph& graph, ValueId logits, ValueId label, Symbol over,
                                  double smoothing) {
  return one(graph, cross_entropy(), {logits, label}, {over, smoothing});
}

Result<ValueId> add_labelled(Graph& graph, ValueId label, std::int64_t classes, plan::DType dtype) {
  return one(graph, labelled(), {label}, {classes, dtype});
}

Result<ValueId> add_stop_gradient(Graph& graph, ValueId x) { return one(graph, stop_gradient(), {x}); }

Result<ValueId> add_gather(Graph& graph, ValueId positions, ValueId table, Symbol along, std::int64_t begin) {
  return one(graph, gather(), {positions, table}, {along, begin});
}

Result<ValueId> add_scatter_add(Graph& graph, ValueId positions, ValueId x, plan::Dim along, Indices to,
                                std::int64_t begin) {
  return one(graph, scatter_add(), {positions, x}, {along.index, along.size, to, begin});
}

Result<TopK> add_top_k(Graph& graph, ValueId x, Symbol over, plan::Dim into) {
  WEFT_TRY(node, several(graph, top_k(), {x}, {over, into.index, into.size}));
  return TopK{graph.result(node, 0), graph.result(node, 1)};
}

Result<ValueId> add_slot(Graph& graph, ValueId expert, std::int64_t experts, std::int64_t capacity,
                         Indices over) {
  return one(graph, slot(), {expert}, {experts, capacity, over});
}

Result<ValueId> add_conv2d(Graph& graph, ValueId x, ValueId w, const ConvWindow& window) {
  const std::int64_t padding_w = window.padding_w == window.padding ? -1 : window.padding_w;
  return one(graph, conv2d(), {x, w}, {window.stride, window.padding, window.groups, padding_w});
}

Result<ValueId> add_conv2d_transpose(Graph& graph, ValueId x, ValueId w, const ConvWindow& window,
                                     std::int64_t extra) {
  const plan::Type from = graph.type(x), by = graph.type(w);
  if (from.rank() != 4 || by.rank() != 4)
    return user_error(
        fmt::format("a transposed convolution needs an image [b, o, h, w] and a weight [o, c, r, q], "
                    "found {} and {}",
                    print_indices(from.dims, graph.symbols()), print_indices(by.dims, graph.symbols())));
  WEFT_TRY_STATUS(expect_between("stride", window.stride, 1, kLargestStep));
  WEFT_TRY_STATUS(expect_between("groups", window.groups, 1, kLargestStep));
  WEFT_TRY_STATUS(expect_between("extra", extra, 0, window.stride - 1));
  const std::int64_t padding_w = window.padding_w < 0 ? window.padding : window.padding_w;
  // The image dims of a convolution that would map the result to x.
  const std::array<plan::Dim, 4> dims = {
      {from.dims[0],
       {by.dims[1].index, by.dims[1].size * window.groups},
       {from.dims[2].index,
        (from.dims[2].size - 1) * window.stride + by.dims[2].size - 2 * window.padding + extra},
       {from.dims[3].index,
        (from.dims[3].size - 1) * window.stride + by.dims[3].size - 2 * padding_w + extra}}};
  for (const plan::Dim& dim : dims)
    if (dim.size < 1)
      return user_error(
          fmt::format("padding is too large: index {} would have no elements", graph.text(dim.index)));
  const Symbol channels = from.dims[1].index, named = by.dims[0].index;
  const plan::DType dtype = from.dtype;
  WEFT_TRY(renamed, add_rename(graph, x, {&channels, 1}, {&named, 1}));
  WEFT_TRY(type, graph.intern_type(dtype, dims));
  return one(
      graph, conv2d_input_gradient(), {renamed, w},
      {window.stride, window.padding, window.groups, padding_w == window.padding ? -1 : padding_w, type});
}

Result<ValueId> add_max_pool(Graph& graph, ValueId x, const PoolWindow& window) {
  return one(graph, max_pool(), {x}, {window.size, window.stride, window.padding});
}

Result<ValueId> add_avg_pool(Graph& graph, ValueId x, const PoolWindow& window) {
  return one(graph, avg_pool(), {x}, {window.size, window.stride, window.padding});
}

Result<ValueId> add_rotary(Graph& graph, ValueId x, Symbol along, Symbol pairs, double base) {
  return one(graph, rotary(), {x}, {along, pairs, base});
}

Result<ValueId> add_recurrence(Graph& graph, ValueId decay, ValueId x, Symbol along, bool reverse) {
  return one(graph, recurrence(), {decay, x}, {along, reverse ? 1 : 0});
}

Result<ValueId> add_dropout(Graph& graph, ValueId x, ValueId step, double rate, std::int64_t stream) {
  return rate == 0 ? Result<ValueId>(x) : one(graph, dropout(), {x, step}, {rate, stream});
}

Result<ValueId> add_sgd(Graph& graph, ValueId weight, ValueId gradient, double lr, ValueId rate) {
  WEFT_TRY(node, optimizer(graph, sgd(), {weight, gradient, rate}, {lr}));
  return graph.result(node);
}

Result<MomentumStep> add_momentum(Graph& graph, ValueId weight, ValueId gradient, ValueId velocity, double lr,
                                  double mu, ValueId rate) {
  WEFT_TRY(node, optimizer(graph, momentum(), {weight, gradient, velocity, rate}, {lr, mu}));
  return MomentumStep{graph.result(node, 0), graph.result(node, 1)};
}

Result<AdamStep> add_adam(Graph& graph, ValueId weight, ValueId gradient, ValueId first, ValueId second,
                          ValueId step, const AdamSettings& settings, ValueId rate) {
  const auto& [lr, beta1, beta2, epsilon] = settings;
  WEFT_TRY(node, optimizer(graph, adam(), {weight, gradient, first, second, step, rate},
                           {lr, beta1, beta2, epsilon}));
  return AdamStep{graph.result(node, 0), graph.result(node, 1), graph.result(node, 2)};
}

Result<AdamStep> add_adamw(Graph& graph, ValueId weight, ValueId gradient, ValueId first, ValueId second,
                           ValueId step, const AdamSettings& settings, double decay, ValueId rate) {
  const auto& [lr, beta1, beta2, epsilon] = settings;
  WEFT_TRY(node, optimizer(graph, adamw(), {weight, gradient, first, second, step, rate},
                           {lr, beta1, beta2, epsilon, decay}));
  return AdamStep{graph.result(node, 0), graph.result(node, 1), graph.result(node, 2)};
}

Result<ValueId> add_all_reduce(Graph& graph, ValueId x, std::string_view axis, std::string_view kind) {
  return one(graph, all_reduce(), {x}, {graph.symbol(axis), graph.symbol(kind)});
}

Result<ValueId> add_reduce_scatter(Graph& graph, ValueId x, std::string_view axis, Symbol along,
                                   std::string_view kind) {
  return one(graph, reduce_scatter(), {x}, {graph.symbol(axis), along, graph.symbol(kind)});
}

Result<ValueId> add_all_gather(Graph& graph, ValueId x, std::string_view axis, Symbol along) {
  return one(graph, all_gather(), {x}, {graph.symbol(axis), along});
}

Result<ValueId> add_all_to_all(Graph& graph, ValueId x, std::string_view axis, Symbol from, Symbol to) {
  return one(graph, all_to_all(), {x}, {graph.symbol(axis), from, to});
}

Result<ValueId> add_slice_across(Graph& graph, ValueId x, std::string_view axis, Symbol along) {
  return one(graph, slice_across(), {x}, {graph.symbol(axis), along});
}

Result<ValueId> add_halo(Graph& graph, ValueId x, std::string_view axis, Symbol along, std::int64_t before,
                         std::int64_t after) {
  return one(graph, halo(), {x}, {graph.symbol(axis), along, before, after});
}

Result<ValueId> add_permute_ranks(Graph& graph, ValueId x, std::string_view axis, std::int64_t by) {
  return one(graph, permute_ranks(), {x}, {graph.symbol(axis), by});
}

}  // namespace weft::ops
