#include "weft/translate/recipe/anchor.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "weft/base/units.h"
#include "weft/translate/recipe/fit_factors.h"

namespace weft::recipe {
namespace {

using cluster::Stack;

// A normal distribution has 80 % within so many standard deviations.
constexpr double kDeviationsOf80 = 1.2816;
// Steps of one plan on one cluster, run again: the median over 79 plans of NVIDIA's recipes in several releases.
constexpr double kMeasurementError = 0.02;
// Assumed, not fitted: the share between series differs from table to table (weft validate --anchor).
constexpr double kCommonShare = 0.5;

struct FactorKind {
  std::string_view what;
  double unknown;
  void (*apply)(Stack& stack, double factor);
};

// Collectives differ more between clusters than kernels: fabrics of one data sheet reach 6 to 45 GB/s.
constexpr FactorKind kTimeFactors[] = {
    {"kernels", 1,
     [](Stack& stack, double factor) {
       for (double Stack::*const share : {&Stack::products, &Stack::attention, &Stack::attention_gradient})
         stack.*share /= factor;
       for (double Stack::*const bytes : {&Stack::elementwise, &Stack::optimizer, &Stack::quantize})
         stack.*bytes *= factor;
     }},
    {"host", 1,
     [](Stack& stack, double factor) {
       for (double Stack::*const seconds :
            {&Stack::host_layer, &Stack::host_layer_staged, &Stack::host_layer_staged_rank, &Stack::host_pass,
             &Stack::host_step})
         stack.*seconds *= factor;
     }},
    {"collectives", 2, [](Stack& stack, double factor) { stack.collectives *= factor; }},
};
// Parameters and optimizer states are certain; gradients may be kept twice, in two precisions.
constexpr FactorKind kMemoryFactors[] = {
    {"activations", 1, [](Stack& stack, double factor) { stack.kept *= factor; }},
    {"gradients", 0.5, [](Stack& stack, double factor) { stack.gradients *= factor; }},
};

struct MeasuredKind {
  std::string_view what;
  std::string (*print)(double value);
  double StepValues::*value;
  std::span<const FactorKind> factors;
};
constexpr MeasuredKind kStep = {"step", print_seconds, &StepValues::seconds, kTimeFactors};
constexpr MeasuredKind kMemory = {"peak of memory", print_bytes, &StepValues::peak_bytes, kMemoryFactors};

Stack with_factors(const MeasuredKind& kind, Stack stack, std::span<const double> factors) {
  for (std::size_t i = 0; i < factors.size(); ++i) kind.factors[i].apply(stack, factors[i]);
  return stack;
}

Status check_measured(const MeasuredKind& kind, const StepValues& measured, const StepValues& predicted) {
  const double value = measured.*kind.value, expected = predicted.*kind.value;
  const double ratio = value / expected;
  if (ratio >= kLeastFactor && ratio <= kMostFactor) return {};
  return user_error(
      fmt::format("a measured {} must be within {} to {} times the predicted {}, found {}", kind.what,
                  kLeastFactor, kMostFactor, kind.print(expected), kind.print(value)),
      "measure this configuration: same model, batch, sequence, devices and precision");
}

class Anchoring {
 public:
  explicit Anchoring(const AnchorProblem& problem) : problem_(problem) {}

  Result<Anchor> run() {
    for (const MeasuredKind* const kind : {&kStep, &kMemory})
      for (const StepValues& measured : problem_.measured)
        if (!std::isfinite(measured.*kind->value) || measured.*kind->value < 0)
          return user_error(fmt::format("a measured {} must be a positive number, found {}", kind->what,
                                        measured.*kind->value));
    WEFT_TRY(before, predict(problem_.stack));
    made_.before = std::move(before);
    for (std::size_t m = 0; m < problem_.measured.size(); ++m)
      for (const MeasuredKind* const kind : {&kStep, &kMemory})
        if (problem_.measured[m].*kind->value > 0)
          WEFT_TRY_STATUS(check_measured(*kind, problem_.measured[m], made_.before[m]));
    made_.stack = problem_.stack;
    if (!made_.stack.name.ends_with(kSuffix)) made_.stack.name += kSuffix;
    WEFT_TRY(step, fit(kStep, problem_.step_error, problem_.device_error));
    if (step) made_.stack.step_error = *step;
    WEFT_TRY(memory, fit(kMemory, problem_.memory_error, 0));
    if (memory) made_.stack.memory_error = *memory;
    if (!step && !memory)
      return user_error("expected a measured step or peak of memory, found neither",
                        "step=1.31s, memory=61GiB");
    WEFT_TRY(after, predict(made_.stack));
    made_.after = std::move(after);
    return std::move(made_);
  }

 private:
  static constexpr std::string_view kSuffix = "_anchored";

  // Applies the factors that the measured values of this kind call for. The error that remains; empty if there are
  // none.
  Result<std::optional<double>> fit(const MeasuredKind& kind, double error, double device_error) {
    std::vector<std::size_t> rows;
    FactorProblem factors;
    for (std::size_t m = 0; m < problem_.measured.size(); ++m)
      if (const double value = problem_.measured[m].*kind.value; value > 0) {
        rows.push_back(m);
        factors.measured.push_back(value);
      }
    if (rows.empty()) return std::optional<double>();
    for (const FactorKind& factor : kind.factors) factors.unknown.push_back(factor.unknown);
    const double own = error / kDeviationsOf80, device = device_error / kDeviationsOf80;
    const double of_plan = std::sqrt(1 - kCommonShare) * own;
    factors.common = std::hypot(std::sqrt(kCommonShare) * own, device);
    factors.scatter = std::hypot(of_plan, kMeasurementError);
    factors.predict = [&](std::span<const double> tried) -> Result<std::vector<double>> {
      WEFT_TRY(all, predict(with_factors(kind, made_.stack, tried)));
      std::vector<double> predicted;
      for (const std::size_t row : rows) predicted.push_back(all[row].*kind.value);
      return predicted;
    };
    WEFT_TRY(fitted, fit_factors(factors));
    made_.stack = with_factors(kind, std::move(made_.stack), fitted.factors);
    for (std::size_t i = 0; i < kind.factors.size(); ++i)
      made_.factors.push_back({kind.factors[i].what, fitted.factors[i]});
    return std::optional(kDeviationsOf80 * std::hypot(of_plan, fitted.common));
  }

  // A prediction takes a while, and some stacks come twice.
  Result<std::vector<StepValues>> predict(const Stack& stack) {
    Stack constants = stack;
    constants.version.clear();
    if (!stack.is_weft()) constants.name.clear();
    constants.step_error = constants.memory_error = 0;
    Hasher hasher;
    cluster::add_to(hasher, constants);
    const auto digest = hasher.digest();
    const auto found = std::ranges::find(known_, digest, &Known::digest);
    if (found != known_.end()) return found->values;
    WEFT_TRY(values, problem_.predict(stack));
    WEFT_CHECK(values.size() == problem_.measured.size());
    known_.push_back({digest, values});
    return values;
  }

  struct Known {
    Digest digest;
    std::vector<StepValues> values;
  };

  const AnchorProblem& problem_;
  Anchor made_;
  std::vector<Known> known_;
};

// Exact to six digits, in the unit that CREATE STACK expects.
std::string print_field(const cluster::StackField& field, double value) {
  switch (field.dimension) {
    case Dimension::seconds: return value == 0 ? "0" : fmt::format("{:.6g} ms", 1e3 * value);
    case Dimension::bytes: return value == 0 ? "0" : fmt::format("{:.6g} MiB", value / (1 << 20));
    default: return fmt::format("{:.6g}", value);
  }
}

}  // namespace

Result<Anchor> anchor(const AnchorProblem& problem) { return Anchoring(problem).run(); }

std::string print_create(const Stack& stack) {
  const Stack usual;
  std::string fields;
  for (const cluster::StackField& field : cluster::stack_fields())
    if (const double value = stack.*field.field; value != usual.*field.field)
      fields +=
          fmt::format("{}\n  {} = {}", fields.empty() ? "" : ",", field.name, print_field(field, value));
  const std::string version = stack.version.empty() ? "" : fmt::format(" VERSION '{}'", stack.version);
  return fmt::format("CREATE STACK {}{} ({});\n", stack.name, version, fields);
}

}  // namespace weft::recipe
