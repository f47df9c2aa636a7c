#include "weft/parallel/distribute/trace_origins.h"

#include <algorithm>

#include "weft/base/hash.h"
#include "weft/parallel/distribute/decompose_nodes.h"
#include "weft/plan/ops/communication.h"
#include "weft/plan/ops/operators.h"
#include "weft/plan/spmd/decompose_rows.h"

namespace weft::distribute {
namespace {

using plan::AttributeKind;
using plan::NodeId;
using plan::NodeView;

// How far ahead the two plans are searched for the next match.
constexpr std::size_t kFarthest = 128;

// The operator and its place in the model.
Digest place_of(const NodeView& node) {
  return Hasher()
      .text(node.op().name())
      .text(node.graph().path(node.node().scope, node.node().label))
      .digest();
}

void feed(Hasher& hasher, const NodeView& node, AttributeKind kind, std::size_t k) {
  switch (kind) {
    case AttributeKind::integer: hasher.number(static_cast<std::uint64_t>(node.integer(k))); return;
    case AttributeKind::real: hasher.real(node.real(k)); return;
    case AttributeKind::word:
    case AttributeKind::index: hasher.text(node.symbol(k).valid() ? node.word(k) : ""); return;
    case AttributeKind::indices:
      for (const Symbol index : node.indices(k)) hasher.text(node.text(index));
      hasher.number(node.indices(k).size());
      return;
    case AttributeKind::dtype: hasher.number(static_cast<std::uint64_t>(node.dtype(k))); return;
    case AttributeKind::type: hasher.text(print(node.type(k), node.graph().symbols())); return;
  }
}

// Everything that a node states, except the layout of a source.
Digest content_of(const NodeView& node) {
  Hasher hasher;
  hasher.digest_of(place_of(node));
  const std::span<const plan::AttributeSpec> specs = node.op().attributes();
  const std::size_t count = specs.size() - (ops::is_source(node.op()) ? 1 : 0);
  for (std::size_t k = 0; k < count; ++k) feed(hasher, node, specs[k].kind, k);
  return hasher.digest();
}

struct Sequence {
  std::vector<NodeId> nodes;
  std::vector<Digest> content;
};

Sequence computing(const plan::Graph& graph) {
  Sequence sequence;
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const NodeView node = graph.view(NodeId(n));
    if (ops::find_communication(node.op()) != nullptr) continue;
    sequence.nodes.push_back(node.id());
    sequence.content.push_back(content_of(node));
  }
  return sequence;
}

struct Gap {
  std::size_t written = 0, one_device = 0;  // nodes until the plans match again
};

Gap next_agreement(const Sequence& written, std::size_t i, const Sequence& one_device, std::size_t j) {
  const std::size_t left = written.nodes.size() - i, right = one_device.nodes.size() - j;
  for (std::size_t far = 0; far <= std::min(kFarthest, left + right); ++far)
    for (std::size_t k = 0; k <= far; ++k)
      if (k < left && far - k < right && written.content[i + k] == one_device.content[j + far - k])
        return {k, far - k};
  return {left, right};
}

// Matches reordered nodes: a node whose content equals one of the model is that node, wherever it
// is. Among several equal ones it is the first unmatched, or the last if the model has fewer.
void find_elsewhere(const Sequence& written, const Sequence& one_device, Origins& origins) {
  std::map<Digest, std::vector<NodeId>> left;
  for (std::size_t j = one_device.nodes.size(); j-- > 0;)
    left[one_device.content[j]].push_back(one_device.nodes[j]);
  for (std::size_t i = 0; i < written.nodes.size(); ++i) {
    if (origins.own[written.nodes[i].value]) continue;
    std::vector<NodeId>& alike = left[written.content[i]];
    if (alike.size() > 1) std::erase(alike, origins.origin[written.nodes[i].value]);
  }
  for (std::size_t i = 0; i < written.nodes.size(); ++i) {
    const NodeId node = written.nodes[i];
    const auto found = left.find(written.content[i]);
    if (!origins.own[node.value] || found == left.end()) continue;
    origins.own[node.value] = false;
    origins.origin[node.value] = found->second.back();
    if (found->second.size() > 1) found->second.pop_back();
  }
}

// Nodes that can be decomposed and are missing from the written plan.
std::vector<NodeId> find_opened(const plan::Graph& one_device, const plan::Graph& written) {
  std::map<Digest, std::int64_t> places;
  for (std::size_t n = 0; n < written.node_count(); ++n) ++places[place_of(written.view(NodeId(n)))];
  std::vector<NodeId> opened;
  for (std::size_t n = 0; n < one_device.node_count(); ++n) {
    const NodeView node = one_device.view(NodeId(n));
    if (ops::is_source(node.op()) || spmd::decomposable_rows(node).empty()) continue;
    if (--places[place_of(node)] < 0) opened.push_back(node.id());
  }
  return opened;
}

}  // namespace

std::map<std::string_view, NodeId> sources_of(const plan::Graph& graph) {
  std::map<std::string_view, NodeId> sources;
  for (std::size_t n = 0; n < graph.node_count(); ++n)
    if (const NodeView node = graph.view(NodeId(n)); ops::is_source(node.op()))
      sources.emplace(node.word(0), node.id());
  return sources;
}

Result<Origins> trace_origins(const plan::Graph& one_device, const plan::Graph& written) {
  Origins origins;
  origins.opened = find_opened(one_device, written);
  plan::Graph open;
  if (!origins.opened.empty()) {
    WEFT_TRY(opened, decompose_nodes(one_device, origins.opened));
    open = std::move(opened);
  }
  const plan::Graph& model = origins.opened.empty() ? one_device : open;
  const Sequence ours = computing(written), theirs = computing(model);
  origins.origin.resize(written.node_count());
  origins.own.assign(written.node_count(), false);
  std::size_t i = 0, j = 0;
  while (i < ours.nodes.size()) {
    const Gap gap = next_agreement(ours, i, theirs, j);
    for (std::size_t k = 0; k < gap.written; ++k) {
      const NodeId node = ours.nodes[i + k];
      origins.own[node.value] = true;
      if (k < gap.one_device) origins.origin[node.value] = theirs.nodes[j + k];
    }
    i += gap.written;
    j += gap.one_device;
    if (i < ours.nodes.size()) origins.origin[ours.nodes[i++].value] = theirs.nodes[j++];
  }
  find_elsewhere(ours, theirs, origins);
  const std::map<std::string_view, NodeId> sources = sources_of(model);
  for (std::size_t n = 0; n < written.node_count(); ++n) {
    const NodeView node = written.view(NodeId(n));
    if (ops::is_source(node.op())) {
      const auto found = sources.find(node.word(0));
      origins.own[n] = found == sources.end();
      origins.origin[n] = origins.own[n] ? NodeId() : found->second;
    }
    if (ops::find_communication(node.op()) == nullptr) continue;
    origins.origin[n] = origins.origin[written.value(node.input(0)).producer.value];
  }
  return origins;
}

}  // namespace weft::distribute
