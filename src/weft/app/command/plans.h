// weft/app/command/plans.h -- `weft plan`: commands for distributed plans and resharding.
//
//   prove   a statement or a script: the plan found for each TRAIN and INFER in it
//           a plan's text from EXPLAIN (FORMAT plan): that exact plan, edited or not
//   price   a plan's text: the time of one step on a cluster, without a search
//   show    a plan's text: each node with the layout of its results
//   reshard a file of tensors to move between meshes: transfers, their time and its lower bound
//
// Nothing here prints.
#pragma once
#include <string>
#include <vector>

#include "weft/app/session/session.h"

namespace weft::command {

struct PlanProve {
  std::vector<std::string> what = {};  // files or statements, proven in order until one fails
  std::string model = {};  // the statement or script that a plan text belongs to; empty: from the text
  std::string mesh = {};   // node=2, gpu=4; empty: from the text
  session::Format format = session::Format::text;
  std::size_t width = SIZE_MAX;  // of lines that programs read as well
};
session::Reply run(const PlanProve& request);

struct PlanEstimate {
  std::string file = {};
  std::string cluster = {};  // pod, my.weft, LOCAL 4; empty: LOCAL, if the mesh consists of ranks
  std::string mesh = {};     // empty: from the text
  session::Format format = session::Format::text;
};
session::Reply run(const PlanEstimate& request);

struct PlanShow {
  std::string file = {};
  std::string mesh = {};
  session::Format format = session::Format::text;
};
session::Reply run(const PlanShow& request);

struct PlanReshard {
  std::string file = {};
  std::string name = {};       // show the transfers of this case; empty: one line per case
  std::string bandwidth = {};  // per host and direction; empty: 10 Gb/s
  session::Format format = session::Format::text;
};
session::Reply run(const PlanReshard& request);

}  // namespace weft::command
