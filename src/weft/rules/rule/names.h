// weft/rules/rule/names.h -- a rule's names during resolution, and what binds them.
//
// Values, indices, attribute variables and operator variables have separate namespaces: a stride
// may be called s even if an index is.
#pragma once
#include <map>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/rules/rule/rule.h"
#include "weft/rules/rule/syntax.h"

namespace weft::rule {

class Names {
 public:
  explicit Names(Rule& rule) : rule_(rule) {}

  // Ends the left side: using an unbound name after this is an error.
  Status close();

  Result<std::uint16_t> index(const syntax::Word& word);
  // The same for places that need a single index.
  Result<std::uint16_t> single_index(const syntax::Word& word);

  // bind_variable() binds the variable; use_variable() only reads it.
  Result<std::uint16_t> bind_variable(const syntax::Word& word, plan::AttributeKind kind);
  Result<std::uint16_t> use_variable(const syntax::Word& word, plan::AttributeKind kind);
  bool is_variable(std::string_view name) const { return variables_.contains(name); }

 private:
  struct Known {
    std::uint16_t place;
    bool bound;
    Span first_use;
  };
  Result<std::uint16_t> variable(const syntax::Word& word, plan::AttributeKind kind, bool binds);

  Rule& rule_;
  bool closed_ = false;
  std::map<std::string_view, std::uint16_t> indices_;
  std::map<std::string_view, Known> variables_;
};

}  // namespace weft::rule
