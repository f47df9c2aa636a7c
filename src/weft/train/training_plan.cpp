#include "weft/train/training_plan.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <unordered_set>

#include <fmt/format.h>

#include "weft/ops/build.h"
#include "weft/train/differentiate.h"

namespace weft::train {
namespace {

using plan::DType;
using plan::NodeId;
using plan::Phase;
using plan::ValueId;

constexpr std::array<std::string_view, 4> kNames = {"sgd", "momentum", "adam", "adamw"};

// The step's number: dropout may have made it already.
Result<ValueId> find_or_add_step(plan::Graph& graph) {
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const plan::NodeView node = graph.view(NodeId(n));
    const bool named = node.input_count() == 0 && !node.op().attributes().empty() &&
                       node.op().attributes()[0].name == "name";
    if (!named || node.word(0) != "step") continue;
    if (&node.op() == &ops::state() && node.result_type(0).rank() == 0 &&
        node.result_type(0).dtype == DType::i64)
      return node.result(0);
    return user_error("training counts its steps under the name step, which is taken",
                      "give that tensor another name");
  }
  WEFT_TRY(type, graph.intern_type(DType::i64, {}));
  WEFT_TRY(step, ops::add_state(graph, "step", type));
  WEFT_TRY(one, ops::add_constant(graph, 1, DType::i64));
  WEFT_TRY(next, ops::add_pointwise(graph, ops::add(), {step, one}));
  graph.add_output(graph.symbol("next step"), next);
  return step;
}

class Updater {
 public:
  Updater(plan::Graph& graph, const TrainingOptions& options) : graph_(graph), options_(options) {
    for (std::size_t n = 0; n < graph.node_count(); ++n) {
      const plan::NodeView node = graph.view(NodeId(n));
      const bool named =
          &node.op() == &ops::input() || &node.op() == &ops::parameter() || &node.op() == &ops::state();
      if (named) taken_.insert(std::string(node.word(0)));
    }
  }

  Status update(ValueId parameter, ValueId gradient) {
    const std::string name(graph_.view(graph_.value(parameter).producer).word(0));
    switch (options_.optimizer) {
      case Optimizer::sgd: {
        WEFT_TRY(next, ops::add_sgd(graph_, parameter, gradient, options_.learning_rate));
        put(name, next);
        return {};
      }
      case Optimizer::momentum: {
        WEFT_TRY(moment, add_moment(parameter, name, "momentum"));
        WEFT_TRY(next, ops::add_momentum(graph_, parameter, gradient, moment, options_.learning_rate,
                                         options_.momentum));
        put(name, next.weight);
        put(name + ".momentum", next.momentum);
        return {};
      }
      case Optimizer::adam:
      case Optimizer::adamw: {
        if (!step_.valid()) {
          WEFT_TRY(step, find_or_add_step(graph_));
          step_ = step;
        }
        WEFT_TRY(first, add_moment(parameter, name, "first"));
        WEFT_TRY(second, add_moment(parameter, name, "second"));
        const ops::AdamSettings settings{.lr = options_.learning_rate,
                                         .beta1 = options_.beta1,
                                         .beta2 = options_.beta2,
                                         .epsilon = options_.epsilon};
        WEFT_TRY(next, options_.optimizer == Optimizer::adam
                           ? ops::add_adam(graph_, parameter, gradient, first, second, step_, settings)
                           : ops::add_adamw(graph_, parameter, gradient, first, second, step_, settings,
                                            options_.weight_decay));
        put(name, next.weight);
        put(name + ".first", next.first);
        put(name + ".second", next.second);
        return {};
      }
    }
    return {};
  }

  double moment_bytes() const { return moment_bytes_; }

 private:
  Result<ValueId> add_moment(ValueId parameter, std::string_view name, std::string_view which) {
    const std::string moment = fmt::format("{}.{}", name, which);
    if (!taken_.insert(moment).second)
      return user_error(
          fmt::format("the optimizer keeps a moment of {} under the name {}, which is taken", name, moment),
          "give that tensor another name");
    const plan::TypeId type = graph_.value(parameter).type;
    moment_bytes_ += static_cast<double>(graph_.type(type).bytes());
    return ops::add_state(graph_, moment, type);
  }

  void put(const std::string& name, ValueId next) { graph_.add_output(graph_.symbol("next " + name), next); }

  plan::Graph& graph_;
  const TrainingOptions& options_;
  ValueId step_;
  std::unordered_set<std::string> taken_;  // names of sources
  double moment_bytes_ = 0;
};

// The value whose memory a value shares: views are not copies.
ValueId stored(const plan::Graph& graph, ValueId value) {
  for (;;) {
    const plan::NodeView node = graph.view(graph.value(value).producer);
    if (!node.op().is_view()) return value;
    value = node.input(0);
  }
}

}  // namespace

std::vector<ValueId> kept_values(const plan::Graph& graph) {
  std::vector<ValueId> kept;
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    if (graph.phase(NodeId(n)) != Phase::backward) continue;
    for (const ValueId input : graph.node(NodeId(n)).inputs) {
      const ValueId value = stored(graph, input);
      const NodeId producer = graph.value(value).producer;
      if (graph.phase(producer) == Phase::forward && !graph.node(producer).inputs.empty())
        kept.push_back(value);
    }
  }
  std::ranges::sort(kept);
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  return kept;
}

std::string_view name(Optimizer optimizer) { return kNames[static_cast<std::size_t>(optimizer)]; }
std::span<const std::string_view> optimizer_names() { return kNames; }

std::optional<Optimizer> find_optimizer(std::string_view text) {
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == text) return static_cast<Optimizer>(i);
  return std::nullopt;
}

Result<TrainingPlan> make_training_plan(plan::Graph forward, const TrainingOptions& options) {
  TrainingPlan made;
  made.graph = std::move(forward);
  plan::Graph& graph = made.graph;
  if (graph.outputs().empty())
    return user_error(fmt::format("model {} has no output to train on", graph.name));
  const plan::Output loss = graph.outputs().front();
  const plan::Type type = graph.type(loss.value);
  if (type.rank() != 0 || !plan::is_real(type.dtype))
    return user_error(fmt::format("training needs a loss, one real number; the first output of {} is {} {}",
                                  graph.name, graph.text(loss.name), print(type, graph.symbols())),
                      "let the model's last SELECT begin with the loss: SELECT mean(...) AS loss");

  std::vector<ValueId> parameters;
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    if (graph.node(NodeId(n)).op != &ops::parameter()) continue;
    parameters.push_back(graph.result(NodeId(n)));
    made.parameter_bytes += static_cast<double>(graph.type(parameters.back()).bytes());
  }
  if (parameters.empty()) return user_error(fmt::format("model {} has no parameters to train", graph.name));
  made.gradient_bytes = made.parameter_bytes;
  WEFT_TRY(gradients, differentiate(graph, loss.value, parameters));
  graph.set_label({});
  graph.set_scope({});
  graph.set_when({.phase = Phase::update});
  Updater updater(graph, options);
  for (std::size_t i = 0; i < parameters.size(); ++i)
    // A parameter that the loss does not depend on has no gradient and stays as it is.
    if (gradients[i].valid()) WEFT_TRY_STATUS(updater.update(parameters[i], gradients[i]));
  graph.set_when({});
  made.optimizer_bytes = updater.moment_bytes();
  made.kept = kept_values(graph);
  for (const ValueId value : made.kept)
    made.activation_bytes += static_cast<double>(graph.type(value).bytes());
  return made;
}

}  // namespace weft::train
