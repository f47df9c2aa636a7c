// weft/planner/statement/knowledge.h -- what the planner uses besides the statement.
//
// Catalog, settings, hints, weights, and caches of proofs and plans. The state of a session is one
// of these plus what its statements store.
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

// A HINT that constrains the planner.
struct KeptHint {
  language::syntax::HintKind kind;
  std::string subject, tensor, axis;  // as in syntax::HintItem; tensor may be empty
  std::string text;                   // "SLICE b OF x ACROSS node", "TP 8 WITHIN node"
  std::int64_t degree = 0;            // of TP and the like; the axis may be empty
  bool within = false;                // within one unit of the axis, not along it
};

struct Knowledge {
  language::Catalog catalog;
  Settings settings;
  std::vector<KeptHint> hints;
  std::map<std::string, run::Weights> weights;  // by model
  // Cache of searched plans. A search changes nothing else.
  std::shared_ptr<search::KnownPlans> known_plans = std::make_shared<search::KnownPlans>();
  // Proven rules by text, with their guards; nothing if a rule was not proven.
  mutable std::map<std::string, std::optional<rule::Rule>> proven_rules;
  // Texts of proofs of plans, so that the same plan is not proven again (prove_plan.h).
  mutable std::map<Digest, std::string> proven;
  mutable Warnings warnings;
};

}  // namespace weft::planner
