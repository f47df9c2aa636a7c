// test/unit/case/distribute_case.h -- small trainable models, distributed over a mesh and compared
// with one device.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "mesh_case.h"
#include "weft/language/bind.h"
#include "weft/language/catalog.h"
#include "weft/language/shipped.h"
#include "weft/parallel/distribute/distribute.h"
#include "weft/parallel/train/training_plan.h"
#include "weft/plan/graph/verify.h"
#include "weft/plan/ops/communication.h"

namespace weft::distribute {

// The training plan of a shipped model, or of the only model that `script` creates. Labels and
// tokens are below 4.
inline train::TrainingPlan training_plan(std::string_view model,
                                         std::vector<language::SizeOverride> sizes = {},
                                         train::Optimizer optimizer = train::Optimizer::adam,
                                         plan::DType precision = plan::DType::f32) {
  language::Catalog catalog;
  language::load_shipped(catalog);
  language::syntax::Name name;
  std::string made;
  if (model.starts_with("CREATE")) {
    auto parsed = language::parse_and_keep(model);
    if (!parsed.ok()) throw std::runtime_error(parsed.error().message);
    for (const language::syntax::Statement* statement : (*parsed)->script.statements) {
      const auto& create = statement->as<language::syntax::CreateModel>();
      made = create.name.text;
      catalog.models[made] = {*parsed, &create};
    }
    name.text = made;
  } else {
    name.text = model;
  }
  language::BindOptions options;
  options.mode = language::Mode::train;
  options.sizes = std::move(sizes);
  options.precision = precision;
  auto bound = language::bind(catalog, name, options);
  if (!bound.ok()) throw std::runtime_error(bound.error().message);
  auto plan = train::make_training_plan(std::move(bound->graph), {.optimizer = optimizer});
  if (!plan.ok()) throw std::runtime_error(plan.error().message);
  return std::move(plan).value();
}

inline DistributedPlan distributed(const train::TrainingPlan& plan, std::string_view text,
                                   DistributeOptions options = {.smallest_share = 1}) {
  const auto distribution = read_distribution(text);
  if (!distribution.ok()) throw std::runtime_error(distribution.error().message);
  auto made = distribute(plan.graph, *distribution, options);
  if (!made.ok()) throw std::runtime_error(made.error().message);
  return std::move(made).value();
}

// "" when layouts match inference, the plan verifies, and every output equals that of the original
// plan on one device.
template <class T>
std::string difference(const plan::Graph& one_device, const DistributedPlan& plan, std::uint64_t seed = 1) {
  const Result<std::vector<plan::Layout>> layouts = spmd::infer_layouts(plan.graph, plan.mesh);
  if (!layouts.ok()) return layouts.error().message;
  if (*layouts != plan.layouts) return "layouts differ from what inference finds";
  if (const Status verified = plan::verify(plan.graph); !verified.ok()) return verified.error().message;
  if (plan.origin.size() != plan.graph.node_count()) return "origins are not one a node";

  ops::Numbers<T> numbers;
  if constexpr (std::is_same_v<T, ops::Field>) numbers.key = seed;
  Random random(seed);
  const ops::MeshInputs<T> inputs = ops::spread<T>(plan.graph, plan.mesh, {}, *layouts, numbers, random);
  const auto expected = ops::outputs_of<T>(one_device, inputs.whole, numbers);
  const auto found = spmd::interpret_on_mesh<T>(
      plan.graph, plan.mesh, [&](std::string_view name) { return &inputs.held.find(name)->second; }, numbers);
  if (!found.ok()) return found.error().message;
  if (found->size() != expected.size()) return "other outputs";
  for (std::size_t o = 0; o < expected.size(); ++o) {
    const plan::Output& output = plan.graph.outputs()[o];
    const auto name = plan.graph.text(output.name);
    if (name != one_device.text(one_device.outputs()[o].name)) return "outputs in another order";
    const auto joined = spmd::join_from_mesh((*found)[o], plan.graph.type(output.value), plan.mesh, numbers);
    if (!joined.ok()) return fmt::format("{}: {}", name, joined.error().message);
    for (std::size_t i = 0; i < expected[o].data.size(); ++i)
      if (!ops::nearly(expected[o].data[i], joined->data[i]))
        return fmt::format("{}: element {} differs", name, i);
  }
  return "";
}

// Number of nodes of an operator in one phase, or in all phases.
inline int count(const DistributedPlan& plan, std::string_view op, std::optional<plan::Phase> phase = {}) {
  int found = 0;
  for (std::size_t n = 0; n < plan.graph.node_count(); ++n) {
    const plan::NodeView node = plan.graph.view(plan::NodeId(n));
    found += node.op().name() == op && (!phase || node.phase() == *phase);
  }
  return found;
}

// The layout of a source, or of the last value of a label.
inline std::string layout(const DistributedPlan& plan, std::string_view name) {
  std::string found = "no such tensor";
  for (std::size_t n = 0; n < plan.graph.node_count(); ++n) {
    const plan::NodeView node = plan.graph.view(plan::NodeId(n));
    const bool is_it = ops::is_source(node.op())
                           ? node.word(0) == name
                           : node.node().label.valid() && node.text(node.node().label) == name;
    if (is_it) found = print(plan.layouts[node.result(0).value], plan.mesh, plan.graph.symbols());
  }
  return found;
}

}  // namespace weft::distribute
