// Expressions: names, arithmetic, comparison, CASE, CAST. Constants are folded; everything else
// becomes pointwise nodes.
#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "weft/base/nearest.h"
#include "weft/language/binder.h"
#include "weft/plan/ops/build.h"

namespace weft::language {

using plan::Dim;
using plan::DType;
using plan::ValueId;

Result<Bound> Binder::bind_expression(const syntax::Expression& expression, SelectScope& scope) {
  using enum syntax::ExpressionKind;
  switch (expression.kind) {
    case literal: return Bound::of(expression.as<syntax::Literal>().value);
    case boolean: {
      WEFT_TRY(value,
               ops::add_constant(graph_, expression.as<syntax::Boolean>().truth ? 1 : 0, DType::boolean));
      return Bound::of(value);
    }
    case name: return bind_name(expression.as<syntax::NameUse>(), scope);
    case negate: {
      WEFT_TRY(operand, bind_expression(*expression.as<syntax::Negate>().operand, scope));
      if (operand.is_number()) return Bound::of(-operand.number);
      if (graph_.type(operand.value).dtype == DType::boolean) {
        WEFT_TRY(number, ops::add_cast(graph_, operand.value, DType::i32));
        operand = Bound::of(number);
      }
      WEFT_TRY(value, at(expression.span, ops::add_pointwise(graph_, ops::neg(), {operand.value})));
      return Bound::of(value);
    }
    case invert: {
      WEFT_TRY(operand, bind_condition(*expression.as<syntax::Invert>().operand, scope));
      WEFT_TRY(value, at(expression.span, ops::add_pointwise(graph_, ops::logical_not(), {operand})));
      return Bound::of(value);
    }
    case chain: return bind_chain(expression.as<syntax::Chain>(), scope);
    case comparison: return bind_comparison(expression.as<syntax::Comparison>(), scope);
    case between: return bind_between(expression.as<syntax::Between>(), scope);
    case choice: return bind_choice(expression.as<syntax::Choice>(), scope);
    case cast: return bind_cast(expression.as<syntax::Cast>(), scope);
    case call: return bind_call(expression.as<syntax::Call>(), scope);
  }
  return user_error("expected an expression", {}, expression.span);
}

// Records how the functions in an expression affect the SELECT around it.
void Binder::note_calls(const syntax::Expression& expression, SelectScope& scope) {
  using enum syntax::ExpressionKind;
  switch (expression.kind) {
    case literal:
    case boolean:
    case name: return;
    case negate: return note_calls(*expression.as<syntax::Negate>().operand, scope);
    case invert: return note_calls(*expression.as<syntax::Invert>().operand, scope);
    case cast: return note_calls(*expression.as<syntax::Cast>().operand, scope);
    case chain: {
      const auto& chain_of = expression.as<syntax::Chain>();
      note_calls(*chain_of.first, scope);
      for (const syntax::Term& term : chain_of.rest) note_calls(*term.operand, scope);
      return;
    }
    case comparison: {
      const auto& both = expression.as<syntax::Comparison>();
      note_calls(*both.left, scope);
      note_calls(*both.right, scope);
      return;
    }
    case between: {
      const auto& three = expression.as<syntax::Between>();
      for (const syntax::Expression* part : {three.value, three.low, three.high}) note_calls(*part, scope);
      return;
    }
    case choice: {
      const auto& cases = expression.as<syntax::Choice>();
      for (const syntax::When& when : cases.whens) {
        note_calls(*when.condition, scope);
        note_calls(*when.result, scope);
      }
      if (cases.otherwise != nullptr) note_calls(*cases.otherwise, scope);
      return;
    }
    case call: {
      const auto& called = expression.as<syntax::Call>();
      if (const FunctionSpec* spec = find_function(called.function.text)) {
        scope.aggregated = scope.aggregated || (spec->kind == FunctionKind::aggregate && !called.windowed);
        scope.concatenates = scope.concatenates || spec->name == "concat";
      }
      for (const syntax::Argument& argument : called.arguments) note_calls(*argument.value, scope);
      return;
    }
  }
}

// -- names

// The indices whose positions an expression may use. Outside the aggregates of a grouped query,
// only the groups remain; the name of a summed index means its size.
const Binder::DimList& Binder::visible_rows(const SelectScope& scope) const {
  static const DimList kNone{};
  if (scope.in_aggregate) return scope.rows;
  if (scope.grouped) return scope.groups;
  return scope.aggregated ? kNone : scope.rows;
}

Result<Bound> Binder::bind_name(const syntax::NameUse& use, SelectScope& scope) {
  if (scope.function != nullptr) {
    const auto parameters = scope.function->definition->statement->parameters;
    const auto at = std::ranges::find(parameters, use.name, &syntax::Name::text);
    return scope.function
        ->arguments[static_cast<std::size_t>(at - parameters.begin())];  // check_function ensures it
  }
  const Symbol name = graph_.symbol(use.name);
  for (const RowSource& source : scope.sources)
    if (source.label == name) return Bound::of(source.value);
  if (scope.in_number)
    if (const std::int64_t* size = find_size(name)) return Bound::of(static_cast<double>(*size));
  for (const Dim& row : visible_rows(scope)) {
    if (row.index != name) continue;
    WEFT_TRY(value, at(use.span, ops::add_position(graph_, row)));
    return Bound::of(value);
  }
  if (const std::int64_t* size = find_size(name)) return Bound::of(static_cast<double>(*size));
  for (const Dim& row : scope.rows)
    if (row.index == name) return Bound::of(static_cast<double>(row.size));
  return unknown_name(use, scope);
}

Error Binder::unknown_name(const syntax::NameUse& use, const SelectScope& scope) {
  if (find_tensor(graph_.symbol(use.name)).valid())
    return user_error(fmt::format("tensor {} is not in FROM", use.name),
                      fmt::format("add it: FROM ..., {}", use.name), use.span);
  std::vector<std::string_view> names;
  const auto add = [&](std::string_view name) {
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  };
  for (const RowSource& source : scope.sources) add(graph_.text(source.label));
  for (const Dim& row : scope.rows) add(graph_.text(row.index));
  for (const std::string_view size : size_names()) add(size);
  std::string hint = did_you_mean(use.name, names);
  if (hint.empty() && !names.empty()) hint = fmt::format("names in scope: {}", fmt::join(names, ", "));
  return user_error(fmt::format("unknown name '{}'", use.name), std::move(hint), use.span);
}

// -- dtypes

DType Binder::wider(DType a, DType b) const {
  if (a == b) return a;
  if (plan::is_real(a) && plan::is_real(b)) {
    if (a == DType::f64 || b == DType::f64) return DType::f64;
    return DType::f32;  // f32 with a narrow format, or two narrow formats: their only common type is f32
  }
  if (plan::is_real(a)) return a;
  if (plan::is_real(b)) return b;
  return a == DType::i64 || b == DType::i64 ? DType::i64 : DType::i32;
}

Result<ValueId> Binder::as_value(const Bound& bound, DType dtype) {
  if (!bound.is_number()) return bound.value;
  return ops::add_constant(graph_, bound.number, dtype);
}

Result<ValueId> Binder::as_real(const Bound& bound) {
  WEFT_TRY(value, as_value(bound));
  const DType dtype = graph_.type(value).dtype;
  return plan::is_real(dtype) ? value : cast_to(value, options_.precision);
}

// If a choice between integer constants is needed as floating point, its constants are created as
// floating point. So CASE WHEN c THEN 1 ELSE 0 END * x needs no cast.
Result<ValueId> Binder::cast_to(ValueId value, DType dtype) {
  const plan::NodeView node = graph_.view(graph_.value(value).producer);
  if (&node.op() == &ops::constant() && plan::is_real(dtype))
    return ops::add_constant(graph_, node.real(0), dtype);
  if (&node.op() != &ops::select() || !plan::is_real(dtype) || !is_literal_choice(value))
    return ops::add_cast(graph_, value, dtype);
  const ValueId condition = node.input(0), otherwise = node.input(2);
  WEFT_TRY(then, cast_to(node.input(1), dtype));
  WEFT_TRY(other, cast_to(otherwise, dtype));
  return ops::add_pointwise(graph_, ops::select(), {condition, then, other});
}

bool Binder::is_literal_choice(ValueId value) const {
  const plan::NodeView node = graph_.view(graph_.value(value).producer);
  if (&node.op() == &ops::constant()) return true;
  return &node.op() == &ops::select() && is_literal_choice(node.input(1)) && is_literal_choice(node.input(2));
}

Status Binder::unify(Bound& left, Bound& right) {
  if (left.is_number() && right.is_number()) {
    WEFT_TRY(constant, as_value(left));
    left = Bound::of(constant);
  }
  if (left.is_number() || right.is_number()) {
    Bound& number = left.is_number() ? left : right;
    Bound& tensor = left.is_number() ? right : left;
    DType dtype = graph_.type(tensor.value).dtype;
    const bool whole = number.number == std::floor(number.number) && std::fabs(number.number) < 2147483648.0;
    if (dtype == DType::boolean || (plan::is_integer(dtype) && !whole)) {
      dtype = whole && dtype == DType::boolean ? DType::i32 : options_.precision;
      WEFT_TRY(cast, cast_to(tensor.value, dtype));
      tensor = Bound::of(cast);
    }
    WEFT_TRY(constant, ops::add_constant(graph_, number.number, dtype));
    number = Bound::of(constant);
    return {};
  }
  const DType dtype = wider(graph_.type(left.value).dtype, graph_.type(right.value).dtype);
  WEFT_TRY(left_cast, cast_to(left.value, dtype));
  WEFT_TRY(right_cast, cast_to(right.value, dtype));
  left = Bound::of(left_cast);
  right = Bound::of(right_cast);
  return {};
}

// -- arithmetic

Result<Bound> Binder::arithmetic(syntax::Operator op, Bound left, Bound right, Span span) {
  using enum syntax::Operator;
  if ((op == divide || op == remainder) && right.is_number() && right.number == 0)
    return user_error("division by zero", "the divisor is the constant 0", span);
  if (left.is_number() && right.is_number()) {
    const double a = left.number, b = right.number;
    const double result = op == add        ? a + b
                          : op == subtract ? a - b
                          : op == multiply ? a * b
                          : op == divide   ? a / b
                                           : std::fmod(a, b);
    if (std::isnan(result))
      return user_error("the result is not a number", "inf - inf and 0 * inf have no value", span);
    return Bound::of(result);
  }
  // A quotient of integers is a real number: 1 / 2 is 0.5.
  const auto is_real = [&](const Bound& side) {
    return !side.is_number() && plan::is_real(graph_.type(side.value).dtype);
  };
  if (op == divide && !is_real(left) && !is_real(right)) {
    Bound& whole = left.is_number() ? right : left;
    WEFT_TRY(real, as_real(whole));
    whole = Bound::of(real);
  }
  WEFT_TRY_STATUS(unify(left, right));
  if (graph_.type(left.value).dtype == DType::boolean) {
    for (Bound* side : {&left, &right}) {
      WEFT_TRY(cast, ops::add_cast(graph_, side->value, DType::i32));
      *side = Bound::of(cast);
    }
  }
  const ops::Operator& node = op == add        ? ops::add()
                              : op == subtract ? ops::sub()
                              : op == multiply ? ops::mul()
                              : op == divide   ? ops::div()
                                               : ops::mod();
  WEFT_TRY(value, at(span, ops::add_pointwise(graph_, node, {left.value, right.value}),
                     "the result has the indices of both sides; give one a smaller size"));
  return Bound::of(value);
}

Result<Bound> Binder::bind_chain(const syntax::Chain& chain, SelectScope& scope) {
  const syntax::Operator kind = chain.rest.front().op;
  if (kind == syntax::Operator::logical_and || kind == syntax::Operator::logical_or) {
    WEFT_TRY(value, bind_condition(*chain.first, scope));
    for (const syntax::Term& term : chain.rest) {
      WEFT_TRY(operand, bind_condition(*term.operand, scope));
      const ops::Operator& op =
          kind == syntax::Operator::logical_and ? ops::logical_and() : ops::logical_or();
      WEFT_TRY(both, at(chain.span, ops::add_pointwise(graph_, op, {value, operand})));
      value = both;
    }
    return Bound::of(value);
  }
  WEFT_TRY(value, bind_expression(*chain.first, scope));
  for (const syntax::Term& term : chain.rest) {
    WEFT_TRY_STATUS(count_step(term.op_span));
    WEFT_TRY(operand, bind_expression(*term.operand, scope));
    WEFT_TRY(both, arithmetic(term.op, value, operand, chain.span));
    value = both;
  }
  return value;
}

// -- conditions

Result<Bound> Binder::compare(syntax::Operator op, Bound left, Bound right, Span span) {
  using enum syntax::Operator;
  WEFT_TRY_STATUS(unify(left, right));
  const ops::Operator& node = op == equal        ? ops::equal()
                              : op == not_equal  ? ops::not_equal()
                              : op == less       ? ops::less()
                              : op == less_equal ? ops::less_equal()
                              : op == greater    ? ops::greater()
                                                 : ops::greater_equal();
  WEFT_TRY(value, at(span, ops::add_pointwise(graph_, node, {left.value, right.value})));
  return Bound::of(value);
}

Result<Bound> Binder::bind_comparison(const syntax::Comparison& comparison, SelectScope& scope) {
  WEFT_TRY(left, bind_expression(*comparison.left, scope));
  WEFT_TRY(right, bind_expression(*comparison.right, scope));
  return compare(comparison.op, left, right, comparison.span);
}

Result<Bound> Binder::bind_between(const syntax::Between& between, SelectScope& scope) {
  WEFT_TRY(value, bind_expression(*between.value, scope));
  WEFT_TRY(low, bind_expression(*between.low, scope));
  WEFT_TRY(high, bind_expression(*between.high, scope));
  WEFT_TRY(above, compare(syntax::Operator::greater_equal, value, low, between.span));
  WEFT_TRY(below, compare(syntax::Operator::less_equal, value, high, between.span));
  WEFT_TRY(both,
           at(between.span, ops::add_pointwise(graph_, ops::logical_and(), {above.value, below.value})));
  return Bound::of(both);
}

Result<ValueId> Binder::bind_condition(const syntax::Expression& expression, SelectScope& scope) {
  WEFT_TRY(bound, bind_expression(expression, scope));
  if (bound.is_number())
    return user_error("expected a condition, found a number", "compare it: x > 0", expression.span);
  const DType dtype = graph_.type(bound.value).dtype;
  if (dtype != DType::boolean)
    return user_error(fmt::format("expected a condition, found {}", plan::name(dtype)), "compare it: x > 0",
                      expression.span);
  return bound.value;
}

namespace {

// Whether a number was written as an integer: 1 and -1 are, 1.0 is not.
bool written_whole(const syntax::Expression& expression) {
  if (const auto* negate = expression.if_a<syntax::Negate>()) return written_whole(*negate->operand);
  const auto* literal = expression.if_a<syntax::Literal>();
  return literal == nullptr || literal->is_whole;
}

}  // namespace

Result<Bound> Binder::bind_choice(const syntax::Choice& choice, SelectScope& scope) {
  std::vector<ValueId> conditions;
  std::vector<Bound> results;
  bool only_numbers = true, whole = true;
  DType dtype = options_.precision;
  const auto add = [&](const syntax::Expression& expression) -> Status {
    WEFT_TRY(result, bind_expression(expression, scope));
    results.push_back(result);
    if (result.is_number()) {
      whole = whole && written_whole(expression) && result.number == std::floor(result.number) &&
              std::fabs(result.number) < 2147483648.0;
      return {};
    }
    const DType own = graph_.type(result.value).dtype;
    dtype = only_numbers ? own : wider(dtype, own);
    only_numbers = false;
    return {};
  };
  // From the last to the first, since they are nested in this order below.
  if (choice.otherwise == nullptr) {
    results.push_back(Bound::of(0.0));
  } else {
    WEFT_TRY_STATUS(add(*choice.otherwise));
  }
  for (auto when = choice.whens.rbegin(); when != choice.whens.rend(); ++when) {
    WEFT_TRY(condition, bind_condition(*when->condition, scope));
    conditions.push_back(condition);
    WEFT_TRY_STATUS(add(*when->result));
  }
  // Numbers get the dtype of the tensors beside them. Without tensors, they are integers if all
  // were written as integers.
  if (only_numbers && whole) dtype = DType::i32;
  const bool numbers = std::ranges::any_of(results, &Bound::is_number);
  if (numbers && dtype == DType::boolean) dtype = DType::i32;
  if (numbers && plan::is_integer(dtype) && !whole) dtype = options_.precision;

  std::vector<ValueId> values;
  for (const Bound& result : results) {
    WEFT_TRY(value, as_value(result, dtype));
    WEFT_TRY(cast, ops::add_cast(graph_, value, dtype));
    values.push_back(cast);
  }
  ValueId chosen = values.front();
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    WEFT_TRY(selected, at(choice.span,
                          ops::add_pointwise(graph_, ops::select(), {conditions[i], values[i + 1], chosen})));
    chosen = selected;
  }
  return Bound::of(chosen);
}

Result<Bound> Binder::bind_cast(const syntax::Cast& cast, SelectScope& scope) {
  // CAST(x AS precision): the dtype of tensors declared without one.
  const auto dtype =
      cast.dtype.text == "precision" ? std::optional(options_.precision) : plan::find_dtype(cast.dtype.text);
  if (!dtype) {
    std::string hint = did_you_mean(cast.dtype.text, plan::dtype_spellings());
    return user_error(fmt::format("unknown dtype '{}'", cast.dtype.text),
                      hint.empty() ? "dtypes are " + plan::dtype_names() : std::move(hint), cast.dtype.span);
  }
  WEFT_TRY(operand, bind_expression(*cast.operand, scope));
  // 0.5 is not a constant of i32: it is created as a real number and then cast like a tensor.
  const bool whole = operand.number == std::floor(operand.number) && std::fabs(operand.number) < 2147483648.0;
  const bool exact = plan::is_real(*dtype) || (plan::is_integer(*dtype) && whole);
  WEFT_TRY(value, exact ? as_value(operand, *dtype) : as_value(operand));
  WEFT_TRY(result, at(cast.span, ops::add_cast(graph_, value, *dtype)));
  return Bound::of(result);
}

}  // namespace weft::language
