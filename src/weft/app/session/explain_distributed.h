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

// What the statement requests besides the plan.
struct ExplainOptions {
  bool verbose = false, json = false, plan = false, analyze = false;
  std::set<std::string, std::less<>> sections;  // by option name
  bool urgent = false;                          // measure the latency of high-priority work
  language::syntax::Format form = language::syntax::Format::text;
  std::string timeline;  // trace file; empty: none
  std::string page;      // HTML page; empty: none
  std::string chakra;    // file name prefix of Chakra traces; empty: none
  std::string inductor;  // trace file for Inductor; empty: none
};

// The parts of a report that are known before planning.
explain::Report report_of(const Session::State& state, const Prepared& prepared);

// The error of ANALYZE on a cluster other than this machine.
Error not_this_machine(const Prepared& prepared);

// `report` holds what is known before planning; this fills in the rest.
Answer explain_distributed(const Session::State& state, const Context& context, const Prepared& prepared,
                           explain::Report report, const ExplainOptions& options);

}  // namespace weft::session
