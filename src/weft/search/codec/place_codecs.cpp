#include "weft/search/codec/place_codecs.h"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "weft/base/units.h"
#include "weft/distribute/edit_plan.h"
#include "weft/ops/build.h"
#include "weft/ops/communication.h"
#include "weft/ops/loops.h"

namespace weft::search {
namespace {

using plan::NodeId;
using plan::NodeView;
using plan::ValueId;

// From the last node to the first: what only updates read, or sums and casts that only updates read.
std::vector<bool> gradient_sums(const plan::Graph& graph) {
  std::vector<bool> late(graph.value_count(), true), is_read(graph.value_count());
  std::vector<bool> found(graph.node_count());
  for (std::size_t n = graph.node_count(); n-- > 0;) {
    const NodeView node = graph.view(NodeId(n));
    const ops::Communication* const op = ops::find_communication(node.op());
    bool is_late = node.phase() == plan::Phase::update;
    if (node.phase() != plan::Phase::forward && node.input_count() == 1 &&
        (op != nullptr || &node.op() == &ops::cast())) {
      const std::size_t result = node.result(0).value;
      is_late = is_read[result] && late[result];
      if (op != nullptr) {
        const ops::Exchange exchange = op->exchange(node);
        found[n] = is_late && exchange.take == ops::Exchange::Take::combined &&
                   exchange.monoid == plan::Monoid::sum;
      }
    }
    for (const ValueId input : node.node().inputs) {
      is_read[input.value] = true;
      if (!is_late) late[input.value] = false;
    }
  }
  return found;
}

// All-gathers of a parameter's shards, or of a next parameter that is what a master weight rounds to. What else an
// update made is gathered as it is: it is kept, and a little would be lost of it in every step.
std::vector<bool> weight_gathers(const plan::Graph& graph) {
  std::vector<bool> is_kept(graph.value_count()), is_shard(graph.value_count()), is_rounded(graph.value_count());
  for (const plan::Output& output : graph.outputs())
    if (graph.text(output.name).starts_with("next ")) is_kept[output.value.value] = true;
  std::vector<bool> found(graph.node_count());
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const NodeView node = graph.view(NodeId(n));
    if (&node.op() == &ops::parameter()) is_shard[node.result(0).value] = true;
    const bool moves = ops::find_communication(node.op()) != nullptr, casts = &node.op() == &ops::cast();
    if (node.input_count() != 1 || (!moves && !casts)) continue;
    const std::size_t from = node.input(0).value, to = node.result(0).value;
    is_shard[to] = is_shard[from] && node.phase() != plan::Phase::update;
    is_rounded[to] = is_rounded[from] || (casts && is_kept[from] && node.phase() == plan::Phase::update);
    found[n] = &node.op() == &ops::all_gather() && (is_shard[to] || is_rounded[from]);
  }
  return found;
}

class CodecPlacer {
 public:
  CodecPlacer(const distribute::DistributedPlan& plan, const Codecs& codecs, std::int64_t block)
      : plan_(plan), codecs_(codecs), block_(block), edit_(plan) {}

  Result<CodedPlan> run() {
    const std::vector<bool> gradients = gradient_sums(plan_.graph), weights = weight_gathers(plan_.graph);
    CodedExchanges summed{.what = "gradients", .times = 1}, gathered{.what = "weights"};
    if (codecs_.gradients) summed.codec = *codecs_.gradients;
    if (codecs_.weights) gathered.codec = *codecs_.weights;
    for (std::size_t n = 0; n < plan_.graph.node_count(); ++n) {
      const NodeView node = plan_.graph.view(NodeId(n));
      const bool is_gradient = codecs_.gradients && gradients[n], is_weight = codecs_.weights && weights[n];
      if (!is_gradient && !is_weight) {
        WEFT_TRY_STATUS(edit_.keep(node.id()));
        continue;
      }
      CodedExchanges& to = is_gradient ? summed : gathered;
      const std::optional<Symbol> cut = cut_of(node, to.codec);
      if (!cut) {
        ++to.exact;
        to.exact_bytes += node.input_type(0).bytes();
        WEFT_TRY_STATUS(edit_.keep(node.id()));
        continue;
      }
      edit_.stand_at(node.id());
      if (is_gradient && &node.op() == &ops::all_reduce()) to.times = 2;
      ++to.coded;
      to.numbers += node.input_type(0).elements();
      to.bytes += node.input_type(0).bytes();
      to.code_bytes += coded_bytes(node, *cut, to.codec);
      WEFT_TRY_STATUS(is_gradient ? sum(node, *cut, to.codec) : gather(node, *cut, to.codec));
    }
    CodedPlan made;
    WEFT_TRY(plan, edit_.finish());
    made.plan = std::move(plan);
    if (codecs_.gradients) made.exchanges.push_back(summed);
    if (codecs_.weights) made.exchanges.push_back(gathered);
    return made;
  }

 private:
  using Indices = std::vector<Symbol>;

  std::size_t axis_of(const NodeView& node) const {
    return static_cast<std::size_t>(plan_.mesh.find(node.word(0)));
  }
  std::int32_t ranks_of(const NodeView& node) const { return plan_.mesh.axes[axis_of(node)].ranks; }

  // Indices that some axis slices: rows must not run along them.
  Indices sliced(ValueId value) const {
    Indices indices;
    for (const plan::AxisLayout& axis : plan_.layouts[value.value].axes)
      if (axis.is_sliced() && !ops::contains(indices, axis.index)) indices.push_back(axis.index);
    return indices;
  }

  std::int64_t row_length(const plan::Type& type, const Indices& kept) const {
    return ops::points_of(ops::without(type.dims, kept));
  }

  Indices kept_indices(const NodeView& node, Symbol cut) const {
    Indices kept = sliced(node.input(0));
    if (!ops::contains(kept, cut)) kept.push_back(cut);
    return kept;
  }

  std::int64_t coded_bytes(const NodeView& node, Symbol cut, ops::CodecKind codec) const {
    const plan::Type x = node.input_type(0);
    const std::int64_t row = row_length(x, kept_indices(node, cut));
    return x.elements() / row * 4 * ops::encoded_words({codec, block_}, row);
  }

  // The index whose blocks go to and come from the ranks; none: it goes as it is.
  std::optional<Symbol> cut_of(const NodeView& node, ops::CodecKind codec) const {
    const plan::Type x = node.input_type(0);
    if (ranks_of(node) == 1 || x.elements() < block_ || !is_real(x.dtype) || x.dtype == plan::DType::f64)
      return std::nullopt;
    std::optional<Symbol> best;
    std::int64_t least = x.bytes();  // that all ranks together have after the first hop
    const auto look_at = [&](Symbol cut) {
      const Indices kept = kept_indices(node, cut);
      const std::int64_t row = row_length(x, kept);
      if (kept.size() == x.rank()) return;
      const std::int64_t words = ops::encoded_words({codec, block_}, row), size = x.size_of(cut);
      const std::int64_t rows = x.elements() / row / size * plan::share_of(size, ranks_of(node), 0).size *
                                std::min<std::int64_t>(ranks_of(node), size);
      if (4 * words >= row * plan::size_in_bytes(x.dtype) || 4 * words * rows >= least) return;
      least = 4 * words * rows;
      best = cut;
    };
    if (&node.op() != &ops::all_reduce()) {
      look_at(node.symbol(1));
      return best;
    }
    const Indices taken = sliced(node.input(0));
    for (const plan::Dim& dim : x.dims)
      if (!ops::contains(taken, dim.index)) look_at(dim.index);
    return best;
  }

  // A name that the value has no index of.
  Symbol fresh(ValueId value, std::string name) {
    while (edit_.graph().type(value).has(edit_.graph().symbol(name))) name += '_';
    return edit_.graph().symbol(name);
  }

  // Codes that were decoded as they are needed are sent on as they are.
  Result<ValueId> encode(ValueId x, const Indices& keep, ops::CodecKind codec) {
    Indices kept;
    for (const plan::Dim& dim : edit_.graph().type(x).dims)
      if (ops::contains(keep, dim.index)) kept.push_back(dim.index);
    const NodeView producer = edit_.graph().view(edit_.graph().value(x).producer);
    if (&producer.op() == &ops::decode() && ops::codec_of(producer).kind == codec) {
      const plan::Type codes = producer.input_type(0);
      if (std::ranges::equal(codes.dims.first(codes.rank() - 1), kept, {}, &plan::Dim::index))
        return producer.input(0);
    }
    const auto key = std::pair(x, kept);
    if (const auto known = encoded_.find(key); known != encoded_.end()) return known->second;
    const std::array<plan::AttributeValue, 4> attributes = {edit_.graph().symbol(ops::name(codec)), block_,
                                                            std::span<const Symbol>(kept), fresh(x, "code")};
    WEFT_TRY(codes, edit_.graph().add_value(ops::encode(), {&x, 1}, attributes));
    encoded_.emplace(key, codes);
    return codes;
  }

  Result<ValueId> decode(ValueId codes, const plan::Type& like, plan::DType dtype, ops::CodecKind codec) {
    WEFT_TRY(type, edit_.graph().intern_type(dtype, like.dims));
    const std::array<plan::AttributeValue, 3> attributes = {edit_.graph().symbol(ops::name(codec)), block_, type};
    return edit_.graph().add_value(ops::decode(), {&codes, 1}, attributes);
  }

  Indices here(const Indices& indices) {
    Indices moved;
    for (const Symbol index : indices) moved.push_back(edit_.symbol(index));
    return moved;
  }

  Status gather(const NodeView& node, Symbol along, ops::CodecKind codec) {
    const ValueId x = edit_.now(node.input(0));
    const plan::Type type = edit_.graph().type(x);
    WEFT_TRY(codes, encode(x, here(kept_indices(node, along)), codec));
    WEFT_TRY(all, ops::add_all_gather(edit_.graph(), codes, node.word(0), edit_.symbol(along)));
    WEFT_TRY(numbers, decode(all, type, type.dtype, codec));
    edit_.become(node.result(0), numbers);
    return {};
  }

  // Row r is what rank r of the axis adds.
  Result<ValueId> stack(ValueId x, std::size_t axis, Indices& kept) {
    const plan::MeshAxis& along = plan_.mesh.axes[axis];
    const Symbol rows = fresh(x, along.name + "_addend");
    kept.push_back(rows);
    const std::array<plan::AttributeValue, 3> attributes = {edit_.graph().symbol(along.name), rows,
                                                            std::int64_t{along.ranks}};
    return edit_.graph().add_value(ops::addends(), {&x, 1}, attributes);
  }

  Status sum(const NodeView& node, Symbol cut, ops::CodecKind codec) {
    plan::Graph& graph = edit_.graph();
    ValueId x = edit_.now(node.input(0));
    const plan::Type type = graph.type(x);
    const std::size_t axis = axis_of(node);
    Indices kept = here(kept_indices(node, cut));
    // Addends of other axes are coded one by one too, and are addends again afterwards.
    const plan::Layout& layout = plan_.layouts[node.input(0).value];
    for (std::size_t other = 0; other < layout.axes.size(); ++other) {
      if (other == axis || !layout.axes[other].is_partial()) continue;
      WEFT_TRY(stacked, stack(x, other, kept));
      x = stacked;
    }
    const Indices without_own = kept;
    const Indices summed = ops::indices_of(graph.type(x).dims);
    WEFT_TRY(stacked, stack(x, axis, kept));
    WEFT_TRY(sent, encode(stacked, kept, codec));
    WEFT_TRY(received, ops::add_all_to_all(graph, sent, node.word(0), kept.back(), edit_.symbol(cut)));
    WEFT_TRY(addends, decode(received, graph.type(stacked), plan::DType::f32, codec));
    WEFT_TRY(total, ops::add_reduce(graph, "sum", addends, summed));
    if (&node.op() == &ops::all_reduce()) {
      WEFT_TRY(codes, encode(total, without_own, codec));
      WEFT_TRY(all, ops::add_all_gather(graph, codes, node.word(0), edit_.symbol(cut)));
      WEFT_TRY(numbers, decode(all, graph.type(total), type.dtype, codec));
      total = numbers;
    }
    if (summed.size() > type.rank()) {
      WEFT_TRY(addend, ops::add_reduce(graph, "sum", total, ops::indices_of(type.dims)));
      total = addend;
    }
    WEFT_TRY(as_it_was, ops::add_cast(graph, total, type.dtype));
    edit_.become(node.result(0), as_it_was);
    return {};
  }

  const distribute::DistributedPlan& plan_;
  const Codecs& codecs_;
  const std::int64_t block_;
  distribute::PlanEdit edit_;
  std::map<std::pair<ValueId, Indices>, ValueId> encoded_;
};

}  // namespace

bool CodedPlan::any() const {
  return std::ranges::any_of(exchanges, [](const CodedExchanges& kind) { return kind.coded > 0; });
}

Result<CodedPlan> place_codecs(const distribute::DistributedPlan& plan, const Codecs& codecs, std::int64_t block) {
  return CodecPlacer(plan, codecs, block).run();
}

std::string print(const CodedExchanges& kind) {
  const std::size_t all = kind.coded + kind.exact;
  if (kind.coded == 0)
    return fmt::format("{} {}: {}", kind.what, ops::name(kind.codec),
                       all == 0 ? "none are exchanged" : "what is exchanged is too small, and goes as it is");
  std::string text = fmt::format(
      "{} {}: {} of {} exchanges, {} as {}, off by at most {}", kind.what, ops::name(kind.codec), kind.coded, all,
      print_bytes(static_cast<double>(kind.bytes)), print_bytes(static_cast<double>(kind.code_bytes)),
      ops::error_bound_text(kind.codec));
  if (kind.times > 1) text += fmt::format(" each of {} times", kind.times);
  if (kind.exact > 0) text += fmt::format("; {} go as they are", print_bytes(static_cast<double>(kind.exact_bytes)));
  return text;
}

}  // namespace weft::search
