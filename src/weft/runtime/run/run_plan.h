// weft/runtime/run/run_plan.h -- runs a plan once, or compares the outputs of two plans.
//
//   WEFT_TRY(agreement, compare_runs(model, optimized, {.seed = 1}));
//   if (agreement.largest() > 1e-4) ...        // relative to the largest number of that output
//
// Parameters and states start with their declared initial values, drawn from the seed and their
// names. Inputs are made up. Both plans get the same bits under the same name.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"
#include "weft/runtime/run/weights.h"

namespace weft::run {

struct PlanRunOptions {
  std::uint64_t seed = 0;
  int workers = 1;
  std::int64_t memory_limit = 0;  // bytes; 0: what the machine has
};

using Tensors = std::map<std::string, Tensor, std::less<>>;

struct PlanRun {
  Tensors outputs;
  double seconds = 0;  // of the step only
};

// Runs a plan once. `given` holds sources by name; others are made up.
Result<PlanRun> run_plan(const plan::Graph& graph, const Tensors& given = {},
                         const PlanRunOptions& options = {});

struct OutputAgreement {
  std::string output;
  double largest = 0;     // largest |a|
  double difference = 0;  // largest |a - b|; infinite if only one of them is NaN

  double relative() const { return difference == 0 ? 0 : difference / largest; }
};

struct Agreement {
  std::vector<OutputAgreement> outputs;
  double seconds_a = 0, seconds_b = 0;

  double largest() const;  // largest relative difference of any output
};

// Runs both on the same inputs. Fails if b needs a source that a lacks, or lacks an output of a, or
// has it with another shape.
Result<Agreement> compare_runs(const plan::Graph& a, const plan::Graph& b,
                               const PlanRunOptions& options = {});

}  // namespace weft::run
