// weft/rules/rule/resolve_attribute.h -- resolves the attributes of a pattern's node.
//
//   conv2d(x, w, stride=s, padding=1)    stride binds or reads s, padding is 1, groups has its default
//
// A bare name is a variable. For a word attribute it is the word itself (kind=sum), except for a
// mesh axis (axis=a) and for names that the rule declares by `any word k`.
#pragma once
#include <set>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/rules/rule/names.h"
#include "weft/rules/rule/resolve_numbers.h"
#include "weft/rules/rule/rule.h"
#include "weft/rules/rule/syntax.h"

namespace weft::rule {

class AttributeResolver {
 public:
  AttributeResolver(Names& names, NumberResolver& numbers, const std::set<std::string_view>& words,
                    bool is_left)
      : names_(names), numbers_(numbers), words_(words), is_left_(is_left) {}

  // One term per attribute of the operator, in its order.
  Result<std::vector<AttributeTerm>> all(const syntax::Term& term, const plan::Operator& op);

 private:
  Result<AttributeTerm> one(const syntax::Expression& value, const plan::AttributeSpec& spec);
  Result<AttributeTerm> variable(const syntax::Word& word, plan::AttributeKind kind);
  Result<AttributeTerm> list(const syntax::Expression& value, const plan::AttributeSpec& spec);
  Result<Number> size(const syntax::Expression& value);

  Names& names_;
  NumberResolver& numbers_;
  const std::set<std::string_view>& words_;
  bool is_left_;
};

}  // namespace weft::rule
