#include "weft/planner/search/codec/place_codecs.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <variant>

#include <fmt/format.h>

#include "weft/parallel/distribute/edit_plan.h"
#include "weft/parallel/distribute/trace_origins.h"
#include "weft/parallel/pipeline/pipelined_plan.h"
#include "weft/parallel/train/training_plan.h"
#include "weft/plan/ops/build.h"
#include "weft/plan/ops/communication.h"
#include "weft/plan/ops/formula.h"
#include "weft/plan/ops/loops.h"
#include "weft/planner/search/bucket/gradient_sums.h"
#include "weft/planner/search/codec/add_codec.h"

namespace weft::search {
namespace {

using plan::NodeId;
using plan::NodeView;
using plan::ValueId;

// All-gathers of parameter shards, or of a new parameter rounded from a master weight. Other
// results of an update are kept, so encoding them would lose a little in every step.
std::vector<bool> weight_gathers(const plan::Graph& graph) {
  std::vector<bool> is_kept(graph.value_count()), is_shard(graph.value_count()),
      is_rounded(graph.value_count());
  for (const plan::Output& output : graph.outputs())
    if (output.updates.valid()) is_kept[output.value.value] = true;
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

// How to encode a value so that it can be split into blocks along an index.
struct CodedRows {
  SymbolList kept;
  bool cut_codes = false;    // splits the codes between segments; else the index is kept
  std::int64_t segment = 0;  // positions of the first index that is not kept
  std::int64_t bytes = 0;    // of all codes
  ops::Codec codec;          // for one segment
};

class CodecPlacer {
 public:
  CodecPlacer(const distribute::DistributedPlan& plan, const Codecs& codecs, std::int64_t block)
      : plan_(plan),
        codecs_(codecs),
        block_(block),
        edit_(plan),
        is_gradient_(gradient_sums(plan.graph)),
        is_weight_(weight_gathers(plan.graph)),
        names_(gradient_names(plan.graph)),
        skips_steps_(distribute::sources_of(plan.graph).contains(train::kLossScaleName)) {}

  std::vector<CodableExchange> codable() const {
    std::vector<CodableExchange> found;
    for (std::size_t n = 0; n < plan_.graph.node_count(); ++n) {
      const CodecChoice* const choice = choice_of(n);
      if (choice == nullptr) continue;
      const NodeView node = plan_.graph.view(NodeId(n));
      Symbol cut;
      if (std::ranges::any_of(choice->codecs, [&](const AllowedCodec& codec) {
            return rows_of(node, codec, cut).has_value();
          }))
        found.push_back({node.id(), choice == &codecs_.gradients, node.input_type(0).bytes()});
    }
    return found;
  }

  Result<CodedPlan> run(const CodecPicks& picks) {
    std::vector<CodedExchanges> summed = reports_of("gradients", codecs_.gradients),
                                gathered = reports_of("weights", codecs_.weights);
    for (std::size_t n = 0; n < plan_.graph.node_count(); ++n) {
      const NodeView node = plan_.graph.view(NodeId(n));
      const CodecChoice* const choice = choice_of(n);
      if (choice == nullptr) {
        WEFT_TRY_STATUS(edit_.keep(node.id()));
        continue;
      }
      const bool is_gradient = choice == &codecs_.gradients;
      std::vector<CodedExchanges>& reports = is_gradient ? summed : gathered;
      const std::size_t pick = picks[n].value_or(0);
      const AllowedCodec& codec = choice->codecs[pick];
      Symbol cut;
      const std::optional<CodedRows> rows = rows_of(node, codec, cut);
      if (!rows || !picks[n]) {
        ++reports[0].exact;
        if (rows) ++reports[0].unworthy;
        reports[0].exact_bytes += node.input_type(0).bytes();
        WEFT_TRY_STATUS(edit_.keep(node.id()));
        continue;
      }
      CodedExchanges& to = reports[pick];
      edit_.adopt_context(node.id());
      if (is_gradient && &node.op() == &ops::all_reduce()) to.times = 2;
      ++to.coded;
      if (const std::string& parameter = names_[node.input(0).value]; is_gradient && !parameter.empty())
        to.tensors.push_back(parameter);
      to.numbers += node.input_type(0).elements();
      to.bytes += node.input_type(0).bytes();
      to.code_bytes += rows->bytes;
      const std::size_t kept = lost_.size();
      WEFT_TRY_STATUS(is_gradient ? sum(node, cut, *rows, codec) : gather(node, cut, *rows, codec));
      for (std::size_t i = kept; i < lost_.size(); ++i) lost_[i].pick = pick;
    }
    if (skips_steps_) WEFT_TRY_STATUS(follow_loss_scale());
    CodedPlan made;
    WEFT_TRY(plan, edit_.finish());
    made.plan = std::move(plan);
    for (const Lost& lost : lost_) {
      made.plan.graph.add_update(lost.name, lost.next);
      std::int64_t elements = 1;
      for (const plan::Share& share : plan::shares_of(made.plan.graph.type(lost.next),
                                                      made.plan.layouts[lost.next.value], made.plan.mesh, 0))
        elements *= share.size;
      summed[lost.pick].lost_bytes += elements * plan::size_in_bytes(plan::DType::f32);
    }
    for (std::vector<CodedExchanges>* reports : {&summed, &gathered}) keep_used(*reports, made.exchanges);
    return made;
  }

 private:
  // Error feedback: the error of one step, added in the next.
  struct Lost {
    std::string name;
    ValueId now, next;
    NodeId exchange;  // whose encoding caused the error
    std::size_t pick = 0;
  };

  // Keeps the reports of codecs in use, or else the first. Uncoded exchanges are reported once.
  static void keep_used(const std::vector<CodedExchanges>& reports, std::vector<CodedExchanges>& kept) {
    if (reports.empty()) return;
    const std::size_t before = kept.size();
    std::ranges::copy_if(reports, std::back_inserter(kept),
                         [](const CodedExchanges& report) { return report.coded > 0; });
    if (kept.size() == before) kept.push_back(reports[0]);
    kept[before].exact = reports[0].exact;
    kept[before].unworthy = reports[0].unworthy;
    kept[before].exact_bytes = reports[0].exact_bytes;
    for (std::size_t i = before + 1; i < kept.size(); ++i)
      kept[i].exact = kept[i].unworthy = 0, kept[i].exact_bytes = 0;
  }

  static std::vector<CodedExchanges> reports_of(std::string_view what, const CodecChoice& choice) {
    std::vector<CodedExchanges> reports;
    for (const AllowedCodec& codec : choice.codecs) reports.push_back({.what = what, .codec = codec});
    return reports;
  }

  // Accumulation over micro-batches moves no data.
  bool is_moved(const NodeView& node) const {
    return !plan_.time || (node.word(0) != pipeline::kMicroAxis && is_whole_batch(node.input(0)));
  }
  // Whether the value is the same for all micro-batches. Else each would have to encode it.
  bool is_whole_batch(ValueId value) const {
    const int micro = plan_.mesh.find(pipeline::kMicroAxis);
    return micro < 0 || plan_.mesh.axes[static_cast<std::size_t>(micro)].ranks == 1 ||
           plan_.layouts[value.value].axes[static_cast<std::size_t>(micro)].is_replicated();
  }

  const CodecChoice* choice_of(std::size_t node) const {
    if ((is_gradient_[node] || is_weight_[node]) && !is_moved(plan_.graph.view(NodeId(node)))) return nullptr;
    if (is_gradient_[node] && codecs_.gradients.any()) return &codecs_.gradients;
    if (is_weight_[node] && codecs_.weights.any()) return &codecs_.weights;
    return nullptr;
  }

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

  // Keeps the indices `kept` and encodes the rest in rows. None if that cannot be split or is not
  // smaller.
  std::optional<CodedRows> try_rows(const NodeView& node, Symbol cut, SymbolList kept,
                                    const AllowedCodec& codec) const {
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
      // An outer axis cannot slice an index after an inner axis has.
      if (here.slices(first.index) && cut_codes && axis > axis_of(node)) return std::nullopt;
      if (here.slices(first.index) || is_own) parts *= plan_.mesh.axes[axis].ranks;
    }
    if (first.size % parts != 0) return std::nullopt;
    CodedRows rows{std::move(kept), cut_codes, first.size / parts, 0, {}};
    const std::int64_t columns = ops::points_of(row) / first.size, numbers = rows.segment * columns;
    rows.codec = codec.of(block_, numbers, columns);
    // For low_rank this is Project Adam's condition: k (M + N) < M N.
    const std::int64_t bytes = 4 * ops::encoded_words(rows.codec, numbers);
    if (bytes >= numbers * plan::size_in_bytes(x.dtype)) return std::nullopt;
    rows.bytes = x.elements() / numbers * bytes;
    return rows;
  }

  std::optional<CodedRows> best_rows(const NodeView& node, Symbol cut, const AllowedCodec& codec) const {
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

  // Sets `cut` to the index whose blocks are exchanged. None: sent uncoded.
  std::optional<CodedRows> rows_of(const NodeView& node, const AllowedCodec& codec, Symbol& cut) const {
    const plan::Type x = node.input_type(0);
    if (ranks_of(node) == 1 || x.elements() < block_ || !is_real(x.dtype) || x.dtype == plan::DType::f64 ||
        plan::is_f8(x.dtype))
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

  Result<ValueId> encode(ValueId x, const SymbolList& keep, const CodedRows& rows) {
    SymbolList kept;
    for (const plan::Dim& dim : edit_.graph().type(x).dims)
      if (ops::contains(keep, dim.index)) kept.push_back(dim.index);
    const auto key = std::tuple(x, kept, rows.segment, rows.codec.kind, rows.codec.block);
    if (const auto known = encoded_.find(key); known != encoded_.end()) return known->second;
    WEFT_TRY(codes, add_encode(edit_.graph(), x, kept, rows.segment, rows.codec));
    encoded_.emplace(key, codes);
    return codes;
  }

  Result<ValueId> decode(ValueId codes, const plan::Type& like, plan::DType dtype, const CodedRows& rows) {
    return add_decode(edit_.graph(), codes, like, dtype, rows.segment, rows.codec);
  }

  // Adds the error as a source of the plan, outside all layers and before them.
  Result<ValueId> add_lost(const std::string& name, plan::TypeId type, const plan::Layout& layout) {
    plan::Graph& graph = edit_.graph();
    graph.set_label({});
    graph.set_scope({});
    graph.set_when({});
    const std::array<plan::AttributeValue, 6> attributes = {
        graph.symbol(name), type,
        std::monostate(),   std::monostate(),
        std::monostate(),   graph.symbol(print(layout, plan_.mesh, graph.symbols()))};
    return graph.add_value(ops::state(), {}, attributes);
  }

  // Gradients are multiplied by the loss scale, and so are their errors, which must be rescaled
  // with it. A step that reduces the scale is skipped, so its error is discarded.
  Status follow_loss_scale() {
    ValueId next_scale;
    for (const plan::Output& output : plan_.graph.outputs())
      if (plan_.graph.updated(output) == train::kLossScaleName) next_scale = output.value;
    if (!next_scale.valid() || lost_.empty()) return {};
    const ValueId next = edit_.now(next_scale);
    const NodeId source = distribute::sources_of(plan_.graph).find(train::kLossScaleName)->second;
    const ValueId scale = edit_.now(plan_.graph.result(source));
    plan::Graph& graph = edit_.graph();
    const auto adopt_context = [&](NodeId node) {
      edit_.adopt_context(node);  // sets the stage or micro-batch position
      graph.set_label({});
      graph.set_scope({});
      graph.set_when({.phase = plan::Phase::update});
    };
    adopt_context(plan_.graph.value(next_scale).producer);
    ops::Formula f(graph);
    const ValueId ratio = f(ops::div(), {next, scale}), is_skipped = f(ops::less(), {next, scale});
    for (Lost& lost : lost_) {
      adopt_context(lost.exchange);
      lost.next = f(ops::mul(), {f(ops::select(), {is_skipped, lost.now, lost.next}), ratio});
    }
    return f.status();
  }

  // Encodes x plus the previous error. The new error is kept for the next step where it is finite.
  Result<ValueId> encode_with_lost(const NodeView& node, ValueId x, const plan::Layout& layout,
                                   const SymbolList& keep, const CodedRows& rows, std::string name) {
    plan::Graph& graph = edit_.graph();
    while (!taken_.insert(name).second || distribute::sources_of(plan_.graph).contains(name)) name += "_";
    WEFT_TRY(type, graph.intern_type(plan::DType::f32, graph.type(x).dims));
    WEFT_TRY(lost, add_lost(name, type, layout));
    edit_.adopt_context(node.id());
    ops::Formula f(graph);
    const ValueId wanted = f(ops::add(), {f.cast(x, plan::DType::f32), lost});
    const ValueId codes = f.keep([&] { return encode(wanted, keep, rows); });
    const ValueId arrives = f.keep([&] { return decode(codes, graph.type(wanted), plan::DType::f32, rows); });
    ValueId next = f(ops::sub(), {wanted, arrives});
    if (skips_steps_) next = f(ops::select(), {f(ops::equal(), {next, next}), next, lost});
    WEFT_TRY_STATUS(f.status());
    lost_.push_back({std::move(name), lost, next, node.id()});
    return codes;
  }

  SymbolList here(const SymbolList& indices) {
    SymbolList moved;
    for (const Symbol index : indices) moved.push_back(edit_.symbol(index));
    return moved;
  }

  // The index along which codes are split.
  Symbol cut_of(ValueId codes, Symbol cut, const CodedRows& rows) {
    return rows.cut_codes ? edit_.graph().type(codes).dims.back().index : edit_.symbol(cut);
  }

  // If x was decoded from codes that have the index to gather along, forwards these codes.
  ValueId codes_behind(ValueId x, Symbol along, const AllowedCodec& codec) {
    const NodeView producer = edit_.graph().view(edit_.graph().value(x).producer);
    if (&producer.op() != &ops::decode() || ops::codec_of(producer).kind != codec.kind ||
        !producer.input_type(0).has(along))
      return {};
    return producer.input(0);
  }

  Status gather(const NodeView& node, Symbol along, const CodedRows& rows, const AllowedCodec& codec) {
    const ValueId x = edit_.now(node.input(0));
    const plan::Type type = edit_.graph().type(x);
    CodedRows coded = rows;
    ValueId codes = codes_behind(x, edit_.symbol(along), codec);
    Symbol cut = edit_.symbol(along);
    if (codes.valid()) {
      const NodeView decoded = edit_.graph().view(edit_.graph().value(x).producer);
      coded.segment = decoded.integer(2);
      coded.codec = ops::codec_of(decoded);
    } else {
      WEFT_TRY(made, encode(x, here(rows.kept), rows));
      codes = made;
      cut = cut_of(codes, along, rows);
    }
    WEFT_TRY(all, ops::add_all_gather(edit_.graph(), codes, node.word(0), cut));
    WEFT_TRY(numbers, decode(all, type, type.dtype, coded));
    edit_.become(node.result(0), numbers);
    return {};
  }

  // Stacks the addends: row r is that of rank r along the axis.
  Result<ValueId> stack(ValueId x, std::size_t axis, SymbolList& kept) {
    const plan::MeshAxis& along = plan_.mesh.axes[axis];
    const Symbol rows = fresh_index(edit_.graph(), x, along.name + "_addend");
    kept.push_back(rows);
    const std::array<plan::AttributeValue, 3> attributes = {edit_.graph().symbol(along.name), rows,
                                                            std::int64_t{along.ranks}};
    return edit_.graph().add_value(ops::addends(), {&x, 1}, attributes);
  }

  Status sum(const NodeView& node, Symbol cut, const CodedRows& rows, const AllowedCodec& codec) {
    plan::Graph& graph = edit_.graph();
    ValueId x = edit_.now(node.input(0));
    const plan::Type type = graph.type(x);
    const std::size_t axis = axis_of(node);
    SymbolList kept = here(rows.kept);
    plan::Layout layout = plan_.layouts[node.input(0).value];
    for (plan::AxisLayout& along : layout.axes)
      if (along.is_sliced()) along.index = edit_.symbol(along.index);
    // Partial sums along other axes are encoded separately too, and remain partial sums.
    for (std::size_t other = 0; other < layout.axes.size(); ++other) {
      if (other == axis || !layout.axes[other].is_partial()) continue;
      WEFT_TRY(stacked, stack(x, other, kept));
      x = stacked;
      layout.axes[other] = plan::AxisLayout::sliced(kept.back());
    }
    const SymbolList without_own = kept;
    const SymbolList summed = ops::indices_of(graph.type(x).dims);
    WEFT_TRY(stacked, stack(x, axis, kept));
    layout.axes[axis] = plan::AxisLayout::sliced(kept.back());
    const std::string& parameter = names_[node.input(0).value];
    const std::string lost =
        fmt::format("{}.lost.{}", parameter.empty() ? "gradient" : parameter, node.word(0));
    WEFT_TRY(sent, codec.feedback ? encode_with_lost(node, stacked, layout, kept, rows, lost)
                                  : encode(stacked, kept, rows));
    WEFT_TRY(received, ops::add_all_to_all(graph, sent, node.word(0), kept.back(), cut_of(sent, cut, rows)));
    WEFT_TRY(addends, decode(received, graph.type(stacked), plan::DType::f32, rows));
    WEFT_TRY(total, ops::add_reduce(graph, "sum", addends, summed));
    if (&node.op() == &ops::all_reduce()) {
      layout.axes[axis] = plan::AxisLayout::sliced(edit_.symbol(cut));
      WEFT_TRY(codes, codec.feedback ? encode_with_lost(node, total, layout, without_own, rows, lost + ".sum")
                                     : encode(total, without_own, rows));
      WEFT_TRY(all, ops::add_all_gather(graph, codes, node.word(0), cut_of(codes, cut, rows)));
      WEFT_TRY(numbers, decode(all, graph.type(total), type.dtype, rows));
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
  const std::vector<bool> is_gradient_, is_weight_;  // by node
  const std::vector<std::string> names_;             // of parameters, by gradient
  const bool skips_steps_;                           // with gradients that are not finite
  std::map<std::tuple<ValueId, SymbolList, std::int64_t, ops::CodecKind, std::int64_t>, ValueId> encoded_;
  std::vector<Lost> lost_;
  std::set<std::string> taken_;  // names in lost_
};

}  // namespace

std::vector<CodableExchange> codable_exchanges(const distribute::DistributedPlan& plan, const Codecs& codecs,
                                               std::int64_t block) {
  return CodecPlacer(plan, codecs, block).codable();
}

Result<CodedPlan> place_codecs(const distribute::DistributedPlan& plan, const Codecs& codecs,
                               const CodecPicks& picks, std::int64_t block) {
  return CodecPlacer(plan, codecs, block).run(picks);
}

Result<CodedPlan> place_codecs(const distribute::DistributedPlan& plan, const Codecs& codecs,
                               std::int64_t block) {
  return place_codecs(plan, codecs, CodecPicks(plan.graph.node_count(), std::size_t{0}), block);
}

}  // namespace weft::search
