#include "weft/rules/rule/bind_match.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/plan/ops/communication.h"
#include "weft/rules/rule/evaluate_number.h"
#include "weft/rules/rule/guards.h"
#include "weft/rules/rule/literals.h"

namespace weft::rule {
namespace {

using plan::AttributeKind;

template <class... Parts>
bool decline(std::string* because, fmt::format_string<Parts...> format, Parts&&... parts) {
  if (because != nullptr) *because = fmt::format(format, std::forward<Parts>(parts)...);
  return false;
}

bool same_attribute(AttributeKind kind, const plan::Attribute& a, const plan::Attribute& b) {
  switch (kind) {
    case AttributeKind::integer: return a.integer == b.integer;
    case AttributeKind::real: return a.real == b.real;
    case AttributeKind::indices:
      return std::equal(a.indices, a.indices + a.count, b.indices, b.indices + b.count);
    default: return a.id == b.id;
  }
}

// The layout that a communication operator needs of its operand on its own axis.
plan::AxisLayout wanted_layout(const ops::Exchange& exchange) {
  switch (exchange.take) {
    case ops::Exchange::Take::combined: return plan::AxisLayout::partial(exchange.monoid);
    case ops::Exchange::Take::joined: return plan::AxisLayout::sliced(exchange.join);
    case ops::Exchange::Take::own: return plan::AxisLayout::replicated();
    default: return plan::AxisLayout::varying();
  }
}

}  // namespace

MatchBinder::MatchBinder(const Rule& rule) : rule_(&rule), indices_(rule) {}

bool MatchBinder::bind(const Draft& draft, const Placement& placement, Match& match,
                       std::string* because) const {
  std::vector<bool> bound(rule_->variables.size(), false);
  return bind_operators(draft, match, because) && indices_.bind(draft, match, because) &&
         bind_variables(draft, match, bound, because) &&
         check_layouts(draft, placement, match, bound, because) &&
         check_numbers(draft, placement, match, because) && check_guard(draft, placement, match, because);
}

bool MatchBinder::bind_operators(const Draft& draft, Match& match, std::string* because) const {
  match.bindings.operators.assign(rule_->operators.size(), nullptr);
  for (std::size_t n = 0; n < rule_->left.nodes.size(); ++n) {
    const PatternNode& node = rule_->left.nodes[n];
    if (node.op != nullptr) continue;
    const plan::Operator* found = draft.graph().node(match.nodes[n]).op;
    const plan::Operator*& op = match.bindings.operators[node.operator_variable];
    if (op != nullptr && op != found)
      return decline(because, "operator {} is both {} and {}", rule_->operators[node.operator_variable].name,
                     op->name(), found->name());
    op = found;
  }
  return true;
}

bool MatchBinder::bind_variables(const Draft& draft, Match& match, std::vector<bool>& bound,
                                 std::string* because) const {
  match.bindings.attributes.assign(rule_->variables.size(), plan::Attribute{});
  for (std::size_t n = 0; n < rule_->left.nodes.size(); ++n) {
    const PatternNode& pattern = rule_->left.nodes[n];
    const plan::Node& node = draft.graph().node(match.nodes[n]);
    for (std::size_t k = 0; k < pattern.attributes.size(); ++k) {
      const AttributeTerm& term = pattern.attributes[k];
      const plan::AttributeSpec& spec = node.op->attributes()[k];
      const auto bind_one = [&](std::uint16_t variable, AttributeKind kind, const plan::Attribute& found) {
        plan::Attribute& value = match.bindings.attributes[variable];
        if (bound[variable] && !same_attribute(kind, value, found))
          return decline(because, "{} of {} differs from an earlier binding of {}", spec.name,
                         node.op->name(), rule_->variables[variable].name);
        value = found;
        bound[variable] = true;
        return true;
      };
      if (term.kind == AttributeTerm::Kind::variable &&
          !bind_one(term.variable, spec.kind, node.attributes[k]))
        return false;
      if (term.kind != AttributeTerm::Kind::indices || spec.kind != AttributeKind::type) continue;
      // into=[h: heads]: a bare name is bound to the size.
      const plan::Type type = draft.graph().type(plan::TypeId(node.attributes[k].id));
      for (std::size_t i = 0; i < term.sizes.size(); ++i) {
        const std::vector<Symbol>& indices = match.bindings.indices[term.indices[i]];
        if (term.sizes[i].kind != Number::Kind::variable || indices.size() != 1) continue;
        plan::Attribute size{};
        size.integer = type.size_of(indices[0]);
        if (!bind_one(term.sizes[i].variable, AttributeKind::integer, size)) return false;
      }
    }
  }
  return true;
}

bool MatchBinder::check_layouts(const Draft& draft, const Placement& placement, Match& match,
                                std::vector<bool>& bound, std::string* because) const {
  const plan::Graph& graph = draft.graph();
  const auto is_wanted = [&](const RuleInput& input, const plan::AxisLayout& found) {
    if (input.layout->kind != found.kind || input.layout->monoid != found.monoid) return false;
    if (!found.is_sliced()) return true;
    const std::vector<Symbol>& index = match.bindings.indices[input.layout->index.value];
    return index.size() == 1 && index[0] == found.index;
  };
  const auto stands_on = [&](const RuleInput& input, Symbol axis, const plan::AxisLayout& found) {
    plan::Attribute& variable = match.bindings.attributes[input.axis];
    if ((bound[input.axis] && variable.id != axis.value) || !is_wanted(input, found)) return false;
    variable.id = axis.value;
    bound[input.axis] = true;
    return true;
  };
  for (std::size_t i = 0; i < rule_->inputs.size(); ++i) {
    const RuleInput& input = rule_->inputs[i];
    if (!input.layout.has_value()) continue;
    bool stands = false;
    const plan::ValueId value = match.values[i];
    if (placement.mesh != nullptr && value.value < placement.layouts.size()) {
      const std::vector<plan::MeshAxis>& axes = placement.mesh->axes;
      for (std::size_t k = 0; k < axes.size() && !stands; ++k) {
        const Symbol axis = graph.symbols().find(axes[k].name);
        stands = axis.valid() && stands_on(input, axis, placement.layouts[value.value].axes[k]);
      }
    }
    for (std::size_t n = 0; n < match.nodes.size() && placement.mesh == nullptr && !stands; ++n) {
      const std::vector<std::uint16_t>& operands = rule_->left.nodes[n].operands;
      const plan::NodeView node = graph.view(match.nodes[n]);
      const ops::Communication* communication = ops::find_communication(node.op());
      if (communication != nullptr && std::ranges::find(operands, i) != operands.end())
        stands = stands_on(input, node.symbol(0), wanted_layout(communication->exchange(node)));
    }
    if (!stands) return decline(because, "{} is not known to have the layout of the rule", input.name);
  }
  for (std::size_t v = 0; v < bound.size(); ++v)
    if (!bound[v]) return decline(because, "{} is not bound", rule_->variables[v].name);
  return true;
}

bool MatchBinder::check_numbers(const Draft& draft, const Placement& placement, const Match& match,
                                std::string* because) const {
  const Place place{draft.graph(), *rule_, match.bindings, match.values, placement.mesh, placement.layouts};
  for (std::size_t n = 0; n < rule_->left.nodes.size(); ++n) {
    const PatternNode& pattern = rule_->left.nodes[n];
    const plan::Node& node = draft.graph().node(match.nodes[n]);
    for (std::size_t k = 0; k < pattern.attributes.size(); ++k) {
      const AttributeTerm& term = pattern.attributes[k];
      const plan::AttributeSpec& spec = node.op->attributes()[k];
      if (term.kind == AttributeTerm::Kind::number && !is_literal(term)) {
        const std::optional<std::int64_t> wanted = evaluate(term.number, place);
        const bool equal = wanted && (spec.kind == AttributeKind::real
                                          ? node.attributes[k].real == static_cast<double>(*wanted)
                                          : node.attributes[k].integer == *wanted);
        if (!equal && wanted)
          return decline(because, "{} of {} is not {}", spec.name, node.op->name(), *wanted);
        if (!equal) return decline(because, "{} of {} has no value here", spec.name, node.op->name());
      }
      if (spec.kind != AttributeKind::type || term.kind != AttributeTerm::Kind::indices) continue;
      const plan::Type type = draft.graph().type(plan::TypeId(node.attributes[k].id));
      for (std::size_t i = 0; i < term.sizes.size(); ++i) {
        if (term.sizes[i].kind == Number::Kind::open) continue;
        const std::optional<std::int64_t> wanted = evaluate(term.sizes[i], place);
        for (const Symbol index : match.bindings.indices[term.indices[i]])
          if (!wanted || type.size_of(index) != *wanted)
            return decline(because, "{} of {} has size {} along {}", spec.name, node.op->name(),
                           type.size_of(index), draft.graph().text(index));
      }
    }
  }
  return true;
}

bool MatchBinder::check_guard(const Draft& draft, const Placement& placement, const Match& match,
                              std::string* because) const {
  const Place place{draft.graph(), *rule_, match.bindings, match.values, placement.mesh, placement.layouts};
  for (const Condition& condition : rule_->when) {
    if (holds(condition, place)) continue;
    if (because != nullptr) *because = fmt::format("guard: {}", why_not(condition, place));
    return false;
  }
  return true;
}

}  // namespace weft::rule
