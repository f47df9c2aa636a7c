// Aggregates. A sum over a product is a contraction: its factors join on their shared indices, and
// indices outside GROUP BY are summed.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "weft/language/binder.h"
#include "weft/language/contraction_order.h"
#include "weft/plan/ops/build.h"

namespace weft::language {

using plan::Dim;
using plan::DType;
using plan::ValueId;

// Splits a * b * 2 / c into the factors a, b, 1/c and the coefficient 2.
Status Binder::multiply_out(const syntax::Expression& expression, SelectScope& scope, Product& product) {
  if (const auto* negate = expression.if_a<syntax::Negate>()) {
    product.coefficient = -product.coefficient;
    return multiply_out(*negate->operand, scope, product);
  }
  const auto* chain = expression.if_a<syntax::Chain>();
  const bool is_product =
      chain != nullptr && std::ranges::all_of(chain->rest, [](const syntax::Term& term) {
        return term.op == syntax::Operator::multiply || term.op == syntax::Operator::divide;
      });
  if (!is_product) {
    WEFT_TRY(bound, bind_expression(expression, scope));
    if (bound.is_number())
      product.coefficient *= bound.number;
    else
      product.factors.push_back(bound.value);
    return {};
  }
  WEFT_TRY_STATUS(multiply_out(*chain->first, scope, product));
  for (const syntax::Term& term : chain->rest) {
    if (term.op == syntax::Operator::multiply) {
      WEFT_TRY_STATUS(multiply_out(*term.operand, scope, product));
      continue;
    }
    WEFT_TRY(divisor, bind_expression(*term.operand, scope));
    if (divisor.is_number()) {
      if (divisor.number == 0)
        return user_error("division by zero", "the divisor is the constant 0", term.operand->span);
      product.coefficient /= divisor.number;
      continue;
    }
    WEFT_TRY(inverse, arithmetic(syntax::Operator::divide, Bound::of(1.0), divisor, term.operand->span));
    product.factors.push_back(inverse.value);
  }
  return {};
}

Status Binder::same_dtype(Product& product) {
  DType dtype = graph_.type(product.factors.front()).dtype;
  for (const ValueId factor : product.factors) dtype = wider(dtype, graph_.type(factor).dtype);
  if (dtype == DType::boolean) dtype = DType::i32;  // a sum of booleans counts them
  for (ValueId& factor : product.factors) {
    WEFT_TRY(cast, cast_to(factor, dtype));
    factor = cast;
  }
  return {};
}

Result<ValueId> Binder::multiply_factors(std::span<const ValueId> factors) {
  ValueId value = factors.front();
  for (const ValueId factor : factors.subspan(1)) {
    WEFT_TRY(both, ops::add_pointwise(graph_, ops::mul(), {value, factor}));
    value = both;
  }
  return value;
}

Result<ValueId> Binder::scale(ValueId value, double factor) {
  if (factor == 1) return value;
  Bound left = Bound::of(value), right = Bound::of(factor);
  WEFT_TRY(scaled, arithmetic(syntax::Operator::multiply, left, right, {}));
  return scaled.value;
}

Result<ValueId> Binder::sum_of_product(Product& product, std::span<const Symbol> kept) {
  bool reduces = false;
  for (const ValueId factor : product.factors)
    for (const Dim& dim : graph_.type(factor).dims)
      reduces = reduces || std::ranges::find(kept, dim.index) == kept.end();
  if (product.factors.size() == 1)
    return reduces ? ops::add_reduce(graph_, "sum", product.factors.front(), kept)
                   : ops::add_transpose(graph_, product.factors.front(), kept);
  if (reduces && product.factors.size() == 2) return ops::add_contract(graph_, product.factors, kept);
  if (reduces) return sum_of_many(product.factors, kept);
  WEFT_TRY(value, multiply_factors(product.factors));
  return ops::add_transpose(graph_, value, kept);
}

// Contracts two factors at a time. A product of three at once iterates over all their indices
// together, and cannot run as a matrix product.
Result<ValueId> Binder::sum_of_many(std::span<const ValueId> factors, std::span<const Symbol> kept) {
  const auto keeps = [](std::span<const Symbol> indices, Symbol index) {
    return std::ranges::find(indices, index) != indices.end();
  };
  std::vector<ValueId> values;
  std::vector<plan::Type> types;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    // Sum indices that no other factor has before multiplying.
    SymbolList shared;
    for (const Dim& dim : graph_.type(factors[i]).dims) {
      bool needed = keeps(kept, dim.index);
      for (std::size_t k = 0; k < factors.size(); ++k)
        needed = needed || (k != i && graph_.type(factors[k]).has(dim.index));
      if (needed) shared.push_back(dim.index);
    }
    WEFT_TRY(value, ops::add_reduce(graph_, "sum", factors[i], shared));
    values.push_back(value);
  }
  for (const ValueId value : values) types.push_back(graph_.type(value));
  for (const Join& join : order_contraction(types, kept)) {
    const std::array<ValueId, 2> both = {values[join.left], values[join.right]};
    const bool sums = std::ranges::any_of(both, [&](ValueId value) {
      return std::ranges::any_of(graph_.type(value).dims,
                                 [&](const Dim& dim) { return !keeps(join.keeps, dim.index); });
    });
    WEFT_TRY(value, sums ? ops::add_contract(graph_, both, join.keeps)
                         : ops::add_pointwise(graph_, ops::mul(), both));
    values.push_back(value);
  }
  return ops::add_transpose(graph_, values.back(), kept);
}

Result<ValueId> Binder::rows_that_count(const Product& product, std::span<const Symbol> kept) {
  for (const ValueId factor : product.factors) {
    const auto is_kept = [&](const Dim& dim) { return std::ranges::find(kept, dim.index) != kept.end(); };
    if (std::ranges::all_of(graph_.type(factor).dims, is_kept)) continue;
    // The loss may have been renamed or sliced since; apply the same to its rows.
    InlineVector<plan::NodeId, 8> since;
    plan::NodeView node = graph_.view(graph_.value(factor).producer);
    const auto is_any = [&](auto... accessors) { return ((&node.op() == &accessors()) || ...); };
    while (is_any(ops::cast, ops::transpose, ops::rename, ops::slice, ops::split, ops::merge)) {
      since.push_back(node.id());
      node = graph_.view(graph_.value(node.input(0)).producer);
    }
    if (!is_any(ops::cross_entropy)) continue;
    const DType dtype = graph_.type(factor).dtype;
    WEFT_TRY(counted, ops::add_labelled(graph_, node.input(1), node.input_type(0).size_of(node.symbol(0)),
                                        dtype == DType::f64 ? dtype : DType::f32));
    for (std::size_t i = since.size(); i-- > 0;) {
      node = graph_.view(since[i]);
      if (is_any(ops::cast, ops::transpose)) continue;
      WEFT_TRY(same, is_any(ops::rename) ? ops::add_rename(graph_, counted, node.indices(0), node.indices(1))
                     : is_any(ops::slice)
                         ? ops::add_slice(graph_, counted, node.symbol(0), node.integer(1), node.integer(2))
                     : is_any(ops::split) ? ops::add_split(graph_, counted, node.symbol(0), node.type(1).dims)
                                          : ops::add_merge(graph_, counted, node.indices(0), node.symbol(1)));
      counted = same;
    }
    return counted;
  }
  return ValueId();
}

// At least f32: narrower formats lose a sum over many rows to rounding.
Result<ValueId> Binder::mean_of_rows(Product& product, ValueId counted, std::span<const Symbol> kept) {
  const DType dtype = graph_.type(product.factors.front()).dtype, wide = graph_.type(counted).dtype;
  const plan::Type rows = graph_.type(counted);
  SymbolList kept_rows;
  for (const Dim& dim : rows.dims)
    if (std::ranges::find(kept, dim.index) != kept.end()) kept_rows.push_back(dim.index);
  WEFT_TRY(count, ops::add_reduce(graph_, "sum", counted, kept_rows));
  WEFT_TRY(one, ops::add_constant(graph_, 1, wide));
  WEFT_TRY(divisor, ops::add_pointwise(graph_, ops::maximum(), {count, one}));
  for (ValueId& factor : product.factors) {
    WEFT_TRY(cast, ops::add_cast(graph_, factor, wide));
    factor = cast;
  }
  WEFT_TRY(sum, sum_of_product(product, kept));
  WEFT_TRY(mean, ops::add_pointwise(graph_, ops::div(), {sum, divisor}));
  return ops::add_cast(graph_, mean, dtype);
}

Result<Bound> Binder::bind_aggregate(const syntax::Call& call, const FunctionSpec& spec, SelectScope& scope) {
  WEFT_TRY_STATUS(check_arguments(call, spec));
  if (!call.windowed && scope.in_aggregate)
    return user_error(fmt::format("aggregates do not nest: {} inside another", spec.name),
                      "compute the inner one in a WITH entry of its own", call.function.span);

  Product product;
  const bool outer = scope.in_aggregate;
  if (!call.windowed) scope.in_aggregate = true;
  Status status = multiply_out(*call.arguments[0].value, scope, product);
  scope.in_aggregate = outer;
  if (!status.ok()) return std::move(status).error();
  if (product.factors.empty())
    return user_error(fmt::format("{} needs a tensor, found only numbers", spec.name),
                      fmt::format("name a tensor of FROM in it: {}(x)", spec.name),
                      call.arguments[0].value->span);
  if (spec.name == "mean") {
    for (ValueId& factor : product.factors) {
      WEFT_TRY(real, as_real(Bound::of(factor)));
      factor = real;
    }
  }
  WEFT_TRY_STATUS(same_dtype(product));

  // All indices of the product, and which of them are kept.
  DimList dims;
  for (const ValueId factor : product.factors)
    for (const Dim& dim : graph_.type(factor).dims)
      if (std::ranges::find(dims, dim.index, &Dim::index) == dims.end()) dims.push_back(dim);
  SymbolList kept;
  if (call.windowed) {
    WEFT_TRY(partition,
             partition_symbols(call, plan::Type{graph_.type(product.factors.front()).dtype, dims}));
    kept = partition;
  } else {
    for (const Dim& group : scope.groups)
      if (std::ranges::find(dims, group.index, &Dim::index) != dims.end()) kept.push_back(group.index);
  }
  double reduced = 1;
  for (const Dim& dim : dims)
    if (std::ranges::find(kept, dim.index) == kept.end()) reduced *= static_cast<double>(dim.size);

  if (scope.scatter != nullptr && !call.windowed) {
    if (spec.name != "sum")
      return user_error(fmt::format("only sum groups by a value, found {}", spec.name),
                        "write sum, and divide by a count where a mean is wanted", call.function.span);
    SymbolList to;
    for (const Dim& group : scope.groups) to.push_back(group.index);
    WEFT_TRY(rows, at(call.span, multiply_factors(product.factors)));
    WEFT_TRY(value, at(call.span, ops::add_scatter_add(graph_, scope.scatter->positions, rows,
                                                       scope.scatter->into, to)));
    WEFT_TRY(scaled, scale(value, product.coefficient));
    return Bound::of(scaled);
  }

  ValueId value;
  if (spec.name == "sum") {
    WEFT_TRY(sum, at(call.span, sum_of_product(product, kept)));
    value = sum;
  } else if (spec.name == "mean") {
    WEFT_TRY(counted, at(call.span, rows_that_count(product, kept)));
    if (counted.valid()) {
      for (const Dim& dim : graph_.type(counted).dims)
        if (std::ranges::find(kept, dim.index) == kept.end()) reduced /= static_cast<double>(dim.size);
      WEFT_TRY(mean, at(call.span, mean_of_rows(product, counted, kept)));
      value = mean;
      product.coefficient /= reduced;
    } else if (product.factors.size() == 1 && reduced > 1) {
      WEFT_TRY(mean, at(call.span, ops::add_reduce(graph_, "mean", product.factors.front(), kept)));
      value = mean;
    } else {
      WEFT_TRY(sum, at(call.span, sum_of_product(product, kept)));
      value = sum;
      product.coefficient /= reduced;
    }
  } else {
    // max(-x) is -min(x): scale first, so that the order is right.
    WEFT_TRY(all, at(call.span, multiply_factors(product.factors)));
    WEFT_TRY(scaled, at(call.span, scale(all, product.coefficient)));
    product.coefficient = 1;
    WEFT_TRY(extreme, at(call.span, ops::add_reduce(graph_, spec.name, scaled, kept)));
    value = extreme;
  }
  WEFT_TRY(scaled, at(call.span, scale(value, product.coefficient)));
  return Bound::of(scaled);
}

}  // namespace weft::language
