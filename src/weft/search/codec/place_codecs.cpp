#include "weft/search/codec/place_codecs.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

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
        found[n] =
            is_late && exchange.take == ops::Exchange::Take::combined && exchange.monoid == plan::Monoid::sum;
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
  std::vector<bool> is_kept(graph.value_count()), is_shard(graph.value_count()),
      is_rounded(graph.value_count());
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

using SymbolList = std::vector<Symbol>;

// How a value is coded to be cut in blocks along one of its indices.
struct CodedRows {
  SymbolList kept;
  bool cut_codes = false;    // the blocks are of codes, between segments; else that index is kept
  std::int64_t segment = 0;  // steps of the first index that is not kept
  std::int64_t bytes = 0;    // of all codes
};

class CodecPlacer {
 public:
  CodecPlacer(const distribute::DistributedPlan& plan, const Codecs& codecs, std::int64_t block)
      : plan_(plan), codecs_(codecs), block_(block), edit_(plan) {}

  Result<CodedPlan> run() {
    const std::vector<bool> gradients = gradient_sums(plan_.graph), weights = weight_gathers(plan_.graph);
    CodedExchanges summed{.what = "gradients"}, gathered{.what = "weights"};
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
      Symbol cut;
      const std::optional<CodedRows> rows = rows_of(node, to.codec, cut);
      if (!rows) {
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
      to.code_bytes += rows->bytes;
      WEFT_TRY_STATUS(is_gradient ? sum(node, cut, *rows, to.codec) : gather(node, cut, *rows, to.codec));
    }
    CodedPlan made;
    WEFT_TRY(plan, edit_.finish());
    made.plan = std::move(plan);
    if (codecs_.gradients) made.exchanges.push_back(summed);
    if (codecs_.weights) made.exchanges.push_back(gathered);
    return made;
  }

 private:
  std::size_t axis_of(const NodeView& node) const {
    return static_cast<std::size_t>(plan_.mesh.find(node.word(0)));
  }
  std::int32_t ranks_of(const NodeView& node) const { return plan_.mesh.axes[axis_of(node)].ranks; }

  SymbolList sliced(ValueId value) const {
    SymbolList indices;
    for (const plan::AxisLayout& axis : plan_.layouts[value.value].axes)
      if (axis.is_sliced() && !ops::contains(indices, axis.index)) indices.push_back(axis.index);
    return indices;
  }

  // With `kept` kept and the rest in rows; none where that cannot be cut, or is no smaller.
  std::optional<CodedRows> try_rows(const NodeView& node, Symbol cut, SymbolList kept,
                                    ops::CodecKind codec) const {
    const plan::Type x = node.input_type(0);
    const ops::DimList row = ops::without(x.dims, kept);
    if (row.empty()) return std::nullopt;
    const plan::Dim first = row[0];
    const bool cut_codes = !ops::contains(kept, cut);
    if (cut_codes && first.index != cut) return std::nullopt;
    std::int64_t parts = 1;
    const plan::Layout& layout = plan_.layouts[node.input(0).value];
    for (std::size_t axis = 0; axis < layout.axes.size(); ++axis) {
      const plan::AxisLayout& here = layout.axes[axis];
      const bool is_own = axis == axis_of(node) && cut_codes;
      if (here.is_sliced() && here.index != first.index &&
          row.end() != std::ranges::find(row, here.index, &plan::Dim::index))
        return std::nullopt;
      // What an inner axis cuts is not cut by an outer one afterwards.
      if (here.slices(first.index) && cut_codes && axis > axis_of(node)) return std::nullopt;
      if (here.slices(first.index) || is_own) parts *= plan_.mesh.axes[axis].ranks;
    }
    if (first.size % parts != 0) return std::nullopt;
    CodedRows rows{std::move(kept), cut_codes, first.size / parts, 0};
    const std::int64_t numbers = rows.segment * ops::points_of(row) / first.size,
                       bytes = 4 * ops::encoded_words({codec, block_}, numbers);
    if (bytes >= numbers * plan::size_in_bytes(x.dtype)) return std::nullopt;
    rows.bytes = x.elements() / numbers * bytes;
    return rows;
  }

  std::optional<CodedRows> best_rows(const NodeView& node, Symbol cut, ops::CodecKind codec) const {
    const SymbolList taken = sliced(node.input(0));
    std::optional<CodedRows> best;
    double least = 0;
    const auto look_at = [&](const SymbolList& kept) {
      const std::optional<CodedRows> rows = try_rows(node, cut, kept, codec);
      if (!rows) return;
      // Ranks wait for the largest block.
      const std::int64_t size = node.input_type(0).size_of(cut);
      const double uneven = static_cast<double>(plan::share_of(size, ranks_of(node), 0).size) *
                            ranks_of(node) / static_cast<double>(size);
      const double bytes = static_cast<double>(rows->bytes) * (rows->cut_codes ? 1 : uneven);
      if (best && bytes >= least) return;
      least = bytes;
      best = rows;
    };
    for (const bool keeps_cut : {false, true}) {
      SymbolList kept = taken;
      std::erase(kept, cut);
      if (keeps_cut) kept.push_back(cut);
      look_at(kept);
      for (const Symbol other : taken) {
        SymbolList fewer = kept;
        std::erase(fewer, other);
        if (other != cut) look_at(fewer);
      }
    }
    return best;
  }

  // `cut` is the index whose blocks go to and come from the ranks. None: it goes as it is.
  std::optional<CodedRows> rows_of(const NodeView& node, ops::CodecKind codec, Symbol& cut) const {
    const plan::Type x = node.input_type(0);
    if (ranks_of(node) == 1 || x.elements() < block_ || !is_real(x.dtype) || x.dtype == plan::DType::f64)
      return std::nullopt;
    if (&node.op() != &ops::all_reduce()) {
      cut = node.symbol(1);
      return best_rows(node, cut, codec);
    }
    std::optional<CodedRows> best;
    const SymbolList taken = sliced(node.input(0));
    for (const plan::Dim& dim : x.dims) {
      if (ops::contains(taken, dim.index)) continue;
      const std::optional<CodedRows> rows = best_rows(node, dim.index, codec);
      if (!rows || (best && rows->bytes >= best->bytes)) continue;
      best = rows;
      cut = dim.index;
    }
    return best;
  }

  // A name that the value has no index of.
  Symbol fresh(ValueId value, std::string name) {
    while (edit_.graph().type(value).has(edit_.graph().symbol(name))) name += '_';
    return edit_.graph().symbol(name);
  }

  Result<ValueId> encode(ValueId x, const SymbolList& keep, std::int64_t segment, ops::CodecKind codec) {
    SymbolList kept;
    for (const plan::Dim& dim : edit_.graph().type(x).dims)
      if (ops::contains(keep, dim.index)) kept.push_back(dim.index);
    const auto key = std::tuple(x, kept, segment);
    if (const auto known = encoded_.find(key); known != encoded_.end()) return known->second;
    const std::array<plan::AttributeValue, 5> attributes = {edit_.graph().symbol(ops::name(codec)), block_,
                                                            segment, std::span<const Symbol>(kept),
                                                            fresh(x, "code")};
    WEFT_TRY(codes, edit_.graph().add_value(ops::encode(), {&x, 1}, attributes));
    encoded_.emplace(key, codes);
    return codes;
  }

  Result<ValueId> decode(ValueId codes, const plan::Type& like, plan::DType dtype, std::int64_t segment,
                         ops::CodecKind codec) {
    WEFT_TRY(type, edit_.graph().intern_type(dtype, like.dims));
    const std::array<plan::AttributeValue, 4> attributes = {edit_.graph().symbol(ops::name(codec)), block_,
                                                            segment, type};
    return edit_.graph().add_value(ops::decode(), {&codes, 1}, attributes);
  }

  SymbolList here(const SymbolList& indices) {
    SymbolList moved;
    for (const Symbol index : indices) moved.push_back(edit_.symbol(index));
    return moved;
  }

  // The index of the codes along which they are cut.
  Symbol cut_of(ValueId codes, Symbol cut, const CodedRows& rows) {
    return rows.cut_codes ? edit_.graph().type(codes).dims.back().index : edit_.symbol(cut);
  }

  // Codes that were decoded, and have the index they are gathered along, are sent on as they are.
  ValueId codes_behind(ValueId x, Symbol along, ops::CodecKind codec) {
    const NodeView producer = edit_.graph().view(edit_.graph().value(x).producer);
    if (&producer.op() != &ops::decode() || ops::codec_of(producer).kind != codec ||
        !producer.input_type(0).has(along))
      return {};
    return producer.input(0);
  }

  Status gather(const NodeView& node, Symbol along, const CodedRows& rows, ops::CodecKind codec) {
    const ValueId x = edit_.now(node.input(0));
    const plan::Type type = edit_.graph().type(x);
    if (const ValueId sent = codes_behind(x, edit_.symbol(along), codec); sent.valid()) {
      const std::int64_t segment = edit_.graph().view(edit_.graph().value(x).producer).integer(2);
      WEFT_TRY(all, ops::add_all_gather(edit_.graph(), sent, node.word(0), edit_.symbol(along)));
      WEFT_TRY(numbers, decode(all, type, type.dtype, segment, codec));
      edit_.become(node.result(0), numbers);
      return {};
    }
    WEFT_TRY(codes, encode(x, here(rows.kept), rows.segment, codec));
    WEFT_TRY(all, ops::add_all_gather(edit_.graph(), codes, node.word(0), cut_of(codes, along, rows)));
    WEFT_TRY(numbers, decode(all, type, type.dtype, rows.segment, codec));
    edit_.become(node.result(0), numbers);
    return {};
  }

  // Row r is what rank r of the axis adds.
  Result<ValueId> stack(ValueId x, std::size_t axis, SymbolList& kept) {
    const plan::MeshAxis& along = plan_.mesh.axes[axis];
    const Symbol rows = fresh(x, along.name + "_addend");
    kept.push_back(rows);
    const std::array<plan::AttributeValue, 3> attributes = {edit_.graph().symbol(along.name), rows,
                                                            std::int64_t{along.ranks}};
    return edit_.graph().add_value(ops::addends(), {&x, 1}, attributes);
  }

  Status sum(const NodeView& node, Symbol cut, const CodedRows& rows, ops::CodecKind codec) {
    plan::Graph& graph = edit_.graph();
    ValueId x = edit_.now(node.input(0));
    const plan::Type type = graph.type(x);
    const std::size_t axis = axis_of(node);
    SymbolList kept = here(rows.kept);
    // Addends of other axes are coded one by one too, and are addends again afterwards.
    const plan::Layout& layout = plan_.layouts[node.input(0).value];
    for (std::size_t other = 0; other < layout.axes.size(); ++other) {
      if (other == axis || !layout.axes[other].is_partial()) continue;
      WEFT_TRY(stacked, stack(x, other, kept));
      x = stacked;
    }
    const SymbolList without_own = kept;
    const SymbolList summed = ops::indices_of(graph.type(x).dims);
    WEFT_TRY(stacked, stack(x, axis, kept));
    WEFT_TRY(sent, encode(stacked, kept, rows.segment, codec));
    WEFT_TRY(received, ops::add_all_to_all(graph, sent, node.word(0), kept.back(), cut_of(sent, cut, rows)));
    WEFT_TRY(addends, decode(received, graph.type(stacked), plan::DType::f32, rows.segment, codec));
    WEFT_TRY(total, ops::add_reduce(graph, "sum", addends, summed));
    if (&node.op() == &ops::all_reduce()) {
      WEFT_TRY(codes, encode(total, without_own, rows.segment, codec));
      WEFT_TRY(all, ops::add_all_gather(graph, codes, node.word(0), cut_of(codes, cut, rows)));
      WEFT_TRY(numbers, decode(all, graph.type(total), type.dtype, rows.segment, codec));
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
  std::map<std::tuple<ValueId, SymbolList, std::int64_t>, ValueId> encoded_;
};

}  // namespace

bool CodedPlan::any() const {
  return std::ranges::any_of(exchanges, [](const CodedExchanges& kind) { return kind.coded > 0; });
}

Result<CodedPlan> place_codecs(const distribute::DistributedPlan& plan, const Codecs& codecs,
                               std::int64_t block) {
  return CodecPlacer(plan, codecs, block).run();
}

std::string print(const CodedExchanges& kind) {
  const std::size_t all = kind.coded + kind.exact;
  if (kind.coded == 0)
    return fmt::format(
        "{} {}: {}", kind.what, ops::name(kind.codec),
        all == 0 ? "none are exchanged" : "nothing that is exchanged can be coded, and it goes as it is");
  std::string text =
      fmt::format("{} {}: {} of {} exchanges, {} as {}, off by at most {}", kind.what, ops::name(kind.codec),
                  kind.coded, all, print_bytes(static_cast<double>(kind.bytes)),
                  print_bytes(static_cast<double>(kind.code_bytes)), ops::error_bound_text(kind.codec));
  if (kind.times > 1) text += fmt::format(" each of {} times", kind.times);
  if (kind.exact > 0)
    text += fmt::format("; {} go as they are", print_bytes(static_cast<double>(kind.exact_bytes)));
  return text;
}

}  // namespace weft::search
