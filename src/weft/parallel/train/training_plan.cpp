#include "weft/parallel/train/training_plan.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/base/nearest.h"
#include "weft/parallel/train/differentiate.h"
#include "weft/parallel/train/f8_products.h"
#include "weft/plan/ops/build.h"
#include "weft/plan/ops/formula.h"

namespace weft::train {
namespace {

using plan::DType;
using plan::NodeId;
using plan::Phase;
using plan::ValueId;

constexpr std::array<std::string_view, 4> kNames = {"sgd", "momentum", "adam", "adamw"};

class Updater {
 public:
  // Options that must be the same for all losses are taken from the first.
  Updater(plan::Graph& graph, std::span<const Goal> goals)
      : graph_(graph), goals_(goals), options_(goals.front().options) {
    for (std::size_t n = 0; n < graph.node_count(); ++n) {
      const plan::NodeView node = graph.view(NodeId(n));
      const bool named =
          &node.op() == &ops::input() || &node.op() == &ops::parameter() || &node.op() == &ops::state();
      if (named) taken_.insert(std::string(node.word(0)));
    }
  }

  // Before the first gradient: the loss scale, if the precision needs one.
  Result<ValueId> add_loss_scale() {
    if (!options_.precision.scales_loss) return ValueId();
    WEFT_TRY_STATUS(take(kLossScaleName, "mixed precision keeps the scale of the loss"));
    WEFT_TRY_STATUS(take(kGoodStepsName, "mixed precision counts its good steps"));
    WEFT_TRY(type, graph_.intern_type(DType::f32, {}));
    WEFT_TRY(count, graph_.intern_type(DType::i64, {}));
    WEFT_TRY(scale, ops::add_state(graph_, kLossScaleName, type, {"constant", options_.loss_scale}));
    WEFT_TRY(good, ops::add_state(graph_, kGoodStepsName, count));
    scale_ = scale;
    good_ = good;
    return scale;
  }

  // Before the first update: values that all updates read.
  Status prepare() {
    if (options_.accumulate > 1) {
      WEFT_TRY(due, is_each("accumulate.step", "accumulation counts its steps", options_.accumulate));
      complete_ = due;
    }
    if (!options_.scheduled) return {};
    WEFT_TRY_STATUS(take(kRateName, "the schedule keeps its rate"));
    WEFT_TRY(type, graph_.intern_type(DType::f32, {}));
    WEFT_TRY(rate, ops::add_state(graph_, kRateName, type, {"ones"}));
    rate_ = rate;
    return {};
  }

  // Switches to this loss.
  Status begin(const Goal& goal) {
    options_ = goal.options;
    step_ = {};
    step_name_ = goals_.size() == 1 ? std::string(kStepName) : fmt::format("{}.{}", goal.loss, kStepName);
    due_ = complete_and_finite_.valid() ? complete_and_finite_ : complete_;
    if (goal.every <= 1) return {};
    if (complete_.valid())
      return user_error("accumulate and every cannot be combined: both set when parameters change",
                        "remove one of them", goal.span);
    WEFT_TRY(due, is_each(fmt::format("{}.every", goal.loss), "a loss counts the steps between its updates",
                          goal.every));
    due_ = due;
    if (!finite_.valid()) return {};
    WEFT_TRY(both, ops::add_pointwise(graph_, ops::logical_and(), {due, finite_}));
    due_ = both;
    return {};
  }

  // The gradient as the optimizer reads it: in the type of the weight that it updates, and without
  // the loss scale.
  Result<ValueId> as_taken(ValueId gradient) {
    ops::Formula f(graph_);
    if (options_.precision.mixed) gradient = f.cast(gradient, wide(graph_.type(gradient).dtype));
    if (scale_.valid() && f.status().ok()) {
      if (!unscale_.valid()) unscale_ = f(ops::div(), {f.number(1, scale_), scale_});
      gradient = f(ops::mul(), {gradient, f.cast(unscale_, graph_.type(gradient).dtype)});
    }
    WEFT_TRY_STATUS(f.status());
    return gradient;
  }

  // If any gradient is not finite, a step changes nothing except the loss scale, which halves.
  // After enough good steps it doubles. `squares`: the sum of all squared gradients.
  Status judge(ValueId squares) {
    if (!scale_.valid() || !squares.valid()) return {};
    constexpr double kLargest = 3.4e38;  // of f32; comparisons with NaN are false
    ops::Formula f(graph_);
    const ValueId finite = f(ops::less(), {squares, f.number(kLargest, squares)});
    const ValueId next = f(ops::add(), {good_, f.number(1, good_)});
    const ValueId enough = f(ops::equal(), {f(ops::mod(), {next, f.number(options_.loss_scale_steps, good_)}),
                                            f.number(0, good_)});
    const ValueId twice = f(ops::mul(), {scale_, f.number(2, scale_)});
    const ValueId half = f(ops::mul(), {scale_, f.number(0.5, scale_)});
    ValueId scale = f(ops::select(), {finite, f(ops::select(), {enough, twice, scale_}), half});
    ValueId good =
        f(ops::select(), {finite, f(ops::select(), {enough, f.number(0, good_), next}), f.number(0, good_)});
    if (complete_.valid()) {
      scale = f(ops::select(), {complete_, scale, scale_});
      good = f(ops::select(), {complete_, good, good_});
    }
    const ValueId due = complete_.valid() ? f(ops::logical_and(), {complete_, finite}) : finite;
    WEFT_TRY_STATUS(f.status());
    graph_.add_update(kLossScaleName, scale);
    graph_.add_update(kGoodStepsName, good);
    finite_ = finite;
    complete_and_finite_ = due;
    return {};
  }

  // Adds the gradient to those of previous steps and returns their mean, which is used when an
  // update is due.
  Result<ValueId> accumulate(ValueId parameter, ValueId gradient) {
    if (!complete_.valid()) return gradient;
    const std::string name(graph_.view(graph_.value(parameter).producer).word(0));
    WEFT_TRY(sum, add_moment(gradient, name, "gradients"));
    ops::Formula f(graph_);
    const ValueId total = f(ops::add(), {sum, gradient});
    const ValueId mean = f(ops::mul(), {total, f.number(1 / options_.accumulate, total)});
    const ValueId rest = f(ops::select(), {complete_, f.number(0, total), total});
    WEFT_TRY_STATUS(f.status());
    graph_.add_update(name + ".gradients", rest);
    return mean;
  }

  // REQUIRES: the gradient comes from as_taken(). `stands`: selects the gradient instead of the
  // clipped one; invalid: always.
  Status update(ValueId parameter, ValueId gradient, ValueId clipped = {}, ValueId stands = {}) {
    const std::string name(graph_.view(graph_.value(parameter).producer).word(0));
    WEFT_TRY(weight, weight_of(parameter, name));
    UpdatedWeight now{weight, {}, {}};
    if (options_.optimizer == Optimizer::momentum) {
      WEFT_TRY(moment, add_moment(weight, name, "momentum"));
      now.first = moment;
    } else if (options_.optimizer != Optimizer::sgd) {
      WEFT_TRY_STATUS(count_steps());
      WEFT_TRY(first, add_moment(weight, name, "first"));
      WEFT_TRY(second, add_moment(weight, name, "second"));
      now.first = first, now.second = second;
    }
    WEFT_TRY(next, update_weight(parameter, gradient, now));
    if (stands.valid()) {
      WEFT_TRY(again, update_weight(parameter, clipped, now));
      ops::Formula f(graph_);
      for (ValueId UpdatedWeight::*which :
           {&UpdatedWeight::weight, &UpdatedWeight::first, &UpdatedWeight::second})
        if (now.*which != ValueId()) next.*which = f(ops::select(), {stands, next.*which, again.*which});
      WEFT_TRY_STATUS(f.status());
    }
    WEFT_TRY_STATUS(put_weight(name, parameter, weight, next.weight));
    if (options_.optimizer == Optimizer::momentum) return put(name + ".momentum", now.first, next.first);
    if (options_.optimizer == Optimizer::sgd) return {};
    WEFT_TRY_STATUS(put(name + ".first", now.first, next.first));
    return put(name + ".second", now.second, next.second);
  }

  double moment_bytes() const { return moment_bytes_; }

 private:
  // A weight and its moments: momentum has only the first, sgd none.
  struct UpdatedWeight {
    ValueId weight, first, second;
  };

  Result<UpdatedWeight> update_weight(ValueId parameter, ValueId gradient, const UpdatedWeight& now) {
    if (options_.optimizer == Optimizer::sgd) {
      WEFT_TRY(next, ops::add_sgd(graph_, now.weight, gradient, options_.learning_rate, rate_));
      return UpdatedWeight{next, {}, {}};
    }
    if (options_.optimizer == Optimizer::momentum) {
      WEFT_TRY(next, ops::add_momentum(graph_, now.weight, gradient, now.first, options_.learning_rate,
                                       options_.momentum, rate_));
      return UpdatedWeight{next.weight, next.momentum, {}};
    }
    const ops::AdamSettings settings{.lr = options_.learning_rate,
                                     .beta1 = options_.beta1,
                                     .beta2 = options_.beta2,
                                     .epsilon = options_.epsilon};
    WEFT_TRY(next,
             options_.optimizer == Optimizer::adam
                 ? ops::add_adam(graph_, now.weight, gradient, now.first, now.second, step_, settings, rate_)
                 : ops::add_adamw(graph_, now.weight, gradient, now.first, now.second, step_, settings,
                                  decay_of(parameter), rate_));
    return UpdatedWeight{next.weight, next.first, next.second};
  }

  Status take(std::string_view name, std::string_view who) {
    if (taken_.insert(std::string(name)).second) return {};
    return user_error(fmt::format("{} under the name {}, which is already used", who, name),
                      "give that tensor another name");
  }

  // The number of updates of Adam's moments; other counters count other steps.
  Status count_steps() {
    if (step_.valid()) return {};
    WEFT_TRY_STATUS(take(step_name_, "the optimizer counts its steps"));
    WEFT_TRY(type, graph_.intern_type(DType::i64, {}));
    WEFT_TRY(step, ops::add_state(graph_, step_name_, type));
    WEFT_TRY(one, ops::add_constant(graph_, 1, DType::i64));
    WEFT_TRY(next, ops::add_pointwise(graph_, ops::add(), {step, one}));
    step_ = step;
    return put(step_name_, step, next);
  }

  double decay_of(ValueId parameter) const {
    return options_.decay_vectors || graph_.type(parameter).rank() > 1 ? options_.weight_decay : 0;
  }

  // The weight that the optimizer updates: the master weight of a narrow parameter if there is one,
  // else the parameter.
  Result<ValueId> weight_of(ValueId parameter, const std::string& name) {
    const plan::Type type = graph_.type(parameter);
    if (!options_.precision.mixed || !is_narrow(type.dtype)) return parameter;
    const std::string master = name + std::string(kMasterSuffix);
    WEFT_TRY_STATUS(take(master, fmt::format("mixed precision keeps the master weight of {}", name)));
    WEFT_TRY(kept, graph_.intern_type(DType::f32, type.dims));
    moment_bytes_ += static_cast<double>(graph_.type(kept).bytes());
    const plan::NodeView source = graph_.view(graph_.value(parameter).producer);
    return ops::add_state(graph_, master, kept, {source.word(2), source.real(3), source.real(4)});
  }

  Status put_weight(const std::string& name, ValueId parameter, ValueId weight, ValueId next) {
    if (weight == parameter) return put(name, parameter, next);
    WEFT_TRY(chosen, chosen_of(weight, next));
    graph_.add_update(name + std::string(kMasterSuffix), chosen);
    WEFT_TRY(rounded, ops::add_cast(graph_, chosen, graph_.type(parameter).dtype));
    graph_.add_update(name, rounded);
    return {};
  }

  // `like` has the type of the moment.
  Result<ValueId> add_moment(ValueId like, std::string_view name, std::string_view which) {
    const std::string moment = fmt::format("{}.{}", name, which);
    WEFT_TRY_STATUS(take(moment, fmt::format("the optimizer keeps a moment of {}", name)));
    const plan::TypeId type = graph_.value(like).type;
    moment_bytes_ += static_cast<double>(graph_.type(type).bytes());
    return ops::add_state(graph_, moment, type);
  }

  // Whether this step is one of every `steps`, by a counter of its own.
  Result<ValueId> is_each(const std::string& name, std::string_view who, double steps) {
    WEFT_TRY_STATUS(take(name, who));
    WEFT_TRY(type, graph_.intern_type(DType::i64, {}));
    WEFT_TRY(count, ops::add_state(graph_, name, type));
    ops::Formula f(graph_);
    const ValueId next = f(ops::add(), {count, f.number(1, count)});
    const ValueId due = f(ops::equal(), {f(ops::mod(), {next, f.number(steps, count)}), f.number(0, count)});
    WEFT_TRY_STATUS(f.status());
    graph_.add_update(name, next);
    return due;
  }

  // Sets the next value of a source. With gradient accumulation it keeps its value until an update
  // is due.
  Status put(const std::string& name, ValueId now, ValueId next) {
    WEFT_TRY(chosen, chosen_of(now, next));
    graph_.add_update(name, chosen);
    return {};
  }

  Result<ValueId> chosen_of(ValueId now, ValueId next) {
    if (!due_.valid()) return next;
    return ops::add_pointwise(graph_, ops::select(), {due_, next, now});
  }

  plan::Graph& graph_;
  std::span<const Goal> goals_;
  TrainingOptions options_;
  std::string step_name_;
  ValueId step_, rate_;
  ValueId complete_;                       // whether all accumulated gradients are there; invalid: always
  ValueId due_;                            // whether parameters change in this step; invalid: always
  ValueId scale_, good_, unscale_;         // loss scaling; invalid: none
  ValueId finite_, complete_and_finite_;   // whether gradients are finite; invalid: not checked
  std::unordered_set<std::string> taken_;  // names of sources
  double moment_bytes_ = 0;
};

// The sum of squares of all gradients, at least in f32: squares soon overflow f16. Invalid if there
// are none.
Result<ValueId> sum_of_squares(plan::Graph& graph, std::span<const ValueId> gradients) {
  ops::Formula f(graph);
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
  WEFT_TRY_STATUS(f.status());
  return total;
}

// Scales all gradients by one factor so that their global norm is at most `most`. Returns the
// factor.
Result<ValueId> clip_gradients(plan::Graph& graph, std::vector<ValueId>& gradients, ValueId total,
                               double most) {
  constexpr double kLittle = 1e-6;  // avoids division by zero
  if (!total.valid()) return ValueId();
  ops::Formula f(graph);
  const ValueId norm = f(ops::add(), {f(ops::sqrt(), {total}), f.number(kLittle, total)});
  const ValueId ratio = f(ops::div(), {f.number(most, total), norm});
  const ValueId scale = f(ops::minimum(), {ratio, f.number(1, total)});
  for (ValueId& gradient : gradients)
    if (gradient.valid()) gradient = f(ops::mul(), {gradient, f.cast(scale, graph.type(gradient).dtype)});
  WEFT_TRY_STATUS(f.status());
  return scale;
}

// Widens gradients that are summed in f32 before ranks and micro-batches add theirs. A gradient
// that one product computes has been rounded once by then.
Status widen_gradients(plan::Graph& graph, std::vector<ValueId>& gradients) {
  for (ValueId& gradient : gradients) {
    if (!gradient.valid()) continue;
    const plan::Node& maker = graph.node(graph.value(gradient).producer);
    graph.set_label(maker.label);
    graph.set_scope(maker.scope);
    graph.set_when({.phase = Phase::backward});
    WEFT_TRY(cast, ops::add_cast(graph, gradient, wide(graph.type(gradient).dtype)));
    gradient = cast;
  }
  graph.set_label({});
  graph.set_scope({});
  graph.set_when({});
  return {};
}

// "d_*" matches all names with prefix d_; a name matches itself and everything in it: "gen" matches
// "gen.w1".
bool fits(std::string_view pattern, std::string_view name) {
  if (pattern.ends_with('*')) return name.starts_with(pattern.substr(0, pattern.size() - 1));
  return name == pattern || (name.starts_with(pattern) && name[pattern.size()] == '.');
}

std::string names_of(const plan::Graph& graph, std::span<const ValueId> parameters) {
  constexpr std::size_t kShown = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(parameters.size(), kShown); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", graph.view(graph.value(parameters[i]).producer).word(0));
  return text + (parameters.size() > kShown ? ", ..." : "");
}

// A goal after name resolution: the loss value, and the parameters that it trains.
struct Descent {
  const Goal* goal = nullptr;
  plan::Output loss;
  std::vector<ValueId> parameters, gradients;
};

Result<plan::Output> find_loss(const plan::Graph& graph, const Goal& goal) {
  if (graph.outputs().empty())
    return user_error(fmt::format("model {} has no output to train on", graph.name));
  plan::Output loss = graph.outputs().front();
  if (!goal.loss.empty()) {
    std::vector<std::string_view> names;
    bool known = false;
    for (const plan::Output& output : graph.outputs()) {
      if (output.updates.valid()) continue;
      const std::string_view name = graph.text(output.name);
      names.push_back(name);
      if (name != goal.loss) continue;
      loss = output;
      known = true;
    }
    std::string hint = did_you_mean(goal.loss, names);
    if (hint.empty()) hint = fmt::format("its outputs are {}", fmt::join(names, ", "));
    if (!known)
      return user_error(fmt::format("{} has no output {}", graph.name, goal.loss), std::move(hint),
                        goal.span);
  }
  const plan::Type type = graph.type(loss.value);
  if (type.rank() == 0 && plan::is_real(type.dtype)) return loss;
  return user_error(
      goal.loss.empty()
          ? fmt::format("training needs a loss, one real number; the first output of {} is {} {}", graph.name,
                        graph.text(loss.name), print(type, graph.symbols()))
          : fmt::format("a loss is one real number, and {} is {}", goal.loss, print(type, graph.symbols())),
      goal.loss.empty() ? "start the model's last SELECT with the loss: SELECT mean(...) AS loss"
                        : "reduce it with mean or sum",
      goal.span);
}

// The parameters that a goal names. Each may belong to one goal only.
Result<std::vector<ValueId>> pick_parameters(const plan::Graph& graph, const Goal& goal,
                                             std::span<const ValueId> all,
                                             std::unordered_map<std::uint32_t, const Goal*>& taken) {
  const auto name_of = [&](ValueId parameter) { return graph.view(graph.value(parameter).producer).word(0); };
  for (const std::string& pattern : goal.over)
    if (std::ranges::none_of(all, [&](ValueId parameter) { return fits(pattern, name_of(parameter)); }))
      return user_error(fmt::format("{} has no parameter {}", graph.name, pattern),
                        fmt::format("its parameters are {}; \"d_*\" matches all names that begin with d_",
                                    names_of(graph, all)),
                        goal.span);
  std::vector<ValueId> picked;
  for (const ValueId parameter : all) {
    const bool named = goal.over.empty() || std::ranges::any_of(goal.over, [&](const std::string& pattern) {
                         return fits(pattern, name_of(parameter));
                       });
    if (!named) continue;
    const auto [found, fresh] = taken.try_emplace(parameter.value, &goal);
    if (!fresh)
      return user_error(
          fmt::format("{} is trained by {} and by {}", name_of(parameter), found->second->loss, goal.loss),
          "use OVER (...) to choose which loss trains which parameters", goal.span);
    picked.push_back(parameter);
  }
  return picked;
}

void put_losses_first(plan::Graph& graph, std::span<const Descent> descents) {
  const std::vector<plan::Output> before(graph.outputs().begin(), graph.outputs().end());
  graph.clear_outputs();
  for (const Descent& descent : descents) graph.add_output(descent.loss, descent.loss.value);
  for (const plan::Output& output : before)
    if (std::ranges::none_of(descents, [&](const Descent& of) { return of.loss.name == output.name; }))
      graph.add_output(output, output.value);
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
  for (const std::string_view which :
       {std::string_view(".momentum"), std::string_view(".first"), std::string_view(".second"),
        std::string_view(".gradients"), kMasterSuffix})
    if (name.ends_with(which)) return name.substr(0, name.size() - which.size());
  return {};
}

std::string print_parameter_bytes(const TrainingOptions& options) {
  const Precision& precision = options.precision;
  const std::int64_t weight = plan::size_in_bytes(precision.compute);
  const std::int64_t kept = plan::size_in_bytes(precision.mixed ? DType::f32 : precision.compute);
  const std::int64_t gradient =
      precision.mixed && !is_narrow(options.gradients) ? plan::size_in_bytes(DType::f32) : weight;
  const std::int64_t moments = options.optimizer == Optimizer::sgd        ? 0
                               : options.optimizer == Optimizer::momentum ? kept
                                                                          : 2 * kept;
  const std::int64_t master = precision.mixed ? kept : 0;
  std::string text = fmt::format("weight {}, gradient {}", weight, gradient);
  if (master > 0) text += fmt::format(", master {}", master);
  if (moments > 0) text += fmt::format(", moments {}", moments);
  return fmt::format("{} ({})", weight + gradient + master + moments, text);
}

std::string_view name(Optimizer optimizer) { return kNames[static_cast<std::size_t>(optimizer)]; }
std::span<const std::string_view> optimizer_names() { return kNames; }

std::optional<Optimizer> find_optimizer(std::string_view text) {
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == text) return static_cast<Optimizer>(i);
  return std::nullopt;
}

bool counts_steps(std::string_view name) {
  return name == kStepName || (name.size() > kStepName.size() && name.ends_with(kStepName) &&
                               name[name.size() - kStepName.size() - 1] == '.');
}

Result<TrainingPlan> make_training_plan(plan::Graph forward, const TrainingOptions& options) {
  const Goal whole{.loss = {}, .over = {}, .options = options, .every = 1, .span = {}};
  return make_training_plan_for(std::move(forward), {&whole, 1});
}

Result<TrainingPlan> make_training_plan_for(plan::Graph forward, std::span<const Goal> goals) {
  TrainingPlan made;
  made.graph = std::move(forward);
  plan::Graph& graph = made.graph;
  std::vector<Descent> descents;
  for (const Goal& goal : goals) {
    WEFT_TRY(loss, find_loss(graph, goal));
    if (std::ranges::any_of(descents, [&](const Descent& of) { return of.loss.name == loss.name; }))
      return user_error(fmt::format("{} is to be minimized twice", goal.loss), "name it once, OVER all",
                        goal.span);
    descents.push_back({&goal, loss, {}, {}});
  }

  std::vector<ValueId> parameters;
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    if (graph.node(NodeId(n)).op != &ops::parameter()) continue;
    parameters.push_back(graph.result(NodeId(n)));
    made.parameter_bytes += static_cast<double>(graph.type(parameters.back()).bytes());
  }
  if (parameters.empty()) return user_error(fmt::format("model {} has no parameters to train", graph.name));
  std::unordered_map<std::uint32_t, const Goal*> taken;
  for (Descent& descent : descents) {
    WEFT_TRY(picked, pick_parameters(graph, *descent.goal, parameters, taken));
    descent.parameters = std::move(picked);
  }
  if (!goals.front().loss.empty()) put_losses_first(graph, descents);
  const TrainingOptions& options = goals.front().options;
  const bool sums_wide = options.precision.mixed && !is_narrow(options.gradients);
  Updater updater(graph, goals);
  WEFT_TRY(scale, updater.add_loss_scale());
  for (Descent& descent : descents) {
    WEFT_TRY(gradients, differentiate(graph, descent.loss.value, descent.parameters, scale));
    descent.gradients = std::move(gradients);
    if (!descent.goal->loss.empty() && std::ranges::none_of(descent.gradients, &ValueId::valid))
      return user_error(fmt::format("{} does not depend on any parameter that it trains: {}",
                                    descent.goal->loss, names_of(graph, descent.parameters)),
                        "use OVER (...) to name the parameters that it depends on", descent.goal->span);
    if (sums_wide) WEFT_TRY_STATUS(widen_gradients(graph, descent.gradients));
    for (std::size_t i = 0; i < descent.gradients.size(); ++i)
      made.gradient_bytes += static_cast<double>(
          graph.type(descent.gradients[i].valid() ? descent.gradients[i] : descent.parameters[i]).bytes());
  }
  graph.set_label({});
  graph.set_scope({});
  graph.set_when({.phase = Phase::update});
  WEFT_TRY_STATUS(updater.prepare());
  std::vector<ValueId> all;
  for (Descent& descent : descents)
    for (std::size_t i = 0; i < descent.parameters.size(); ++i) {
      ValueId& gradient = descent.gradients[i];
      if (!gradient.valid()) continue;
      WEFT_TRY(taken_so, updater.as_taken(gradient));
      WEFT_TRY(mean, updater.accumulate(descent.parameters[i], taken_so));
      gradient = mean;
      all.push_back(mean);
    }
  if (scale.valid()) {
    WEFT_TRY(squares, sum_of_squares(graph, all));
    WEFT_TRY_STATUS(updater.judge(squares));
  }
  for (Descent& descent : descents) {
    const std::vector<ValueId>& wanted = descent.parameters;
    const std::vector<ValueId>& gradients = descent.gradients;
    std::vector<ValueId> clipped = gradients;
    ValueId stands;  // whether the unclipped update may stay; invalid: always
    WEFT_TRY_STATUS(updater.begin(*descent.goal));
    if (const double most = descent.goal->options.clip_norm; most > 0) {
      WEFT_TRY(squares, sum_of_squares(graph, gradients));
      WEFT_TRY(scale_of_all, clip_gradients(graph, clipped, squares, most));
      if (descent.goal->options.post_validation && scale_of_all.valid()) {
        // With factor one, the clipped gradient equals the gradient bit for bit; with NaN the
        // update does not stand.
        ops::Formula f(graph);
        stands = f(ops::equal(), {scale_of_all, f.number(1, scale_of_all)});
        WEFT_TRY_STATUS(f.status());
      }
    }
    for (std::size_t i = 0; i < wanted.size(); ++i)
      // A parameter that the loss does not depend on has no gradient and does not change.
      if (gradients[i].valid())
        WEFT_TRY_STATUS(stands.valid() ? updater.update(wanted[i], gradients[i], clipped[i], stands)
                                       : updater.update(wanted[i], clipped[i]));
  }
  graph.set_when({});
  made.optimizer_bytes = updater.moment_bytes();
  if (options.precision.mixed) {
    WEFT_TRY(again, with_repeated_widening(graph));
    graph = std::move(again);
  }
  if (options.precision.f8_products) {
    WEFT_TRY(in_f8, with_f8_products(graph));
    graph = std::move(in_f8);
  }
  made.kept = kept_values(graph);
  for (const ValueId value : made.kept)
    made.activation_bytes += static_cast<double>(graph.type(value).bytes());
  return made;
}

}  // namespace weft::train
