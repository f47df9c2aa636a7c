// weft/app/command/rules.h -- `weft rules`: what people do with rewrite rules.
//
//   list      the rules there are, each with its verdict
//   show      a rule as text, its proof, its counterexample
//   prove     judges rules: .rules files, or the field's .jsonl files a line a rule
//   generate  enumerates small graphs, and writes down the rules it finds and proves
//   test      proves every rule again and lets it fire on plans made for it
//   why       where a rule was considered in a plan, and what declined it
//   apply     the plan that the rules and the cost choose, and the trail of rules that made it
//
// A PLAN is a file (a model graph in JSON, plan text) or the name of a shipped model. Nothing here prints.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/app/session/session.h"

namespace weft::command {

struct RulesList {
  std::vector<std::string> files = {};  // none: the shipped rules
  std::string store = {};               // where proofs are kept; empty: the user's cache
  session::Format format = session::Format::text;
};
session::Reply run(const RulesList& request);

struct RulesShow {
  std::string rule = {};
  std::vector<std::string> files = {};
  std::string store = {};
  session::Format format = session::Format::text;
};
session::Reply run(const RulesShow& request);

struct RulesProve {
  std::vector<std::string> files = {};
  std::int32_t shapes = 0;  // to try at least; 0: as many as the prover thinks right
  std::string store = {};
  bool again = false;  // do not use kept proofs
  session::Format format = session::Format::text;
  // Given each line as soon as it is known, so that a long file shows progress; else all is in the reply.
  std::function<void(std::string_view)> on_line = {};
  std::function<bool()> interrupted = {};
};
session::Reply run(const RulesProve& request);

struct RulesGenerate {
  std::string operators = "taso";  // or unity, collectives
  std::int32_t most_operators = 3;
  std::string to = {};  // a .rules file
  std::vector<std::string> against =
      {};                  // .jsonl files: which of their rules were found, and which found ones are new
  std::int32_t best = 10;  // how many of the most useful to show
  session::Format format = session::Format::text;
  std::function<void(const explain::Progress&)> on_progress = {};
  std::function<bool()> interrupted = {};
};
session::Reply run(const RulesGenerate& request);

struct RulesTest {
  std::vector<std::string> files = {};
  session::Format format = session::Format::text;
};
session::Reply run(const RulesTest& request);

struct RulesWhy {
  std::string plan = {}, rule = {};
  std::string device = "a100";
  std::vector<std::string> files = {};
  session::Format format = session::Format::text;
};
session::Reply run(const RulesWhy& request);

struct RulesApply {
  std::string plan = {};
  std::string device = "a100";
  std::vector<std::string> files = {};
  std::string to = {};     // the chosen plan as text
  std::string cache = {};  // a directory of plans planned before; empty: none
  bool check = false;      // run both plans and compare their numbers
  session::Format format = session::Format::text;
};
session::Reply run(const RulesApply& request);

}  // namespace weft::command
