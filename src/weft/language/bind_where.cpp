// WHERE: the positions of the sources' indices that a SELECT reads.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "weft/base/nearest.h"
#include "weft/language/binder.h"
#include "weft/plan/ops/build.h"

namespace weft::language {

using plan::Dim;

// Slices the sources to the range that the conditions on one index allow.
Status Binder::slice_rows(const RowRange& range, SelectScope& scope) {
  const Symbol symbol = graph_.symbol(range.index.text);
  for (RowSource& source : scope.sources) {
    const plan::Type type = graph_.type(source.value);
    if (!type.has(symbol)) continue;
    const std::int64_t size = type.size_of(symbol);
    const std::int64_t end = std::min(range.end, size);
    if (range.begin >= end)
      return user_error(fmt::format("WHERE selects nothing of index {} of size {}", range.index.text, size),
                        fmt::format("its positions are 0 to {}", size - 1), range.index.span);
    WEFT_TRY(part, at(range.index.span, ops::add_slice(graph_, source.value, symbol, range.begin, end)));
    source.value = part;
    if (!range.drop) continue;
    SymbolList rest;
    for (const Dim& dim : type.dims)
      if (dim.index != symbol) rest.push_back(dim.index);
    // The sum of a single element is that element. Booleans cannot be summed, so they are cast to
    // numbers and back.
    const bool truth = type.dtype == plan::DType::boolean;
    WEFT_TRY(number, ops::add_cast(graph_, part, truth ? plan::DType::i32 : type.dtype));
    WEFT_TRY(sum, at(range.index.span, ops::add_reduce(graph_, "sum", number, rest)));
    WEFT_TRY(dropped, ops::add_cast(graph_, sum, type.dtype));
    source.value = dropped;
  }
  return {};
}

// Narrows the range of a condition's index.
void Binder::narrow(std::vector<RowRange>& ranges, const RowRange& by) {
  for (RowRange& range : ranges) {
    if (range.index.text != by.index.text) continue;
    range.begin = std::max(range.begin, by.begin);
    range.end = std::min(range.end, by.end);
    range.drop = range.drop || by.drop;
    return;
  }
  ranges.push_back(by);
}

Status Binder::read_condition(const syntax::Expression& condition, const SelectScope& scope,
                              std::vector<RowRange>& ranges) {
  const std::string usage =
      "WHERE compares an index with whole numbers: WHERE s < 128, WHERE s BETWEEN 8 AND 15, WHERE s = 0";
  const auto row_index = [&](const syntax::Expression& side) -> const syntax::NameUse* {
    const auto* name = side.if_a<syntax::NameUse>();
    if (name == nullptr) return nullptr;
    const Symbol symbol = graph_.symbol(name->name);
    return std::ranges::find(scope.rows, symbol, &Dim::index) == scope.rows.end() ? nullptr : name;
  };
  // A constant: literals and sizes.
  const auto number = [&](const syntax::Expression& side) -> Result<std::int64_t> {
    if (const auto* name = side.if_a<syntax::NameUse>();
        name != nullptr && find_tensor(graph_.symbol(name->name)).valid())
      return user_error(fmt::format("expected a constant whole number, found the tensor {}", name->name),
                        usage, side.span);
    SelectScope sizes;  // size(s) refers to the current rows, which a convolution may have changed
    sizes.rows = scope.rows;
    sizes.in_number = true;
    WEFT_TRY(bound, bind_expression(side, sizes));
    if (!bound.is_number() || bound.number != std::floor(bound.number) || std::fabs(bound.number) > 1e15)
      return user_error("expected a constant whole number", usage, side.span);
    return static_cast<std::int64_t>(bound.number);
  };
  if (const auto* between = condition.if_a<syntax::Between>()) {
    const auto* name = row_index(*between->value);
    if (name == nullptr)
      return user_error("WHERE needs an index of the sources", usage, between->value->span);
    WEFT_TRY(low, number(*between->low));
    WEFT_TRY(high, number(*between->high));
    narrow(ranges, {{name->name, name->span}, std::max<std::int64_t>(low, 0), high + 1, false});
    return {};
  }
  const auto* comparison = condition.if_a<syntax::Comparison>();
  if (comparison == nullptr)
    return user_error("WHERE does not support this condition", usage, condition.span);
  using enum syntax::Operator;
  syntax::Operator op = comparison->op;
  const syntax::NameUse* name = row_index(*comparison->left);
  const syntax::Expression* other = comparison->right;
  if (name == nullptr) {
    name = row_index(*comparison->right);
    other = comparison->left;
    op = op == less            ? greater
         : op == less_equal    ? greater_equal
         : op == greater       ? less
         : op == greater_equal ? less_equal
                               : op;
  }
  if (name == nullptr) {
    std::vector<std::string_view> names;
    for (const Dim& dim : scope.rows) names.push_back(graph_.text(dim.index));
    const auto* written = comparison->left->if_a<syntax::NameUse>();
    std::string hint = written == nullptr ? usage : did_you_mean(written->name, names);
    if (written != nullptr && find_tensor(graph_.symbol(written->name)).valid())
      hint =
          fmt::format("to filter by value, write CASE WHEN ... THEN {} ELSE 0 END in SELECT", written->name);
    return user_error(
        fmt::format("WHERE needs an index of the sources, which have {}", indices_text(scope.rows)),
        hint.empty() ? usage : std::move(hint), comparison->left->span);
  }
  WEFT_TRY(bound, number(*other));
  constexpr std::int64_t kEnd = std::int64_t{1} << 60;
  RowRange range{{name->name, name->span}, 0, kEnd, false};
  switch (op) {
    case equal:
      range.begin = bound;
      range.end = bound < 0 ? 0 : bound + 1;  // no position precedes the first
      range.drop = true;
      break;
    case less: range.end = bound; break;
    case less_equal: range.end = bound + 1; break;
    case greater: range.begin = std::max<std::int64_t>(bound + 1, 0); break;
    case greater_equal: range.begin = std::max<std::int64_t>(bound, 0); break;
    default:
      return user_error("WHERE must select a contiguous range of an index", usage, comparison->op_span);
  }
  range.begin = std::max<std::int64_t>(range.begin, 0);
  narrow(ranges, range);
  return {};
}

Status Binder::apply_where(const syntax::Expression& condition, SelectScope& scope) {
  std::vector<RowRange> ranges;
  const auto* chain = condition.if_a<syntax::Chain>();
  if (chain == nullptr || chain->rest.front().op != syntax::Operator::logical_and) {
    WEFT_TRY_STATUS(read_condition(condition, scope, ranges));
  } else {
    WEFT_TRY_STATUS(read_condition(*chain->first, scope, ranges));
    for (const syntax::Term& term : chain->rest)
      WEFT_TRY_STATUS(read_condition(*term.operand, scope, ranges));
  }
  for (const RowRange& range : ranges) WEFT_TRY_STATUS(slice_rows(range, scope));
  return collect_rows(scope, {});
}

}  // namespace weft::language
