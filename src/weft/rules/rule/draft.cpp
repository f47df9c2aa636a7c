#include "weft/rules/rule/draft.h"

#include <algorithm>

namespace weft::rule {

using plan::NodeId;
using plan::ValueId;

Draft::Draft(const plan::Graph& graph) : graph_(graph.clone()) {
  outputs_.assign(graph_.outputs().begin(), graph_.outputs().end());
  std::vector<char> reached(graph_.node_count(), 0);
  for (const plan::Output& output : outputs_) reached[graph_.value(output.value).producer.value] = 1;
  for (std::size_t n = graph_.node_count(); n-- > 0;)
    for (const ValueId input : graph_.node(NodeId(n)).inputs)
      if (reached[n]) reached[graph_.value(input).producer.value] = 1;

  grow();
  std::vector<ValueId> stands_for(graph_.value_count());
  for (std::size_t v = 0; v < stands_for.size(); ++v) stands_for[v] = ValueId(v);
  for (std::size_t n = 0; n < graph_.node_count(); ++n) {
    const NodeId id(n);
    const plan::Node& node = graph_.node(id);
    NodeState& state = states_[n];
    table_.erase(state.function, inputs(id), id);
    for (ValueId& input : state.inputs) input = stands_for[input.value];
    const NodeId equal = find(*node.op, words_of(node), state.function, inputs(id), node.when);
    table_.insert(state.function, inputs(id), id);
    if (!reached[n]) continue;
    if (equal.valid() && alive(equal)) {
      for (std::size_t k = 0; k < node.result_count; ++k)
        stands_for[graph_.result(id, k).value] = graph_.result(equal, k);
    } else {
      set_alive(id, true);
    }
  }
  for (plan::Output& output : outputs_) {
    output.value = stands_for[output.value.value];
    ++output_uses_[output.value.value];
  }
  edits_.clear();
}

Draft Draft::clone() const {
  Draft copy;
  copy.graph_ = graph_.clone();
  copy.states_ = states_;
  copy.readers_ = readers_;
  copy.outputs_ = outputs_;
  copy.output_uses_ = output_uses_;
  copy.table_ = table_;
  copy.live_count_ = live_count_;
  copy.edits_ = edits_;
  copy.frames_ = frames_;
  copy.marks_.assign(marks_.size(), 0);
  return copy;
}

void Draft::grow() {
  for (std::size_t n = states_.size(); n < graph_.node_count(); ++n) {
    const plan::Node& node = graph_.node(NodeId(n));
    NodeState& state = states_.emplace_back();
    state.inputs.assign(node.inputs.begin(), node.inputs.end());
    state.function = NodeTable::hash(*node.op, words_of(node));
    state.label = node.label;
    table_.insert(state.function, node.inputs, NodeId(n));
  }
  readers_.resize(graph_.value_count());
  output_uses_.resize(graph_.value_count(), 0);
  marks_.resize(graph_.node_count(), 0);
}

NodeId Draft::find(const plan::Operator& op, const Words& words, std::uint64_t function,
                   std::span<const ValueId> inputs, const plan::When& when, Taken taken,
                   NodeId except) const {
  NodeId found;
  const auto is_better = [&](NodeId candidate) {
    if (!found.valid()) return true;
    if (alive(candidate) != alive(found)) return alive(candidate);
    return alive(found) ? graph_.node(candidate).when > graph_.node(found).when : candidate < found;
  };
  table_.find(function, inputs, [&](NodeId candidate) {
    if (candidate == except || graph_.node(candidate).op != &op) return;
    const plan::When& its = graph_.node(candidate).when;
    if (its != when && !(taken == Taken::until_then && its < when && alive(candidate))) return;
    if (!is_better(candidate)) return;
    if (!std::ranges::equal(this->inputs(candidate), inputs)) return;
    if (std::ranges::equal(words_of(graph_.node(candidate)), words)) found = candidate;
  });
  return found;
}

void Draft::add_reader(ValueId value, NodeId node) {
  std::vector<NodeId>& readers = readers_[value.value];
  const auto at = std::ranges::lower_bound(readers, node);
  if (at == readers.end() || *at != node) readers.insert(at, node);
}

void Draft::drop_reader(ValueId value, NodeId node) {
  std::vector<NodeId>& readers = readers_[value.value];
  const auto at = std::ranges::lower_bound(readers, node);
  if (at != readers.end() && *at == node) readers.erase(at);
}

void Draft::set_input(NodeId node, std::size_t position, ValueId value) {
  NodeState& state = states_[node.value];
  const ValueId old = state.inputs[position];
  edits_.push_back({Edit::Kind::input, node, static_cast<std::uint32_t>(position), old});
  table_.erase(state.function, inputs(node), node);
  state.inputs[position] = value;
  table_.insert(state.function, inputs(node), node);
  if (!state.alive) return;
  add_reader(value, node);
  if (std::ranges::find(state.inputs, old) == state.inputs.end()) drop_reader(old, node);
}

void Draft::set_alive(NodeId node, bool alive) {
  NodeState& state = states_[node.value];
  edits_.push_back({Edit::Kind::life, node, 0, {}});
  state.alive = alive;
  live_count_ += alive ? 1 : std::size_t(-1);
  for (const ValueId input : state.inputs) alive ? add_reader(input, node) : drop_reader(input, node);
}

void Draft::set_output(std::size_t position, ValueId value) {
  ValueId& output = outputs_[position].value;
  edits_.push_back({Edit::Kind::output, {}, static_cast<std::uint32_t>(position), output});
  --output_uses_[output.value];
  ++output_uses_[value.value];
  output = value;
}

void Draft::take_back(std::size_t first_edit) {
  while (edits_.size() > first_edit) {
    const Edit edit = edits_.back();
    switch (edit.kind) {
      case Edit::Kind::input: set_input(edit.node, edit.position, edit.old); break;
      case Edit::Kind::life: set_alive(edit.node, !alive(edit.node)); break;
      case Edit::Kind::output: set_output(edit.position, edit.old); break;
    }
    edits_.resize(edits_.size() - 2, Edit{Edit::Kind::life, {}, 0, {}});  // the edit and its inverse
  }
}

Change Draft::undo() {
  WEFT_CHECK(!frames_.empty());
  Frame frame = std::move(frames_.back());
  frames_.pop_back();
  take_back(frame.first_edit);
  std::swap(frame.change.added, frame.change.removed);
  return std::move(frame.change);
}

void Draft::keep() {
  frames_.clear();
  edits_.clear();
}

bool Draft::needed(NodeId node) const {
  for (std::size_t k = 0; k < graph_.node(node).result_count; ++k) {
    const ValueId result = graph_.result(node, k);
    if (is_output(result) || !readers(result).empty()) return true;
  }
  return false;
}

Change Draft::change_since(std::size_t first_edit) const {
  Change change;
  std::vector<NodeId> toggled, seen;
  for (const Edit& edit : std::span(edits_).subspan(first_edit)) {
    switch (edit.kind) {
      case Edit::Kind::input: {
        change.rewired.push_back(edit.node);
        seen.push_back(edit.node);
        seen.push_back(graph_.value(edit.old).producer);
        break;
      }
      case Edit::Kind::life: toggled.push_back(edit.node); break;
      case Edit::Kind::output:
        seen.push_back(graph_.value(edit.old).producer);
        seen.push_back(graph_.value(outputs_[edit.position].value).producer);
        break;
    }
  }
  const auto sort_unique = [](std::vector<NodeId>& nodes) {
    std::ranges::sort(nodes);
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  };
  // A node that was added and removed is unchanged: only an odd number of toggles counts.
  std::ranges::sort(toggled);
  for (std::size_t i = 0; i < toggled.size();) {
    std::size_t end = i;
    while (end < toggled.size() && toggled[end] == toggled[i]) ++end;
    const NodeId node = toggled[i];
    if ((end - i) % 2 != 0) (alive(node) ? change.added : change.removed).push_back(node);
    for (const ValueId input : inputs(node)) seen.push_back(graph_.value(input).producer);
    i = end;
  }
  for (const NodeId node : change.rewired)
    for (const ValueId input : inputs(node)) seen.push_back(graph_.value(input).producer);
  const auto came_or_went = [&](NodeId node) {
    return !alive(node) || std::ranges::binary_search(change.added, node);
  };
  sort_unique(change.rewired);
  std::erase_if(change.rewired, came_or_went);
  sort_unique(seen);
  std::erase_if(seen, came_or_went);
  change.touched = std::move(seen);
  return change;
}

}  // namespace weft::rule
