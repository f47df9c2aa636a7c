// Draft::apply: finds or adds the right side's nodes, checks for cycles, redirects readers, and
// removes dead nodes.
#include <algorithm>

#include <fmt/format.h>

#include "weft/plan/graph/verify.h"
#include "weft/rules/rule/build_side.h"
#include "weft/rules/rule/draft.h"
#include "weft/rules/rule/match.h"

namespace weft::rule {

using plan::NodeId;
using plan::ValueId;

namespace {

// The rule's inputs on which every one of its results depends. Since a plan has no cycles, they
// cannot depend on the results that are replaced, so the search for a cycle may stop there.
std::vector<ValueId> inputs_of_every_output(const Rule& rule, const Match& match) {
  // From the last node to the first: a bit mask of the outputs that need each value.
  std::vector<std::uint64_t> needed_by(rule.left.values, 0);
  for (std::size_t k = 0; k < rule.outputs.size(); ++k)
    needed_by[rule.outputs[k].left] |= std::uint64_t{1} << (k % 64);
  for (std::size_t n = rule.left.nodes.size(); n-- > 0;) {
    const PatternNode& node = rule.left.nodes[n];
    std::uint64_t outputs = 0;
    for (std::size_t k = 0; k < node.results; ++k) outputs |= needed_by[node.first_result + k];
    for (const std::uint16_t operand : node.operands) needed_by[operand] |= outputs;
  }
  std::vector<ValueId> safe;
  if (rule.outputs.size() >= 64) return safe;
  const std::uint64_t all = (std::uint64_t{1} << rule.outputs.size()) - 1;
  for (std::size_t i = 0; i < rule.inputs.size(); ++i)
    if (needed_by[i] == all) safe.push_back(match.values[i]);
  return safe;
}

}  // namespace

Result<Change> Draft::apply(const Rule& rule, const Match& match, const plan::Mesh* mesh) {
  WEFT_TRY_STATUS(check_stands(rule, match));
  const std::size_t first_edit = edits_.size();
  if (Status status = rewrite(rule, match, mesh); !status.ok()) {
    take_back(first_edit);
    return std::move(status).error();
  }
  frames_.push_back({first_edit, change_since(first_edit)});
  return frames_.back().change;
}

Status Draft::check_stands(const Rule& rule, const Match& match) const {
  WEFT_CHECK(match.nodes.size() == rule.left.nodes.size() && match.values.size() == rule.left.values);
  for (std::size_t n = 0; n < match.nodes.size(); ++n) {
    const PatternNode& pattern = rule.left.nodes[n];
    std::vector<ValueId> read(inputs(match.nodes[n]).begin(), inputs(match.nodes[n]).end()), expected;
    for (const std::uint16_t operand : pattern.operands) expected.push_back(match.values[operand]);
    std::ranges::sort(read);
    std::ranges::sort(expected);  // commutative operands may be in another order
    if (!alive(match.nodes[n]) || read != expected)
      return user_error(fmt::format("the match is out of date: node {} changed since it was found",
                                    plan::describe(graph_, match.nodes[n])));
  }
  return {};
}

Result<NodeId> Draft::find_or_add(const plan::Operator& op, std::span<const ValueId> inputs,
                                  std::span<const plan::AttributeValue> attributes) {
  NodeId node;
  if (const std::optional<Words> words = words_of(graph_, op, attributes))
    node = find(op, *words, NodeTable::hash(op, *words), inputs, graph_.when(), Taken::until_then);
  if (!node.valid()) {
    WEFT_TRY(added, graph_.add(op, inputs, attributes));
    grow();
    node = added;
  }
  if (!alive(node)) set_alive(node, true);
  return node;
}

Status Draft::rewrite(const Rule& rule, const Match& match, const plan::Mesh* mesh) {
  const std::size_t first_edit = edits_.size();
  graph_.set_scope(graph_.node(match.root).scope);
  graph_.set_label({});
  plan::When latest;
  for (const NodeId node : match.nodes) latest = std::max(latest, graph_.node(node).when);
  graph_.set_when(latest);
  Site site{.graph = graph_,
            .rule = rule,
            .bindings = match.bindings,
            .add =
                [this](const plan::Operator& op, std::span<const ValueId> inputs,
                       std::span<const plan::AttributeValue> attributes) {
                  return find_or_add(op, inputs, attributes);
                },
            .mesh = mesh};
  WEFT_TRY(made, build_right(site, match.values));
  WEFT_CHECK(made.size() == rule.outputs.size());

  std::vector<NodeId> candidates;
  for (const Edit& edit : std::span(edits_).subspan(first_edit)) candidates.push_back(edit.node);
  std::vector<ValueId> replaced, replacing;
  for (std::size_t k = 0; k < made.size(); ++k) {
    const ValueId from = match.values[rule.outputs[k].left], to = made[k];
    if (from == to) continue;
    if (graph_.value(from).type != graph_.value(to).type)
      return user_error(fmt::format("the right side returns {} for {}, but the plan has {}",
                                    print(graph_.type(to), graph_.symbols()), rule.outputs[k].name,
                                    print(graph_.type(from), graph_.symbols())));
    WEFT_TRY_STATUS(check_phases(from, to));
    replaced.push_back(from);
    replacing.push_back(to);
  }
  if (replaced.empty()) return user_error("the right side equals the left side");
  // The inputs of a result cannot depend on it, but they may depend on another result.
  if (rule.outputs.size() > 1 && depends(replacing, replaced, inputs_of_every_output(rule, match)))
    return user_error("the rewrite would make a cycle: an operand depends on a result that is replaced");

  std::vector<Forward> forwards;
  for (std::size_t k = 0; k < replaced.size(); ++k) {
    const NodeId old = graph_.value(replaced[k]).producer, fresh = graph_.value(replacing[k]).producer;
    if (std::ranges::find(candidates, fresh) != candidates.end() && !states_[fresh.value].label.valid())
      states_[fresh.value].label = states_[old.value].label;
    redirect(replaced[k], replacing[k], forwards);
  }
  for (const Forward& forward : forwards) candidates.push_back(graph_.value(forward.from).producer);
  sweep(std::move(candidates));
  return {};
}

Status Draft::check_phases(ValueId from, ValueId to) const {
  const plan::Phase made = graph_.phase(graph_.value(to).producer);
  for (const NodeId reader : readers(from))
    if (graph_.phase(reader) < made)
      return user_error(fmt::format("the rewrite would make node {} of the {} phase read from the {} phase",
                                    plan::describe(graph_, reader), name(graph_.phase(reader)), name(made)));
  return {};
}

bool Draft::depends(std::span<const ValueId> made, std::span<const ValueId> replaced,
                    std::span<const ValueId> safe) {
  // Bidirectional search: alternates between ancestors and descendants, since one of the two is
  // usually small (a weight has few ancestors).
  const std::uint64_t up = ++searches_, down = ++searches_;
  std::vector<ValueId> above(made.begin(), made.end()), below(replaced.begin(), replaced.end());
  while (!above.empty() && !below.empty()) {
    const ValueId ancestor = above.back();
    above.pop_back();
    if (std::ranges::find(replaced, ancestor) != replaced.end()) return true;
    if (std::ranges::find(safe, ancestor) == safe.end()) {
      const NodeId node = graph_.value(ancestor).producer;
      std::uint64_t& mark = marks_[node.value];
      if (mark == down) return true;
      if (mark != up) above.insert(above.end(), inputs(node).begin(), inputs(node).end());
      mark = up;
    }

    const ValueId descendant = below.back();
    below.pop_back();
    for (const NodeId reader : readers(descendant)) {
      std::uint64_t& mark = marks_[reader.value];
      if (mark == up) return true;
      for (std::size_t k = 0; mark != down && k < graph_.node(reader).result_count; ++k)
        below.push_back(graph_.result(reader, k));
      mark = down;
    }
  }
  return false;
}

void Draft::redirect(ValueId from, ValueId to, std::vector<Forward>& forwards) {
  const auto now = [&](ValueId value) {
    for (std::size_t i = 0; i < forwards.size(); ++i)
      if (forwards[i].from == value) {
        value = forwards[i].to;
        i = std::size_t(-1);
      }
    return value;
  };
  std::vector<Forward> todo = {{from, to}};
  for (std::size_t next = 0; next < todo.size(); ++next) {
    const Forward forward = {now(todo[next].from), now(todo[next].to)};
    if (forward.from == forward.to) continue;
    const std::vector<NodeId> redirected = readers_[forward.from.value];
    for (const NodeId reader : redirected) {
      for (std::size_t i = 0; i < inputs(reader).size(); ++i)
        if (inputs(reader)[i] == forward.from) set_input(reader, i, forward.to);
      const plan::Node& node = graph_.node(reader);
      const NodeId equal = find(*node.op, words_of(node), states_[reader.value].function, inputs(reader),
                                node.when, Taken::then, reader);
      if (!equal.valid() || !alive(equal)) continue;
      for (std::size_t k = 0; k < node.result_count; ++k)
        todo.push_back({graph_.result(reader, k), graph_.result(equal, k)});
    }
    for (std::size_t k = 0; k < outputs_.size(); ++k)
      if (outputs_[k].value == forward.from) set_output(k, forward.to);
    forwards.push_back(forward);
  }
}

void Draft::sweep(std::vector<NodeId> candidates) {
  while (!candidates.empty()) {
    const NodeId node = candidates.back();
    candidates.pop_back();
    if (!alive(node) || needed(node)) continue;
    set_alive(node, false);
    for (const ValueId input : inputs(node)) candidates.push_back(graph_.value(input).producer);
  }
}

}  // namespace weft::rule
