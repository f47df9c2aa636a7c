// Cuts a plan into regions and extracts each as a separate plan.
#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "weft/plan/graph/transplant.h"
#include "weft/plan/ops/build.h"
#include "weft/plan/ops/operators.h"
#include "weft/planner/search/rewrite/pricing.h"
#include "weft/planner/search/rewrite/region.h"
#include "weft/predict/cost/plan_cost.h"
#include "weft/rules/rule/draft.h"

namespace weft::search {
namespace {

using plan::NodeId;
using plan::ValueId;

constexpr std::size_t kNoRegion = static_cast<std::size_t>(-1);
constexpr int kReadersHeld = 1;  // levels: with two, most models are a single region

bool is_weight(const plan::Operator& op) { return &op == &ops::parameter() || &op == &ops::state(); }

// Nodes that run in every step, in order, and which of them must not be separated.
class RegionLine {
 public:
  explicit RegionLine(const plan::Graph& whole, bool learns = false)
      : runs_(cost::nodes_that_run(whole, learns)), places_(whole.node_count(), kNoRegion) {
    for (std::size_t n = 0; n < whole.node_count(); ++n) {
      if (!runs_[n] || ops::is_source(*whole.node(NodeId(n)).op)) continue;
      places_[n] = nodes_.size();
      nodes_.push_back(NodeId(n));
    }
    held_.assign(nodes_.size(), 0);
  }

  const std::vector<bool>& runs() const { return runs_; }  // by node of the plan
  std::span<const NodeId> nodes() const { return nodes_; }

  // Forbids cuts between the first and the last node of the group.
  void hold_together(std::span<const NodeId> group) {
    std::size_t first = kNoRegion, last = 0;
    for (const NodeId node : group) {
      const std::size_t place = places_[node.value];
      if (place == kNoRegion) continue;
      first = std::min(first, place);
      last = std::max(last, place);
    }
    if (first == kNoRegion) return;
    ++held_[first];
    --held_[last];
  }

  std::vector<std::span<const NodeId>> parts() const {
    std::vector<std::span<const NodeId>> all;
    std::size_t begin = 0;
    std::int64_t holding = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      holding += held_[i];
      if (holding != 0) continue;
      all.push_back(nodes().subspan(begin, i + 1 - begin));
      begin = i + 1;
    }
    return all;
  }

 private:
  std::vector<bool> runs_;
  std::vector<NodeId> nodes_;
  std::vector<std::size_t> places_;  // node -> position in nodes_
  std::vector<std::int64_t> held_;   // prefix sums: number of groups that span the gap after a position
};

// Readers of a rewritten node may match next, so they belong to the same region.
std::vector<NodeId> with_readers(const rule::Draft& draft, std::vector<NodeId> nodes) {
  std::size_t begin = 0;
  for (int level = 0; level < kReadersHeld; ++level) {
    const std::size_t end = nodes.size();
    for (; begin < end; ++begin)
      for (std::size_t k = 0; k < draft.graph().node(nodes[begin]).result_count; ++k) {
        const std::span<const NodeId> readers = draft.readers(draft.graph().result(nodes[begin], k));
        nodes.insert(nodes.end(), readers.begin(), readers.end());
      }
  }
  return nodes;
}

// Extracts one region as a plan.
class RegionExtraction {
 public:
  RegionExtraction(const plan::Graph& whole, const std::vector<bool>& runs)
      : whole_(whole), runs_(runs), transplant_(whole, region_.plan, [this](Symbol index) {
          region_.indices.push_back(index);
          return region_.plan.symbol(fmt::format("i{}", region_.indices.size() - 1));
        }) {}

  Region extract(std::span<const NodeId> part, std::span<const char> leaves) {
    region_.plan.name = "region";
    for (const NodeId node : part) copy(node);
    for (const NodeId node : part)
      for (std::size_t k = 0; k < whole_.node(node).result_count; ++k) {
        const ValueId result = whole_.result(node, k);
        if (!leaves[result.value]) continue;
        region_.plan.add_output(region_.plan.symbol(fmt::format("y{}", region_.outputs.size())),
                                values_.at(result.value));
        region_.outputs.push_back(result);
      }
    return std::move(region_);
  }

 private:
  ValueId operand(ValueId value) {
    const auto known = values_.find(value.value);
    if (known != values_.end()) return known->second;
    const NodeId producer = whole_.value(value).producer;
    if (!runs_[producer.value]) {
      copy_what_is_constant(producer);
      return values_.at(value.value);
    }
    region_.plan.set_label({});
    const ValueId input = ops::add_input(region_.plan, fmt::format("x{}", region_.inputs.size()),
                                         transplant_.type(whole_.value(value).type))
                              .value();
    region_.inputs.push_back(value);
    return values_[value.value] = input;
  }

  // With all of its operands. Iterative, since the depth depends on the model.
  void copy_what_is_constant(NodeId last) {
    std::vector<NodeId> stack = {last};
    while (!stack.empty()) {
      const NodeId node = stack.back();
      const std::size_t before = stack.size();
      for (const ValueId input : whole_.node(node).inputs)
        if (!values_.contains(input.value)) stack.push_back(whole_.value(input).producer);
      if (stack.size() != before) continue;
      stack.pop_back();
      if (!values_.contains(whole_.result(node).value)) copy(node);
    }
  }

  void copy(NodeId node) {
    const plan::Node& source = whole_.node(node);
    if (is_weight(*source.op)) {
      region_.plan.set_label({});
      const std::string name = fmt::format("p{}", region_.sources.size());
      const plan::TypeId type = transplant_.type(whole_.value(whole_.result(node)).type);
      values_[whole_.result(node).value] =
          (source.op == &ops::state() ? ops::add_state(region_.plan, name, type)
                                      : ops::add_parameter(region_.plan, name, type))
              .value();
      region_.sources.push_back(node);
      return;
    }
    std::vector<ValueId> inputs;
    for (const ValueId input : source.inputs) inputs.push_back(operand(input));
    region_.plan.set_label(region_.plan.symbol(fmt::format("n{}", region_.nodes.size())));
    region_.nodes.push_back(node);
    const NodeId made = transplant_.node(node, inputs).value();
    for (std::size_t k = 0; k < source.result_count; ++k)
      values_[whole_.result(node, k).value] = region_.plan.result(made, k);
  }

  const plan::Graph& whole_;
  const std::vector<bool>& runs_;
  Region region_;
  plan::Transplant transplant_;
  std::unordered_map<std::uint32_t, ValueId> values_;  // value of the whole plan -> value of the region
};

std::vector<Region> extract_all(const plan::Graph& whole, const RegionLine& line) {
  const std::vector<std::span<const NodeId>> parts = line.parts();
  std::vector<std::size_t> part_of(whole.node_count(), kNoRegion);
  for (std::size_t p = 0; p < parts.size(); ++p)
    for (const NodeId node : parts[p]) part_of[node.value] = p;
  std::vector<char> leaves(whole.value_count(), 0);  // read by another region or an output
  for (const plan::Output& output : whole.outputs()) leaves[output.value.value] = 1;
  for (const NodeId node : line.nodes())
    for (const ValueId input : whole.node(node).inputs)
      if (part_of[whole.value(input).producer.value] != part_of[node.value]) leaves[input.value] = 1;

  std::vector<Region> regions;
  for (const std::span<const NodeId> part : parts)
    regions.push_back(RegionExtraction(whole, line.runs()).extract(part, leaves));
  return regions;
}

}  // namespace

std::vector<Region> cut(const plan::Graph& whole, const RuleBook& rules, bool learns) {
  RegionLine line(whole, learns);
  {
    // The draft of a plan without duplicate or dead nodes has the same node numbers.
    const rule::Draft draft(whole);
    for (const rule::Automaton* automaton : {&rules.normalizing(), &rules.exploring()})
      for (const rule::Match& match : automaton->all(draft))
        line.hold_together(with_readers(draft, match.nodes));
    for (const NodeId node : line.nodes()) {
      if (!is_seen_through(*whole.node(node).op)) continue;
      std::vector<NodeId> group = {node};
      for (const NodeId reader : draft.readers(whole.result(node))) group.push_back(reader);
      line.hold_together(group);
    }
  }
  return extract_all(whole, line);
}

Region as_region(const plan::Graph& whole) {
  RegionLine line(whole);
  line.hold_together(line.nodes());
  return line.nodes().empty() ? Region() : std::move(extract_all(whole, line).front());
}

}  // namespace weft::search
