#include "weft/train/training_plan.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <unordered_set>

#include <fmt/format.h>

#include "weft/ops/build.h"
#include "weft/ops/formula.h"
#include "weft/train/differentiate.h"

namespace weft::train {
namespace {

using plan::DType;
using plan::NodeId;
using plan::Phase;
using plan::ValueId;

constexpr std::array<std::string_view, 4> kNames = {"sgd", "momentum", "adam", "adamw"};

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

  // Before the first update: what all of them read.
  Status prepare() {
    if (options_.accumulate > 1) WEFT_TRY_STATUS(count_gradients());
    if (!options_.scheduled) return {};
    WEFT_TRY_STATUS(take(kRateName, "the schedule keeps its rate"));
    WEFT_TRY(type, graph_.intern_type(DType::f32, {}));
    WEFT_TRY(rate, ops::add_state(graph_, kRateName, type, {"ones"}));
    rate_ = rate;
    return {};
  }

  // Adds the gradient to those of the steps before, and returns their mean: of use when an update is due.
  Result<ValueId> accumulate(ValueId parameter, ValueId gradient) {
    if (!due_.valid()) return gradient;
    const std::string name(graph_.view(graph_.value(parameter).producer).word(0));
    WEFT_TRY(sum, add_moment(parameter, name, "gradients"));
    ops::Formula f(graph_);
    const ValueId total = f(ops::add(), {sum, gradient});
    const ValueId mean = f(ops::mul(), {total, f.number(1 / options_.accumulate, total)});
    const ValueId rest = f(ops::select(), {due_, f.number(0, total), total});
    WEFT_TRY_STATUS(f.status());
    graph_.add_output(graph_.symbol(fmt::format("next {}.gradients", name)), rest);
    return mean;
  }

  Status update(ValueId parameter, ValueId gradient) {
    const std::string name(graph_.view(graph_.value(parameter).producer).word(0));
    switch (options_.optimizer) {
      case Optimizer::sgd: {
        WEFT_TRY(next, ops::add_sgd(graph_, parameter, gradient, options_.learning_rate, rate_));
        return put(name, parameter, next);
      }
      case Optimizer::momentum: {
        WEFT_TRY(moment, add_moment(parameter, name, "momentum"));
        WEFT_TRY(next, ops::add_momentum(graph_, parameter, gradient, moment, options_.learning_rate,
                                         options_.momentum, rate_));
        WEFT_TRY_STATUS(put(name, parameter, next.weight));
        return put(name + ".momentum", moment, next.momentum);
      }
      case Optimizer::adam:
      case Optimizer::adamw: {
        WEFT_TRY_STATUS(count_steps());
        WEFT_TRY(first, add_moment(parameter, name, "first"));
        WEFT_TRY(second, add_moment(parameter, name, "second"));
        const ops::AdamSettings settings{.lr = options_.learning_rate,
                                         .beta1 = options_.beta1,
                                         .beta2 = options_.beta2,
                                         .epsilon = options_.epsilon};
        WEFT_TRY(next, options_.optimizer == Optimizer::adam
                           ? ops::add_adam(graph_, parameter, gradient, first, second, step_, settings, rate_)
                           : ops::add_adamw(graph_, parameter, gradient, first, second, step_, settings,
                                            decay_of(parameter), rate_));
        WEFT_TRY_STATUS(put(name, parameter, next.weight));
        WEFT_TRY_STATUS(put(name + ".first", first, next.first));
        return put(name + ".second", second, next.second);
      }
    }
    return {};
  }

  double moment_bytes() const { return moment_bytes_; }

 private:
  Status take(std::string_view name, std::string_view who) {
    if (taken_.insert(std::string(name)).second) return {};
    return user_error(fmt::format("{} under the name {}, which is taken", who, name),
                      "give that tensor another name");
  }

  // How many steps Adam's moments have seen: its own count, since other things count other steps.
  Status count_steps() {
    if (step_.valid()) return {};
    WEFT_TRY_STATUS(take(kStepName, "the optimizer counts its steps"));
    WEFT_TRY(type, graph_.intern_type(DType::i64, {}));
    WEFT_TRY(step, ops::add_state(graph_, kStepName, type));
    WEFT_TRY(one, ops::add_constant(graph_, 1, DType::i64));
    WEFT_TRY(next, ops::add_pointwise(graph_, ops::add(), {step, one}));
    step_ = step;
    return put(std::string(kStepName), step, next);
  }

  double decay_of(ValueId parameter) const {
    return options_.decay_vectors || graph_.type(parameter).rank() > 1 ? options_.weight_decay : 0;
  }

  Result<ValueId> add_moment(ValueId parameter, std::string_view name, std::string_view which) {
    const std::string moment = fmt::format("{}.{}", name, which);
    WEFT_TRY_STATUS(take(moment, fmt::format("the optimizer keeps a moment of {}", name)));
    const plan::TypeId type = graph_.value(parameter).type;
    moment_bytes_ += static_cast<double>(graph_.type(type).bytes());
    return ops::add_state(graph_, moment, type);
  }

  // Whether this step's gradient completes a set.
  Status count_gradients() {
    constexpr std::string_view kCount = "accumulate.step";
    WEFT_TRY_STATUS(take(kCount, "accumulation counts its steps"));
    WEFT_TRY(type, graph_.intern_type(DType::i64, {}));
    WEFT_TRY(count, ops::add_state(graph_, kCount, type));
    ops::Formula f(graph_);
    const ValueId next = f(ops::add(), {count, f.number(1, count)});
    due_ = f(ops::equal(), {f(ops::mod(), {next, f.number(options_.accumulate, count)}), f.number(0, count)});
    WEFT_TRY_STATUS(f.status());
    graph_.add_output(graph_.symbol(fmt::format("next {}", kCount)), next);
    return {};
  }

  // What a source holds next; where updates come after several steps, what it held until then.
  Status put(const std::string& name, ValueId now, ValueId next) {
    if (due_.valid()) {
      WEFT_TRY(chosen, ops::add_pointwise(graph_, ops::select(), {due_, next, now}));
      next = chosen;
    }
    graph_.add_output(graph_.symbol("next " + name), next);
    return {};
  }

  plan::Graph& graph_;
  const TrainingOptions& options_;
  ValueId step_, rate_, due_;
  std::unordered_set<std::string> taken_;  // names of sources
  double moment_bytes_ = 0;
};

// Scales all gradients by one number, so that the norm of them together is `most` at most. Squares are summed
// in f32 at least: they leave the range of f16 soon.
Status clip_gradients(plan::Graph& graph, std::vector<ValueId>& gradients, double most) {
  constexpr double kLittle = 1e-6;  // keeps a norm of zero from dividing
  ops::Formula f(graph);
  const auto wide = [&](DType dtype) { return dtype == DType::f64 ? dtype : DType::f32; };
  DType dtype = DType::f32;
  for (const ValueId gradient : gradients)
    if (gradient.valid()) dtype = std::max(dtype, wide(graph.type(gradient).dtype));
  ValueId total;
  for (const ValueId gradient : gradients) {
    if (!gradient.valid()) continue;
    const ValueId g = f.cast(gradient, wide(graph.type(gradient).dtype));
    const ValueId squares = f.cast(f.keep([&] { return ops::add_contract(graph, {g, g}, {}); }), dtype);
    total = total.valid() ? f(ops::add(), {total, squares}) : squares;
  }
  if (!total.valid()) return f.status();
  const ValueId norm = f(ops::add(), {f(ops::sqrt(), {total}), f.number(kLittle, total)});
  const ValueId ratio = f(ops::div(), {f.number(most, total), norm});
  const ValueId scale = f(ops::minimum(), {ratio, f.number(1, total)});
  for (ValueId& gradient : gradients)
    if (gradient.valid()) gradient = f(ops::mul(), {gradient, f.cast(scale, graph.type(gradient).dtype)});
  return f.status();
}

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

std::string_view parameter_of_moment(std::string_view name) {
  for (const std::string_view which : {".momentum", ".first", ".second", ".gradients"})
    if (name.ends_with(which)) return name.substr(0, name.size() - which.size());
  return {};
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
  WEFT_TRY_STATUS(updater.prepare());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!gradients[i].valid()) continue;
    WEFT_TRY(mean, updater.accumulate(parameters[i], gradients[i]));
    gradients[i] = mean;
  }
  if (options.clip_norm > 0) WEFT_TRY_STATUS(clip_gradients(graph, gradients, options.clip_norm));
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
