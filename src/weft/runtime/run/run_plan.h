// weft/runtime/run/run_plan.h -- a plan run once, and two plans compared by their numbers.
//
//   WEFT_TRY(agreement, compare_runs(model, optimized, {.seed = 1}));
//   if (agreement.largest() > 1e-4) ...        // of the largest number of that output
//
// Parameters and states start as their plan says, drawn from the seed and their names alone, and
// inputs are made up; both plans get the same bits under the same name.
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
  std::int64_t memory_limit = 0;  // bytes; 0: what the machine gives
};

using Tensors = std::map<std::string, Tensor, std::less<>>;

struct PlanRun {
  Tensors outputs;
  double seconds = 0;  // of the step alone
};

// Runs a plan once. `given` holds sources by name; those it lacks are made up.
Result<PlanRun> run_plan(const plan::Graph& graph, const Tensors& given = {},
                         const PlanRunOptions& options = {});

struct OutputAgreement {
  std::string output;
  double largest = 0;     // |a|
  double difference = 0;  // the largest |a - b|; infinite where one is no number and the other is

  double relative() const { return difference == 0 ? 0 : difference / largest; }
};

struct Agreement {
  std::vector<OutputAgreement> outputs;
  double seconds_a = 0, seconds_b = 0;

  double largest() const;  // the relative difference of the output that differs most
};

// Runs both on the same numbers. Fails when b asks for a source or lacks an output that a has, or has
// one of another shape.
Result<Agreement> compare_runs(const plan::Graph& a, const plan::Graph& b,
                               const PlanRunOptions& options = {});

}  // namespace weft::run
