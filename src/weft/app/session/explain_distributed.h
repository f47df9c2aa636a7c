// weft/app/session/explain_distributed.h -- EXPLAIN of a plan for more than one device.
//
// Included by app/session and app/command only.
#pragma once
#include <set>
#include <string>

#include "weft/app/explain/report.h"
#include "weft/app/session/state.h"
#include "weft/planner/statement/prepare.h"

namespace weft::session {

// What the statement asks for besides the plan.
struct ExplainOptions {
  bool verbose = false, json = false, plan = false, analyze = false;
  std::set<std::string, std::less<>> sections;  // by their options
  bool urgent = false;                          // how soon something small gets through meanwhile
  language::syntax::Format form = language::syntax::Format::text;
  std::string timeline;  // a file for the trace; empty: none
  std::string page;      // a file for the page; empty: none
  std::string chakra;    // what the names of Chakra traces begin with; empty: none
};

// What is known of a statement before its plan.
explain::Report report_of(const Session::State& state, const Prepared& prepared);

// What ANALYZE says of clusters.
Error not_this_machine(const Prepared& prepared);

// `report` has what is known before the plan; the rest is found here.
Answer explain_distributed(const Session::State& state, const Context& context, const Prepared& prepared,
                           explain::Report report, const ExplainOptions& options);

}  // namespace weft::session
