// weft/app/command/plans.h -- `weft plan`: distributed plans, proven, priced and shown; reshards.
//
//   prove   a statement or a script: the plan found for each TRAIN and INFER of it
//           a plan's text, as EXPLAIN (FORMAT plan) prints it: that very plan, changed by hand or not
//   price   a plan's text: what a step of it takes on a cluster, without a search
//   show    a plan's text, each node with the layout of what it makes
//   reshard a file of tensors that go from mesh to mesh: the moves, their time and its lower bound
//
// Nothing here prints.
#pragma once
#include <string>
#include <vector>

#include "weft/app/session/session.h"

namespace weft::command {

struct PlanProve {
  std::vector<std::string> what =
      {};                  // files or statements, proven in order; the first that is wrong ends it
  std::string model = {};  // a statement or a script: of what a text is the plan; empty: as it says
  std::string mesh = {};   // node=2, gpu=4; empty: as the text says
  session::Format format = session::Format::text;
};
session::Reply run(const PlanProve& request);

struct PlanPrice {
  std::string file = {};
  std::string cluster = {};  // pod, my.weft, LOCAL 4; empty: LOCAL, where the mesh is one of ranks
  std::string mesh = {};     // empty: as the text says
  session::Format format = session::Format::text;
};
session::Reply run(const PlanPrice& request);

struct PlanShow {
  std::string file = {};
  std::string mesh = {};
  session::Format format = session::Format::text;
};
session::Reply run(const PlanShow& request);

struct PlanReshard {
  std::string file = {};
  std::string name = {};       // of the case whose moves are wanted; empty: a line for each
  std::string bandwidth = {};  // of a host, each way; empty: 10 Gb/s
  session::Format format = session::Format::text;
};
session::Reply run(const PlanReshard& request);

}  // namespace weft::command
