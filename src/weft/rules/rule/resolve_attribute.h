// weft/rules/rule/resolve_attribute.h -- the attributes of a pattern's node, as its operator wants them.
//
//   conv2d(x, w, stride=s, padding=1)    stride binds or reads s, padding is 1, groups has its default
//
// A bare name is a variable; for a word it is the word itself (kind=sum), but for a mesh axis (axis=a) and
// for what the rule declares by `any word k`.
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

  // One term for each of the operator's attributes, in its order.
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
