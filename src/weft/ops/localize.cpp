#include "weft/ops/localize.h"

#include <algorithm>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "weft/ops/build.h"
#include "weft/ops/communication.h"
#include "weft/ops/local_exchange.h"
#include "weft/ops/local_halo.h"
#include "weft/ops/local_windows.h"
#include "weft/ops/uses.h"
#include "weft/ops/whole_place.h"
#include "weft/plan/verify.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::AttributeValue;
using plan::Dim;
using plan::NodeView;
using plan::Share;
using plan::ValueId;

bool is_empty(std::span<const Share> shares) {
  return std::ranges::any_of(shares, [](const Share& share) { return share.size == 0; });
}

// What a rank that combined nothing adds. Whole numbers have no infinity: the extreme of their kind does.
double neutral(const plan::Layout& layout, plan::DType dtype) {
  const double most = !is_integer(dtype)          ? std::numeric_limits<double>::infinity()
                      : dtype == plan::DType::i64 ? 0x1.fffffffffffffp62  // the largest below 2^63
                                                  : std::numeric_limits<std::int32_t>::max();
  for (const plan::AxisLayout& axis : layout.axes) {
    if (axis == plan::AxisLayout::partial(plan::Monoid::max)) return -most;
    if (axis == plan::AxisLayout::partial(plan::Monoid::min)) return most;
  }
  return 0;
}

ExchangeKind kind_of(const Exchange& exchange) {
  using Take = Exchange::Take;
  switch (exchange.take) {
    case Take::combined:
      return exchange.keep.valid() ? ExchangeKind::reduce_scatter : ExchangeKind::all_reduce;
    case Take::joined: return exchange.keep.valid() ? ExchangeKind::all_to_all : ExchangeKind::all_gather;
    case Take::root: return ExchangeKind::broadcast_from;
    case Take::bordered: return ExchangeKind::halo;
    case Take::own:
    case Take::shifted: break;
  }
  return ExchangeKind::permute_ranks;
}

// The attributes by which a slice along a positional loop is told where it lies, by their number; -1: none.
// Operators that have a positional loop call them so.
struct Placing {
  int begin = -1;  // where it begins along the loop; it cannot be told where this is missing
  int size = -1;   // its size along the loop
  // Where every loop is positional: the sizes of the whole (whole_place.h). `begin` is then the place of the
  // slice's first element among the elements of the whole.
  int whole = -1;
};

Placing find_placing(const plan::Operator& op) {
  const auto find = [&](std::string_view name) {
    const auto found = std::ranges::find(op.attributes(), name, &plan::AttributeSpec::name);
    return found == op.attributes().end() ? -1 : static_cast<int>(found - op.attributes().begin());
  };
  return {find("begin"), find("size"), find("whole")};
}

class Localizer {
 public:
  Localizer(const plan::Graph& graph, const plan::Mesh& mesh, std::span<const plan::Layout> layouts,
            std::int32_t rank, Exchanges exchanges)
      : graph_(graph), mesh_(mesh), layouts_(layouts), rank_(rank), exchanges_(exchanges) {
    for (std::size_t s = 0; s < graph.symbols().size(); ++s)
      symbols_.push_back(local_.graph.symbol(graph.text(Symbol(s))));
    for (std::size_t s = 0; s < graph.scope_count(); ++s) {
      plan::Scope scope = graph.scope(plan::ScopeId(s));
      scope.name = here(scope.name);
      local_.graph.add_scope(scope);
    }
    local_.graph.name = graph.name;
    local_.values.resize(graph.value_count());
  }

  Result<LocalPlan> run() && {
    const std::vector<std::size_t> last = last_uses(graph_);
    for (std::size_t n = 0; n < graph_.node_count(); ++n) {
      const NodeView node = graph_.view(plan::NodeId(n));
      local_.graph.set_label(here(node.node().label));
      local_.graph.set_scope(node.node().scope);
      // What is left out must be so on every rank: a rank alone cannot tell whether the others need a value.
      const bool is_left_out =
          exchanges_ == Exchanges::stay && !is_source(node.op()) && !is_needed(node, last);
      if (Status status = is_left_out ? Status() : add(node); !status.ok())
        return user_error(fmt::format("node {} cannot be cut for rank {}: {}", describe(graph_, node.id()),
                                      rank_, status.error().message),
                          status.error().hint);
      local_.ends.push_back(local_.graph.node_count());
    }
    for (const plan::Output& output : graph_.outputs())
      if (const ValueId value = local_.values[output.value.value]; value.valid())
        local_.graph.add_output(here(output.name), value);
    return std::move(local_);
  }

 private:
  Symbol here(Symbol symbol) const { return symbol.valid() ? symbols_[symbol.value] : symbol; }

  std::vector<Share> shares_of(ValueId value) const {
    return plan::shares_of(graph_.type(value), layouts_[value.value], mesh_, rank_);
  }

  // The type of a global value's dims at these sizes.
  Result<plan::TypeId> sized(const plan::Type& type, std::span<const std::int64_t> sizes) {
    std::vector<Dim> dims;
    for (std::size_t d = 0; d < type.rank(); ++d) dims.push_back({here(type.dims[d].index), sizes[d]});
    return local_.graph.intern_type(type.dtype, dims);
  }
  Result<plan::TypeId> local_type(ValueId value) {
    std::vector<std::int64_t> sizes;
    for (const Share& share : shares_of(value)) sizes.push_back(share.size);
    return sized(graph_.type(value), sizes);
  }

  // An input that stands for a result which this rank does not compute.
  Status receive(std::string_view how, ValueId result) {
    if (is_empty(shares_of(result))) return {};
    WEFT_TRY(type, local_type(result));
    WEFT_TRY(value, add_input(local_.graph, fmt::format("{} {}", how, result.value), type));
    local_.values[result.value] = value;
    return {};
  }

  // A result that this rank adds nothing to.
  Status add_neutral(ValueId result) {
    if (exchanges_ == Exchanges::leave) return receive("none", result);
    if (is_empty(shares_of(result))) return {};
    WEFT_TRY(type, local_type(result));
    const plan::DType dtype = graph_.type(result).dtype;
    WEFT_TRY(number, add_constant(local_.graph, neutral(layouts_[result.value], dtype), dtype));
    WEFT_TRY(value, add_broadcast(local_.graph, number, local_.graph.type(type).dims));
    local_.values[result.value] = value;
    return {};
  }

  Status add(const NodeView& node) {
    if (const Communication* op = find_communication(node.op()); op != nullptr)
      return exchanges_ == Exchanges::stay ? exchange(node, *op) : leave(node);
    const bool idle = std::ranges::any_of(node.node().inputs,
                                          [&](ValueId input) { return !local_.values[input.value].valid(); });
    if (idle || (is_source(node.op()) && is_empty(shares_of(node.result(0))))) return add_neutrals(node);
    return compute(node);
  }

  Status add_neutrals(const NodeView& node) {
    for (std::size_t k = 0; k < node.result_count(); ++k) WEFT_TRY_STATUS(add_neutral(node.result(k)));
    return {};
  }

  Status leave(const NodeView& node) {
    if (const ValueId operand = local_.values[node.input(0).value]; operand.valid())
      local_.graph.add_output(local_.graph.symbol(fmt::format("give {}", node.result(0).value)), operand);
    return receive("take", node.result(0));
  }

  // This rank's side of a communication. Where a rank keeps a part of what it has, or is alone along the
  // axis, nothing is sent.
  Status exchange(const NodeView& node, const Communication& op) {
    const ValueId operand = local_.values[node.input(0).value];
    const Exchange exchange = op.exchange(node);
    const std::int32_t ranks = mesh_.axes[static_cast<std::size_t>(mesh_.find(op.axis(node)))].ranks;
    const bool is_empty_here = is_empty(shares_of(node.result(0)));
    ValueId& result = local_.values[node.result(0).value];
    if (exchange.take == Exchange::Take::own) {
      if (!operand.valid() || is_empty_here) return {};
      WEFT_TRY(part, own_block(node, operand, exchange.keep));
      result = part;
      return {};
    }
    if (ranks == 1) {
      result = operand;
      return {};
    }
    if (exchange.take == Exchange::Take::bordered) return fetch_borders(node, op, exchange);
    plan::TypeId type;
    if (!is_empty_here) {
      WEFT_TRY(local, local_type(node.result(0)));
      type = local;
    }
    const LocalExchange what{
        .kind = kind_of(exchange),
        .axis = op.axis(node),
        .ranks = ranks,
        .joins = here(exchange.join),
        .parts = here(exchange.keep),
        .monoid = exchange.monoid == plan::Monoid::none ? plan::Monoid::sum : exchange.monoid,
        .by = exchange.rank,
        .dtype = node.result_type(0).dtype};
    WEFT_TRY(value, add_local_exchange(local_.graph, what, operand, type));
    if (!is_empty_here) result = value;
    return {};
  }

  // Where it has nothing along another index, neither has the rest of its group.
  Status fetch_borders(const NodeView& node, const Communication& op, const Exchange& exchange) {
    const auto axis = static_cast<std::size_t>(mesh_.find(op.axis(node)));
    const auto along = static_cast<std::size_t>(node.input_type(0).position(exchange.join));
    std::vector<Share> shares = shares_of(node.result(0));
    const bool has_any = shares[along].size > 0;
    shares[along].size = 1;
    const LocalExchange what{.kind = ExchangeKind::halo,
                             .axis = op.axis(node),
                             .ranks = mesh_.axes[axis].ranks,
                             .joins = here(exchange.join),
                             .parts = {},
                             .by = mesh_.coordinate(rank_, axis),
                             .size = node.input_type(0).dims[along].size,
                             .before = exchange.before,
                             .after = exchange.after,
                             .dtype = node.result_type(0).dtype};
    if (is_empty(shares)) {
      WEFT_TRY_STATUS(add_local_exchange(local_.graph, what, {}, {}));
      return {};
    }
    plan::TypeId bordered;
    if (has_any) {
      WEFT_TRY(type, local_type(node.result(0)));
      bordered = type;
    }
    WEFT_TRY(value, add_local_halo(local_.graph, what, local_.values[node.input(0).value], bordered));
    local_.values[node.result(0).value] = value;
    return {};
  }

  Result<ValueId> own_block(const NodeView& node, ValueId operand, Symbol along) {
    const auto dim = static_cast<std::size_t>(node.result_type(0).position(along));
    const Share whole = shares_of(node.input(0))[dim], block = shares_of(node.result(0))[dim];
    const std::int64_t begin = block.begin - whole.begin;
    const NodeView maker = local_.graph.view(local_.graph.value(operand).producer);
    if (block != whole && makes_any_part(maker, here(along))) return part_made(maker, {begin, block.size});
    return add_slice(local_.graph, operand, here(along), begin, begin + block.size);
  }

  // True for a result that grows along an index from nothing of its operands': rows added into, positions.
  // No layout of the operands cuts it, but a rank that keeps a block need not make the rest.
  static bool makes_any_part(const NodeView& maker, Symbol along) {
    const Placing placing = find_placing(maker.op());
    if (placing.begin < 0 || placing.size < 0 || maker.result_count() != 1) return false;
    return std::ranges::any_of(maker.op().signature(maker).loops, [&](const plan::Loop& loop) {
      return loop.index == along && loop.positional && loop.results[0] >= 0 &&
             std::ranges::all_of(loop.operands, [](std::int8_t dim) { return dim < 0; });
    });
  }

  // A node of the local plan once more, for a part of its result. Nobody needs the first if this was its
  // only reader.
  Result<ValueId> part_made(const NodeView& maker, Share part) {
    const Placing placing = find_placing(maker.op());
    std::vector<AttributeValue> attributes;
    for (std::size_t k = 0; k < maker.op().attributes().size(); ++k) {
      switch (maker.op().attributes()[k].kind) {
        case AttributeKind::integer: attributes.emplace_back(maker.integer(k)); break;
        case AttributeKind::real: attributes.emplace_back(maker.real(k)); break;
        case AttributeKind::word:
        case AttributeKind::index: attributes.emplace_back(maker.symbol(k)); break;
        case AttributeKind::indices: attributes.emplace_back(maker.indices(k)); break;
        case AttributeKind::dtype: attributes.emplace_back(maker.dtype(k)); break;
        case AttributeKind::type: attributes.emplace_back(plan::TypeId(maker.node().attributes[k].id)); break;
      }
    }
    attributes[static_cast<std::size_t>(placing.begin)] =
        maker.integer(static_cast<std::size_t>(placing.begin)) + part.begin;
    attributes[static_cast<std::size_t>(placing.size)] = part.size;
    const std::vector<ValueId> inputs(maker.node().inputs.begin(), maker.node().inputs.end());
    return local_.graph.add_value(maker.op(), inputs, attributes);
  }

  // The node on this rank's shares; along positional loops it is told where they lie, or where it cannot be,
  // the shares are laid in zeros.
  Status compute(const NodeView& node) {
    lists_.clear();
    plan::Signature signature = node.op().signature(node);
    const std::vector<LocalWindows> windows = local_windows(node, signature, mesh_, layouts_, rank_);
    if (std::ranges::any_of(windows, &LocalWindows::is_idle)) return add_neutrals(node);
    std::optional<plan::Loop> told;  // the positional loop
    for (plan::Loop& loop : signature.loops) {
      if (!loop.positional || find_placing(node.op()).begin < 0) continue;
      told = loop;
      loop.positional = false;
    }
    std::vector<ValueId> operands;
    for (std::size_t i = 0; i < node.input_count(); ++i) {
      WEFT_TRY(operand, placed(node, signature, i));
      WEFT_TRY(seen, within_windows(node, signature, windows, i, operand));
      operands.push_back(seen);
    }
    std::vector<std::vector<std::int64_t>> sizes;  // of each result, as the node will compute it
    for (std::size_t k = 0; k < node.result_count(); ++k) {
      const std::vector<Share> shares = shares_of(node.result(k));
      sizes.emplace_back();
      for (std::size_t d = 0; d < shares.size(); ++d)
        sizes.back().push_back(is_positional(signature, &plan::Loop::results, k, d)
                                   ? node.result_type(k).dims[d].size
                                   : shares[d].size);
      for (const LocalWindows& local : windows)
        if (const int dim = signature.loops[local.sliding.loop].results[k]; local.is_cut && dim >= 0)
          sizes.back()[static_cast<std::size_t>(dim)] = local.computed.size;
    }
    WEFT_TRY(attributes, attributes_of(node, sizes));
    if (told) WEFT_TRY_STATUS(tell_place(node, *told, attributes));
    tell_windows(node, windows, attributes);
    WEFT_TRY(made, local_.graph.add(node.op(), operands, attributes));
    for (std::size_t k = 0; k < node.result_count(); ++k) {
      WEFT_TRY(expected, sized(node.result_type(k), sizes[k]));
      if (local_.graph.value(local_.graph.result(made, k)).type != expected)
        return user_error(
            fmt::format("its share would be {}, it computes {}",
                        print(local_.graph.type(expected), local_.graph.symbols()),
                        print(local_.graph.type(local_.graph.result(made, k)), local_.graph.symbols())));
      WEFT_TRY(result, trimmed(node, signature, k, local_.graph.result(made, k)));
      WEFT_TRY(kept, without_neighbours(node, signature, windows, k, result));
      local_.values[node.result(k).value] = kept;
    }
    return {};
  }

  // What this rank's windows see of an operand, which may be held with wider borders.
  Result<ValueId> within_windows(const NodeView& node, const plan::Signature& signature,
                                 std::span<const LocalWindows> windows, std::size_t i, ValueId value) {
    for (const LocalWindows& local : windows) {
      const int dim = signature.loops[local.sliding.loop].operands[i];
      if (!local.is_cut || dim < 0) continue;
      const auto at = static_cast<std::size_t>(dim);
      WEFT_TRY(seen, add_part(local_.graph, value, here(node.input_type(i).dims[at].index),
                              shares_of(node.input(i))[at], local.operands[i]));
      value = seen;
    }
    return value;
  }

  // A gradient that was computed for all that its windows see is this rank's for its own block alone.
  Result<ValueId> without_neighbours(const NodeView& node, const plan::Signature& signature,
                                     std::span<const LocalWindows> windows, std::size_t k, ValueId value) {
    for (const LocalWindows& local : windows) {
      const int dim = signature.loops[local.sliding.loop].results[k];
      if (!local.is_cut || dim < 0) continue;
      const Symbol along = here(node.result_type(k).dims[static_cast<std::size_t>(dim)].index);
      WEFT_TRY(kept, add_part(local_.graph, value, along, local.computed, local.kept));
      value = kept;
    }
    return value;
  }

  Status tell_place(const NodeView& node, const plan::Loop& loop, std::vector<AttributeValue>& attributes) {
    const Placing placing = find_placing(node.op());
    const auto at = [](int attribute) { return static_cast<std::size_t>(attribute); };
    if (placing.whole >= 0) {
      const std::vector<Share> shares = shares_of(node.result(0));
      WEFT_TRY(place, read_whole_place(node.result_type(0), node.integer(at(placing.begin)),
                                       node.word(at(placing.whole))));
      if (std::ranges::equal(shares, node.result_type(0).dims, {}, &Share::size, &Dim::size)) return {};
      attributes[at(placing.begin)] = begin_of_part(place, shares);
      attributes[at(placing.whole)] = local_.graph.symbol(print_sizes(place));
      return {};
    }
    std::optional<Share> share;
    for (std::size_t i = 0; i < node.input_count(); ++i)
      if (loop.operands[i] >= 0) share = shares_of(node.input(i))[at(loop.operands[i])];
    for (std::size_t k = 0; k < node.result_count(); ++k)
      if (loop.results[k] >= 0) share = shares_of(node.result(k))[at(loop.results[k])];
    WEFT_CHECK(share.has_value());
    attributes[at(placing.begin)] = node.integer(at(placing.begin)) + share->begin;
    if (placing.size >= 0) attributes[at(placing.size)] = share->size;
    return {};
  }

  static bool is_positional(const plan::Signature& signature, std::vector<std::int8_t> plan::Loop::*side,
                            std::size_t which, std::size_t dim) {
    return std::ranges::any_of(signature.loops, [&](const plan::Loop& loop) {
      return loop.positional && (loop.*side)[which] == static_cast<int>(dim);
    });
  }

  Result<ValueId> placed(const NodeView& node, const plan::Signature& signature, std::size_t i) {
    ValueId value = local_.values[node.input(i).value];
    const std::vector<Share> shares = shares_of(node.input(i));
    for (std::size_t d = 0; d < shares.size(); ++d) {
      if (!is_positional(signature, &plan::Loop::operands, i, d)) continue;
      const Dim& dim = node.input_type(i).dims[d];
      WEFT_TRY(padded, add_pad(local_.graph, value, here(dim.index), shares[d].begin,
                               dim.size - shares[d].begin - shares[d].size));
      value = padded;
    }
    return value;
  }

  Result<ValueId> trimmed(const NodeView& node, const plan::Signature& signature, std::size_t k,
                          ValueId value) {
    const std::vector<Share> shares = shares_of(node.result(k));
    for (std::size_t d = 0; d < shares.size(); ++d) {
      if (!is_positional(signature, &plan::Loop::results, k, d)) continue;
      WEFT_TRY(cut, add_slice(local_.graph, value, here(node.result_type(k).dims[d].index), shares[d].begin,
                              shares[d].begin + shares[d].size));
      value = cut;
    }
    return value;
  }

  // Types that attributes hold follow the results' sizes, whose indices they name. A layout stays behind.
  Result<std::vector<AttributeValue>> attributes_of(const NodeView& node,
                                                    const std::vector<std::vector<std::int64_t>>& sizes) {
    std::vector<AttributeValue> values;
    const std::span<const plan::AttributeSpec> specs = node.op().attributes();
    for (std::size_t k = 0; k < specs.size(); ++k) {
      switch (specs[k].kind) {
        case AttributeKind::integer: values.emplace_back(node.integer(k)); break;
        case AttributeKind::real: values.emplace_back(node.real(k)); break;
        case AttributeKind::word:
        case AttributeKind::index: values.emplace_back(here(node.symbol(k))); break;
        case AttributeKind::indices: values.emplace_back(indices_here(node.indices(k))); break;
        case AttributeKind::dtype: values.emplace_back(node.dtype(k)); break;
        case AttributeKind::type: {
          std::vector<std::int64_t> local;
          for (const Dim& dim : node.type(k).dims) {
            const int at = node.result_type(0).position(dim.index);
            local.push_back(at < 0 ? dim.size : sizes[0][static_cast<std::size_t>(at)]);
          }
          WEFT_TRY(type, sized(node.type(k), local));
          values.emplace_back(type);
          break;
        }
      }
    }
    if (is_source(node.op())) values.back() = std::monostate();
    return values;
  }

  std::span<const Symbol> indices_here(std::span<const Symbol> indices) {
    std::vector<Symbol>& list = lists_.emplace_back();
    for (const Symbol index : indices) list.push_back(here(index));
    return list;
  }

  const plan::Graph& graph_;
  const plan::Mesh& mesh_;
  std::span<const plan::Layout> layouts_;
  std::int32_t rank_;
  Exchanges exchanges_;
  std::vector<Symbol> symbols_;             // of the global plan, here
  std::vector<std::vector<Symbol>> lists_;  // attributes on their way into the local plan
  LocalPlan local_;
};

}  // namespace

Result<LocalPlan> localize(const plan::Graph& graph, const plan::Mesh& mesh,
                           std::span<const plan::Layout> layouts, std::int32_t rank, Exchanges exchanges) {
  return Localizer(graph, mesh, layouts, rank, exchanges).run();
}

}  // namespace weft::ops
