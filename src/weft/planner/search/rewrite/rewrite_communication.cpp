#include "weft/planner/search/rewrite/rewrite_communication.h"

#include <algorithm>
#include <chrono>
#include <unordered_map>

#include <fmt/format.h>

#include "weft/base/units.h"
#include "weft/plan/graph/settle_phases.h"
#include "weft/plan/graph/verify.h"
#include "weft/plan/ops/communication.h"
#include "weft/plan/ops/operators.h"
#include "weft/plan/spmd/layouts.h"
#include "weft/planner/search/rewrite/rank_costs.h"
#include "weft/rules/rule/instance.h"
#include "weft/rules/rule/match.h"

namespace weft::search {
namespace {

using plan::Layout;
using plan::NodeId;
using plan::ValueId;

constexpr int kDeepestWay = 3;               // rewrites evaluated as one sequence
constexpr std::size_t kWidestWay = 12;       // follow-ups expanded per rewrite
constexpr int kMostCommunicationRounds = 8;  // two or three are typical
constexpr double kLeastWorth = 1e-7;         // seconds: anything less is rounding error

// A draft of a distributed plan, with the layout of every value made in it so far.
class CommunicationBench {
 public:
  CommunicationBench(const distribute::DistributedPlan& plan, std::span<const rule::Rule> rules,
                     RankCosts& prices)
      : plan_(plan),
        automaton_(rules),
        prices_(prices),
        draft_(plan.graph),
        layouts_(plan.layouts),
        known_nodes_(plan.graph.node_count()) {}

  const rule::Draft& draft() const { return draft_; }
  const rule::Rule& rule_of(const rule::Match& match) const { return automaton_.rules()[match.rule]; }
  std::vector<rule::Match> matches() const { return automaton_.all(draft_, placement()); }

  // Change of the cost per rank in seconds; nothing if the rule does not apply here.
  std::optional<double> apply(const rule::Match& match) {
    const rule::Rule& rule = rule_of(match);
    const std::vector<Reader> readers = readers_of(rule, match);
    const Result<rule::Change> change = draft_.apply(rule, match, &plan_.mesh);
    if (!change.ok()) return std::nullopt;
    learn_layouts();
    if (!is_laid_out(*change) || !reads_alike(readers)) {
      draft_.undo();
      return std::nullopt;
    }
    double seconds = 0;
    for (const NodeId node : change->added) seconds += price(node);
    for (const NodeId node : change->removed) seconds -= price(node);
    latest_ = *change;
    return seconds;
  }
  void undo() { draft_.undo(); }

  // Matches enabled by the latest rewrite, in order: they contain a node that it made.
  std::vector<rule::Match> follow_ups() const {
    std::vector<rule::Match> found;
    for (const NodeId root : automaton_.affected(draft_, latest_))
      if (draft_.alive(root)) automaton_.matches_at(draft_, root, found, nullptr, placement());
    std::erase_if(found, [&](const rule::Match& match) {
      return std::ranges::none_of(
          match.nodes, [&](NodeId node) { return std::ranges::binary_search(latest_.added, node); });
    });
    return found;
  }

  // Equal for matches of a rule whose neighbourhoods are alike, so that their values are equal.
  Digest likeness(const rule::Match& match) const {
    Hasher hasher;
    hasher.number(match.rule);
    for (const NodeId node : match.nodes) {
      feed(hasher, node);
      for (const ValueId input : draft_.inputs(node)) feed(hasher, draft_.graph().value(input).producer);
      for (std::size_t k = 0; k < draft_.graph().node(node).result_count; ++k) {
        const ValueId result = draft_.graph().result(node, k);
        hasher.number(draft_.is_output(result) ? 1 : 0).number(draft_.readers(result).size());
        for (const NodeId reader : draft_.readers(result)) feed(hasher, reader);
      }
    }
    return hasher.digest();
  }

  std::vector<std::string> describe(std::span<const NodeId> nodes) const {
    std::vector<std::string> said;
    for (const NodeId node : nodes)
      said.push_back(node.value < plan_.graph.node_count()
                         ? plan::describe(plan_.graph, node)
                         : fmt::format("a new {}", draft_.graph().node(node).op->name()));
    return said;
  }

  // Unchanged nodes keep their origin and `own` flag; those made by rules get `own` set.
  Result<distribute::DistributedPlan> finish() const {
    distribute::DistributedPlan made;
    made.mesh = plan_.mesh;
    made.opened = plan_.opened;
    made.graph = draft_.finish();
    std::vector<NodeId> of_store(draft_.graph().node_count());
    for (const NodeId node : draft_.nodes()) {
      const bool is_new = node.value >= plan_.graph.node_count();
      of_store[node.value] = NodeId(made.origin.size());
      made.own.push_back(is_new || (!plan_.own.empty() && plan_.own[node.value]));
      // Communication nodes inherit the origin of their operand.
      NodeId origin = is_new ? NodeId() : plan_.origin[node.value];
      if (is_new && ops::find_communication(*draft_.graph().node(node).op) != nullptr)
        origin = made.origin[of_store[draft_.graph().value(draft_.inputs(node)[0]).producer.value].value];
      made.origin.push_back(origin);
    }
    WEFT_TRY(layouts, spmd::infer_layouts(made.graph, made.mesh));
    made.layouts = std::move(layouts);
    return made;
  }

 private:
  // A reader of a replaced value.
  struct Reader {
    NodeId node;  // invalid: an output of the plan
    std::size_t position = 0;
    ValueId value;
  };

  rule::Placement placement() const { return {&plan_.mesh, layouts_}; }
  double price(NodeId node) { return prices_.seconds(draft_.graph().view(node), layouts_); }

  void feed(Hasher& hasher, NodeId node) const {
    const plan::NodeView view = draft_.graph().view(node);
    // Names of sources do not matter.
    if (ops::is_source(view.op()))
      hasher.text(view.op().name());
    else
      hasher.number(rule::NodeTable::hash(view.op(), rule::words_of(view.node())));
    for (std::size_t k = 0; k < view.result_count(); ++k) {
      const ValueId value = view.result(k);
      hasher.number(draft_.graph().value(value).type.value)
          .text(print(layouts_[value.value], plan_.mesh, draft_.graph().symbols()));
    }
  }

  std::vector<Reader> readers_of(const rule::Rule& rule, const rule::Match& match) const {
    std::vector<Reader> readers;
    for (const rule::Rule::Output& output : rule.outputs) {
      const ValueId value = match.values[output.left];
      for (const NodeId reader : draft_.readers(value))
        for (std::size_t i = 0; i < draft_.inputs(reader).size(); ++i)
          if (draft_.inputs(reader)[i] == value) readers.push_back({reader, i, value});
      for (std::size_t o = 0; o < draft_.outputs().size(); ++o)
        if (draft_.outputs()[o].value == value) readers.push_back({NodeId(), o, value});
    }
    return readers;
  }

  // A rule covers only the axes it names: along others, the layout of values read must not change.
  bool reads_alike(std::span<const Reader> readers) const {
    return std::ranges::all_of(readers, [&](const Reader& reader) {
      if (reader.node.valid() && !draft_.alive(reader.node)) return true;
      const ValueId now = reader.node.valid() ? draft_.inputs(reader.node)[reader.position]
                                              : draft_.outputs()[reader.position].value;
      return layouts_[now.value] == layouts_[reader.value.value];
    });
  }

  void learn_layouts() {
    for (; known_nodes_ < draft_.graph().node_count(); ++known_nodes_) {
      const plan::NodeView node = draft_.graph().view(NodeId(known_nodes_));
      bool laid_out = std::ranges::all_of(node.node().inputs, [&](ValueId input) {
        return !is_unknown(draft_.graph().value(input).producer);
      });
      if (laid_out) {
        Result<std::vector<Layout>> found = spmd::infer_layouts(node, plan_.mesh, layouts_);
        laid_out = found.ok();
        if (laid_out) std::ranges::move(*found, std::back_inserter(layouts_));
      }
      if (laid_out) continue;
      unknown_.push_back(node.id());
      const Layout varying{std::vector(plan_.mesh.axes.size(), plan::AxisLayout::varying())};
      layouts_.resize(layouts_.size() + node.result_count(), varying);
    }
  }

  bool is_unknown(NodeId node) const { return std::ranges::binary_search(unknown_, node); }
  bool is_laid_out(const rule::Change& change) const {
    return std::ranges::none_of(change.added, [&](NodeId node) { return is_unknown(node); });
  }

  const distribute::DistributedPlan& plan_;
  rule::Automaton automaton_;
  RankCosts& prices_;
  rule::Draft draft_;
  std::vector<Layout> layouts_;  // by value
  std::size_t known_nodes_;
  std::vector<NodeId> unknown_;  // without a layout
  rule::Change latest_;
};

// A sequence of rewrites and its change of the cost.
struct Way {
  std::vector<rule::Match> steps;
  double seconds = 0;
};

class CommunicationSearch {
 public:
  CommunicationSearch(CommunicationBench& bench, const CommunicationOptions& options,
                      RewrittenCommunication& result)
      : bench_(bench), options_(options), result_(result) {}

  void run() {
    for (int round = 0; round < kMostCommunicationRounds; ++round) {
      std::vector<Way> ways = worthwhile();
      std::ranges::stable_sort(ways, {}, &Way::seconds);
      bool changed = false;
      for (const Way& way : ways) changed |= take(way);
      if (!changed) break;
    }
  }

 private:
  std::vector<Way> worthwhile() {
    std::vector<Way> ways;
    const std::vector<rule::Match> matches = bench_.matches();
    result_.counts.matches += static_cast<std::int64_t>(matches.size());
    // By likeness: the rules of the best sequence from there; empty if nothing pays.
    std::unordered_map<Digest, std::vector<std::uint32_t>> known;
    for (const rule::Match& match : matches) {
      const auto [at, is_new] = known.try_emplace(bench_.likeness(match));
      if (!is_new && at->second.empty()) continue;
      Way way = is_new ? best_from(match, kDeepestWay) : along(match, at->second);
      if (!(way.seconds < -kLeastWorth)) continue;
      if (is_new)
        for (const rule::Match& step : way.steps) at->second.push_back(step.rule);
      ways.push_back(std::move(way));
    }
    return ways;
  }

  // Applies the rules that were best at a similar place. Restores the draft afterwards.
  Way along(const rule::Match& match, std::span<const std::uint32_t> rules) {
    const std::optional<double> seconds = bench_.apply(match);
    if (!seconds) return {};
    Way way{{match}, *seconds};
    if (rules.size() > 1) {
      Way rest;
      for (const rule::Match& next : bench_.follow_ups())
        if (next.rule == rules[1])
          if (Way found = along(next, rules.subspan(1)); found.seconds < rest.seconds)
            rest = std::move(found);
      way.seconds += rest.seconds;
      way.steps.insert(way.steps.end(), rest.steps.begin(), rest.steps.end());
    }
    bench_.undo();
    return way;
  }

  // Restores the draft afterwards. Empty if the match does not apply.
  Way best_from(const rule::Match& match, int depth) {
    if (spent()) return {};
    const std::optional<double> seconds = bench_.apply(match);
    if (!seconds) return {};
    Way best{{match}, *seconds};
    if (depth > 1) {
      std::vector<rule::Match> follow_ups = bench_.follow_ups();
      if (follow_ups.size() > kWidestWay) follow_ups.resize(kWidestWay);
      Way rest;
      for (const rule::Match& next : follow_ups)
        if (Way way = best_from(next, depth - 1); way.seconds < rest.seconds) rest = std::move(way);
      best.seconds += rest.seconds;
      best.steps.insert(best.steps.end(), rest.steps.begin(), rest.steps.end());
    }
    bench_.undo();
    return best;
  }

  bool take(const Way& way) {
    std::vector<Step> steps;
    double sum = 0;
    for (const rule::Match& match : way.steps) {
      Step step{bench_.rule_of(match).name, bench_.describe(match.nodes), 0};
      const std::optional<double> seconds = bench_.apply(match);
      if (!seconds) break;
      step.change = *seconds;
      sum += *seconds;
      steps.push_back(std::move(step));
    }
    // Another sequence has already changed this place.
    if (steps.size() < way.steps.size() || !(sum < -kLeastWorth)) {
      for (std::size_t s = 0; s < steps.size(); ++s) bench_.undo();
      return false;
    }
    std::ranges::move(steps, std::back_inserter(result_.trail));
    return true;
  }

  bool spent() {
    const bool enough = result_.counts.rewrites++ >= options_.tries;
    if (!enough && std::chrono::duration<double>(Clock::now() - began_).count() < options_.seconds)
      return false;
    result_.stopped = enough ? Stopped::rewrite_limit : Stopped::time_limit;
    return true;
  }

  using Clock = std::chrono::steady_clock;

  CommunicationBench& bench_;
  const CommunicationOptions& options_;
  RewrittenCommunication& result_;
  const Clock::time_point began_ = Clock::now();
};

bool has_communication(const plan::Graph& graph) {
  for (std::size_t n = 0; n < graph.node_count(); ++n)
    if (ops::find_communication(*graph.node(NodeId(n)).op) != nullptr) return true;
  return false;
}

}  // namespace

Result<RewrittenCommunication> rewrite_communication(const PredictedPlan& before, const Machine& machine,
                                                     const cluster::Device& device,
                                                     std::span<const rule::Rule> rules,
                                                     const ProveRule& prove,
                                                     const CommunicationOptions& options) {
  RewrittenCommunication result;
  result.why_not = "no rule pays";
  if (!has_communication(before.plan.graph)) return result;
  std::vector<rule::Rule> about_ranks;
  for (const rule::Rule& rule : rules)
    if (rule::is_distributed(rule)) about_ranks.push_back(rule);
  WEFT_TRY(costs, machine.costs(before.plan.mesh));
  RankCosts prices(before.plan.mesh, costs, device);
  RulesToProve trial(std::move(about_ranks), prove);
  while (true) {
    result.trail.clear();
    CommunicationBench bench(before.plan, trial.rules(), prices);
    CommunicationSearch(bench, options, result).run();
    if (result.trail.empty()) return result;
    if (!trial.prove_used(result.trail)) continue;
    PredictedPlan made;
    WEFT_TRY(plan, bench.finish());
    made.plan = std::move(plan);
    WEFT_TRY_STATUS(plan::settle_phases(made.plan.graph));
    WEFT_TRY(prediction, sim::predict(made.plan.graph, made.plan.mesh, made.plan.layouts, costs,
                                      {.overlap = machine.overlap, .workers = machine.workers}));
    made.prediction = std::move(prediction);
    const double now = made.prediction.seconds, was = before.prediction.seconds;
    if (!(now <= was * (1 - options.least_gain)))
      result.why_not = fmt::format("{} instead of {}: less than {:.0f} % faster", print_seconds(now),
                                   print_seconds(was), 100 * options.least_gain);
    else if (options.memory_bytes > 0 &&
             made.prediction.peak_bytes > std::max(options.memory_bytes, before.prediction.peak_bytes))
      result.why_not = fmt::format("{} per rank: too large", print_bytes(made.prediction.peak_bytes));
    else
      result.plan = std::move(made);
    if (!result.plan) result.trail.clear();
    return result;
  }
}

}  // namespace weft::search
