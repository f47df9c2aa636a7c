#include "weft/planner/search/codec/add_codec.h"

#include <array>

#include "weft/plan/ops/operators.h"

namespace weft::search {

Symbol fresh_index(plan::Graph& graph, plan::ValueId value, std::string name) {
  while (graph.type(value).has(graph.symbol(name))) name += '_';
  return graph.symbol(name);
}

Result<plan::ValueId> add_encode(plan::Graph& graph, plan::ValueId x, std::vector<Symbol> keep,
                                 std::int64_t segment, const ops::Codec& codec) {
  const std::array<plan::AttributeValue, 6> attributes = {
      graph.symbol(ops::name(codec.kind)), codec.block, segment, std::span<const Symbol>(keep),
      fresh_index(graph, x, "code"),       codec.kept};
  return graph.add_value(ops::encode(), {&x, 1}, attributes);
}

Result<plan::ValueId> add_decode(plan::Graph& graph, plan::ValueId codes, const plan::Type& like,
                                 plan::DType dtype, std::int64_t segment, const ops::Codec& codec) {
  WEFT_TRY(type, graph.intern_type(dtype, like.dims));
  const std::array<plan::AttributeValue, 5> attributes = {graph.symbol(ops::name(codec.kind)), codec.block,
                                                          segment, type, codec.kept};
  return graph.add_value(ops::decode(), {&codes, 1}, attributes);
}

}  // namespace weft::search
