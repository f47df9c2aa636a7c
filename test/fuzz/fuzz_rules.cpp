// Any text is a list of rules or complained about; rules print, the print reads back to the same rules, and
// judging one at a few shapes ends with a verdict.
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
    promise(weft::language::complain(rules.error(), text).ends_with('\n'), "a complaint ends its last line");
    return 0;
  }
  std::string printed;
  for (const Rule& rule : *rules) printed += print(rule);
  auto again = parse_rules(printed, "f.rules", weft::ops::all());
  promise(again.ok(), "what print writes, parse reads", printed);
  promise(again->size() == rules->size(), "as many rules as there were", printed);
  for (std::size_t k = 0; k < rules->size(); ++k) {
    (*again)[k].line = (*rules)[k].line;
    promise((*again)[k] == (*rules)[k], "the print means what the text meant", printed);
  }
  if (rules->empty()) return 0;
  ProveOptions few;
  few.shapes = 2;
  few.most_order_runs = 2;
  const RuleProof proof = prove(rules->front(), few);
  promise(proof.guard.empty() == proof.verdict.guard.empty(), "a guard is stated and given, or neither",
          printed);
  return 0;
}
