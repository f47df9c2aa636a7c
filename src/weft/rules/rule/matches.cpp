#include <algorithm>
#include <tuple>

#include "weft/rules/rule/match.h"

namespace weft::rule {

using plan::NodeId;

bool operator<(const Match& a, const Match& b) {
  return std::tie(a.rule, a.nodes, a.values) < std::tie(b.rule, b.nodes, b.values);
}

bool operator==(const Match& a, const Match& b) {
  return std::tie(a.rule, a.nodes, a.values) == std::tie(b.rule, b.nodes, b.values);
}

Matches::Matches(const Automaton& automaton, const Draft& draft) : automaton_(&automaton) {
  by_root_.resize(draft.graph().node_count());
  roots_with_.resize(draft.graph().node_count());
  for (std::size_t n = 0; n < by_root_.size(); ++n)
    if (draft.alive(NodeId(n))) look_at(draft, NodeId(n));
}

std::vector<NodeId> Matches::update(const Draft& draft, const Change& change) {
  by_root_.resize(draft.graph().node_count());
  roots_with_.resize(draft.graph().node_count());
  std::vector<NodeId> roots = automaton_->affected(draft, change);
  for (const std::vector<NodeId>* nodes : {&change.removed, &change.rewired, &change.added})
    for (const NodeId node : *nodes) {
      roots.insert(roots.end(), roots_with_[node.value].begin(), roots_with_[node.value].end());
      roots_with_[node.value].clear();
    }
  std::ranges::sort(roots);
  roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
  for (const NodeId root : roots) {
    forget(root);
    if (draft.alive(root)) look_at(draft, root);
  }
  return roots;
}

void Matches::look_at(const Draft& draft, NodeId root) {
  std::vector<Match>& matches = by_root_[root.value];
  automaton_->matches_at(draft, root, matches);
  size_ += matches.size();
  for (const Match& match : matches)
    for (const NodeId node : match.nodes) {
      std::vector<NodeId>& roots = roots_with_[node.value];
      if (std::ranges::find(roots, root) == roots.end()) roots.push_back(root);
    }
}

void Matches::forget(NodeId root) {
  size_ -= by_root_[root.value].size();
  by_root_[root.value].clear();
}

std::vector<const Match*> Matches::all() const {
  std::vector<const Match*> matches;
  matches.reserve(size_);
  for (const std::vector<Match>& rooted : by_root_)
    for (const Match& match : rooted) matches.push_back(&match);
  std::ranges::sort(matches, [](const Match* a, const Match* b) { return *a < *b; });
  return matches;
}

}  // namespace weft::rule
