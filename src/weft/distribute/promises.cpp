#include "weft/distribute/promises.h"

#include <algorithm>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "weft/distribute/trace_origins.h"
#include "weft/ops/operators.h"

namespace weft::distribute {
namespace {

using plan::NodeId;
using plan::NodeView;

constexpr std::string_view kNextValue = "next ";
constexpr std::size_t kInitial = 2, kFirstNumber = 3,
                      kSecondNumber = 4;  // attributes of a parameter or state

class PromiseCheck {
 public:
  PromiseCheck(const plan::Graph& original, const DistributedPlan& plan)
      : original_(original), plan_(plan), known_(sources_of(original)), held_(sources_of(plan.graph)) {}

  std::optional<BrokenPromise> run() const {
    for (const auto& [name, id] : held_)
      if (auto broken = check_source(name, plan_.graph.view(id))) return broken;
    for (const plan::Output& output : plan_.graph.outputs())
      if (auto broken = check_output(output)) return broken;
    for (const plan::Output& output : original_.outputs())
      if (const std::string_view name = original_.text(output.name); !find(plan_.graph, name))
        return BrokenPromise{NodeId(0u), fmt::format("output {} is not returned", name)};
    return {};
  }

 private:
  std::string text(const plan::Graph& graph, plan::ValueId value) const {
    return print(graph.type(value), graph.symbols());
  }
  std::string layout_text(plan::ValueId value) const {
    return print(plan_.layouts[value.value], plan_.mesh, plan_.graph.symbols());
  }

  static const plan::Output* find(const plan::Graph& graph, std::string_view name) {
    const auto found = std::ranges::find_if(
        graph.outputs(), [&](const plan::Output& output) { return graph.text(output.name) == name; });
    return found == graph.outputs().end() ? nullptr : &*found;
  }

  std::string initial(const NodeView& source) const {
    if (&source.op() == &ops::input()) return "given";
    return fmt::format("{}({}, {})", source.word(kInitial), source.real(kFirstNumber),
                       source.real(kSecondNumber));
  }

  std::optional<BrokenPromise> check_source(std::string_view name, const NodeView& source) const {
    const auto broken = [&](std::string what) {
      return BrokenPromise{source.id(), fmt::format("{} {} {}", source.op().name(), name, what)};
    };
    const auto found = known_.find(name);
    if (found == known_.end()) return broken("is none of the plan of one device");
    const NodeView model = original_.view(found->second);
    if (&model.op() != &source.op()) return broken(fmt::format("is one device's {}", model.op().name()));
    if (text(plan_.graph, source.result(0)) != text(original_, model.result(0)))
      return broken(fmt::format("is {}, on one device {}", text(plan_.graph, source.result(0)),
                                text(original_, model.result(0))));
    if (initial(source) != initial(model))
      return broken(fmt::format("begins as {}, on one device as {}", initial(source), initial(model)));
    for (const plan::AxisLayout& axis : plan_.layouts[source.result(0).value].axes)
      if (axis.is_partial() || axis.is_varying())
        return broken(fmt::format("is {}: it is given whole or in slices", layout_text(source.result(0))));
    return {};
  }

  std::optional<BrokenPromise> check_output(const plan::Output& output) const {
    const std::string_view name = plan_.graph.text(output.name);
    const auto broken = [&](std::string what) {
      return BrokenPromise{plan_.graph.value(output.value).producer, fmt::format("output {} {}", name, what)};
    };
    const plan::Output* model = find(original_, name);
    if (model == nullptr) return broken("is none of the plan of one device");
    if (text(plan_.graph, output.value) != text(original_, model->value))
      return broken(fmt::format("is {}, on one device {}", text(plan_.graph, output.value),
                                text(original_, model->value)));
    if (name.starts_with(kNextValue))
      if (const auto source = held_.find(name.substr(kNextValue.size())); source != held_.end()) {
        const plan::ValueId now = plan_.graph.result(source->second);
        if (plan_.layouts[now.value] == plan_.layouts[output.value.value]) return {};
        return broken(
            fmt::format("is {}, {} itself {}", layout_text(output.value), source->first, layout_text(now)));
      }
    for (const plan::AxisLayout& axis : plan_.layouts[output.value.value].axes)
      if (axis.is_partial() || axis.is_varying() || axis.has_borders())
        return broken(
            fmt::format("is {}: it must be whole, or slices end to end", layout_text(output.value)));
    return {};
  }

  const plan::Graph& original_;
  const DistributedPlan& plan_;
  const std::map<std::string_view, NodeId> known_, held_;
};

}  // namespace

std::optional<BrokenPromise> find_broken_promise(const plan::Graph& original, const DistributedPlan& plan) {
  return PromiseCheck(original, plan).run();
}

}  // namespace weft::distribute
