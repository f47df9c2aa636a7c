// weft/planner/step/plan_step.h -- plan a statement, with or without stages.
//
//   distribution or micro_batches given    that plan, estimated as given
//   TRAIN on a cluster                     the faster of the best plans with and without stages
//   else                                   the best plan without stages
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "weft/planner/search/optimize.h"
#include "weft/planner/search/pipeline/choose_pipeline.h"
#include "weft/planner/statement/prepare.h"
#include "weft/planner/step/statement_pipeline.h"

namespace weft::planner {

// A step with stages or micro-batches, and the alternatives.
struct StagedStep {
  search::ChosenPipeline chosen;
  bool given = false;                  // by the user, including its mesh
  std::optional<search::Choice> plan;  // the plan itself, if it was needed to choose
  std::vector<search::Alternative> without_stages;
  std::vector<search::StageReport> reports;  // of the plan without stages if searched, then of this one
  Batch batch;
  std::unique_ptr<StatementPipeline> problem;  // used for the estimate
};

// Exactly one of the two is set.
struct PlannedStep {
  std::optional<search::Choice> whole;
  std::optional<StagedStep> staged;
};

// Whether launched ranks agree on the plan of rank 0. Then the call is collective.
enum class Agreement : std::uint8_t { none, ranks };

// `compare`: keeps alternatives. REQUIRES: state, context and prepared outlive the result.
Result<PlannedStep> plan_step(const Knowledge& state, const Observer* context, const Prepared& prepared,
                              bool compare, Agreement agreement = Agreement::none);

// The plan itself. A given distribution is not estimated.
Result<search::Choice> plan_to_run(const Knowledge& state, const Observer* context, const Prepared& prepared);

}  // namespace weft::planner
