// weft/planner/step/plan_step.h -- the plan of a statement, with stages or without: what EXPLAIN shows, TRAIN runs and
// `weft plan prove` proves.
//
//   distribution or micro_batches given    that plan, estimated as it is
//   TRAIN on a cluster                     the faster of the best plan without stages and the best with stages
//   else                                   the best plan without stages
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "weft/planner/search/optimize.h"
#include "weft/planner/search/pipeline/choose_in_time.h"
#include "weft/planner/statement/prepare.h"
#include "weft/planner/step/time_problem.h"

namespace weft::planner {

// A step in stages or micro-batches, and what it was chosen over.
struct StagedStep {
  search::ChosenInTime chosen;
  bool given = false;                  // with its mesh, by the user
  std::optional<search::Choice> plan;  // the plan itself, where choosing it needed it
  std::vector<search::Alternative> without_stages;
  std::vector<search::StageReport>
      reports;  // of the plan without stages where one was searched, then of this one
  Batch batch;
  std::unique_ptr<TimeProblem> problem;  // what it was estimated by
};

// One of the two.
struct PlannedStep {
  std::optional<search::Choice> whole;
  std::optional<StagedStep> staged;
};

// Whether launched ranks agree on the plan of rank 0: then each of them must call as often.
enum class Agreement : std::uint8_t { none, ranks };

// `compare`: alternatives are kept, to be shown. REQUIRES: state, context and prepared outlive the result.
Result<PlannedStep> plan_step(const Knowledge& state, const Observer* context, const Prepared& prepared,
                              bool compare, Agreement agreement = Agreement::none);

// The plan itself. A distribution that is given is not estimated.
Result<search::Choice> plan_to_run(const Knowledge& state, const Observer* context, const Prepared& prepared);

}  // namespace weft::planner
