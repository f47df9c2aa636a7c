#include "weft/planner/search/rewrite/workbench.h"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "weft/plan/graph/verify.h"

namespace weft::search {
namespace {

// Normalize rules that undo each other would loop for ever. After this many, repeated plans are
// detected.
constexpr std::size_t kUnguardedNormalizations = 64;

// Levels of readers from a changed value to the roots of matches that contain it.
constexpr int kReadersClimbed = 2;

void append(std::vector<plan::NodeId>& all, std::span<const plan::NodeId> more) {
  all.insert(all.end(), more.begin(), more.end());
}

void sort_and_drop_copies(std::vector<plan::NodeId>& nodes) {
  std::ranges::sort(nodes);
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
}

}  // namespace

Workbench::Workbench(const plan::Graph& graph, const RuleBook& rules, const Pricing& pricing,
                     const Limits& limits)
    : rules_(rules),
      limits_(limits),
      draft_(graph),
      ledger_(draft_, pricing, counts.priced),
      at_start_(ledger_.price()),
      first_made_(graph.node_count()) {
  normalize(draft_.nodes(), beginning_);
}

bool Workbench::rewrite(const rule::Rule& rule, const rule::Match& match, Move& move,
                        std::vector<plan::NodeId>& roots) {
  ++counts.rewrites;
  const double before = ledger_.price().seconds;
  Result<rule::Change> change = draft_.apply(rule, match);
  if (!change.ok()) {
    why_not_ = change.error().message;
    return false;
  }
  ledger_.follow(*change);
  move.rewrites.push_back({&rule, match.nodes, ledger_.price().seconds - before});
  append(move.changed, change->added);
  append(move.changed, change->touched);
  append(move.roots, rules_.exploring().affected(draft_, *change));
  append(roots, rules_.normalizing().affected(draft_, *change));
  return true;
}

void Workbench::normalize(std::vector<plan::NodeId> roots, Move& move) {
  std::unordered_set<std::uint64_t> seen;
  std::vector<rule::Match> found;
  for (std::size_t next = 0; next < roots.size() && !spent(); ++next) {
    if (!draft_.alive(roots[next])) continue;
    found.clear();
    rules_.normalizing().matches_at(draft_, roots[next], found);
    const auto taken = std::ranges::find_if(found, [&](const rule::Match& match) {
      return rewrite(rules_.normalizing().rules()[match.rule], match, move, roots);
    });
    if (taken == found.end()) continue;
    if (move.rewrites.size() >= kUnguardedNormalizations && !seen.insert(ledger_.fingerprint()).second) {
      draft_.undo();
      ledger_.back();
      move.rewrites.pop_back();
      return;
    }
  }
}

bool Workbench::take(const rule::Match& match) {
  Move move;
  move.match = match;
  std::vector<plan::NodeId> roots;
  if (!rewrite(rules_.exploring().rules()[match.rule], match, move, roots)) return false;
  normalize(std::move(roots), move);
  sort_and_drop_copies(move.changed);
  sort_and_drop_copies(move.roots);
  std::erase_if(move.changed, [&](plan::NodeId node) { return !draft_.alive(node); });
  std::erase_if(move.roots, [&](plan::NodeId node) { return !draft_.alive(node); });
  moves_.push_back(std::move(move));
  return true;
}

void Workbench::take_back() {
  for (std::size_t i = 0; i < moves_.back().rewrites.size(); ++i) {
    draft_.undo();
    ledger_.back();
  }
  moves_.pop_back();
}

std::vector<rule::Match> Workbench::matches() {
  std::vector<rule::Match> all = rules_.exploring().all(draft_);
  counts.matches += static_cast<std::int64_t>(all.size());
  return all;
}

std::vector<plan::NodeId> Workbench::changed(std::size_t moves) const {
  std::vector<plan::NodeId> all;
  for (std::size_t i = moves_.size() - moves; i < moves_.size(); ++i) append(all, moves_[i].changed);
  // Changes to values that are computed in advance enable nothing that pays.
  std::erase_if(all, [&](plan::NodeId node) { return !draft_.alive(node) || !ledger_.runs(node); });
  sort_and_drop_copies(all);
  return all;
}

std::vector<rule::Match> Workbench::follow_ups(std::size_t moves) {
  std::vector<plan::NodeId> roots;
  for (std::size_t i = moves_.size() - moves; i < moves_.size(); ++i) append(roots, moves_[i].roots);
  const std::vector<plan::NodeId> changed = this->changed(moves);
  // Also existing matches that read changed values: they may pay only together with this move.
  std::vector<plan::NodeId> climbing = changed;
  for (int level = 0; level < kReadersClimbed; ++level) {
    append(roots, climbing);
    climbing = readers_of(climbing);
  }
  append(roots, climbing);
  sort_and_drop_copies(roots);
  std::vector<rule::Match> found;
  for (const plan::NodeId root : roots)
    if (draft_.alive(root)) rules_.exploring().matches_at(draft_, root, found);
  std::erase_if(found, [&](const rule::Match& match) {
    return std::ranges::none_of(match.values, [&](plan::ValueId value) {
      return std::ranges::binary_search(changed, draft_.graph().value(value).producer);
    });
  });
  std::ranges::sort(found, [](const rule::Match& a, const rule::Match& b) { return a < b; });
  counts.matches += static_cast<std::int64_t>(found.size());
  return found;
}

std::vector<plan::NodeId> Workbench::readers_of(std::span<const plan::NodeId> nodes) const {
  std::vector<plan::NodeId> all;
  for (const plan::NodeId node : nodes)
    for (std::size_t k = 0; k < draft_.graph().node(node).result_count; ++k)
      append(all, draft_.readers(draft_.graph().result(node, k)));
  sort_and_drop_copies(all);
  return all;
}

std::vector<rule::Match> Workbench::path() const {
  std::vector<rule::Match> path;
  for (const Move& move : moves_) path.push_back(move.match);
  return path;
}

bool Workbench::go_to(std::span<const rule::Match> path) {
  std::size_t shared = 0;
  while (shared < std::min(path.size(), moves_.size()) && path[shared] == moves_[shared].match) ++shared;
  while (moves_.size() > shared) take_back();
  return std::ranges::all_of(path.subspan(shared), [&](const rule::Match& match) { return take(match); });
}

bool Workbench::still_matches(const rule::Match& match) const {
  if (!draft_.alive(match.root)) return false;
  std::vector<rule::Match> found;
  rules_.exploring().matches_at(draft_, match.root, found);
  return std::ranges::find(found, match) != found.end();
}

std::string Workbench::describe(plan::NodeId node) const {
  const plan::Graph& graph = draft_.graph();
  if (node.value >= first_made_) return fmt::format("a new {}", graph.node(node).op->name());
  const std::string path = graph.path(graph.node(node).scope, graph.node(node).label);
  return path.empty() ? plan::describe(graph, node) : path;
}

std::vector<std::string> Workbench::describe(std::span<const plan::NodeId> nodes) const {
  std::vector<std::string> all;
  for (const plan::NodeId node : nodes) all.push_back(describe(node));
  return all;
}

std::vector<Step> Workbench::trail() const {
  std::vector<Step> steps;
  const auto add = [&](const Move& move) {
    for (const Rewrite& rewrite : move.rewrites)
      steps.push_back({rewrite.rule->name, describe(rewrite.nodes), rewrite.change});
  };
  add(beginning_);
  for (const Move& move : moves_) add(move);
  return steps;
}

std::optional<Stopped> Workbench::spent() const {
  if (counts.rewrites >= limits_.rewrites) return Stopped::rewrite_limit;
  if (static_cast<std::int64_t>(draft_.graph().node_count()) >= limits_.nodes) return Stopped::node_limit;
  if (limits_.deadline && std::chrono::steady_clock::now() >= *limits_.deadline) return Stopped::time_limit;
  return std::nullopt;
}

}  // namespace weft::search
