// weft/app/session/explain_distributed.h -- EXPLAIN of a plan for more than one device.
//
// Included by app/session and app/command only.
#pragma once
#include "weft/app/explain/distributed.h"
#include "weft/app/explain/explanation.h"
#include "weft/app/session/state.h"
#include "weft/planner/statement/prepare.h"

namespace weft::session {

// What the statement asks for besides the plan.
struct ExplainOptions {
  bool verbose = false, json = false, plan = false, trail = false;
  bool analyze = false;
  bool summary = false;  // its first lines alone
  bool memory = false;   // what a rank's memory holds over the step, and nothing else
  bool stages = false;   // what each stage of the planner gained, and nothing else
  bool urgent = false;   // how soon something small gets through meanwhile
  language::syntax::Format form = language::syntax::Format::text;
  std::string timeline;  // a file for the trace; empty: none
  std::string page;      // a file for the page; empty: none
  std::string chakra;    // what the names of Chakra traces begin with; empty: none
};

// What is known of a statement before its plan, for ranks: names, sizes, settings and the cluster.
explain::DistributedExplanation about_ranks(const explain::Explanation& explanation);

// EXPLAIN (STAGES).
std::string explain_stages(const explain::DistributedExplanation& about, const Prepared& prepared,
                           std::span<const search::StageReport> stages, const ExplainOptions& options,
                           std::size_t width);

// What ANALYZE says of clusters.
Error not_this_machine(const Prepared& prepared);

// `about` has the names, sizes, settings and the cluster; the rest is found here.
Answer explain_distributed(const Session::State& state, const Context& context, const Prepared& prepared,
                           explain::DistributedExplanation about, const ExplainOptions& options);

}  // namespace weft::session
