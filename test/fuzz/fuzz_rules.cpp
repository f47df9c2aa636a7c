// Any text is a list of rules or an error. Printed rules read back the same, and proving one at a
// few shapes ends with a verdict.
#include "promise.h"
#include "weft/language/complaint.h"
#include "weft/plan/ops/operators.h"
#include "weft/rules/rule/prove_rule.h"
#include "weft/rules/rule/rule.h"

using weft::fuzz::promise;
using namespace weft::rule;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto rules = parse_rules(text, "f.rules", weft::ops::all());
  if (!rules.ok()) {
    promise(!rules.error().message.empty(), "an error has a message");
    promise(weft::language::complain(rules.error(), text).ends_with('\n'), "a complaint ends with a newline");
    return 0;
  }
  std::string printed;
  for (const Rule& rule : *rules) printed += print(rule);
  auto again = parse_rules(printed, "f.rules", weft::ops::all());
  promise(again.ok(), "printed text parses", printed);
  promise(again->size() == rules->size(), "the number of rules reads back", printed);
  for (std::size_t k = 0; k < rules->size(); ++k) {
    (*again)[k].line = (*rules)[k].line;
    promise((*again)[k] == (*rules)[k], "printed text means the same", printed);
  }
  if (rules->empty()) return 0;
  ProveOptions few;
  few.shapes = 2;
  few.max_order_runs = 2;
  const RuleProof proof = prove(rules->front(), few);
  promise(proof.guard.empty() == proof.verdict.guard.empty(), "the proof and its verdict agree on the guard",
          printed);
  return 0;
}
