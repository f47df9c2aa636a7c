// Joins regions to a whole plan.
#include <optional>
#include <string>
#include <unordered_map>

#include "weft/base/number.h"
#include "weft/plan/graph/transplant.h"
#include "weft/plan/ops/operators.h"
#include "weft/planner/search/rewrite/region.h"

namespace weft::search {
namespace {

using plan::NodeId;
using plan::ValueId;

// 12 for "x12"; nothing if the name is not the letter and a number.
std::optional<std::size_t> number_after(char letter, std::string_view name) {
  if (name.empty() || name.front() != letter) return std::nullopt;
  return read_number<std::size_t>(name.substr(1));
}

// Whether a node of a region's plan stands for an incoming value, a source, or neither.
enum class EntryKind : std::uint8_t { none, input, source };

EntryKind entry_kind_of(const plan::Operator& op) {
  if (&op == &ops::input()) return EntryKind::input;
  return &op == &ops::parameter() || &op == &ops::state() ? EntryKind::source : EntryKind::none;
}

std::optional<std::size_t> entry_number(const plan::NodeView& node) {
  return number_after(entry_kind_of(node.op()) == EntryKind::input ? 'x' : 'p', node.word(0));
}

class Joining {
 public:
  explicit Joining(const plan::Graph& whole) : whole_(whole), copy_(whole, joined_.plan) {
    joined_.plan.name = whole.name;
    for (std::size_t s = 0; s < whole.scope_count(); ++s) {
      const plan::Scope& scope = whole.scope(plan::ScopeId(s));
      joined_.plan.add_scope({scope.parent, copy_.symbol(scope.name), scope.iteration});
    }
  }

  void add(const Region& region, const plan::Graph& better) {
    plan::Transplant transplant(better, joined_.plan, [&](Symbol index) {
      const std::optional<std::size_t> known = number_after('i', better.text(index));
      return known && *known < region.indices.size() ? copy_.symbol(region.indices[*known])
                                                     : joined_.plan.symbol(better.text(index));
    });
    std::vector<ValueId> values(better.value_count());
    for (std::size_t n = 0; n < better.node_count(); ++n) {
      const plan::NodeView node = better.view(NodeId(n));
      if (const EntryKind entry = entry_kind_of(node.op()); entry != EntryKind::none) {
        const std::size_t which = *entry_number(node);
        values[node.result(0).value] =
            value_of(entry == EntryKind::input ? region.inputs[which] : whole_.result(region.sources[which]));
        continue;
      }
      std::vector<ValueId> inputs;
      for (const ValueId input : node.node().inputs) inputs.push_back(values[input.value]);
      const Symbol label = node.node().label;
      take_place_of(label.valid() ? region.node_labelled(node.text(label)) : NodeId());
      const NodeId made = transplant.node(node.id(), inputs).value();
      for (std::size_t k = 0; k < node.result_count(); ++k)
        values[node.result(k).value] = joined_.plan.result(made, k);
    }
    for (std::size_t y = 0; y < region.outputs.size(); ++y)
      values_[region.outputs[y].value] = values[better.outputs()[y].value.value];
  }

  Joined finish() && {
    for (const plan::Output& output : whole_.outputs()) copy_.output(output, value_of(output.value));
    return std::move(joined_);
  }

 private:
  // Nodes outside all regions are copied from the whole plan on first use.
  ValueId value_of(ValueId value) {
    std::vector<ValueId> stack = {value};
    while (!stack.empty()) {
      const NodeId node = whole_.value(stack.back()).producer;
      const std::size_t before = stack.size();
      if (values_.contains(stack.back().value)) {
        stack.pop_back();
        continue;
      }
      for (const ValueId input : whole_.node(node).inputs)
        if (!values_.contains(input.value)) stack.push_back(input);
      if (stack.size() != before) continue;
      stack.pop_back();
      std::vector<ValueId> inputs;
      for (const ValueId input : whole_.node(node).inputs) inputs.push_back(values_.at(input.value));
      take_place_of(node);
      const NodeId made = copy_.node(node, inputs).value();
      for (std::size_t k = 0; k < whole_.node(node).result_count; ++k)
        values_[whole_.result(node, k).value] = joined_.plan.result(made, k);
    }
    return values_.at(value.value);
  }

  // Sets label and scope for the node that is added next.
  void take_place_of(NodeId node) {
    joined_.stands_for.push_back(node);
    joined_.plan.set_label(node.valid() ? copy_.symbol(whole_.node(node).label) : Symbol());
    joined_.plan.set_scope(node.valid() ? whole_.node(node).scope : plan::ScopeId());
  }

  const plan::Graph& whole_;
  Joined joined_;
  plan::Transplant copy_;
  std::unordered_map<std::uint32_t, ValueId> values_;  // value of the whole plan -> value of the joined plan
};

bool same_type(const plan::Graph& a, ValueId x, const plan::Graph& b, ValueId y) {
  return plan::print(a.type(x), a.symbols()) == plan::print(b.type(y), b.symbols());
}

}  // namespace

NodeId Region::node_labelled(std::string_view label) const {
  const std::optional<std::size_t> number = number_after('n', label);
  return number && *number < nodes.size() ? nodes[*number] : NodeId();
}

bool fits(const plan::Graph& plan, const Region& region) {
  std::unordered_map<std::string, ValueId> entries;
  for (std::size_t n = 0; n < region.plan.node_count(); ++n)
    if (const plan::NodeView node = region.plan.view(NodeId(n)); entry_kind_of(node.op()) != EntryKind::none)
      entries.emplace(node.word(0), node.result(0));
  for (std::size_t n = 0; n < plan.node_count(); ++n) {
    const plan::NodeView node = plan.view(NodeId(n));
    if (entry_kind_of(node.op()) == EntryKind::none) continue;
    const auto own = entries.find(std::string(node.word(0)));
    if (own == entries.end() || !same_type(plan, node.result(0), region.plan, own->second)) return false;
  }
  if (plan.outputs().size() != region.outputs.size()) return false;
  for (std::size_t y = 0; y < region.outputs.size(); ++y)
    if (plan.text(plan.outputs()[y].name) != region.plan.text(region.plan.outputs()[y].name) ||
        !same_type(plan, plan.outputs()[y].value, region.plan, region.plan.outputs()[y].value))
      return false;
  return true;
}

Joined join(const plan::Graph& whole, std::span<const Region> regions,
            std::span<const plan::Graph* const> plans) {
  Joining joining(whole);
  for (std::size_t i = 0; i < regions.size(); ++i) joining.add(regions[i], *plans[i]);
  return std::move(joining).finish();
}

}  // namespace weft::search
