// weft/parallel/train/training_plan.h -- training plans: forward, backward, update.
//
//   forward    the model's own nodes, up to the loss
//   backward   the gradient of the loss with respect to every parameter
//   update     one optimizer node per parameter; its results are the plan's outputs "next NAME"
//
// All three are nodes of one graph, appended in that order, and each knows its phase
// (plan/graph/when.h). So any code that reads plans also reads training plans.
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
  bool decay_vectors = true;  // whether weight decay applies to biases and norm gains: fewer than two indices
  double clip_norm = 0;       // limit on the global norm of all gradients; 0: none
  // Updates parameters before the norm is known, as if it were small enough. Otherwise the update
  // is undone and repeated with the clipped gradients. Bitwise identical results, at the cost of a
  // second copy in memory.
  bool post_validation = false;
  double accumulate = 1;     // gradient accumulation: steps averaged per update
  bool scheduled = false;    // multiply the learning rate by the state kRateName, set by the run
  Precision precision = {};  // policy of types
  plan::DType gradients = plan::DType::f32;  // with mixed precision: type of gradient sums
  double loss_scale = 65536;                 // initial scale for f16
  double loss_scale_steps = 2000;            // steps without overflow until it doubles
};

// One of several losses, each with its own parameters and optimizer. All gradients are taken at the
// weights at the start of the step: the losses are optimized simultaneously.
struct Goal {
  std::string loss;               // an output; empty: the first
  std::vector<std::string> over;  // parameters, layers that contain them, or patterns "d_*"; empty: all
  TrainingOptions options;
  double every = 1;  // steps between updates by this loss
  Span span;         // its position in the statement
};

// The parameter that a moment of this name belongs to: "w1" for "w1.first"; "" if it is not a
// moment.
std::string_view parameter_of_moment(std::string_view name);

// The f32 weight that a narrow parameter is rounded from: "w1.master".
inline constexpr std::string_view kMasterSuffix = ".master";
// The loss scale, and the number of good steps since it last changed.
inline constexpr std::string_view kLossScaleName = "loss_scale", kGoodStepsName = "loss_scale.good";
// A smaller scale would only lose precision.
inline constexpr double kLeastLossScale = 1;

// The state that counts Adam's update steps.
inline constexpr std::string_view kStepName = "step";
// Whether the state is such a counter: "step", or "g_loss.step" with several losses.
bool counts_steps(std::string_view name);
// The state that a run sets before each step of a learning rate schedule.
inline constexpr std::string_view kRateName = "schedule.rate";

struct TrainingPlan {
  plan::Graph graph;

  // The forward results that the backward pass reads, in order of computation. Views count as what
  // they view. Inputs and parameters are excluded, as they are held anyway.
  std::vector<plan::ValueId> kept;

  // Memory of the phases in bytes.
  double parameter_bytes = 0;
  double gradient_bytes = 0;
  double optimizer_bytes = 0;   // moments and master weights
  double activation_bytes = 0;  // of `kept`
};

// "18 (weight 2, gradient 4, master 4, moments 8)": bytes per parameter in the policy's type.
std::string print_parameter_bytes(const TrainingOptions& options);

// TrainingPlan::kept for any training plan.
std::vector<plan::ValueId> kept_values(const plan::Graph& graph);

// `forward` is a bound model in train mode. Fails if its first output is not a scalar loss, or an
// operator has no gradient.
Result<TrainingPlan> make_training_plan(plan::Graph forward, const TrainingOptions& options);

// The losses of `goals` become the first outputs, in this order. Also fails if a goal names
// something that the model does not have, if two goals train the same parameter, and if a loss
// depends on none of its parameters.
Result<TrainingPlan> make_training_plan_for(plan::Graph forward, std::span<const Goal> goals);

}  // namespace weft::train
