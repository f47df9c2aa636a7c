// weft/app/command/rules.h -- `weft rules`: commands for rewrite rules.
//
//   list      all rules, each with its verdict
//   show      a rule as text, its proof, its counterexample
//   prove     proves rules: .rules files, or .jsonl files with one rule per line
//   generate  enumerates small graphs, and writes the rules it finds and proves
//   test      proves every rule again and applies it to plans generated for it
//   why       where a rule was tried in a plan, and why it was rejected
//   apply     the plan chosen by rules and cost, and the trail of rules that led to it
//
// A PLAN is a file (a model graph in JSON, plan text) or the name of a shipped model. Nothing here
// prints.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/app/session/session.h"

namespace weft::command {

struct RulesList {
  std::vector<std::string> files = {};  // empty: the shipped rules
  std::string store = {};               // proof cache; empty: the user's cache
  session::Format format = session::Format::text;
  std::size_t width = explain::kUsualWidth;
};
session::Reply run(const RulesList& request);

struct RulesShow {
  std::string rule = {};
  std::vector<std::string> files = {};
  std::string store = {};
  session::Format format = session::Format::text;
  std::size_t width = explain::kUsualWidth;
};
session::Reply run(const RulesShow& request);

struct RulesProve {
  std::vector<std::string> files = {};
  std::int32_t shapes = 0;  // fewest shapes to try; 0: the prover's default
  std::string store = {};
  bool again = false;  // ignore cached proofs
  session::Format format = session::Format::text;
  std::size_t width = SIZE_MAX;  // of lines that programs read as well
  // Called with each line as soon as it is known, to show progress; if empty, the reply collects
  // them.
  std::function<void(std::string_view)> on_line = {};
  std::function<bool()> interrupted = {};
};
session::Reply run(const RulesProve& request);

struct RulesGenerate {
  std::string operators = "taso";  // or unity, collectives
  std::int32_t most_operators = 3;
  std::string to = {};  // a .rules file
  std::vector<std::string> against =
      {};                  // .jsonl files: report which of their rules were found and which are new
  std::int32_t best = 10;  // how many of the most useful rules to show
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
  std::string cache = {};  // directory of cached plans; empty: no cache
  bool check = false;      // run both plans and compare their outputs
  session::Format format = session::Format::text;
};
session::Reply run(const RulesApply& request);

}  // namespace weft::command
