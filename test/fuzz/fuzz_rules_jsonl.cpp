// Any bytes are lines, each a rule or an error. Proving a rule twice gives the same verdict, and
// the output is JSON.

#include "promise.h"
#include "weft/formats/json_node.h"
#include "weft/formats/rules_jsonl.h"
#include "weft/rules/equation/prove_equation.h"

using weft::formats::parse_json;
using weft::formats::RuleLines;
using weft::formats::write_bad_line;
using weft::formats::write_verdict;
using weft::fuzz::promise;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const weft::rule::ProveOptions options{.shapes = 2, .max_order_runs = 4};
  RuleLines lines(text);
  int judged = 0;
  while (const auto line = lines.next()) {
    if (!line->equation.ok()) {
      promise(!line->equation.error().message.empty(), "an error has a message");
      promise(parse_json(write_bad_line(*line)).ok(), "an error is JSON");
      continue;
    }
    if (++judged > 4) break;
    promise(!print(*line->equation).empty(), "a rule can be printed");
    const auto verdict = prove(*line->equation, options);
    const std::string answer = write_verdict(line->equation->id, verdict, 0);
    promise(parse_json(answer).ok(), "an answer is JSON", answer);
    promise(write_verdict(line->equation->id, prove(*line->equation, options), 0) == answer,
            "the same rule has the same verdict", answer);
  }
  return 0;
}
