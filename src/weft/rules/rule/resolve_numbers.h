// weft/rules/rule/resolve_numbers.h -- numbers and guards as written, with the values, indices and variables meant.
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
  // `left` is what names of values mean: those of the left side that are known so far.
  NumberResolver(Names& names, const std::map<std::string_view, std::uint16_t>& left,
                 std::span<const syntax::Guard> guards)
      : names_(names), left_(left), guards_(guards) {}

  Result<Number> number(const syntax::Expression& expression);
  // Named guards are written out.
  Result<std::vector<Condition>> conditions(std::span<const syntax::Comparison> comparisons);

 private:
  using Parameters = std::map<std::string_view, Number>;  // of the guard that is being written out

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
