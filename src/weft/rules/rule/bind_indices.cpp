#include "weft/rules/rule/bind_indices.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "weft/plan/ops/operators.h"
#include "weft/rules/rule/infer_lists.h"

namespace weft::rule {
namespace {

// Limits for pathological rules: covers of values by variables, and search steps.
constexpr std::size_t kMostCovers = 4096;
constexpr int kMostBindingSteps = 20000;
constexpr std::size_t kMostBindable = 64;

std::uint64_t bit(std::size_t place) { return std::uint64_t{1} << place; }

bool has_symbol(const std::vector<Symbol>& list, Symbol index) {
  return std::ranges::find(list, index) != list.end();
}

}  // namespace

struct IndexBinder::Found {
  Symbol index;
  std::uint64_t values = 0;            // values that have it, as a bit mask
  std::uint64_t required = 0;          // variables already bound to it
  std::span<const Cover> covers = {};  // covers that match the values
  std::uint64_t variables = 0;         // the cover chosen
};

// Assigns each index one of its covers, depth first.
class IndexBinder::Search {
 public:
  Search(std::span<Found> found, std::uint64_t known, std::uint64_t singles)
      : found_(found), known_(known), singles_(singles) {}

  bool run(std::size_t at = 0, std::uint64_t taken = 0) {
    if (at == found_.size()) return (singles_ & ~taken) == 0;
    Found& found = found_[at];
    for (const Cover& cover : found.covers) {
      if (++steps_ > kMostBindingSteps) return false;
      // A single-index variable is used once. A known variable stands for exactly its indices.
      if ((cover.variables & singles_ & taken) != 0) continue;
      if ((cover.variables & known_) != found.required) continue;
      found.variables = cover.variables;
      if (run(at + 1, taken | cover.variables)) return true;
    }
    deepest_ = std::max(deepest_, at);
    return false;
  }
  Symbol stuck_at() const { return found_.empty() ? Symbol() : found_[deepest_].index; }

 private:
  std::span<Found> found_;
  std::uint64_t known_, singles_;
  std::size_t deepest_ = 0;
  int steps_ = 0;
};

IndexBinder::IndexBinder(const Rule& rule) : rule_(&rule) {
  lists_.resize(rule.left.values, nullptr);
  masks_.resize(rule.indices.size(), 0);
  bindable_ = rule.left.values <= kMaxLeftValues && rule.indices.size() <= kMostBindable;
  if (!bindable_) return;
  for (std::size_t v = 0; v < rule.left.values; ++v) {
    if (v < rule.inputs.size())
      lists_[v] = &rule.inputs[v].list;
    else if (rule.left.has_list[v])
      lists_[v] = &rule.left.lists[v];
    if (lists_[v] == nullptr) continue;
    for (const std::uint16_t variable : *lists_[v]) masks_[variable] |= bit(v);
  }
  for (std::size_t variable = 0; variable < masks_.size(); ++variable)
    if (masks_[variable] != 0 && !rule.indices[variable].many) singles_ |= bit(variable);
  find_covers();

  for (std::size_t i = 0; i < rule.inputs.size(); ++i)
    if (rule.inputs[i].in_order)
      stated_.push_back({static_cast<std::uint16_t>(i), 0, true, true, &rule.inputs[i].list});
  for (std::size_t n = 0; n < rule.left.nodes.size(); ++n) {
    const PatternNode& node = rule.left.nodes[n];
    for (std::size_t k = 0; k < node.attributes.size(); ++k) {
      if (node.attributes[k].kind != AttributeTerm::Kind::indices) continue;
      // The memory order of a result is not part of a pattern.
      const plan::AttributeSpec& spec = node.op->attributes()[k];
      const bool orders_a_result =
          node.op == &ops::broadcast() ||
          (spec.name == "to" && node.op != &ops::rename() && spec.kind == plan::AttributeKind::indices);
      stated_.push_back({static_cast<std::uint16_t>(n), static_cast<std::uint16_t>(k), false,
                         !orders_a_result, &node.attributes[k].indices});
    }
  }
}

void IndexBinder::find_covers() {
  // Covers of n + 1 variables extend those of n by a variable declared later.
  std::vector<Cover> last = {Cover{}};
  while (!last.empty() && covers_.size() < kMostCovers) {
    std::vector<Cover> next;
    for (const Cover& cover : last)
      for (auto variable = static_cast<std::size_t>(std::bit_width(cover.variables));
           variable < masks_.size() && next.size() < kMostCovers; ++variable)
        if (masks_[variable] != 0 && (masks_[variable] & cover.values) == 0)
          next.push_back({cover.values | masks_[variable], cover.variables | bit(variable)});
    covers_.insert(covers_.end(), next.begin(), next.end());
    last = std::move(next);
  }
  std::ranges::stable_sort(covers_, {}, &Cover::values);
}

IndexBinder::Symbols IndexBinder::stated_indices(const Draft& draft, const Match& match,
                                                 const Stated& stated) const {
  const plan::Graph& graph = draft.graph();
  Symbols indices;
  const auto of_dims = [&](std::span<const plan::Dim> dims) {
    for (const plan::Dim& dim : dims) indices.push_back(dim.index);
  };
  if (stated.is_input) {
    of_dims(graph.type(match.values[stated.node]).dims);
    return indices;
  }
  const plan::Node& node = graph.node(match.nodes[stated.node]);
  const plan::Attribute& attribute = node.attributes[stated.attribute];
  switch (node.op->attributes()[stated.attribute].kind) {
    case plan::AttributeKind::index: indices.push_back(Symbol(attribute.id)); break;
    case plan::AttributeKind::indices:
      indices.assign(attribute.indices, attribute.indices + attribute.count);
      break;
    case plan::AttributeKind::type: of_dims(graph.type(plan::TypeId(attribute.id)).dims); break;
    default: break;
  }
  return indices;
}

bool IndexBinder::align(const Stated& stated, const Symbols& symbols, std::vector<std::vector<Symbol>>& bound,
                        std::uint64_t& known) const {
  const IndexList& list = *stated.list;
  const auto many =
      std::ranges::count_if(list, [&](std::uint16_t variable) { return rule_->indices[variable].many; });
  if (many > 1) return true;  // several assignments are possible: checked at the end
  if (many == 0 ? symbols.size() != list.size() : symbols.size() + 1 < list.size()) return false;
  const Symbol* next = symbols.begin();
  for (const std::uint16_t variable : list) {
    const std::size_t count = rule_->indices[variable].many ? symbols.size() + 1 - list.size() : 1;
    const std::span<const Symbol> indices(next, count);
    next += count;
    if ((known & bit(variable)) != 0) {
      if (!std::ranges::equal(bound[variable], indices)) return false;
      continue;
    }
    bound[variable].assign(indices.begin(), indices.end());
    known |= bit(variable);
  }
  return true;
}

bool IndexBinder::decline(const Draft& draft, const Stated& stated, const Symbols& found,
                          std::string* because) const {
  if (because == nullptr) return false;
  std::string indices = "[";
  for (const Symbol index : found)
    indices += fmt::format("{}{}", indices.size() > 1 ? ", " : "", draft.graph().text(index));
  std::string what;
  if (stated.is_input) {
    what = rule_->inputs[stated.node].name;
  } else {
    const plan::Operator& op = *rule_->left.nodes[stated.node].op;
    what = fmt::format("{} of {}", op.attributes()[stated.attribute].name, op.name());
  }
  *because = fmt::format("index variables: {} is {} in the rule, found {}]", what,
                         print(*rule_, *stated.list), indices);
  return false;
}

bool IndexBinder::bind(const Draft& draft, Match& match, std::string* because) const {
  if (!bindable_) return false;
  const plan::Graph& graph = draft.graph();
  std::vector<std::vector<Symbol>>& bound = match.bindings.indices;
  bound.resize(masks_.size());
  for (std::vector<Symbol>& indices : bound) indices.clear();
  std::uint64_t known = 0;
  for (const Stated& stated : stated_) {
    if (!stated.ordered) continue;
    const Symbols symbols = stated_indices(draft, match, stated);
    if (!align(stated, symbols, bound, known)) return decline(draft, stated, symbols, because);
  }

  InlineVector<Found, 16> found;
  for (std::size_t v = 0; v < lists_.size(); ++v) {
    if (lists_[v] == nullptr) continue;
    for (const plan::Dim& dim : graph.type(match.values[v]).dims) {
      auto* at = std::ranges::find(found, dim.index, &Found::index);
      if (at == found.end()) {
        found.push_back({.index = dim.index});
        at = &found.back();
      }
      at->values |= bit(v);
    }
  }
  for (Found& index : found) {
    index.covers = {std::ranges::lower_bound(covers_, index.values, {}, &Cover::values),
                    std::ranges::upper_bound(covers_, index.values, {}, &Cover::values)};
    for (std::size_t variable = 0; variable < masks_.size(); ++variable)
      if ((known & bit(variable)) != 0 && masks_[variable] != 0 && has_symbol(bound[variable], index.index))
        index.required |= bit(variable);
    if (index.covers.empty()) {
      if (because != nullptr)
        *because = fmt::format("index variables: none can stand for index {} in the values that have it",
                               graph.text(index.index));
      return false;
    }
  }
  Search search({found.data(), found.size()}, known, singles_);
  if (!search.run()) {
    if (because != nullptr)
      *because = search.stuck_at().valid()
                     ? fmt::format("index variables: no consistent assignment for index {}",
                                   graph.text(search.stuck_at()))
                     : "index variables: the values have no indices";
    return false;
  }
  // An index that an attribute binds must occur in the values that have the variable.
  for (std::size_t variable = 0; variable < masks_.size(); ++variable)
    for (const Symbol index : bound[variable])
      if (masks_[variable] != 0 && std::ranges::find(found, index, &Found::index) == found.end()) {
        if (because != nullptr)
          *because = fmt::format("index variables: {} is index {}, which no value has",
                                 rule_->indices[variable].name, graph.text(index));
        return false;
      }
  for (const Found& index : found)
    for (std::uint64_t rest = index.variables & ~known; rest != 0; rest &= rest - 1)
      bound[static_cast<std::size_t>(std::countr_zero(rest))].push_back(index.index);

  for (const Stated& stated : stated_) {
    Symbols symbols = stated_indices(draft, match, stated), expected;
    for (const std::uint16_t variable : *stated.list)
      for (const Symbol index : bound[variable]) expected.push_back(index);
    const Symbols as_found = symbols;
    if (!stated.ordered) {
      std::ranges::sort(symbols);
      std::ranges::sort(expected);
    }
    if (!std::ranges::equal(symbols, expected)) return decline(draft, stated, as_found, because);
  }
  return true;
}

}  // namespace weft::rule
