#include "weft/planner/search/rewrite/rewrite_forward.h"

#include <algorithm>

#include "weft/parallel/train/differentiate.h"
#include "weft/plan/graph/transplant.h"
#include "weft/plan/graph/verify.h"
#include "weft/plan/ops/build.h"
#include "weft/plan/ops/linear_loss_shape.h"
#include "weft/plan/ops/operators.h"
#include "weft/predict/cost/plan_cost.h"
#include "weft/program/tasks/items.h"
#include "weft/rules/rule/draft.h"
#include "weft/rules/rule/match.h"

namespace weft::search {
namespace {

constexpr std::string_view kAttentionRules = "attention.rules", kLossRules = "loss.rules",
                           kLossAloneRules = "loss_alone.rules";

bool is_of(const rule::Rule& rule, std::string_view file) {
  return std::string_view(rule.file).ends_with(file);
}

// Every rule of a file has this operator on its left side, so most plans need no matching.
bool has(const plan::Graph& graph, const plan::Operator& op) {
  for (std::size_t n = 0; n < graph.node_count(); ++n)
    if (graph.node(plan::NodeId(n)).op == &op) return true;
  return false;
}

// The plan of the draft in the order of the model, which stages, layers and EXPLAIN rely on. New
// nodes take the position of what they replaced. `places`: by new node, that position.
plan::Graph in_the_models_order(const rule::Draft& draft, const plan::Graph& model,
                                const std::vector<plan::NodeId>& places) {
  const auto place = [&](plan::NodeId node) {
    return node.value < model.node_count() ? node : places[node.value - model.node_count()];
  };
  std::vector<plan::NodeId> order = draft.nodes();
  // Sources that nothing reads are still fed and saved.
  for (std::size_t n = 0; n < model.node_count(); ++n)
    if (ops::is_source(*model.node(plan::NodeId(n)).op) && !draft.alive(plan::NodeId(n)))
      order.push_back(plan::NodeId(n));
  std::ranges::stable_sort(order, {}, place);

  const plan::Graph& from = draft.graph();
  plan::Graph plan;
  plan.name = from.name;
  plan::Transplant transplant(from, plan);
  for (std::size_t i = 0; i < from.scope_count(); ++i) {
    plan::Scope scope = from.scope(plan::ScopeId(i));
    scope.name = transplant.symbol(scope.name);
    plan.add_scope(scope);
  }
  std::vector<plan::ValueId> values(from.value_count());
  for (const plan::NodeId node : order) {
    plan.set_label(transplant.symbol(from.node(place(node)).label));
    plan.set_scope(from.node(place(node)).scope);
    std::vector<plan::ValueId> read;
    for (const plan::ValueId input : draft.inputs(node)) read.push_back(values[input.value]);
    const plan::NodeId copy = transplant.node(node, read).value();
    for (std::size_t k = 0; k < from.node(node).result_count; ++k)
      values[from.result(node, k).value] = plan.result(copy, k);
  }
  plan.set_label(transplant.symbol(from.label()));
  plan.set_scope({});
  for (const plan::Output& output : draft.outputs()) transplant.output(output, values[output.value.value]);
  return plan;
}

double seconds_of(const rule::Draft& draft, std::span<const plan::NodeId> nodes,
                  const cluster::Device& device) {
  double seconds = 0;
  for (const plan::NodeId node : nodes) seconds += cost::node_seconds(draft.graph().view(node), device);
  return seconds;
}

// The same including gradients of all operands. REQUIRES: the last node gives a loss.
double learning_seconds(const rule::Draft& draft, std::vector<plan::NodeId> nodes,
                        const cluster::Device& device) {
  if (nodes.empty()) return 0;
  std::ranges::sort(nodes);
  const plan::Graph& from = draft.graph();
  plan::Graph part;
  plan::Transplant transplant(from, part);
  std::vector<plan::ValueId> values(from.value_count()), wanted;
  for (const plan::NodeId node : nodes) {
    std::vector<plan::ValueId> read;
    for (const plan::ValueId input : from.node(node).inputs) {
      plan::ValueId& value = values[input.value];
      if (!value.valid()) {
        const std::string name = std::to_string(input.value);
        value = ops::add_input(part, name, transplant.type(from.value(input).type)).value();
        if (plan::is_real(part.type(value).dtype)) wanted.push_back(value);
      }
      read.push_back(value);
    }
    const plan::NodeId copy = transplant.node(node, read).value();
    for (std::size_t k = 0; k < from.node(node).result_count; ++k)
      values[from.result(node, k).value] = part.result(copy, k);
  }
  const bool learns = train::differentiate(part, values[from.result(nodes.back(), 0).value], wanted).ok();
  double seconds = 0;
  for (std::size_t n = 0; learns && n < part.node_count(); ++n)
    seconds += cost::node_seconds(part.view(plan::NodeId(n)), device);
  return seconds;
}

// Whether a kernel can tile the loss, its logits are large enough and not read elsewhere, and it
// gets cheaper; cost does not matter if all losses are requested.
bool tiles_loss(const rule::Draft& draft, const rule::Change& change, std::int64_t logits_from,
                double seconds) {
  const auto is_product = [&](plan::NodeId id) { return draft.graph().node(id).op == &ops::contract(); };
  if (std::ranges::none_of(change.removed, is_product)) return false;
  for (const plan::NodeId id : change.added) {
    const plan::NodeView node = draft.graph().view(id);
    if (&node.op() != &ops::linear_cross_entropy()) continue;
    const ops::LinearLossShape of = ops::classifying(node);
    const std::int64_t logits = of.row_count() * of.over.size * plan::size_in_bytes(node.input_type(0).dtype);
    return program::why_reference_op(node).empty() && logits >= logits_from &&
           (logits_from == 0 || seconds < 0);
  }
  return false;
}

// Which rules may apply.
struct Tried {
  bool attention, losses, learns;

  bool operator()(const rule::Rule& rule) const {
    return is_of(rule, kAttentionRules) ? attention
                                        : losses && is_of(rule, learns ? kLossRules : kLossAloneRules);
  }
};

RewrittenForward rewritten_by(const plan::Graph& forward, const cluster::Device& device,
                              const rule::Automaton& automaton, const Tried& tried,
                              std::int64_t logits_from) {
  RewrittenForward result;
  rule::Draft draft(forward);
  std::vector<plan::NodeId> places;
  for (const rule::Match& match : automaton.all(draft)) {
    const rule::Rule& rule = automaton.rules()[match.rule];
    if (!tried(rule)) continue;
    Step step{rule.name, {}, 0};
    for (const plan::NodeId node : match.nodes) step.replaced.push_back(plan::describe(draft.graph(), node));
    // Fails if an earlier match changed these nodes.
    const Result<rule::Change> change = draft.apply(rule, match);
    if (!change.ok()) continue;
    places.resize(draft.graph().node_count() - forward.node_count(), match.root);
    const bool is_loss = !is_of(rule, kAttentionRules);
    const auto price = [&](const std::vector<plan::NodeId>& nodes) {
      return is_loss && tried.learns ? learning_seconds(draft, nodes, device)
                                     : seconds_of(draft, nodes, device);
    };
    step.change = price(change->added) - price(change->removed);
    if (is_loss ? tiles_loss(draft, *change, logits_from, step.change) : step.change < 0)
      result.trail.push_back(std::move(step));
    else
      draft.undo();
  }
  if (result.trail.empty()) return result;
  result.plan = in_the_models_order(draft, forward, places);
  return result;
}

std::vector<rule::Rule> forward_rules(std::span<const rule::Rule> rules) {
  std::vector<rule::Rule> first;
  for (const rule::Rule& rule : rules)
    if (is_of(rule, kAttentionRules) || is_of(rule, kLossRules) || is_of(rule, kLossAloneRules))
      first.push_back(rule);
  return first;
}

bool are_proven_as_they_are(std::span<const rule::Rule> rules, std::span<const Step> trail,
                            const ProveRule& prove) {
  return std::ranges::all_of(trail, [&](const Step& step) {
    const auto at = std::ranges::find(rules, step.rule, &rule::Rule::name);
    const std::optional<rule::Rule> proven = prove(*at);
    return proven && proven->when == at->when;
  });
}

}  // namespace

ForwardRules::ForwardRules(std::span<const rule::Rule> rules)
    : rules_(forward_rules(rules)), automaton_(rules_) {}

RewrittenForward rewrite_forward(const plan::Graph& forward, const cluster::Device& device,
                                 const ForwardRules& rules, const ProveRule& prove,
                                 const ForwardRewrites& which) {
  const Tried tried = {which.attention && has(forward, ops::softmax()),
                       which.logits_from && has(forward, ops::cross_entropy()), which.learns};
  if (!tried.attention && !tried.losses) return {};
  const std::int64_t logits_from = which.logits_from.value_or(0);
  RewrittenForward found = rewritten_by(forward, device, rules.automaton(), tried, logits_from);
  if (are_proven_as_they_are(rules.rules(), found.trail, prove)) return found;
  // A rule was refuted or got a guard, so the automaton must be rebuilt.
  RulesToProve trial({rules.rules().begin(), rules.rules().end()}, prove);
  while (!trial.prove_used(found.trail))
    found = rewritten_by(forward, device, rule::Automaton(trial.rules()), tried, logits_from);
  return found;
}

}  // namespace weft::search
