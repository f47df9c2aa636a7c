#include "weft/planner/search/codec/encode_boundaries.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "weft/parallel/distribute/edit_plan.h"
#include "weft/parallel/pipeline/stage_boundaries.h"
#include "weft/plan/ops/loops.h"
#include "weft/planner/search/codec/add_codec.h"

namespace weft::search {
namespace {

using plan::NodeId;
using plan::ValueId;

// A row consists of the indices that neither ranks nor micro-batches slice.
struct CrossingRows {
  std::vector<Symbol> kept;
  std::int64_t segment = 0, bytes = 0;
  ops::Codec codec;
};

std::optional<CrossingRows> rows_of_crossing(const distribute::DistributedPlan& plan, ValueId value,
                                             const AllowedCodec& codec) {
  const plan::Type type = plan.graph.type(value);
  if (!is_real(type.dtype) || type.dtype == plan::DType::f64) return std::nullopt;
  CrossingRows rows;
  for (const plan::AxisLayout& axis : plan.layouts[value.value].axes) {
    if (axis.is_partial()) return std::nullopt;  // encoding partial sums loses more than encoding their sum
    if (axis.is_sliced() && !ops::contains(rows.kept, axis.index)) rows.kept.push_back(axis.index);
  }
  const ops::DimList row = ops::without(type.dims, rows.kept);
  if (row.empty()) return std::nullopt;
  rows.segment = row[0].size;
  const std::int64_t numbers = ops::points_of(row);
  const auto bytes = coded_bytes(codec, type.elements() / numbers, numbers, plan::size_in_bytes(type.dtype));
  if (!bytes) return std::nullopt;
  rows.bytes = *bytes;
  rows.codec = codec.of(ops::Codec().block, numbers, numbers / row[0].size);
  return rows;
}

}  // namespace

std::optional<std::int64_t> coded_bytes(const AllowedCodec& codec, std::int64_t rows, std::int64_t numbers,
                                        std::int64_t number_bytes) {
  const ops::Codec of = codec.of(ops::Codec().block, numbers, numbers);
  const auto word = static_cast<std::int64_t>(sizeof(std::int32_t));
  const std::int64_t bytes = rows * word * ops::encoded_words(of, numbers);
  return bytes < rows * numbers * number_bytes ? std::optional(bytes) : std::nullopt;
}

Result<std::vector<std::int64_t>> encodable_boundaries(const distribute::DistributedPlan& plan,
                                                       const CodecChoice& choice) {
  std::vector<std::int64_t> bytes;
  if (!plan.time) return bytes;
  WEFT_TRY(crossings, pipeline::boundary_values(plan));
  for (const pipeline::BoundaryValue& crossing : crossings)
    if (std::ranges::any_of(choice.codecs, [&](const AllowedCodec& codec) {
          return rows_of_crossing(plan, crossing.value, codec).has_value();
        }))
      bytes.push_back(plan.graph.type(crossing.value).bytes());
  return bytes;
}

Result<CodedPlan> encode_boundaries(const distribute::DistributedPlan& plan, const CodecChoice& choice,
                                    std::optional<std::size_t> codec, std::int64_t least_bytes) {
  WEFT_TRY(crossings, pipeline::boundary_values(plan));
  const AllowedCodec& used = choice.codecs[codec.value_or(0)];
  CodedExchanges report{.what = kActivations, .codec = used};
  std::vector<std::optional<CrossingRows>> coded(plan.graph.value_count());
  std::set<std::pair<NodeId, ValueId>> reads;  // a reader and the encoded value it reads
  for (const pipeline::BoundaryValue& crossing : crossings) {
    const std::int64_t bytes = plan.graph.type(crossing.value).bytes();
    const std::optional<CrossingRows> rows = rows_of_crossing(plan, crossing.value, used);
    if (!rows || !codec || bytes < least_bytes) {
      ++report.exact;
      if (rows) ++report.unworthy;
      report.exact_bytes += bytes;
      continue;
    }
    ++report.coded;
    report.numbers += plan.graph.type(crossing.value).elements();
    report.bytes += bytes;
    report.code_bytes += rows->bytes;
    coded[crossing.value.value] = rows;
    for (const NodeId reader : crossing.readers) reads.emplace(reader, crossing.value);
  }
  distribute::PlanEdit edit(plan);
  std::map<ValueId, ValueId> codes;
  std::map<std::pair<ValueId, std::int32_t>, ValueId> decoded;  // by value and place
  for (std::size_t n = 0; n < plan.graph.node_count(); ++n) {
    const plan::NodeView node = plan.graph.view(NodeId(n));
    std::vector<ValueId> inputs;
    for (const ValueId input : node.node().inputs) {
      inputs.push_back(edit.now(input));
      if (!reads.contains({node.id(), input})) continue;
      ValueId& arrives = decoded[{input, plan.time->position[n]}];
      if (!arrives.valid()) {
        edit.adopt_context(node.id());
        const CrossingRows& rows = *coded[input.value];
        const plan::Type type = edit.graph().type(edit.now(input));
        WEFT_TRY(numbers,
                 add_decode(edit.graph(), codes.at(input), type, type.dtype, rows.segment, rows.codec));
        arrives = numbers;
      }
      inputs.back() = arrives;
    }
    WEFT_TRY_STATUS(edit.keep(node.id(), inputs));
    for (std::size_t k = 0; k < node.result_count(); ++k) {
      const ValueId value = node.result(k);
      if (!coded[value.value]) continue;
      const CrossingRows& rows = *coded[value.value];
      edit.adopt_context(node.id());
      std::vector<Symbol> kept;
      for (const plan::Dim& dim : plan.graph.type(value).dims)
        if (ops::contains(rows.kept, dim.index)) kept.push_back(edit.symbol(dim.index));
      WEFT_TRY(made, add_encode(edit.graph(), edit.now(value), std::move(kept), rows.segment, rows.codec));
      codes[value] = made;
    }
  }
  CodedPlan made;
  WEFT_TRY(finished, edit.finish());
  made.plan = std::move(finished);
  made.exchanges.push_back(std::move(report));
  return made;
}

}  // namespace weft::search
