#include "weft/ops/localize.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/ops/build.h"
#include "weft/ops/communication.h"
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

class Localizer {
 public:
  Localizer(const plan::Graph& graph, const plan::Mesh& mesh, std::span<const plan::Layout> layouts,
            std::int32_t rank)
      : graph_(graph), mesh_(mesh), layouts_(layouts), rank_(rank) {
    for (std::size_t s = 0; s < graph.symbols().size(); ++s)
      symbols_.push_back(local_.graph.symbol(graph.text(Symbol(s))));
    local_.graph.name = graph.name;
    local_.values.resize(graph.value_count());
  }

  Result<LocalPlan> run() && {
    for (std::size_t n = 0; n < graph_.node_count(); ++n) {
      const NodeView node = graph_.view(plan::NodeId(n));
      local_.graph.set_label(here(node.node().label));
      if (Status status = add(node); !status.ok())
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

  Status add(const NodeView& node) {
    if (find_communication(node.op()) != nullptr) {
      if (const ValueId operand = local_.values[node.input(0).value]; operand.valid())
        local_.graph.add_output(local_.graph.symbol(fmt::format("give {}", node.result(0).value)), operand);
      return receive("take", node.result(0));
    }
    const bool idle = std::ranges::any_of(node.node().inputs,
                                          [&](ValueId input) { return !local_.values[input.value].valid(); });
    if (idle || (is_source(node.op()) && is_empty(shares_of(node.result(0))))) {
      for (std::size_t k = 0; k < node.result_count(); ++k) WEFT_TRY_STATUS(receive("none", node.result(k)));
      return {};
    }
    return compute(node);
  }

  // The node on this rank's shares; along positional loops on shares laid in zeros.
  Status compute(const NodeView& node) {
    lists_.clear();
    const plan::Signature signature = node.op().signature(node);
    std::vector<ValueId> operands;
    for (std::size_t i = 0; i < node.input_count(); ++i) {
      WEFT_TRY(operand, placed(node, signature, i));
      operands.push_back(operand);
    }
    std::vector<std::vector<std::int64_t>> sizes;  // of each result, as the node will compute it
    for (std::size_t k = 0; k < node.result_count(); ++k) {
      const std::vector<Share> shares = shares_of(node.result(k));
      sizes.emplace_back();
      for (std::size_t d = 0; d < shares.size(); ++d)
        sizes.back().push_back(is_positional(signature, &plan::Loop::results, k, d)
                                   ? node.result_type(k).dims[d].size
                                   : shares[d].size);
    }
    WEFT_TRY(attributes, attributes_of(node, sizes));
    WEFT_TRY(made, local_.graph.add(node.op(), operands, attributes));
    for (std::size_t k = 0; k < node.result_count(); ++k) {
      WEFT_TRY(expected, sized(node.result_type(k), sizes[k]));
      if (local_.graph.value(local_.graph.result(made, k)).type != expected)
        return user_error(
            fmt::format("its share would be {}, it computes {}",
                        print(local_.graph.type(expected), local_.graph.symbols()),
                        print(local_.graph.type(local_.graph.result(made, k)), local_.graph.symbols())));
      WEFT_TRY(result, trimmed(node, signature, k, local_.graph.result(made, k)));
      local_.values[node.result(k).value] = result;
    }
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
  std::vector<Symbol> symbols_;             // of the global plan, here
  std::vector<std::vector<Symbol>> lists_;  // attributes on their way into the local plan
  LocalPlan local_;
};

}  // namespace

Result<LocalPlan> localize(const plan::Graph& graph, const plan::Mesh& mesh,
                           std::span<const plan::Layout> layouts, std::int32_t rank) {
  return Localizer(graph, mesh, layouts, rank).run();
}

}  // namespace weft::ops
