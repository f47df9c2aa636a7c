#include "weft/parallel/distribute/index_roles.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>

#include "weft/parallel/distribute/signatures.h"
#include "weft/plan/ops/attention_geometry.h"
#include "weft/plan/ops/operators.h"
#include "weft/plan/ops/sliding.h"

namespace weft::distribute {
namespace {

using plan::Loop;
using plan::NodeId;
using plan::NodeView;
using plan::Role;
using plan::ValueId;

// How the forward pass uses one index.
struct Uses {
  bool of_input = false, of_parameter = false;
  bool whole_or_renamed = false;
  bool summed_in_product = false;
  bool kept_in_product = false;   // of a parameter
  bool looked_up = false;         // rows of a parameter, selected by value
  bool kept_then_summed = false;  // one product keeps it, another sums it, and none between needs it whole;
                                  // set for both names of a renamed index
  bool batched = false;           // a product has it in a parameter, in the other operand and in the result
  double multiply_adds = 0;       // of the nodes that can be sliced along it
  std::vector<bool> products;     // which of them have it
  std::vector<bool> keepers;      // and which of those keep it
  std::int64_t least_size = std::numeric_limits<std::int64_t>::max();  // among those
};

class Observer {
 public:
  explicit Observer(const plan::Graph& graph)
      : graph_(graph),
        signatures_(graph),
        uses_(graph.symbols().size()),
        of_parameter_(graph.value_count()),
        live_(graph.value_count()) {}

  IndexRoles run() && {
    for (std::size_t n = 0; n < graph_.node_count(); ++n) {
      const NodeView node = graph_.view(NodeId(n));
      if (node.phase() != plan::Phase::forward) continue;
      if (ops::is_source(node.op()))
        see_source(node);
      else
        see(node);
    }
    IndexRoles found = roles();
    for (const auto& entry : attended_) {
      const auto& [index, label] = entry.first;
      const std::set<std::string>& heads = entry.second;
      if (std::ranges::find(found.sequence, index) == found.sequence.end()) continue;
      const auto head =
          std::ranges::find_if(found.model, [&](const std::string& one) { return heads.contains(one); });
      found.attended.push_back({index, label, head == found.model.end() ? std::string() : *head});
    }
    return found;
  }

 private:
  // An index that a product kept, under its current and its original name.
  struct Live {
    Symbol now, first;
  };

  void see_source(const NodeView& node) {
    const bool parameter = &node.op() == &ops::parameter(), input = &node.op() == &ops::input();
    of_parameter_[node.result(0).value] = parameter;
    if (input && node.result_type(0).rank() > 0) inputs_.push_back(node.result(0));
    for (const plan::Dim& dim : node.result_type(0).dims) {
      uses_[dim.index.value].of_parameter |= parameter;
      uses_[dim.index.value].of_input |= input;
    }
  }

  void see_attention(const NodeView& node) {
    const Symbol label = node.node().label;
    std::set<std::string>& heads =
        attended_[{std::string(node.text(node.symbol(ops::kAttentionAlong))),
                   std::string(label.valid() ? node.text(label) : std::string_view())}];
    for (const plan::Dim& dim : node.result_type(0).dims)
      if (node.input_type(ops::kAttentionK).has(dim.index) &&
          node.input_type(ops::kAttentionV).has(dim.index) &&
          node.input_type(ops::kAttentionQ).has(dim.index))
        heads.emplace(node.text(dim.index));
  }

  void see(const NodeView& node) {
    if (ops::is_attention_operator(node.op())) see_attention(node);
    const plan::Signature& signature = signatures_.of(node.id());
    const double multiply_adds = node.op().work(node).multiply_adds;
    of_parameter_[node.result(0).value] = node.input_count() == 1 && of_parameter_[node.input(0).value];
    if (multiply_adds > 0) ++products_;
    for (const Loop& loop : signature.loops) {
      if (!has_operand(loop)) continue;
      for (const Symbol index : names_of(node, loop)) see(node, loop, index, multiply_adds);
    }
    for (const ops::Sliding& sliding : ops::sliding_loops(node))
      for (const Symbol index : names_of(node, signature.loops[sliding.loop]))
        uses_[index.value].whole_or_renamed = true;
  }

  // The distinct names of a loop in operands and results.
  std::vector<Symbol> names_of(const NodeView& node, const Loop& loop) const {
    std::vector<Symbol> names;
    const auto add = [&](const plan::Type& type, int dim) {
      if (dim < 0) return;
      const Symbol index = type.dims[static_cast<std::size_t>(dim)].index;
      if (std::ranges::find(names, index) == names.end()) names.push_back(index);
    };
    for (std::size_t i = 0; i < loop.operands.size(); ++i) add(node.input_type(i), loop.operands[i]);
    for (std::size_t k = 0; k < loop.results.size(); ++k) add(node.result_type(k), loop.results[k]);
    return names;
  }

  void see(const NodeView& node, const Loop& loop, Symbol index, double multiply_adds) {
    Uses& uses = uses_[index.value];
    const bool product = multiply_adds > 0;
    bool in_parameter = false, in_other = false;
    Symbol kept_first;  // its name in the product that kept it
    for (std::size_t i = 0; i < node.input_count(); ++i) {
      if (loop.operands[i] < 0) continue;
      const bool parameter = of_parameter_[node.input(i).value];
      in_parameter |= parameter;
      in_other |= !parameter;
      const Symbol there = node.input_type(i).dims[static_cast<std::size_t>(loop.operands[i])].index;
      if (const Symbol live = find_live(node.input(i), there); live.valid()) kept_first = live;
      uses.whole_or_renamed |= there != index;
    }
    const bool kept = loop.role == Role::parallel && loop.results[0] >= 0;
    uses.whole_or_renamed |= loop.role == Role::whole;
    if (kept) uses.whole_or_renamed |= !node.result_type(0).has(index);
    if (loop.role == Role::reduced) {
      uses.summed_in_product |= product;
      if (product && kept_first.valid())
        uses.kept_then_summed = uses_[kept_first.value].kept_then_summed = true;
      uses.looked_up |= loop.positional && in_parameter;
    }
    if (kept && product && in_parameter) {
      uses.kept_in_product = true;
      uses.batched |= in_other;
    }
    if (kept && ((product && in_parameter) || kept_first.valid()))
      live_[node.result(0).value].push_back(
          {node.result_type(0).dims[static_cast<std::size_t>(loop.results[0])].index,
           kept_first.valid() ? kept_first : index});
    if (product && loop.role != Role::whole) {
      uses.multiply_adds += multiply_adds;
      uses.products.resize(products_);
      uses.products.back() = true;
      uses.keepers.resize(products_);
      uses.keepers.back() = kept;
      uses.least_size = std::min(uses.least_size, loop.size);
    }
  }

  Symbol find_live(ValueId value, Symbol index) const {
    const auto found = std::ranges::find(live_[value.value], index, &Live::now);
    return found == live_[value.value].end() ? Symbol() : found->first;
  }

  IndexRoles roles() {
    std::vector<Symbol> batch, sequence, model, expert;
    for (std::size_t s = 0; s < uses_.size(); ++s) {
      const Uses& uses = uses_[s];
      const Symbol index(s);
      if (uses.of_input && !(uses.of_parameter && uses.summed_in_product))
        (uses.of_parameter || uses.whole_or_renamed ? sequence : batch).push_back(index);
      else if (uses.of_parameter && uses.batched && !uses.summed_in_product)
        expert.push_back(index);
      else if (uses.of_parameter && (uses.kept_then_summed || (uses.kept_in_product && uses.looked_up)))
        model.push_back(index);
    }
    if (batch.empty()) find_batch(batch, sequence);
    std::vector<FurtherIndex> further = drop_shadowed(model);
    return {named(batch), named(sequence), named(model), named(expert), std::move(further)};
  }

  // If an operator mixes the batch, as batch statistics do: the batch is the index that all inputs
  // have.
  void find_batch(std::vector<Symbol>& batch, std::vector<Symbol>& sequence) const {
    for (const Symbol index : sequence) {
      const bool of_all = !inputs_.empty() && std::ranges::all_of(inputs_, [&](ValueId input) {
        return graph_.type(input).has(index);
      });
      if (!of_all) continue;
      batch.push_back(index);
      std::erase(sequence, index);
      return;
    }
  }

  // Drops an index if every product that has it also has another index of the list, and some
  // product keeps both: slicing both adds nothing (elements of a head, beside heads). But if there
  // are more ranks than the other index has positions, an index that products always keep or sum
  // together with it can be sliced further.
  std::vector<FurtherIndex> drop_shadowed(std::vector<Symbol>& model) const {
    std::vector<Symbol> kept;
    std::vector<FurtherIndex> further;
    for (std::size_t i = 0; i < model.size(); ++i) {
      const std::vector<bool>& mine = uses_[model[i].value].products;
      const bool shadowed = std::ranges::any_of(model, [&](Symbol other) {
        if (other == model[i]) return false;
        const std::vector<bool>& theirs = uses_[other.value].products;
        for (std::size_t p = 0; p < mine.size(); ++p)
          if (mine[p] && (p >= theirs.size() || !theirs[p])) return false;
        return kept_together(model[i], other) && (mine != theirs || other < model[i]);
      });
      if (!shadowed) kept.push_back(model[i]);
    }
    for (const Symbol index : model)
      if (std::ranges::find(kept, index) == kept.end())
        if (const auto other =
                std::ranges::find_if(kept, [&](Symbol one) { return is_cut_alike(index, one); });
            other != kept.end())
          further.push_back({std::string(graph_.text(index)), std::string(graph_.text(*other)),
                             uses_[other->value].least_size});
    model = std::move(kept);
    return further;
  }

  // Every product with `one` also has `other`, and keeps both or sums both.
  bool is_cut_alike(Symbol one, Symbol other) const {
    const Uses &mine = uses_[one.value], &theirs = uses_[other.value];
    for (std::size_t p = 0; p < mine.products.size(); ++p)
      if (mine.products[p] &&
          (p >= theirs.products.size() || !theirs.products[p] || mine.keepers[p] != theirs.keepers[p]))
        return false;
    return true;
  }

  bool kept_together(Symbol a, Symbol b) const {
    const std::vector<bool>&mine = uses_[a.value].keepers, &theirs = uses_[b.value].keepers;
    for (std::size_t p = 0; p < std::min(mine.size(), theirs.size()); ++p)
      if (mine[p] && theirs[p]) return true;
    return false;
  }

  std::vector<std::string> named(std::vector<Symbol> indices) const {
    std::ranges::stable_sort(indices, std::greater<>(),
                             [&](Symbol index) { return uses_[index.value].multiply_adds; });
    std::vector<std::string> names;
    for (const Symbol index : indices) names.emplace_back(graph_.text(index));
    return names;
  }

  const plan::Graph& graph_;
  Signatures signatures_;
  std::vector<Uses> uses_;               // by symbol
  std::vector<ValueId> inputs_;          // that have an index
  std::vector<bool> of_parameter_;       // by value: a parameter, possibly cast or renamed
  std::vector<std::vector<Live>> live_;  // by value: indices not needed whole since a product kept them
  // By query index and entry: indices shared by queries, keys and values.
  std::map<std::pair<std::string, std::string>, std::set<std::string>> attended_;
  std::size_t products_ = 0;
};

}  // namespace

IndexRoles index_roles(const plan::Graph& graph) { return Observer(graph).run(); }

}  // namespace weft::distribute
