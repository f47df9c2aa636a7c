#include "weft/distribute/shrink.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "weft/ops/operators.h"
#include "weft/plan/verify.h"

namespace weft::distribute {
namespace {

using plan::AttributeKind;
using plan::AttributeValue;
using plan::Dim;
using plan::NodeId;
using plan::NodeView;
using plan::ValueId;

// More sources than these that take their size from what they meet are no model's.
constexpr int kMostMeetings = 256;
constexpr std::size_t kReduceCount = 2;

bool slides(const plan::Operator& op) {
  return &op == &ops::conv2d() || &op == &ops::max_pool() || &op == &ops::avg_pool();
}

class Shrinker {
 public:
  Shrinker(const plan::Graph& graph, const SmallSizes& sizes) : graph_(graph), sizes_(sizes) {
    for (std::size_t n = 0; n < graph.node_count(); ++n) {
      const NodeView node = graph.view(NodeId(n));
      if (slides(node.op()))
        for (const Dim& dim :
             node.input_type(0).dims.last(std::min<std::size_t>(2, node.input_type(0).rank())))
          images_.insert(dim.index);
      if (&node.op() == &ops::split()) taken_apart_.insert(node.symbol(0));
    }
  }

  Result<plan::Graph> run() {
    for (int meeting = 0; meeting < kMostMeetings; ++meeting) {
      WEFT_TRY(done, pass());
      if (done) return std::move(made_);
    }
    return user_error("too many sources take their sizes from what they meet");
  }

 private:
  // False: a source was given another size, and everything behind it must be made again.
  Result<bool> pass() {
    made_ = plan::Graph();
    made_.name = graph_.name;
    // Symbols keep their numbers, so that attributes can be copied as they are.
    for (std::size_t s = 0; s < graph_.symbols().size(); ++s) made_.symbol(graph_.text(Symbol(s)));
    for (std::size_t s = 0; s < graph_.scope_count(); ++s) made_.add_scope(graph_.scope(plan::ScopeId(s)));
    values_.assign(graph_.value_count(), ValueId());
    seen_.clear();
    for (std::size_t n = 0; n < graph_.node_count(); ++n) {
      const NodeView node = graph_.view(NodeId(n));
      WEFT_TRY(agree, meet(node));
      if (!agree) return false;
      WEFT_TRY_STATUS(add(node));
    }
    for (const plan::Output& output : graph_.outputs())
      made_.add_output(output.name, values_[output.value.value]);
    return true;
  }

  // An index of one size in two operands must stay of one size.
  Result<bool> meet(const NodeView& node) {
    for (std::size_t i = 0; i < node.input_count(); ++i)
      for (std::size_t k = i + 1; k < node.input_count(); ++k)
        for (const Dim& dim : node.input_type(i).dims) {
          const plan::Type met = node.input_type(k);
          if (!met.has(dim.index) || met.size_of(dim.index) != dim.size) continue;
          const std::int64_t one = small(node.input(i)).size_of(dim.index),
                             other = small(node.input(k)).size_of(dim.index);
          if (one == other) continue;
          if (give(node.input(k), dim.index, one) || give(node.input(i), dim.index, other)) return false;
          return user_error(fmt::format("node {}: {} is {} in one operand and {} in another at these sizes",
                                        describe(graph_, node.id()), graph_.text(dim.index), one, other));
        }
    return true;
  }

  bool give(ValueId value, Symbol index, std::int64_t size) {
    const NodeId source = graph_.value(value).producer;
    return ops::is_source(graph_.view(source).op()) && given_.try_emplace({source, index}, size).second;
  }

  plan::Type small(ValueId value) const { return made_.type(values_[value.value]); }

  std::int64_t size_of(const NodeView& source, const Dim& dim) const {
    if (const auto found = given_.find({source.id(), dim.index}); found != given_.end()) return found->second;
    if (taken_apart_.contains(dim.index)) return dim.size;
    if (&source.op() == &ops::input() && images_.contains(dim.index)) return std::min(dim.size, sizes_.image);
    return dim.size <= sizes_.kept ? dim.size : sizes_.few;
  }

  Result<plan::TypeId> type_of(const NodeView& node, plan::Type type) {
    std::vector<Dim> dims(type.dims.begin(), type.dims.end());
    if (&node.op() != &ops::split())
      for (Dim& dim : dims) {
        const auto known = seen_.find({dim.index, dim.size});
        if (ops::is_source(node.op()))
          dim.size = size_of(node, dim);
        else if (known != seen_.end())
          dim.size = known->second;
      }
    return made_.intern_type(type.dtype, dims);
  }

  Status add(const NodeView& node) {
    const std::span<const plan::AttributeSpec> specs = node.op().attributes();
    std::vector<AttributeValue> attributes;
    for (std::size_t k = 0; k < specs.size(); ++k) switch (specs[k].kind) {
        case AttributeKind::integer: attributes.emplace_back(node.integer(k)); break;
        case AttributeKind::real: attributes.emplace_back(node.real(k)); break;
        case AttributeKind::word:
        case AttributeKind::index: attributes.emplace_back(node.symbol(k)); break;
        case AttributeKind::indices: attributes.emplace_back(node.indices(k)); break;
        case AttributeKind::dtype: attributes.emplace_back(node.dtype(k)); break;
        case AttributeKind::type: {
          WEFT_TRY(type, type_of(node, node.type(k)));
          attributes.emplace_back(type);
        }
      }
    std::vector<ValueId> inputs;
    for (const ValueId input : node.node().inputs) inputs.push_back(values_[input.value]);
    if (&node.op() == &ops::reduce() && node.integer(kReduceCount) > 0)
      attributes[kReduceCount] = count_of(node);
    made_.set_label(node.node().label);
    made_.set_scope(node.node().scope);
    made_.set_when(node.node().when);
    WEFT_TRY(added, made_.add(node.op(), inputs, attributes));
    for (std::size_t k = 0; k < node.result_count(); ++k) {
      values_[node.result(k).value] = made_.result(added, k);
      const plan::Type before = node.result_type(k), after = small(node.result(k));
      for (const Dim& dim : before.dims)
        if (after.has(dim.index)) seen_[{dim.index, dim.size}] = after.size_of(dim.index);
    }
    return {};
  }

  // A mean divides by how many elements it takes together.
  std::int64_t count_of(const NodeView& node) const {
    const plan::Type before = node.input_type(0), after = small(node.input(0));
    std::int64_t reduced_before = 1, reduced_after = 1;
    for (const Dim& dim : before.dims)
      if (!node.result_type(0).has(dim.index)) {
        reduced_before *= dim.size;
        reduced_after *= after.size_of(dim.index);
      }
    return node.integer(kReduceCount) == reduced_before ? reduced_after : node.integer(kReduceCount);
  }

  const plan::Graph& graph_;
  const SmallSizes sizes_;
  std::set<Symbol> images_, taken_apart_;
  std::map<std::pair<NodeId, Symbol>, std::int64_t> given_;  // sizes that sources took from what they met
  std::map<std::pair<Symbol, std::int64_t>, std::int64_t> seen_;  // what an index of a size became last
  std::vector<ValueId> values_;
  plan::Graph made_;
};

}  // namespace

Result<plan::Graph> shrink(const plan::Graph& graph, const SmallSizes& sizes) {
  return Shrinker(graph, sizes).run();
}

}  // namespace weft::distribute
