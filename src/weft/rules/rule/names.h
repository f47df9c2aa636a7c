// weft/rules/rule/names.h -- the names of a rule while it is being resolved: what binds them, and who asked first.
//
// Names of values, indices, attribute variables and operator variables live apart: a stride may be called s
// where an index is called s too.
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

  // From here on what is not bound yet is a mistake: the left side has been read.
  Status close();

  Result<std::uint16_t> index(const syntax::Word& word);
  // The same, where just one index will do.
  Result<std::uint16_t> single_index(const syntax::Word& word);

  // A use that binds the variable, and one that only reads it.
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
