// weft/parallel/train/training_plan.h -- a plan that learns: forward, backward, update.
//
//   forward    the model's own nodes, up to the loss
//   backward   the gradient of the loss with respect to every parameter
//   update     one optimizer node a parameter; its results are the plan's outputs "next NAME"
//
// All three are nodes of one graph, appended in that order, and each knows its phase (plan/graph/when.h): whatever
// reads plans reads training.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/train/precision.h"
#include "weft/plan/graph/graph.h"

namespace weft::train {

enum class Optimizer : std::uint8_t { sgd, momentum, adam, adamw };

std::string_view name(Optimizer optimizer);
std::span<const std::string_view> optimizer_names();
std::optional<Optimizer> find_optimizer(std::string_view name);

struct TrainingOptions {
  Optimizer optimizer = Optimizer::adam;
  double learning_rate = 1e-3;
  double momentum = 0.9;                              // momentum
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;  // adam, adamw
  double weight_decay = 0.01;                         // adamw
  bool decay_vectors =
      true;              // whether it shrinks parameters of fewer than two indices: biases, gains of norms
  double clip_norm = 0;  // what the gradients' norm, of all of them together, may be at most; 0: anything
  // Parameters are renewed before that norm is known, as though it were small enough; where it is not, that is
  // taken back and done again with the clipped gradients. The same bits, for the memory of a second copy.
  bool post_validation = false;
  double accumulate = 1;     // steps whose gradients are averaged for one update
  bool scheduled = false;    // the learning rate is multiplied by the state kRateName, which the run writes
  Precision precision = {};  // what is kept in more bits than the model computes in
  plan::DType gradients = plan::DType::f32;  // of mixed precision: what they are summed in; else narrow
  double loss_scale = 65536;                 // of f16, at first
  double loss_scale_steps = 2000;            // steps without an overflow after which it doubles
};

// One of several losses, each with parameters and an optimizer of its own. All gradients are those of the
// weights that a step starts from: losses are descended on at once.
struct Goal {
  std::string loss;               // an output; empty: the first
  std::vector<std::string> over;  // parameters, layers that hold them, or patterns "d_*"; empty: all
  TrainingOptions options;
  double every = 1;  // steps from one update by this loss to the next
  Span span;         // where a statement says so
};

// The parameter that an optimizer keeps a moment of under this name: "w1" of "w1.first"; "" where it is none.
std::string_view parameter_of_moment(std::string_view name);

// The f32 weight that a narrow parameter is rounded from: "w1.master".
inline constexpr std::string_view kMasterSuffix = ".master";
// What the loss is multiplied by before its gradients are taken, and the good steps since it last changed.
inline constexpr std::string_view kLossScaleName = "loss_scale", kGoodStepsName = "loss_scale.good";
// Below it, scaling only takes precision away.
inline constexpr double kLeastLossScale = 1;

// The state that counts the steps which Adam's moments have seen.
inline constexpr std::string_view kStepName = "step";
// Whether a state counts steps so: "step", or "g_loss.step" of one of several losses.
bool counts_steps(std::string_view name);
// The state that a run writes before each step of a schedule.
inline constexpr std::string_view kRateName = "schedule.rate";

struct TrainingPlan {
  plan::Graph graph;

  // The forward results that the backward pass reads, in the order they are made: what a step must
  // keep from one to the other. Views count as what they view; inputs and parameters are kept anyway.
  std::vector<plan::ValueId> kept;

  // What the phases hold in memory, in bytes.
  double parameter_bytes = 0;
  double gradient_bytes = 0;
  double optimizer_bytes = 0;   // moments and master weights
  double activation_bytes = 0;  // of `kept`
};

// "18 (weight 2, gradient 4, master 4, moments 8)": bytes that a parameter in the type of the policy takes.
std::string print_parameter_bytes(const TrainingOptions& options);

// As TrainingPlan::kept, of any plan that learns.
std::vector<plan::ValueId> kept_values(const plan::Graph& graph);

// `forward` is a bound model in train mode. Fails when its first output is no scalar to descend on,
// or an operator on the way has no gradient.
Result<TrainingPlan> make_training_plan(plan::Graph forward, const TrainingOptions& options);

// The losses of `goals` become the first outputs, in this order. Fails also where a goal names what the model
// does not have, where two train one parameter, and where a loss depends on none of its own.
Result<TrainingPlan> make_training_plan_for(plan::Graph forward, std::span<const Goal> goals);

}  // namespace weft::train
