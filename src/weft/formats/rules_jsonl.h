// weft/formats/rules_jsonl.h -- rewrite rules as JSON lines (`weft-rules-1`), and verdicts on them.
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
// A line is one rule; here it is split over several. "%k.j" is result j of operation k of the same
// side. Rules on a mesh have `ranks`, and inputs with `layout` (local, replicated, sharded:0) and
// `global_shape`. An invalid line is reported as an error; the lines after it are still read.
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
  std::string id;          // also for an invalid line, if it has one
  Result<equation::Equation> equation;
};

// Iterates over a text line by line and skips empty lines.
class RuleLines {
 public:
  explicit RuleLines(std::string_view text) : rest_(text) {}

  std::optional<RuleLine> next();

 private:
  std::string_view rest_;
  std::size_t number_ = 0;
};

// The results, as one line each, without the newline.
std::string write_verdict(std::string_view id, const rule::Verdict& verdict, double seconds);
std::string write_bad_line(const RuleLine& line);  // REQUIRES: the line is invalid

}  // namespace weft::formats
