#include "weft/app/explain/outline.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "weft/predict/cost/scaled_passes.h"

namespace weft::explain {
namespace {

using plan::NodeId;
using plan::ScopeId;

class Outliner {
 public:
  Outliner(const plan::Graph& graph, const cluster::Device& device, std::span<const double> node_seconds,
           std::span<const double> node_kept)
      : graph_(graph), device_(device), node_seconds_(node_seconds), node_kept_(node_kept) {}

  Entry build(plan::Phase phase) {
    for (std::size_t n = 0; n < graph_.node_count(); ++n) {
      const plan::Node& node = graph_.node(NodeId(n));
      if (node.when.phase == phase && takes_time(node)) place(node.scope, node.label, NodeId(n));
    }
    Entry entry = finish(root_);
    entry.name = plan::name(phase);
    if (!node_seconds_.empty()) average(entry, 1);
    return entry;
  }

 private:
  // A tree under construction. Nodes refer to each other by index, which stays valid as the tree
  // grows.
  struct Draft {
    std::string name;
    bool repeated = false;
    std::vector<NodeId> nodes;
    std::vector<std::size_t> children;
  };

  std::size_t scope_draft(ScopeId id) {
    if (!id.valid()) return root_;
    const auto [known, fresh] = scopes_.try_emplace(id.value, 0);
    if (!fresh) return known->second;
    const plan::Scope& scope = graph_.scope(id);
    const std::size_t parent = scope_draft(scope.parent);
    const std::size_t made = add_child(parent, std::string(graph_.text(scope.name)), scope.iteration >= 0);
    return scopes_[id.value] = made;
  }

  std::size_t add_child(std::size_t parent, std::string name, bool repeated) {
    drafts_.push_back(Draft{std::move(name), repeated, {}, {}});
    drafts_[parent].children.push_back(drafts_.size() - 1);
    return drafts_.size() - 1;
  }

  void place(ScopeId scope, Symbol label, NodeId node) {
    const std::size_t parent = scope_draft(scope);
    if (!label.valid()) {
      drafts_[parent].nodes.push_back(node);
      return;
    }
    const std::uint64_t key = (static_cast<std::uint64_t>(parent) << 32) | label.value;
    const auto [known, fresh] = labels_.try_emplace(key, 0);
    if (fresh) known->second = add_child(parent, std::string(graph_.text(label)), false);
    drafts_[known->second].nodes.push_back(node);
  }

  Entry finish(std::size_t index) {
    const Draft& draft = drafts_[index];
    Entry entry;
    entry.name = draft.name;
    entry.repeated = draft.repeated;
    entry.nodes = draft.nodes;
    Hasher content;
    content.text(draft.name).number(draft.nodes.size());
    for (const NodeId id : draft.nodes) {
      const plan::NodeView node = graph_.view(id);
      plan::Work work = node.op().work(node);
      if (cost::is_within_scaled_pass(node)) work = {.flops = work.flops};
      entry.work += work;
      const cost::Estimate estimate = cost::roofline(node, device_);
      entry.seconds += estimate.seconds;
      entry.seconds_by_limit[static_cast<std::size_t>(estimate.limit)] += estimate.seconds;
      entry.node_measured.push_back(node_seconds_.empty() ? 0 : node_seconds_[id.value]);
      entry.measured += entry.node_measured.back();
      if (!node_kept_.empty()) entry.kept += node_kept_[id.value];
      content.text(node.op().name());
      for (std::size_t k = 0; k < node.result_count(); ++k)
        content.number(graph_.value(node.result(k)).type.value);
    }
    for (const std::size_t child : draft.children) {
      Entry made = finish(child);
      content.digest_of(made.content);
      add_totals(entry, made);
      entry.children.push_back(std::move(made));
    }
    fold(entry.children);
    entry.content = content.digest();
    return entry;
  }

  static void add_totals(Entry& to, const Entry& from) {
    to.work += from.work;
    to.seconds += from.seconds;
    to.measured += from.measured;
    to.kept += from.kept;
    for (std::size_t i = 0; i < 4; ++i) to.seconds_by_limit[i] += from.seconds_by_limit[i];
  }

  static bool alike(const Entry& a, const Entry& b) {
    return a.repeated && b.repeated && a.times == b.times && a.content == b.content;
  }

  // How often the `length` entries from `first` on repeat consecutively.
  static std::size_t turns(const std::vector<Entry>& entries, std::size_t first, std::size_t length) {
    std::size_t end = first + length;
    while (end < entries.size() && alike(entries[end - length], entries[end])) ++end;
    return (end - first) / length;
  }

  // Puts the layers of one iteration under an entry of their own.
  static Entry group_of(std::span<Entry> layers) {
    Entry group;
    group.name = "repeat";
    group.repeated = true;
    Hasher content;
    content.text(group.name);
    for (Entry& layer : layers) {
      content.digest_of(layer.content).number(static_cast<std::uint64_t>(layer.times));
      add_totals(group, layer);
      layer.repeated = layer.times > 1;  // the group states the repeat count
      group.children.push_back(std::move(layer));
    }
    group.content = content.digest();
    return group;
  }

  // Folds repeats of single layers first, then of longer sequences, so that the shortest period is
  // shown.
  static void fold(std::vector<Entry>& children) {
    constexpr std::size_t kMostLayers = 32;  // longest period that is searched for
    for (std::size_t length = 1; length <= kMostLayers; ++length) {
      if (2 * length > children.size()) return;
      std::vector<Entry> folded;
      for (std::size_t first = 0; first < children.size();) {
        const std::size_t count = children[first].repeated ? turns(children, first, length) : 1;
        if (count < 2) {
          folded.push_back(std::move(children[first++]));
          continue;
        }
        const auto turn = [&](std::size_t t) {
          return std::span(children).subspan(first + t * length, length);
        };
        Entry whole = length == 1 ? std::move(children[first]) : group_of(turn(0));
        const std::int64_t each = whole.times;
        for (std::size_t t = 1; t < count; ++t) {
          Entry next = length == 1 ? std::move(turn(t)[0]) : group_of(turn(t));
          whole.times += each;
          add_totals(whole, next);
          add_measured_below(whole, next);
        }
        folded.push_back(std::move(whole));
        first += count * length;
      }
      children = std::move(folded);
    }
  }

  // Entries with equal content have the same nodes and children.
  static void add_measured_below(Entry& to, const Entry& from) {
    for (std::size_t i = 0; i < to.nodes.size(); ++i) to.node_measured[i] += from.node_measured[i];
    for (std::size_t i = 0; i < to.children.size(); ++i) {
      to.children[i].measured += from.children[i].measured;
      add_measured_below(to.children[i], from.children[i]);
    }
  }

  // Before this, measured times are sums over all iterations of the enclosing layers.
  static void average(Entry& entry, double iterations) {
    entry.measured /= iterations;
    const double inside = iterations * static_cast<double>(entry.times);
    for (double& seconds : entry.node_measured) seconds /= inside;
    for (Entry& child : entry.children) average(child, inside);
  }

  const plan::Graph& graph_;
  const cluster::Device& device_;
  const std::span<const double> node_seconds_;
  const std::span<const double> node_kept_;
  std::vector<Draft> drafts_ = std::vector<Draft>(1);
  std::size_t root_ = 0;
  std::unordered_map<std::uint32_t, std::size_t> scopes_;
  std::unordered_map<std::uint64_t, std::size_t> labels_;
};

}  // namespace

cost::Limit Entry::limit() const {
  const double* most = std::max_element(seconds_by_limit, seconds_by_limit + 4);
  return *most > 0 ? static_cast<cost::Limit>(most - seconds_by_limit) : cost::Limit::nothing;
}

bool takes_time(const plan::Node& node) { return !node.inputs.empty() && !node.op->is_view(); }

Entry outline(const plan::Graph& graph, plan::Phase phase, const cluster::Device& device,
              std::span<const double> node_seconds, std::span<const double> node_kept) {
  return Outliner(graph, device, node_seconds, node_kept).build(phase);
}

std::vector<double> seconds_at_best(const plan::Graph& graph, const cluster::Device& device) {
  std::vector<double> seconds(graph.node_count());
  for (std::size_t n = 0; n < seconds.size(); ++n)
    seconds[n] = cost::roofline(graph.view(NodeId(n)), device).seconds;
  return seconds;
}

}  // namespace weft::explain
