#include "weft/parallel/distribute/holdings.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/plan/graph/verify.h"

namespace weft::distribute {

using plan::Layout;
using plan::ValueId;

Holdings::Holdings(const plan::Graph& graph, DistributedPlan& plan, const DistributeOptions& options)
    : graph_(graph),
      plan_(plan),
      gather_again_(options.gather_again),
      converter_(plan.mesh, options.prices),
      versions_(graph.value_count()) {}

void Holdings::hold(ValueId value, ValueId made, Layout layout) {
  WEFT_CHECK(made.value == plan_.layouts.size());
  plan_.layouts.push_back(std::move(layout));
  versions_[value.value].push_back({made, false});
}

Result<ValueId> Holdings::bring(ValueId value, const Layout& layout, plan::NodeId origin) {
  const plan::Phase phase = graph_.phase(origin);
  std::vector<Version>& versions = versions_[value.value];
  for (const Version& version : versions)
    if (is_kept_for(version, phase) && plan_.layouts[version.value.value] == layout) return version.value;

  const Conversion* best = nullptr;
  Version from;
  for (const Version& version : versions) {
    if (!is_kept_for(version, phase)) continue;
    const Conversion* found = converter_.find(graph_.value(value).type, graph_.type(value),
                                              plan_.layouts[version.value.value], layout);
    if (found == nullptr || (best != nullptr && best->seconds <= found->seconds)) continue;
    best = found;
    from = version;
  }
  if (best == nullptr)
    return user_error(fmt::format(
        "no conversion from layout {} to {} for {}", print(given(value), plan_.mesh, graph_.symbols()),
        print(layout, plan_.mesh, graph_.symbols()), describe(graph_, graph_.value(value).producer)));

  plan_.graph.set_label(graph_.node(origin).label);
  plan_.graph.set_scope(graph_.node(origin).scope);
  plan_.graph.set_when(graph_.node(origin).when);
  const bool from_addends =
      std::ranges::any_of(plan_.layouts[from.value.value].axes, &plan::AxisLayout::is_partial);
  for (const Step& step : best->steps) {
    Layout next = plan_.layouts[from.value.value];
    next.axes[step.axis] = step.to;
    WEFT_TRY(moved, add_step(plan_.graph, from.value, plan_.mesh, step));
    plan_.layouts.push_back(std::move(next));
    plan_.origin.push_back(origin);
    // After the gather half of an all-reduce, no slices remain that could be gathered again more
    // cheaply.
    from = {moved, from.gathered || (step.gathers() && !from_addends)};
    versions.push_back(from);
  }
  return from.value;
}

}  // namespace weft::distribute
