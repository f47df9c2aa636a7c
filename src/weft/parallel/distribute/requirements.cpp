#include "weft/parallel/distribute/requirements.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "weft/parallel/distribute/periodic_sums.h"
#include "weft/parallel/distribute/trace_origins.h"
#include "weft/plan/graph/verify.h"
#include "weft/plan/ops/operators.h"

namespace weft::distribute {
namespace {

using plan::NodeId;
using plan::NodeView;

constexpr std::size_t kInitial = 2, kFirstNumber = 3,
                      kSecondNumber = 4;  // attributes of a parameter or state

class RequirementCheck {
 public:
  RequirementCheck(const plan::Graph& original, const DistributedPlan& plan)
      : original_(original), plan_(plan), known_(sources_of(original)), held_(sources_of(plan.graph)) {
    for (const plan::Output& output : original.outputs())
      wanted_.emplace(original.text(output.name), output.value);
  }

  std::optional<BrokenRequirement> run() const {
    for (const auto& [name, id] : held_)
      if (auto broken = check_source(name, plan_.graph.view(id))) return broken;
    for (std::size_t n = 0; n < plan_.graph.node_count(); ++n)
      if (const Status phases = plan::verify_phases(plan_.graph, NodeId(n)); !phases.ok())
        return BrokenRequirement{
            NodeId(n), fmt::format("node {} {}", describe(plan_.graph, NodeId(n)), phases.error().message)};
    if (auto broken = check_dtypes()) return broken;
    if (auto broken = find_misplaced_period(plan_)) return broken;
    std::set<std::string_view> returned;
    for (const plan::Output& output : plan_.graph.outputs()) {
      if (auto broken = check_output(output)) return broken;
      returned.insert(plan_.graph.text(output.name));
    }
    for (const auto& [name, unused] : wanted_)
      if (!returned.contains(name))
        return BrokenRequirement{NodeId(0u), fmt::format("output {} is not returned", name)};
    return {};
  }

 private:
  std::string text(const plan::Graph& graph, plan::ValueId value) const {
    return print(graph.type(value), graph.symbols());
  }
  std::string layout_text(plan::ValueId value) const {
    return print(plan_.layouts[value.value], plan_.mesh, plan_.graph.symbols());
  }

  std::string initial(const NodeView& source) const {
    if (&source.op() == &ops::input()) return "given";
    return fmt::format("{}({}, {})", source.word(kInitial), source.real(kFirstNumber),
                       source.real(kSecondNumber));
  }

  // Finds types that round where the single-device plan does not: over the field and in f64, a cast
  // is the identity. Accumulating in a wider type is allowed, since it rounds less.
  std::optional<BrokenRequirement> check_dtypes() const {
    std::set<plan::DType> known;
    std::int64_t widest = 0;
    for (std::size_t v = 0; v < original_.value_count(); ++v) {
      const plan::DType dtype = original_.type(plan::ValueId(v)).dtype;
      known.insert(dtype);
      if (plan::is_real(dtype)) widest = std::max(widest, plan::size_in_bytes(dtype));
    }
    for (std::size_t v = 0; v < plan_.graph.value_count(); ++v)
      if (const plan::DType dtype = plan_.graph.type(plan::ValueId(v)).dtype;
          plan::is_real(dtype) && !known.contains(dtype) && plan::size_in_bytes(dtype) <= widest)
        return BrokenRequirement{
            plan_.graph.value(plan::ValueId(v)).producer,
            fmt::format("%{} is {}, a type that the plan of one device does not use", v, plan::name(dtype))};
    return {};
  }

  std::optional<BrokenRequirement> check_source(std::string_view name, const NodeView& source) const {
    const auto broken = [&](std::string what) {
      return BrokenRequirement{source.id(), fmt::format("{} {} {}", source.op().name(), name, what)};
    };
    const auto found = known_.find(name);
    if (found == known_.end()) return broken("is not in the plan of one device");
    const NodeView model = original_.view(found->second);
    if (&model.op() != &source.op())
      return broken(fmt::format("is a {} in the plan of one device", model.op().name()));
    if (text(plan_.graph, source.result(0)) != text(original_, model.result(0)))
      return broken(fmt::format("is {}, but {} in the plan of one device",
                                text(plan_.graph, source.result(0)), text(original_, model.result(0))));
    if (initial(source) != initial(model))
      return broken(fmt::format("is initialized as {}, but as {} in the plan of one device", initial(source),
                                initial(model)));
    for (const plan::AxisLayout& axis : plan_.layouts[source.result(0).value].axes)
      if (axis.is_partial() || axis.is_varying())
        return broken(fmt::format("is {}: it must be replicated or sliced", layout_text(source.result(0))));
    return {};
  }

  std::optional<BrokenRequirement> check_output(const plan::Output& output) const {
    const std::string_view name = plan_.graph.text(output.name);
    const auto broken = [&](std::string what) {
      return BrokenRequirement{plan_.graph.value(output.value).producer,
                               fmt::format("output {} {}", name, what)};
    };
    const auto model = wanted_.find(name);
    if (model == wanted_.end()) return broken("is not in the plan of one device");
    if (text(plan_.graph, output.value) != text(original_, model->second))
      return broken(fmt::format("is {}, but {} in the plan of one device", text(plan_.graph, output.value),
                                text(original_, model->second)));
    if (const auto source = held_.find(plan_.graph.updated(output)); source != held_.end()) {
      const plan::ValueId now = plan_.graph.result(source->second);
      if (plan_.layouts[now.value] == plan_.layouts[output.value.value]) return {};
      return broken(
          fmt::format("is {}, but {} is {}", layout_text(output.value), source->first, layout_text(now)));
    }
    for (const plan::AxisLayout& axis : plan_.layouts[output.value.value].axes)
      if (axis.is_partial() || axis.is_varying() || axis.has_borders())
        return broken(
            fmt::format("is {}: it must be replicated or sliced without borders", layout_text(output.value)));
    return {};
  }

  const plan::Graph& original_;
  const DistributedPlan& plan_;
  const std::map<std::string_view, NodeId> known_, held_;  // sources by name
  std::map<std::string_view, plan::ValueId> wanted_;       // outputs by name
};

}  // namespace

std::optional<BrokenRequirement> find_broken_requirement(const plan::Graph& original,
                                                         const DistributedPlan& plan) {
  return RequirementCheck(original, plan).run();
}

}  // namespace weft::distribute
