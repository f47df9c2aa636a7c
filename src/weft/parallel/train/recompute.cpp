#include "weft/parallel/train/recompute.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "weft/parallel/train/recompute_cut.h"
#include "weft/plan/graph/transplant.h"
#include "weft/plan/graph/words.h"
#include "weft/plan/ops/operators.h"

namespace weft::train {
namespace {

using plan::Graph;
using plan::NodeId;
using plan::Phase;
using plan::ScopeId;
using plan::ValueId;

constexpr std::string_view kLayers = "layers", kSelective = "selective", kNothing = "none";

class Copier {
 public:
  Copier(const Graph& graph, std::vector<bool> repeats)
      : graph_(graph),
        repeats_(std::move(repeats)),
        transplant_(graph, made_.graph),
        values_(graph.value_count()),
        again_(graph.value_count()) {}

  Result<Recomputed> run() && {
    made_.graph.name = graph_.name;
    for (std::size_t s = 0; s < graph_.scope_count(); ++s) {
      plan::Scope scope = graph_.scope(ScopeId(s));
      scope.name = transplant_.symbol(scope.name);
      made_.graph.add_scope(scope);
    }
    std::vector<ValueId> inputs;
    for (std::size_t n = 0; n < graph_.node_count(); ++n) {
      const plan::Node& node = graph_.node(NodeId(n));
      const bool backward = node.when.phase == Phase::backward;
      if (backward)
        for (const ValueId input : node.inputs) WEFT_TRY_STATUS(repeat_for(input));
      inputs.clear();
      for (const ValueId input : node.inputs) inputs.push_back(backward ? seen(input) : values_[input.value]);
      WEFT_TRY_STATUS(add(NodeId(n), inputs, node.when, values_));
      made_.copy_of.resize(made_.graph.node_count());
    }
    for (const plan::Output& output : graph_.outputs())
      transplant_.output(output, values_[output.value.value]);
    return std::move(made_);
  }

 private:
  bool is_repeated(ValueId value) const { return repeats_[graph_.value(value).producer.value]; }
  ValueId seen(ValueId value) const {
    return is_repeated(value) ? again_[value.value] : values_[value.value];
  }

  Status add(NodeId n, std::span<const ValueId> inputs, const plan::When& when, std::vector<ValueId>& to) {
    const plan::Node& node = graph_.node(n);
    made_.graph.set_label(transplant_.symbol(node.label));
    made_.graph.set_scope(node.scope);
    WEFT_TRY(made, transplant_.node_at(when, n, inputs));
    for (std::size_t k = 0; k < node.result_count; ++k)
      to[graph_.result(n, k).value] = made_.graph.result(made, k);
    return {};
  }

  // Adds the copy that makes the value, preceded by the copies that it needs, in order.
  Status repeat_for(ValueId value) {
    if (!is_repeated(value) || again_[value.value].valid()) return {};
    std::vector<NodeId> wanted = {graph_.value(value).producer};
    std::vector<bool> listed(graph_.node_count());
    listed[wanted.front().value] = true;
    for (std::size_t i = 0; i < wanted.size(); ++i)
      for (const ValueId input : graph_.node(wanted[i]).inputs) {
        const NodeId maker = graph_.value(input).producer;
        if (!is_repeated(input) || again_[input.value].valid() || listed[maker.value]) continue;
        listed[maker.value] = true;
        wanted.push_back(maker);
      }
    std::ranges::sort(wanted);
    for (const NodeId n : wanted) {
      std::vector<ValueId> inputs;
      for (const ValueId input : graph_.node(n).inputs) inputs.push_back(seen(input));
      WEFT_TRY_STATUS(add(n, inputs, {.phase = Phase::backward}, again_));
      made_.copy_of.resize(made_.graph.node_count());
      made_.copy_of.back() = made_.graph.value(values_[graph_.result(n).value]).producer;
      made_.flops += graph_.node(n).op->work(graph_.view(n)).flops;
    }
    return {};
  }

  const Graph& graph_;
  const std::vector<bool> repeats_;
  Recomputed made_;
  plan::Transplant transplant_;
  std::vector<ValueId> values_, again_;  // by value: in the new plan, and its copy
};

}  // namespace

std::string print(const Recompute& what) {
  std::string text;
  const auto put = [&](std::string_view item) {
    if (!text.empty()) text += ", ";
    text += item;
  };
  if (what.layers) put(kLayers);
  if (what.selective) put(kSelective);
  for (const std::string& name : what.names) {
    const bool is_word = name == kLayers || name == kSelective || name == kNothing;
    const bool plain = !name.empty() && std::ranges::all_of(name, [](char c) {
      return c == '_' || c == '.' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
             (c >= 'A' && c <= 'Z');
    });
    put(is_word ? fmt::format("\"{}\"", name) : plain ? name : plan::quote_unless_plain(name));
  }
  return text.empty() ? std::string(kNothing) : text;
}

Status add_recompute(Recompute& to, std::string_view item, bool quoted) {
  if (item.empty())
    return user_error("expected layers, selective, none or a name to recompute, found nothing");
  if (!quoted && item == kNothing)
    return to.is_nothing() ? Status()
                           : Status(user_error("'none' cannot be combined with other items", print(to)));
  bool fresh = true;
  if (!quoted && item == kLayers)
    fresh = !std::exchange(to.layers, true);
  else if (!quoted && item == kSelective)
    fresh = !std::exchange(to.selective, true);
  else if (std::ranges::find(to.names, item) != to.names.end())
    fresh = false;
  else
    to.names.emplace_back(item);
  if (!fresh) return user_error(fmt::format("{} is to be recomputed twice", item), "give it only once");
  return {};
}

Result<Recompute> read_recompute(std::string_view text) {
  Recompute made;
  bool none = false;
  constexpr std::string_view kSpaces = " \t\n";
  for (std::size_t at = 0; at <= text.size();) {
    std::string_view rest = text.substr(at);
    const std::size_t begin = std::min(rest.find_first_not_of(kSpaces), rest.size());
    rest.remove_prefix(begin);
    const bool quoted = rest.starts_with('"');
    const std::size_t close = quoted ? rest.find('"', 1) : std::string_view::npos;
    if (quoted && close == std::string_view::npos) return user_error("a quoted name is not closed");
    const std::size_t comma = rest.find(',', quoted ? close : 0);
    std::string_view item = rest.substr(0, std::min(comma, rest.size()));
    while (!item.empty() && kSpaces.find(item.back()) != std::string_view::npos) item.remove_suffix(1);
    if (quoted) {
      if (item.size() != close + 1) return user_error("expected a comma after a quoted name");
      item = item.substr(1, close - 1);
    }
    if (none) return user_error("'none' cannot be combined with other items", "recompute = 'none'");
    none = !quoted && item == kNothing;
    WEFT_TRY_STATUS(add_recompute(made, item, quoted));
    if (comma == std::string_view::npos) break;
    at += begin + comma + 1;
  }
  return made;
}

Result<Recomputed> recompute(const Graph& graph, const Recompute& what) {
  WEFT_TRY(allowance, allowed(graph, what));
  return Copier(graph, nodes_to_repeat(graph, allowance)).run();
}

Result<TrainingPlan> with_recomputation(TrainingPlan plan, const Recompute& what) {
  if (what.is_nothing()) return plan;
  WEFT_TRY(made, recompute(plan.graph, what));
  plan.graph = std::move(made.graph);
  plan.kept = kept_values(plan.graph);
  plan.activation_bytes = 0;
  for (const ValueId value : plan.kept)
    plan.activation_bytes += static_cast<double>(plan.graph.type(value).bytes());
  return plan;
}

std::vector<bool> find_copies(const Graph& graph) {
  // By value: the forward value that it equals: itself, or the value that it is a copy of.
  std::vector<ValueId> same(graph.value_count());
  for (std::size_t v = 0; v < same.size(); ++v) same[v] = ValueId(v);
  using Key = std::tuple<const plan::Operator*, std::vector<std::uint32_t>, std::uint32_t>;
  std::map<Key, std::vector<NodeId>> forward;
  std::vector<bool> copies(graph.node_count());
  const auto key_of = [&](NodeId n) {
    std::vector<std::uint32_t> inputs;
    for (const ValueId input : graph.node(n).inputs)
      inputs.push_back(static_cast<std::uint32_t>(same[input.value].value));
    return Key{graph.node(n).op, std::move(inputs),
               static_cast<std::uint32_t>(graph.value(graph.result(n)).type.value)};
  };
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const plan::Node& node = graph.node(NodeId(n));
    if (node.result_count == 0 || node.inputs.empty() || node.when.phase == Phase::update) continue;
    if (node.when.phase == Phase::forward) {
      forward[key_of(NodeId(n))].push_back(NodeId(n));
      continue;
    }
    const auto found = forward.find(key_of(NodeId(n)));
    if (found == forward.end()) continue;
    for (const NodeId like : found->second) {
      const plan::Node& other = graph.node(like);
      if (other.scope != node.scope || other.label != node.label) continue;
      copies[n] = true;
      for (std::size_t k = 0; k < node.result_count; ++k)
        same[graph.result(NodeId(n), k).value] = graph.result(like, k);
    }
  }
  return copies;
}

}  // namespace weft::train
