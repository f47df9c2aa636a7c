#include "weft/predict/cost/uncertainty.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "weft/predict/cost/unit_seconds.h"

namespace weft::cost {
namespace {

// Of steps that Weft ran on a GPU, six models within 7 % of the prediction (docs/measurements/gpu.md).
constexpr double kOwnStepError = 0.07, kOwnMemoryError = 0.03;
// Data-sheet rates: 720 products measured on devices that are in the catalog by data sheet alone differ by 15 % at the
// 80th percentile from what their size makes of the peak. Fabrics differ more, but are a part of a step only.
constexpr double kDataSheetError = 0.15, kFabricError = 0.06;
// Mixtures of experts: the same recipe differs by up to twice between releases of one software (Megatron Bridge).
constexpr double kRoutingError = 0.4;

struct ErrorSource {
  double share;
  std::string what, measure;
};

Uncertainty combine(const std::vector<ErrorSource>& sources) {
  Uncertainty made;
  double squares = 0;
  for (const ErrorSource& source : sources) squares += source.share * source.share;
  made.share = std::sqrt(squares);
  if (const auto most = std::ranges::max_element(sources, {}, &ErrorSource::share); most != sources.end()) {
    made.least_known = most->what;
    made.measure = most->measure;
  }
  return made;
}

}  // namespace

Uncertainty step_uncertainty(const cluster::Cluster& cluster, bool has_experts) {
  const cluster::Stack& stack = cluster.stack;
  std::vector<ErrorSource> sources;
  sources.push_back({stack.step_error > 0 ? stack.step_error : kOwnStepError,
                     stack.is_weft() ? "kernels" : fmt::format("the software ({})", stack.name),
                     stack.is_weft() ? "EXPLAIN ANALYZE" : "weft validate with steps of your own"});
  if (!was_measured(cluster.device) && cluster.device.rates == nullptr)
    sources.push_back({kDataSheetError, fmt::format("rates of {}, from its data sheet", cluster.device.name),
                       "weft profile"});
  if (cluster.device.step_error > 0)
    sources.push_back({cluster.device.step_error, fmt::format("rates of {} in training", cluster.device.name),
                       "weft profile"});
  if (has_experts)
    sources.push_back({kRoutingError, "how evenly tokens are routed to experts", "weft improve --measured"});
  const bool across = cluster.axes.size() > 1 && cluster.axes.front().size > 1;
  if (across && stack.step_error == 0)
    sources.push_back({kFabricError, "links across nodes", "CREATE CLUSTER .. FROM nccl-tests logs"});
  return combine(sources);
}

Uncertainty memory_uncertainty(const cluster::Cluster& cluster) {
  const cluster::Stack& stack = cluster.stack;
  return combine({{stack.memory_error > 0 ? stack.memory_error : kOwnMemoryError,
                   stack.is_weft() ? "packing" : fmt::format("the software ({})", stack.name),
                   "weft validate with peaks of your own"}});
}

}  // namespace weft::cost
