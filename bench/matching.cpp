// Rule matching in large plans: one automaton for all left sides compared with one rule at a time,
// and incremental updates of matches compared with matching again.
//
//   build/release/bench_matching
//
// The plans are encoders of a language model, built here; the rules are the shipped ones. Medians
// of repetitions; processor time.
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "support/measure.h"
#include "weft/base/random.h"
#include "weft/plan/ops/build.h"
#include "weft/rules/rule/library.h"
#include "weft/rules/rule/match.h"

namespace {

using namespace weft;

// A language model's encoder: attention with 4 heads and two dense layers, each with a residual.
class Encoder {
 public:
  explicit Encoder(int layers) {
    plan::ValueId x = ops::add_input(graph_, "x", type({"b", "s", "d"})).value();
    for (int layer = 0; layer < layers; ++layer) x = block(x, fmt::format("block.{}.", layer));
    graph_.add_output(graph_.symbol("y"), x);
  }
  plan::Graph take() { return std::move(graph_); }

 private:
  std::vector<Symbol> names(const std::vector<std::string_view>& texts) {
    std::vector<Symbol> symbols;
    for (const std::string_view text : texts) symbols.push_back(graph_.symbol(text));
    return symbols;
  }
  plan::TypeId type(const std::vector<std::string_view>& indices) {
    constexpr std::array<std::pair<std::string_view, std::int64_t>, 8> kSizes = {
        {{"b", 8}, {"s", 32}, {"t", 32}, {"d", 64}, {"p", 64}, {"h", 4}, {"e", 16}, {"f", 256}}};
    std::vector<plan::Dim> dims;
    for (const std::string_view index : indices)
      dims.push_back(
          {graph_.symbol(index),
           std::ranges::find(kSizes, index, &std::pair<std::string_view, std::int64_t>::first)->second});
    return graph_.intern_type(plan::DType::f32, dims).value();
  }
  plan::ValueId parameter(const std::string& name, const std::vector<std::string_view>& indices) {
    return ops::add_parameter(graph_, name, type(indices), {"normal", 0, 1}).value();
  }
  plan::ValueId plus(plan::ValueId x, plan::ValueId y) {
    return ops::add_pointwise(graph_, ops::add(), {x, y}).value();
  }
  plan::ValueId dense(plan::ValueId x, const std::string& name, std::string_view from, std::string_view to,
                      std::string_view row = "s") {
    const plan::ValueId w = parameter(name + "w", {from, to});
    const plan::ValueId y = ops::add_contract(graph_, {x, w}, names({"b", row, to})).value();
    return plus(y, parameter(name + "b", {to}));
  }
  plan::ValueId heads(plan::ValueId x, const std::string& name, std::string_view row) {
    const plan::ValueId y = dense(x, name, "d", "p");
    const std::vector<plan::Dim> into = {{graph_.symbol("h"), 4}, {graph_.symbol("e"), 16}};
    const plan::ValueId split = ops::add_split(graph_, y, graph_.symbol("p"), into).value();
    return ops::add_rename(graph_, split, names({"s"}), names({row})).value();
  }
  plan::ValueId normalized(plan::ValueId x, const std::string& name) {
    const plan::ValueId y = ops::add_layer_norm(graph_, x, names({"d"})).value().y;
    const plan::ValueId scaled =
        ops::add_pointwise(graph_, ops::mul(), {y, parameter(name + "gain", {"d"})}).value();
    return plus(scaled, parameter(name + "shift", {"d"}));
  }
  plan::ValueId block(plan::ValueId x, const std::string& name) {
    const plan::ValueId q = heads(x, name + "q", "s"), k = heads(x, name + "k", "t");
    const plan::ValueId v = heads(x, name + "v", "t");
    const plan::ValueId scores = ops::add_contract(graph_, {q, k}, names({"b", "h", "s", "t"})).value();
    const plan::ValueId weights = ops::add_softmax(graph_, scores, names({"t"})).value();
    const plan::ValueId mixed = ops::add_contract(graph_, {weights, v}, names({"b", "s", "h", "e"})).value();
    const plan::ValueId merged = ops::add_merge(graph_, mixed, names({"h", "e"}), graph_.symbol("p")).value();
    const plan::ValueId attended = normalized(plus(x, dense(merged, name + "o", "p", "d")), name + "n1");
    const plan::ValueId hidden =
        ops::add_pointwise(graph_, ops::gelu(), {dense(attended, name + "up", "d", "f")}).value();
    return normalized(plus(attended, dense(hidden, name + "down", "f", "d")), name + "n2");
  }

  plan::Graph graph_;
};

double median_seconds(const std::function<void()>& work) {
  std::vector<double> times;
  for (int i = 0; i < 5; ++i) times.push_back(bench::processor_seconds_of(work));
  return median(std::move(times));
}

void row(int layers, const std::vector<rule::Rule>& rules) {
  rule::Draft draft(Encoder(layers).take());
  const rule::Automaton automaton(rules);
  std::vector<rule::Match> found;
  const double together = median_seconds([&] { found = automaton.all(draft); });
  const double apart = median_seconds([&] { found = rule::match_one_by_one(draft, rules); });

  // Rewrites at random places, each undone, as in a search.
  rule::Matches matches(automaton, draft);
  Random random(7);
  std::size_t rewrites = 0, looked_at = 0;
  double rewriting = 0, updating = 0;
  for (int turn = 0; turn < 400 && !found.empty(); ++turn) {
    const rule::Match match = found[random.below(found.size())];
    rule::Change change;
    bool applied = false;
    rewriting += bench::processor_seconds_of([&] {
      auto result = draft.apply(rules[match.rule], match);
      if ((applied = result.ok())) change = std::move(*result);
    });
    if (!applied) continue;
    ++rewrites;
    updating += bench::processor_seconds_of([&] { looked_at += matches.update(draft, change).size(); });
    rewriting += bench::processor_seconds_of([&] { change = draft.undo(); });
    updating += bench::processor_seconds_of([&] { looked_at += matches.update(draft, change).size(); });
  }
  const double steps = std::max<double>(1, 2 * static_cast<double>(rewrites));
  fmt::print("{:6} {:8} {:9.2f} {:9.2f} {:7.1f}x {:10.0f} {:9.1f} {:9.1f} {:7.1f} {:7.0f}x\n",
             draft.live_count(), found.size(), apart * 1e3, together * 1e3, apart / together,
             static_cast<double>(found.size()) / together, rewriting / steps * 1e6, updating / steps * 1e6,
             static_cast<double>(looked_at) / steps, together / (updating / steps));
}

}  // namespace

int main() {
  const std::vector<rule::Rule>& rules = rule::shipped_rules();
  const rule::Automaton automaton(rules);
  fmt::print("{} rules, {} tests one by one, {} states of the automaton\n\n", rules.size(),
             automaton.tests_one_by_one(), automaton.states());
  fmt::print("{:>6} {:>8} {:>9} {:>9} {:>8} {:>10} {:>9} {:>9} {:>7} {:>8}\n", "", "", "apart", "together",
             "", "matches", "rewrite", "update", "roots", "against");
  fmt::print("{:>6} {:>8} {:>9} {:>9} {:>8} {:>10} {:>9} {:>9} {:>7} {:>8}\n", "nodes", "matches", "ms", "ms",
             "faster", "a second", "us", "us", "looked", "all");
  for (const int layers : {4, 16, 64, 256}) row(layers, rules);
  return 0;
}
