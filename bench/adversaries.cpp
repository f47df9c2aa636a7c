// Wrong verdicts of the prover on false rules, hand-written and mutated.
//
//   build/release/bench_adversaries
//
//   kind of adversary    tried  wrong verdicts
//   measure zero            21               0
//
// Hand-written rules, by kind, are in test/unit/rule/adversary. Mutations are made from the shipped
// rules. A verdict is wrong if a false rule may apply: it is proven, or has a guard other than the
// one that makes it true. For a rule that is false only by rounding, saying so is correct. A true
// rule that is refused counts as wrong too.
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "weft/base/check.h"
#include "weft/base/file.h"
#include "weft/plan/ops/operators.h"
#include "weft/rules/rule/library.h"
#include "weft/rules/rule/mutate_rule.h"
#include "weft/rules/rule/prove_rule.h"

namespace {

using namespace weft;

const std::string kAdversary = WEFT_SOURCE_DIR "/test/unit/rule/adversary/";

struct Row {
  std::string kind;
  int tried = 0, wrong = 0;
};

void print_row(const std::string& kind, int tried, int wrong) {
  fmt::print("{:28} {:>6} {:>15}\n", kind, tried, wrong);
}

void judge_false_rules() {
  const std::string path = kAdversary + "false.rules";
  const auto rules = rule::load_rules(path);
  WEFT_CHECK(rules.ok(), "the adversary's rules do not parse");
  std::map<std::string, rule::Verdict> verdicts;
  for (const rule::Rule& each : *rules) verdicts[each.name] = rule::prove(each).verdict;
  std::vector<Row> rows;
  std::istringstream lines(read_file(path, 1 << 20).value());
  std::string mends;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# kind: ")) rows.push_back({line.substr(8)});
    if (line.starts_with("# true where ")) mends = line.substr(13);
    if (!line.starts_with("rule ")) continue;
    const rule::Verdict& verdict = verdicts.at(line.substr(5, line.find(' ', 5) - 5));
    const bool mended = verdict.judgement == rule::Judgement::guarded && verdict.guard == mends;
    const bool by_rounding = rows.back().kind == "rounding" && verdict.judgement == rule::Judgement::rounded;
    ++rows.back().tried;
    rows.back().wrong += rule::holds(verdict) && !mended && !by_rounding;
    mends.clear();
  }
  for (const Row& row : rows) print_row(row.kind, row.tried, row.wrong);
}

void judge_true_rules() {
  const auto rules = rule::load_rules(kAdversary + "true.rules");
  WEFT_CHECK(rules.ok(), "the true rules do not parse");
  int wrong = 0;
  for (const rule::Rule& each : *rules) wrong += !rule::holds_everywhere(rule::prove(each).verdict);
  print_row("true rules", static_cast<int>(rules->size()), wrong);
}

// Some mutations are still true, such as another order of addends. The test `Mutations` runs those
// that are proven in floating point.
void judge_mutations() {
  constexpr std::size_t kEvery = 7;  // of a few thousand
  std::vector<rule::MutatedRule> all;
  for (const rule::Rule& each : rule::shipped_rules())
    for (rule::MutatedRule& mutated : rule::mutations_of(each)) all.push_back(std::move(mutated));
  int tried = 0, refused = 0, guarded = 0;
  for (std::size_t k = 0; k < all.size(); k += kEvery) {
    ++tried;
    const auto read = rule::parse_rules(print(all[k].rule), "mutated.rules", ops::all());
    const rule::Verdict verdict = read.ok() ? rule::prove(read->front()).verdict : rule::Verdict();
    refused += !rule::holds(verdict);
    guarded += verdict.judgement == rule::Judgement::guarded;
  }
  fmt::print("\nmutations of shipped rules: {} tried, {} refused, {} guarded, {} proven\n", tried, refused,
             guarded, tried - refused - guarded);
}

}  // namespace

int main() {
  fmt::print("{:28} {:>6} {:>15}\n", "kind of adversary", "tried", "wrong verdicts");
  judge_false_rules();
  judge_true_rules();
  judge_mutations();
  return 0;
}
