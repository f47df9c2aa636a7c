// Ranking: argmax, argmin and sort by top-k; and one_hot, the inverse of a position.
#include <algorithm>

#include <fmt/format.h>

#include "weft/language/binder.h"
#include "weft/plan/ops/build.h"

namespace weft::language {

using plan::Dim;
using plan::ValueId;

// Ascending order is the descending order of the negated values.
Result<Bound> Binder::bind_ranking(const syntax::Call& call, const FunctionSpec& spec, ValueId x,
                                   Symbol over) {
  const bool sorts = spec.name == "sort";
  const bool descending = spec.name == "argmax";
  if (graph_.type(x).dtype == plan::DType::boolean) {
    WEFT_TRY(number, ops::add_cast(graph_, x, plan::DType::i32));
    x = number;
  }
  SymbolList order;
  for (const Dim& dim : graph_.type(x).dims) order.push_back(dim.index);
  const std::int64_t size = graph_.type(x).size_of(over);
  const auto negated = [&](ValueId value) {
    return at(call.span, ops::add_pointwise(graph_, ops::neg(), {value}));
  };
  if (!descending) {
    WEFT_TRY(turned, negated(x));
    x = turned;
  }
  const Symbol rank = new_index("rank", {&x, 1});
  WEFT_TRY(top, at(call.span, ops::add_top_k(graph_, x, over, Dim{rank, sorts ? size : 1})));
  if (sorts) {
    WEFT_TRY(sorted, negated(top.values));
    WEFT_TRY(renamed, at(call.span, ops::add_rename(graph_, sorted, {&rank, 1}, {&over, 1})));
    WEFT_TRY(ordered, at(call.span, ops::add_transpose(graph_, renamed, order)));
    return Bound::of(ordered);
  }
  WEFT_TRY(place, at(call.span, drop_single(top.positions, rank)));
  return Bound::of(place);
}

// Drops an index of size 1: a view if another index precedes it.
Result<ValueId> Binder::drop_single(ValueId value, Symbol index) {
  const plan::Type type = graph_.type(value);
  if (const int place = type.position(index); place > 0) {
    const std::array<Symbol, 2> parts = {type.dims[static_cast<std::size_t>(place) - 1].index, index};
    return ops::add_merge(graph_, value, parts, parts[0]);
  }
  SymbolList rest;
  for (const Dim& dim : type.dims)
    if (dim.index != index) rest.push_back(dim.index);
  // The sum of a single element is that element. Booleans cannot be summed, so they are cast to
  // numbers and back.
  const plan::DType dtype = type.dtype;
  const bool truth = dtype == plan::DType::boolean;
  WEFT_TRY(number, ops::add_cast(graph_, value, truth ? plan::DType::i32 : dtype));
  WEFT_TRY(sum, ops::add_reduce(graph_, "sum", number, rest));
  return ops::add_cast(graph_, sum, dtype);
}

// one_hot(y, c): 1 at the position along c that y names, 0 elsewhere.
Result<Bound> Binder::bind_one_hot(const syntax::Call& call, SelectScope& scope) {
  WEFT_TRY(bound, bind_expression(*call.arguments[0].value, scope));
  WEFT_TRY(positions, as_value(bound));
  if (!plan::is_integer(graph_.type(positions).dtype))
    return user_error(
        fmt::format("one_hot needs integer positions, found {}", plan::name(graph_.type(positions).dtype)),
        "declare them OF int32, or CAST(... AS int32)", call.arguments[0].value->span);
  WEFT_TRY(into, size_argument(*call.arguments[1].value, "one_hot"));
  if (graph_.type(positions).has(into.index))
    return user_error(fmt::format("one_hot needs a new index, found {} in {}", graph_.text(into.index),
                                  indices_text(graph_.type(positions).dims)),
                      "name a size that is not an index of the argument", call.arguments[1].value->span);
  WEFT_TRY(place, at(call.span, ops::add_position(graph_, into)));
  WEFT_TRY(hot, compare(syntax::Operator::equal, Bound::of(positions), Bound::of(place), call.span));
  WEFT_TRY(value, ops::add_cast(graph_, hot.value, options_.precision));
  SymbolList order;
  for (const Dim& dim : graph_.type(positions).dims) order.push_back(dim.index);
  order.push_back(into.index);
  WEFT_TRY(ordered, at(call.span, ops::add_transpose(graph_, value, order)));
  return Bound::of(ordered);
}

}  // namespace weft::language
