// weft/session/plans.h -- `weft plan`: distributed plans, proven and shown.
//
//   prove   a statement or a script: the plan found for each TRAIN and INFER of it
//           a plan's text, as EXPLAIN (FORMAT plan) prints it: that very plan, changed by hand or not
//   show    a plan's text, each node with the layout of what it makes
//
// Nothing here prints.
#pragma once
#include <string>
#include <vector>

#include "weft/session/session.h"

namespace weft::session {

struct PlanProve {
  std::vector<std::string> what =
      {};                  // files or statements, proven in order; the first that is wrong ends it
  std::string model = {};  // a statement or a script: of what a text is the plan; empty: as it says
  std::string mesh = {};   // node=2, gpu=4; empty: as the text says
  Format format = Format::text;
};
Reply run(const PlanProve& request);

struct PlanShow {
  std::string file = {};
  std::string mesh = {};
};
Reply run(const PlanShow& request);

}  // namespace weft::session
