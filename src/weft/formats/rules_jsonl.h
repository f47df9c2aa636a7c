// weft/formats/rules_jsonl.h -- rules of the field as JSON lines (`weft-rules-1`), and verdicts on them.
//
//   {"id": "T0001", "inputs": {"i1": {"template_shape": [2,4]}, "i4": {"template_shape": [4,4]}},
//    "source": [{"op": "matmul", "in": ["i1","i4"], "attrs": {"act": "none"}},
//               {"op": "relu", "in": ["%0.0"]}],
//    "target": [{"op": "matmul", "in": ["i1","i4"], "attrs": {"act": "relu"}}],
//    "outputs": [{"source": "%1.0", "target": "%0.0"}]}
//
//   {"id": "T0001", "verdict": "proven", "guard": null, "counterexample": null,
//    "error_probability": 3.1e-17, ..}
//
// A line is one rule, written here over several. "%k.j" is result j of operation k of the same side. Rules on
// a mesh have `ranks`, and inputs with `layout` (local, replicated, sharded:0) and `global_shape`. A line
// that is no rule is an error of its own; the lines after it are read all the same.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/rules/equation/equation.h"
#include "weft/rules/rule/verdict.h"

namespace weft::formats {

Result<equation::Equation> read_rule(std::string_view line);

struct RuleLine {
  std::size_t number = 0;  // from 1
  std::string id;          // also of a line that is no rule, where it says one
  Result<equation::Equation> equation;
};

// Goes through a text line by line; empty lines are passed over.
class RuleLines {
 public:
  explicit RuleLines(std::string_view text) : rest_(text) {}

  std::optional<RuleLine> next();

 private:
  std::string_view rest_;
  std::size_t number_ = 0;
};

// The answers, each one line without its end.
std::string write_verdict(std::string_view id, const rule::Verdict& verdict, double seconds);
std::string write_bad_line(const RuleLine& line);  // REQUIRES: it is no rule

}  // namespace weft::formats
