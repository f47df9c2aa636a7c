#include "weft/parallel/distribute/shrink.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "weft/parallel/distribute/concat_boundaries.h"
#include "weft/parallel/distribute/size_classes.h"
#include "weft/plan/graph/verify.h"
#include "weft/plan/ops/operators.h"

namespace weft::distribute {
namespace {

using plan::AttributeKind;
using plan::AttributeValue;
using plan::Dim;
using plan::NodeId;
using plan::NodeView;
using plan::ValueId;

// No real model needs more passes to settle its sizes.
constexpr int kMostPasses = 256;
constexpr int kMostChanges = 8;  // per size: two conflicting requirements would alternate forever
// Large sizes become these, in turn. Most divide evenly by neither two nor three.
constexpr std::int64_t kSmallPool[] = {5, 3, 4, 7, 6, 8, 9, 10};
constexpr std::int64_t kSmallMultiples[] = {1, 2, 1};  // factors of a required multiple
constexpr std::int64_t kGrouped = 12;  // grouped channels: divisible among two and three ranks

// Attribute positions.
constexpr std::size_t kPositionSize = 1, kScatterAlong = 0, kScatterCount = 1, kTopOver = 0, kTopInto = 1,
                      kTopCount = 2, kSliceAlong = 0, kSliceBegin = 1, kSliceEnd = 2, kGroups = 2,
                      kReducedCount = 2, kSlotExpertCount = 0, kSlotCapacities = 1, kRotaryPairs = 1,
                      kSplitFrom = 0, kSplitTo = 1, kEntropyOver = 0, kLabelledClasses = 0;

bool slides(const plan::Operator& op) {
  return &op == &ops::conv2d() || &op == &ops::max_pool() || &op == &ops::avg_pool();
}

// Facts about a class that determine its size.
struct SizeClass {
  std::int64_t real = 0;
  bool window = false;        // kernel rows or columns: unchanged
  bool image = false;         // windows slide over it
  bool even = false;          // must be even
  bool grouped = false;       // channels in groups
  std::int64_t unit = 0;      // sliced at multiples of this; 0: not sliced
  std::int64_t at_least = 0;  // top-k selects from it
  std::int64_t chosen = 0;    // 0: not yet
  std::int64_t made = 0;      // size after a pass; 0: as chosen
  bool used = false;          // in this pass
  int changes = 0;            // of `made`
};

class Shrinker {
 public:
  Shrinker(const plan::Graph& graph, const SmallSizes& sizes)
      : graph_(graph), sizes_(sizes), ties_(graph), classes_(ties_.count()) {
    for (std::size_t n = 0; n < graph.node_count(); ++n) {
      tie_groups(graph.view(NodeId(n)));
      tie_parts(graph.view(NodeId(n)));
      tie_inputs(graph.view(NodeId(n)));
    }
    for (std::size_t n = 0; n < graph.node_count(); ++n) learn(graph.view(NodeId(n)));
    if (sizes.alike) tie_alike();
    choose();
  }

  Result<plan::Graph> run() {
    for (int passes = 0; passes < kMostPasses; ++passes) {
      WEFT_TRY(done, pass());
      if (done) return std::move(made_);
    }
    return user_error("too many sizes differ from the chosen ones");
  }

 private:
  SizeClass& class_of(ValueId value, std::size_t dim) { return classes_[ties_.of(value, dim)]; }
  SizeClass& class_of(ValueId value, Symbol index) {
    return class_of(value, static_cast<std::size_t>(graph_.type(value).position(index)));
  }

  // Grouped convolutions with as many output as input channels keep that property.
  void tie_groups(const NodeView& node) {
    if (&node.op() != &ops::conv2d() || node.integer(kGroups) == 1) return;
    if (node.input_type(0).dims[1].size == node.input_type(1).dims[0].size)
      ties_.tie(ties_.of(node.input(0), 1), ties_.of(node.input(1), 0));
  }

  // An index that several inputs have has the same size in all.
  void tie_inputs(const NodeView& node) {
    if (&node.op() != &ops::input()) return;
    for (std::size_t dim = 0; dim < node.result_type(0).rank(); ++dim) {
      const Dim& here = node.result_type(0).dims[dim];
      const std::size_t sized = ties_.of(node.result(0), dim);
      const auto [first, fresh] = inputs_.try_emplace({here.index, here.size}, sized);
      if (!fresh) ties_.tie(first->second, sized);
    }
  }

  // Equal splits have results of equal sizes, such as a batch split into shards before every norm.
  void tie_parts(const NodeView& node) {
    if (&node.op() != &ops::split()) return;
    std::vector<std::int64_t> key = {node.symbol(kSplitFrom).value};
    for (const Dim& dim : node.type(kSplitTo).dims) key.insert(key.end(), {dim.index.value, dim.size});
    const auto [first, fresh] = splits_.try_emplace(std::move(key), node.result(0));
    if (fresh) return;
    for (const Dim& dim : node.type(kSplitTo).dims) {
      const auto part = [&](ValueId value) {
        return ties_.of(value, static_cast<std::size_t>(graph_.type(value).position(dim.index)));
      };
      ties_.tie(part(first->second), part(node.result(0)));
    }
  }

  // Except what windows slide over, whose sizes follow from the windows.
  void tie_alike() {
    std::map<std::int64_t, std::size_t> first;
    std::vector<std::pair<std::size_t, std::size_t>> alike;
    for (std::size_t v = 0; v < graph_.value_count(); ++v)
      for (std::size_t dim = 0; dim < graph_.type(ValueId(v)).rank(); ++dim) {
        const SizeClass& sized = class_of(ValueId(v), dim);
        if (sized.window || sized.image) continue;
        const auto [same, fresh] = first.try_emplace(sized.real, ties_.of(ValueId(v), dim));
        if (!fresh) alike.emplace_back(same->second, ties_.of(ValueId(v), dim));
      }
    for (const auto& [one, other] : alike) ties_.tie(one, other);
    classes_.assign(classes_.size(), SizeClass());
    for (std::size_t n = 0; n < graph_.node_count(); ++n) learn(graph_.view(NodeId(n)));
  }

  void learn(const NodeView& node) {
    for (std::size_t k = 0; k < node.result_count(); ++k)
      for (std::size_t dim = 0; dim < node.result_type(k).rank(); ++dim)
        class_of(node.result(k), dim).real = node.result_type(k).dims[dim].size;
    const plan::Operator* op = &node.op();
    if (slides(*op))
      for (std::size_t dim = node.input_type(0).rank() - 2; dim < node.input_type(0).rank(); ++dim)
        class_of(node.input(0), dim).image = true;
    if (op == &ops::conv2d()) {
      class_of(node.input(1), 2).window = class_of(node.input(1), 3).window = true;
      if (node.integer(kGroups) > 1)
        class_of(node.input(0), 1).grouped = class_of(node.input(1), 0).grouped = true;
    }
    if (op == &ops::rotary()) class_of(node.input(0), node.symbol(kRotaryPairs)).even = true;
    if (op == &ops::top_k())
      class_of(node.input(0), node.symbol(kTopOver)).at_least = node.integer(kTopCount) + 1;
    if (op == &ops::slice()) {
      SizeClass& cut = class_of(node.input(0), node.symbol(kSliceAlong));
      const std::int64_t whole = node.input_type(0).size_of(node.symbol(kSliceAlong));
      cut.unit =
          std::gcd(std::gcd(cut.unit, whole), std::gcd(node.integer(kSliceBegin), node.integer(kSliceEnd)));
    }
  }

  // In the order in which sources introduce them, so that indices that occur together differ.
  void choose() {
    std::size_t next = static_cast<std::size_t>(sizes_.turn);
    std::int64_t images = 0;
    for (std::size_t v = 0; v < graph_.value_count(); ++v)
      for (std::size_t dim = 0; dim < graph_.type(ValueId(v)).rank(); ++dim) {
        SizeClass& sized = class_of(ValueId(v), dim);
        if (sized.chosen == 0) sized.chosen = choice(sized, next, images);
      }
  }

  std::int64_t choice(const SizeClass& sized, std::size_t& next, std::int64_t& images) const {
    if (sized.window) return sized.real;
    if (sized.image)
      return std::min(sized.real, sizes_.alike || images++ % 2 == 0 ? sizes_.rows : sizes_.columns);
    if (sized.grouped && sized.real > kGrouped) return kGrouped;
    if (const std::int64_t parts = sized.unit > 1 ? sized.real / sized.unit : 0; parts > 1)
      return std::min(sized.real, parts * (sized.even ? 2 : 1) * (parts < 4 ? 2 : 1));
    if (sized.real == 1 ? !sizes_.grow_ones : sized.real <= sizes_.kept)
      return sizes_.multiple > 1 && sized.real >= std::max(sizes_.multiple, sized.at_least) ? sizes_.multiple
                                                                                            : sized.real;
    std::int64_t small = sizes_.multiple == 1
                             ? kSmallPool[next++ % std::size(kSmallPool)]
                             : sizes_.multiple * kSmallMultiples[next++ % std::size(kSmallMultiples)];
    small = std::max(small, sized.at_least);
    if (sized.even && small % 2 != 0) ++small;
    return sized.real == 1 ? small : std::min(small, sized.real);
  }

  std::int64_t size_of(SizeClass& sized) {
    sized.used = true;
    return sized.made > 0 ? sized.made : sized.chosen;
  }

  // False: a size came out different from what earlier nodes assumed, so another pass is needed.
  Result<bool> pass() {
    made_ = plan::Graph();
    made_.name = graph_.name;
    // Symbols keep their ids, so attributes can be copied.
    for (std::size_t s = 0; s < graph_.symbols().size(); ++s) made_.symbol(graph_.text(Symbol(s)));
    for (std::size_t s = 0; s < graph_.scope_count(); ++s) made_.add_scope(graph_.scope(plan::ScopeId(s)));
    values_.assign(graph_.value_count(), ValueId());
    for (SizeClass& sized : classes_) sized.used = false;
    for (std::size_t n = 0; n < graph_.node_count(); ++n) {
      WEFT_TRY(as_assumed, add(graph_.view(NodeId(n))));
      if (!as_assumed) return false;
    }
    for (const plan::Output& output : graph_.outputs()) made_.add_output(output, values_[output.value.value]);
    return true;
  }

  plan::Type small(ValueId value) const { return made_.type(values_[value.value]); }

  // Records the actual size of a class. True if no earlier node assumed another.
  Result<bool> settle(const NodeView& node, SizeClass& sized, Symbol index, std::int64_t size) {
    if (size_now(sized) == size) {
      sized.used = true;
      return true;
    }
    if (sized.made > 0 && sized.used && ++sized.changes > kMostChanges)
      return user_error(fmt::format("node {}: {} is {} in one place and {} in another at these sizes",
                                    describe(graph_, node.id()), graph_.text(index), sized.made, size));
    sized.made = size;
    const bool was_used = sized.used;
    sized.used = true;
    return !was_used;
  }
  static std::int64_t size_now(const SizeClass& sized) { return sized.made > 0 ? sized.made : sized.chosen; }

  Result<plan::TypeId> type_of(const NodeView& node, plan::Type type) {
    std::vector<Dim> dims(type.dims.begin(), type.dims.end());
    for (Dim& dim : dims)
      if (node.result_type(0).has(dim.index)) dim.size = size_of(class_of(node.result(0), dim.index));
    return made_.intern_type(type.dtype, dims);
  }

  Result<std::vector<AttributeValue>> attributes_of(const NodeView& node) {
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
    const plan::Operator* op = &node.op();
    if (op == &ops::position()) attributes[kPositionSize] = size_of(class_of(node.result(0), std::size_t{0}));
    if (op == &ops::scatter_add())
      attributes[kScatterCount] = size_of(class_of(node.result(0), node.symbol(kScatterAlong)));
    if (op == &ops::top_k()) attributes[kTopCount] = size_of(class_of(node.result(0), node.symbol(kTopInto)));
    if (op == &ops::reduce() && node.integer(kReducedCount) > 0) attributes[kReducedCount] = count_of(node);
    if (op == &ops::conv2d() && node.integer(kGroups) > 1)
      attributes[kGroups] = small(node.input(0)).dims[1].size / small(node.input(1)).dims[1].size;
    if (op == &ops::slot()) seat(node, attributes);
    if (op == &ops::labelled()) count_classes(node, attributes);
    if (op == &ops::slice()) WEFT_TRY_STATUS(cut(node, attributes));
    return attributes;
  }

  // A later split divides expert slots into experts and capacities.
  void seat(const NodeView& slot, std::vector<AttributeValue>& attributes) {
    const std::int64_t experts = slot.integer(kSlotExpertCount), seats = slot.integer(kSlotCapacities);
    for (std::size_t n = 0; n < graph_.node_count(); ++n) {
      const NodeView node = graph_.view(NodeId(n));
      if (&node.op() != &ops::split()) continue;
      const plan::Type into = node.type(kSplitTo);
      if (into.rank() != 2 || into.dims[0].size != experts || into.dims[1].size != seats) continue;
      attributes[kSlotExpertCount] = size_of(class_of(node.result(0), into.dims[0].index));
      attributes[kSlotCapacities] = size_of(class_of(node.result(0), into.dims[1].index));
      return;
    }
  }

  // The number of classes comes from the cross-entropy that reads the same labels.
  void count_classes(const NodeView& labelled, std::vector<AttributeValue>& attributes) {
    for (std::size_t n = 0; n < graph_.node_count(); ++n) {
      const NodeView node = graph_.view(NodeId(n));
      const bool is_linear = &node.op() == &ops::linear_cross_entropy();
      if (&node.op() != &ops::cross_entropy() && !is_linear) continue;
      const std::size_t classes = is_linear ? 1 : 0;  // the operand that has them; labels come next
      const Symbol over = node.symbol(kEntropyOver);
      if (node.input(classes + 1) != labelled.input(0) ||
          node.input_type(classes).size_of(over) != labelled.integer(kLabelledClasses))
        continue;
      attributes[kLabelledClasses] = size_of(class_of(node.input(classes), over));
      return;
    }
  }

  // At concatenation boundaries if there are any, otherwise proportionally.
  Status cut(const NodeView& slice, std::vector<AttributeValue>& attributes) {
    const Symbol along = slice.symbol(kSliceAlong);
    const std::int64_t whole = slice.input_type(0).size_of(along), now = small(slice.input(0)).size_of(along);
    if (whole == now) return {};
    if (const auto stretch = resized_slice(slice, made_, values_[slice.input(0).value], along);
        stretch.ok()) {
      attributes[kSliceBegin] = stretch->begin;
      attributes[kSliceEnd] = stretch->end;
      return {};
    }
    const std::int64_t begin = slice.integer(kSliceBegin), end = slice.integer(kSliceEnd);
    const std::int64_t from =
        std::min(now - 1, begin <= now / 2 && end - begin == 1 ? begin : begin * now / whole);
    attributes[kSliceBegin] = from;
    attributes[kSliceEnd] = std::clamp(end * now / whole, from + 1, now);
    return {};
  }

  Result<bool> add(const NodeView& node) {
    if (&node.op() == &ops::split()) {  // the size of a split index is the product of its parts
      std::int64_t parts = 1;
      for (const Dim& dim : node.type(kSplitTo).dims) parts *= size_of(class_of(node.result(0), dim.index));
      WEFT_TRY(as_assumed, settle(node, class_of(node.input(0), node.symbol(kSplitFrom)),
                                  node.symbol(kSplitFrom), parts));
      if (!as_assumed) return false;
    }
    WEFT_TRY(attributes, attributes_of(node));
    std::vector<ValueId> inputs;
    for (const ValueId input : node.node().inputs) inputs.push_back(values_[input.value]);
    made_.set_label(node.node().label);
    made_.set_scope(node.node().scope);
    made_.set_when(node.node().when);
    WEFT_TRY(added, made_.add(node.op(), inputs, attributes));
    for (std::size_t k = 0; k < node.result_count(); ++k) {
      values_[node.result(k).value] = made_.result(added, k);
      const plan::Type after = small(node.result(k));
      for (std::size_t dim = 0; dim < after.rank(); ++dim) {
        WEFT_TRY(as_assumed,
                 settle(node, class_of(node.result(k), dim), after.dims[dim].index, after.dims[dim].size));
        if (!as_assumed) return false;
      }
    }
    return true;
  }

  // A mean divides by the number of elements it reduces.
  std::int64_t count_of(const NodeView& node) const {
    const plan::Type before = node.input_type(0), after = small(node.input(0));
    std::int64_t reduced_before = 1, reduced_after = 1;
    for (const Dim& dim : before.dims)
      if (!node.result_type(0).has(dim.index)) {
        reduced_before *= dim.size;
        reduced_after *= after.size_of(dim.index);
      }
    return node.integer(kReducedCount) == reduced_before ? reduced_after : node.integer(kReducedCount);
  }

  const plan::Graph& graph_;
  const SmallSizes sizes_;
  SizeClasses ties_;
  std::vector<SizeClass> classes_;
  std::map<std::vector<std::int64_t>, ValueId> splits_;  // by split index and result type: the first result
  std::map<std::pair<Symbol, std::int64_t>, std::size_t> inputs_;  // by index and size: the first class
  std::vector<ValueId> values_;
  plan::Graph made_;
};

}  // namespace

Result<plan::Graph> shrink(const plan::Graph& graph, const SmallSizes& sizes) {
  return Shrinker(graph, sizes).run();
}

}  // namespace weft::distribute
