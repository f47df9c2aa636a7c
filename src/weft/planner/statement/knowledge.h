// weft/planner/statement/knowledge.h -- what a planner knows before it is asked: models and clusters, settings and
// hints, weights, and what was proven or planned already.
//
// A session's state is one of these and what its statements keep besides.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/hash.h"
#include "weft/language/catalog.h"
#include "weft/planner/search/distribution/known_plans.h"
#include "weft/planner/settings/settings.h"
#include "weft/planner/statement/warnings.h"
#include "weft/rules/rule/rule.h"
#include "weft/runtime/run/weights.h"

namespace weft::planner {

// A HINT that the planner keeps to.
struct KeptHint {
  language::syntax::HintKind kind;
  std::string subject, tensor, axis;  // as syntax::HintItem; tensor may be empty
  std::string text;                   // "SLICE b OF x ACROSS node", "TP 8 WITHIN node"
  std::int64_t degree = 0;            // of TP and its like; the axis may be empty
  bool within = false;                // that axis, not along it
};

struct Knowledge {
  language::Catalog catalog;
  Settings settings;
  std::vector<KeptHint> hints;
  std::map<std::string, run::Weights> weights;  // what each model has learned
  // Plans for clusters that were searched for already; searching changes nothing else.
  std::shared_ptr<search::KnownPlans> known_plans = std::make_shared<search::KnownPlans>();
  // Rules that were proven, by their text, as they may fire: nothing where they may not.
  mutable std::map<std::string, std::optional<rule::Rule>> proven_rules;
  // What was said of plans that were proven, so that the same plan is not proven again (prove_plan.h).
  mutable std::map<Digest, std::string> proven;
  mutable Warnings warnings;
};

}  // namespace weft::planner
