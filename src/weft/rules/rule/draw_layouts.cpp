#include "weft/rules/rule/draw_layouts.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "weft/plan/ops/operators.h"

namespace weft::rule {
namespace {

using plan::AxisLayout;

class LayoutDraw {
 public:
  LayoutDraw(const Rule& rule, const plan::Mesh& mesh, const Bindings& bindings, const plan::Graph& graph,
             Random& random)
      : rule_(rule), mesh_(mesh), bindings_(bindings), graph_(graph), random_(random) {
    std::vector<Symbol> indices;
    for (const std::vector<Symbol>& each : bindings.indices)
      indices.insert(indices.end(), each.begin(), each.end());
    if (!indices.empty() && random.below(3) != 0) along_ = indices[random.below(indices.size())];
  }

  std::string text(std::size_t input) {
    std::string result;
    for (std::size_t axis = 0; axis < mesh_.axes.size(); ++axis) {
      const AxisLayout layout = on_axis(input, axis);
      if (layout.is_replicated()) continue;
      result += fmt::format("{}{} on {}", result.empty() ? "" : ", ", print(layout, graph_.symbols()),
                            mesh_.axes[axis].name);
    }
    return result;
  }

 private:
  bool is_axis(const Symbol& symbol, std::size_t axis) const {
    return graph_.text(symbol) == mesh_.axes[axis].name;
  }

  AxisLayout on_axis(std::size_t input, std::size_t axis) {
    const RuleInput& given = rule_.inputs[input];
    if (axis >= count_axes(rule_) && along_.valid()) {
      for (const std::uint16_t variable : given.list)
        if (std::ranges::find(bindings_.indices[variable], along_) != bindings_.indices[variable].end())
          return AxisLayout::sliced(along_);
      return AxisLayout::replicated();
    }
    if (given.layout && is_axis(Symbol(bindings_.attributes[given.axis].id), axis)) {
      if (!given.layout->is_sliced()) return *given.layout;
      return AxisLayout::sliced(bindings_.indices[given.layout->index.value][0]);
    }
    if (random_.below(8) != 0)
      for (const PatternNode& node : rule_.left.nodes)
        if (node.operands.size() == 1 && node.operands[0] == input)
          if (const auto wanted = wanted_by(node, axis)) return *wanted;
    return anything(given);
  }

  // The layout that a communication needs of its operand along its own axis.
  std::optional<AxisLayout> wanted_by(const PatternNode& node, std::size_t axis) {
    const plan::Operator* op = node.op;
    const bool combines = op == &ops::all_reduce() || op == &ops::reduce_scatter();
    const bool joins = op == &ops::all_gather() || op == &ops::all_to_all();
    if (!combines && !joins && op != &ops::slice_across() && op != &ops::broadcast_from())
      return std::nullopt;
    const AttributeTerm& on = node.attributes[0];
    if (on.kind != AttributeTerm::Kind::variable ||
        !is_axis(Symbol(bindings_.attributes[on.variable].id), axis))
      return std::nullopt;
    if (combines) return AxisLayout::partial(monoid(node.attributes.back()));
    if (op == &ops::slice_across()) return AxisLayout::replicated();
    if (op == &ops::broadcast_from()) return AxisLayout::varying();
    return AxisLayout::sliced(bindings_.indices[node.attributes[1].indices[0]][0]);
  }

  plan::Monoid monoid(const AttributeTerm& kind) const {
    std::string_view word = "sum";
    if (kind.kind == AttributeTerm::Kind::word) word = kind.word;
    if (kind.kind == AttributeTerm::Kind::variable)
      word = graph_.text(Symbol(bindings_.attributes[kind.variable].id));
    return word == "max" ? plan::Monoid::max : word == "min" ? plan::Monoid::min : plan::Monoid::sum;
  }

  AxisLayout anything(const RuleInput& given) {
    const std::uint64_t roll = random_.below(20);
    std::vector<Symbol> indices;
    for (const std::uint16_t variable : given.list)
      for (const Symbol index : bindings_.indices[variable]) indices.push_back(index);
    if (roll < 9 || (roll < 15 && indices.empty())) return AxisLayout::replicated();
    if (roll < 15) return AxisLayout::sliced(indices[random_.below(indices.size())]);
    if (roll < 18) return AxisLayout::partial(plan::Monoid::sum);
    return roll == 18 ? AxisLayout::partial(plan::Monoid::max) : AxisLayout::varying();
  }

  const Rule& rule_;
  const plan::Mesh& mesh_;
  const Bindings& bindings_;
  const plan::Graph& graph_;
  Random& random_;
  // Along an axis that the rule does not mention, usually all inputs with one index are sliced by
  // it.
  Symbol along_;
};

}  // namespace

std::vector<bool> axis_variables(const Rule& rule) {
  std::vector<bool> result(rule.variables.size(), false);
  for (const RuleInput& input : rule.inputs)
    if (input.layout) result[input.axis] = true;
  for (const PatternNode& node : rule.left.nodes)
    for (std::size_t k = 0; k < node.attributes.size(); ++k)
      if (node.attributes[k].kind == AttributeTerm::Kind::variable && node.op->attributes()[k].name == "axis")
        result[node.attributes[k].variable] = true;
  return result;
}

std::size_t count_axes(const Rule& rule) {
  return std::max<std::size_t>(1, static_cast<std::size_t>(std::ranges::count(axis_variables(rule), true)));
}

plan::Mesh draw_mesh(const Rule& rule, Random& random, const Breakpoints* wide) {
  constexpr std::array<std::int64_t, 3> kOdd = {5, 7, 6};
  constexpr std::int64_t kMostRanks = 17;
  const std::size_t spoken = std::min<std::size_t>(count_axes(rule), 3);
  const std::size_t axes = spoken + (spoken < 3 && random.below(3) == 0 ? 1 : 0);
  plan::Mesh mesh;
  for (std::size_t axis = 0; axis < axes; ++axis)
    mesh.axes.push_back(
        {fmt::format("m{}", axis), static_cast<std::int32_t>(random.between(2, axes == 1 ? 4 : 3))});
  if (wide == nullptr && random.below(4) != 0) return mesh;
  // Not only small rank counts, which divide many numbers.
  constexpr std::array<std::int64_t, 4> kLarger = {8, 9, 11, 13};
  std::int64_t ranks =
      wide != nullptr ? kLarger[random.below(kLarger.size())] : kOdd[random.below(kOdd.size())];
  if (wide != nullptr && !wide->named().empty() && random.below(3) == 0)
    ranks = wide->named()[random.below(wide->named().size())];
  if (ranks >= 2 && ranks <= kMostRanks)
    mesh.axes[random.below(axes)].ranks = static_cast<std::int32_t>(ranks);
  return mesh;
}

std::vector<std::string> draw_layouts(const Rule& rule, const plan::Mesh& mesh, const Bindings& bindings,
                                      const plan::Graph& graph, Random& random) {
  LayoutDraw draw(rule, mesh, bindings, graph, random);
  std::vector<std::string> result;
  for (std::size_t input = 0; input < rule.inputs.size(); ++input) result.push_back(draw.text(input));
  return result;
}

}  // namespace weft::rule
