// Functions along one index: concat, and the recurrences cumsum, cumprod and recurrence.
#include <algorithm>

#include <fmt/format.h>

#include "weft/base/nearest.h"
#include "weft/language/binder.h"
#include "weft/plan/ops/build.h"

namespace weft::language {

using plan::Dim;
using plan::DType;
using plan::ValueId;

// A name that no value uses as an index.
Symbol Binder::new_index(std::string_view like, std::span<const ValueId> values) {
  std::string name(like);
  for (;;) {
    const Symbol symbol = graph_.symbol(name);
    if (std::ranges::none_of(values, [&](ValueId value) { return graph_.type(value).has(symbol); }))
      return symbol;
    name += '_';
  }
}

// -- concat

// The index along which concat runs: an index of some part, or a declared size equal to the number
// of parts.
Result<Symbol> Binder::concat_index(const syntax::Call& call, std::span<const ValueId> parts) {
  const syntax::Argument* argument = named_argument(call, "along");
  const auto* name = argument == nullptr ? nullptr : argument->value->if_a<syntax::NameUse>();
  if (name != nullptr) {
    const Symbol symbol = graph_.symbol(name->name);
    if (std::ranges::any_of(parts, [&](ValueId part) { return graph_.type(part).has(symbol); }))
      return symbol;
    if (const std::int64_t* size = find_size(symbol)) {
      if (*size == static_cast<std::int64_t>(parts.size())) return symbol;
      return user_error(fmt::format("index {} has size {}, but {} operands have one position each along it",
                                    name->name, *size, parts.size()),
                        fmt::format("declare {} = {}", name->name, parts.size()), argument->value->span);
    }
  }
  const auto widest =
      std::ranges::max_element(parts, {}, [&](ValueId part) { return graph_.type(part).rank(); });
  return index_argument(call, "along", graph_.type(*widest));
}

// The indices of all parts, in order: those of the widest part. Other parts may lack some of them
// and are broadcast. They must not have other indices: that is more likely a missing rename than an
// intended outer product. A new index `along` comes after the first.
Result<Binder::DimList> Binder::concat_dims(const syntax::Call& call, std::span<const ValueId> parts,
                                            Symbol along) {
  const auto has = [&](ValueId part) { return graph_.type(part).has(along); };
  const ValueId widest = *std::ranges::max_element(
      parts, {}, [&](ValueId part) { return graph_.type(part).rank() * 2 + (has(part) ? 1 : 0); });
  DimList dims;
  for (const Dim& dim : graph_.type(widest).dims) {
    dims.push_back(dim);
    if (dims.size() == 1 && !has(widest)) dims.push_back({along, 1});
  }
  if (dims.empty()) dims.push_back({along, 1});
  for (const ValueId part : parts)
    for (const Dim& dim : graph_.type(part).dims) {
      const auto known = std::ranges::find(dims, dim.index, &Dim::index);
      if (known == dims.end())
        return user_error(
            fmt::format("operands of concat must have the same indices or a subset of them, found {} and {}",
                        indices_text(graph_.type(part).dims), indices_text(graph_.type(widest).dims)),
            fmt::format("rename {}, or reduce it", graph_.text(dim.index)), call.span);
      if (dim.index != along && known->size != dim.size)
        return user_error(fmt::format("index {} has size {} in one operand of concat and {} in another",
                                      graph_.text(dim.index), known->size, dim.size),
                          fmt::format("operands may differ only along {}", graph_.text(along)), call.span);
    }
  return dims;
}

Result<Bound> Binder::bind_concat(const syntax::Call& call, SelectScope& scope) {
  std::vector<Bound> bounds;
  DType dtype = DType::boolean;
  bool typed = false;
  for (const syntax::Argument& argument : call.arguments) {
    if (argument.label.given()) continue;
    WEFT_TRY(bound, bind_expression(*argument.value, scope));
    bounds.push_back(bound);
    if (bound.is_number()) continue;
    const DType own = graph_.type(bound.value).dtype;
    dtype = typed ? wider(dtype, own) : own;
    typed = true;
  }
  if (!typed || (dtype == DType::boolean && std::ranges::any_of(bounds, &Bound::is_number)))
    dtype = options_.precision;
  std::vector<ValueId> parts;
  for (const Bound& bound : bounds) {
    WEFT_TRY(value, as_value(bound, dtype));
    WEFT_TRY(cast, ops::add_cast(graph_, value, dtype));
    parts.push_back(cast);
  }
  WEFT_TRY(along, concat_index(call, parts));
  WEFT_TRY(dims, concat_dims(call, parts, along));
  for (ValueId& part : parts) {
    const plan::Type type = graph_.type(part);
    DimList to = dims;
    for (Dim& dim : to)
      if (dim.index == along) dim.size = type.has(along) ? type.size_of(along) : 1;
    WEFT_TRY(spread, at(call.span, spread_to(part, to, along)));
    part = spread;
  }
  WEFT_TRY(whole, at(call.span, concat_all(parts, along)));
  return Bound::of(whole);
}

// Broadcasts the value to these dims. If it lacks only `along`, this is a view, which a plan can
// slice along all other indices.
Result<ValueId> Binder::spread_to(ValueId value, std::span<const Dim> to, Symbol along) {
  const plan::Type type = graph_.type(value);
  const auto place = static_cast<std::size_t>(std::ranges::find(to, along, &Dim::index) - to.begin());
  if (type.has(along) || type.rank() + 1 != to.size() || place == 0)
    return ops::add_broadcast(graph_, value, to);
  SymbolList order;
  for (const Dim& dim : to)
    if (dim.index != along) order.push_back(dim.index);
  WEFT_TRY(ordered, ops::add_transpose(graph_, value, order));
  const std::array<Dim, 2> into = {to[place - 1], Dim{along, 1}};
  return ops::add_split(graph_, ordered, into[0].index, into);
}

// A concat has at most 64 operands; longer lists are first concatenated in groups of 64.
Result<ValueId> Binder::concat_all(std::vector<ValueId> parts, Symbol along) {
  constexpr std::size_t kMost = 64;
  while (parts.size() > 1) {
    std::vector<ValueId> joined;
    for (std::size_t i = 0; i < parts.size(); i += kMost) {
      const std::span<const ValueId> run(parts.data() + i, std::min(kMost, parts.size() - i));
      WEFT_TRY(one, ops::add_concat(graph_, run, along));
      joined.push_back(one);
    }
    parts = std::move(joined);
  }
  return parts.front();
}

// -- recurrences

// cumsum(x) is a recurrence with decay 1. cumprod(x) starts with its first element, which the
// others multiply.
Result<Bound> Binder::bind_recurrence(const syntax::Call& call, const FunctionSpec& spec,
                                      SelectScope& scope) {
  const bool own_decay = spec.name == "recurrence";
  WEFT_TRY(bound, bind_expression(*call.arguments[own_decay ? 1 : 0].value, scope));
  WEFT_TRY(x, own_decay ? as_real(bound) : as_value(bound));
  if (graph_.type(x).dtype == DType::boolean) {
    WEFT_TRY(number, ops::add_cast(graph_, x, DType::i32));
    x = number;
  }
  WEFT_TRY(along, index_argument(call, "along", graph_.type(x)));
  Bound decay = Bound::of(1.0);
  if (own_decay) {
    WEFT_TRY(given, bind_expression(*call.arguments[0].value, scope));
    decay = given;
  } else if (spec.name == "cumprod") {
    decay = Bound::of(x);
    WEFT_TRY(place, ops::add_position(graph_, Dim{along, graph_.type(x).size_of(along)}));
    WEFT_TRY(first, compare(syntax::Operator::equal, Bound::of(place), Bound::of(0.0), call.span));
    WEFT_TRY(zero, ops::add_constant(graph_, 0, graph_.type(x).dtype));
    WEFT_TRY(begin, at(call.span, ops::add_pointwise(graph_, ops::select(), {first.value, x, zero})));
    SymbolList order;
    for (const Dim& dim : graph_.type(x).dims) order.push_back(dim.index);
    WEFT_TRY(ordered, ops::add_transpose(graph_, begin, order));
    x = ordered;
  }
  WEFT_TRY(factor, as_value(decay, graph_.type(x).dtype));
  WEFT_TRY(cast, ops::add_cast(graph_, factor, graph_.type(x).dtype));
  // If the decay has an index that x lacks, there is one series per position of that index.
  DimList dims(graph_.type(x).dims);
  for (const Dim& dim : graph_.type(cast).dims)
    if (std::ranges::find(dims, dim.index, &Dim::index) == dims.end()) dims.push_back(dim);
  WEFT_TRY(series, at(call.span, ops::add_broadcast(graph_, x, dims)));
  WEFT_TRY(y, at(call.span, ops::add_recurrence(graph_, cast, series, along)));
  return Bound::of(y);
}

// zeros(b, d): an initial value for SCAN.
Result<Bound> Binder::bind_zeros(const syntax::Call& call) {
  DimList dims;
  for (const syntax::Argument& argument : call.arguments) {
    WEFT_TRY(dim, size_argument(*argument.value, "zeros"));
    dims.push_back(dim);
  }
  WEFT_TRY(zero, ops::add_constant(graph_, 0, options_.precision));
  WEFT_TRY(value, at(call.span, ops::add_broadcast(graph_, zero, dims)));
  return Bound::of(value);
}

}  // namespace weft::language
