// weft/rules/rule/resolve_numbers.h -- resolves the names in numbers and guards.
#pragma once
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/rules/rule/names.h"
#include "weft/rules/rule/rule.h"
#include "weft/rules/rule/syntax.h"

namespace weft::rule {

class NumberResolver {
 public:
  // `left`: the values of the left side known so far, by name.
  NumberResolver(Names& names, const std::map<std::string_view, std::uint16_t>& left,
                 std::span<const syntax::Guard> guards)
      : names_(names), left_(left), guards_(guards) {}

  Result<Number> number(const syntax::Expression& expression);
  // Expands named guards.
  Result<std::vector<Condition>> conditions(std::span<const syntax::Comparison> comparisons);

 private:
  using Parameters = std::map<std::string_view, Number>;  // of the guard being expanded

  Result<Number> call(const syntax::Expression& expression);
  Status condition(const syntax::Comparison& comparison, std::vector<Condition>& all);
  Status fact(const syntax::Expression& call, std::vector<Condition>& all);
  Status named_guard(const syntax::Expression& call, std::vector<Condition>& all);
  Result<std::uint16_t> value(const syntax::Expression& expression);
  Result<std::uint16_t> index(const syntax::Expression& expression);
  Status spend(const Number& number, Span span);

  Names& names_;
  const std::map<std::string_view, std::uint16_t>& left_;
  std::span<const syntax::Guard> guards_;
  const Parameters* parameters_ = nullptr;
  std::size_t spent_ = 0;
};

}  // namespace weft::rule
