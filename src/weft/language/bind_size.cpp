// Sizes: exact integer arithmetic on the sizes declared so far.
#include <limits>

#include <fmt/format.h>

#include "weft/base/nearest.h"
#include "weft/language/binder.h"

namespace weft::language {

Result<std::int64_t> Binder::evaluate_size(const syntax::SizeExpression& expression) {
  switch (expression.kind) {
    case syntax::ExpressionKind::literal: return expression.as<syntax::Literal>().whole;
    case syntax::ExpressionKind::name: {
      const auto& use = expression.as<syntax::NameUse>();
      if (const std::int64_t* size = find_size(graph_.symbol(use.name))) return *size;
      std::string hint = did_you_mean(use.name, size_names());
      if (hint.empty()) hint = fmt::format("declare it before it is used: {} = 8", use.name);
      return user_error(fmt::format("unknown size '{}' in {}", use.name, frames_.back().name),
                        std::move(hint), use.span);
    }
    case syntax::ExpressionKind::chain: return evaluate_size_chain(expression.as<syntax::Chain>());
    case syntax::ExpressionKind::call:  // ceil(a / b), as parsed
      return evaluate_size_chain(expression.as<syntax::Call>().arguments.front().value->as<syntax::Chain>(),
                                 /*rounds_up=*/true);
    default:
      return user_error("expected a size",
                        "a size expression has whole numbers, sizes, + - * /, ceil(a / b) and parentheses",
                        expression.span);
  }
}

// `rounds_up`: the last division does.
Result<std::int64_t> Binder::evaluate_size_chain(const syntax::Chain& chain, bool rounds_up) {
  WEFT_TRY(value, evaluate_size(*chain.first));
  for (const syntax::Term& term : chain.rest) {
    WEFT_TRY(operand, evaluate_size(*term.operand));
    bool overflow = false;
    switch (term.op) {
      case syntax::Operator::add: overflow = __builtin_add_overflow(value, operand, &value); break;
      case syntax::Operator::subtract: overflow = __builtin_sub_overflow(value, operand, &value); break;
      case syntax::Operator::multiply: overflow = __builtin_mul_overflow(value, operand, &value); break;
      case syntax::Operator::divide:
        if (operand == 0)
          return user_error("division by zero", "give the divisor a size of 1 or more", term.operand->span);
        if (value == std::numeric_limits<std::int64_t>::min() && operand == -1) {
          overflow = true;
          break;
        }
        if (value % operand == 0) {
          value /= operand;
          break;
        }
        if (!rounds_up || &term != &chain.rest.back())
          return user_error(fmt::format("{} does not divide {}", operand, value),
                            "sizes must divide without remainder; ceil(a / b) rounds up", chain.span);
        value = value / operand + ((value < 0) == (operand < 0) ? 1 : 0);
        break;
      default:
        return user_error("expected + - * or / in a size", "a size supports no other operators",
                          term.op_span);
    }
    if (overflow) return user_error("size does not fit in 64 bits", "use smaller sizes", chain.span);
  }
  return value;
}

}  // namespace weft::language
