// weft/language/grammar.h -- the recursive-descent parser behind parse().
//
// It has one method per production. No production checks whether another one failed. fail() keeps
// the first error and drops the rest of the text, so that all following productions see the end of
// the text and return soon: every loop continues only for a token that it has seen. Nodes built
// after a failure are discarded.
//
// The grammar needs two tokens of lookahead, token_ and next_ (`stride => 2`).
#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/base/arena.h"
#include "weft/base/result.h"
#include "weft/language/level.h"
#include "weft/language/lexer.h"
#include "weft/language/syntax.h"

namespace weft::language {

class Grammar {
 public:
  Grammar(std::string_view text, Arena& arena);

  Result<std::span<const syntax::Statement* const>> script();

 private:
  using Kind = TokenKind;
  template <class T>
  class Gather;
  class Nest;

  // parse_statement.cpp
  const syntax::Statement* statement();
  const syntax::Statement* drop();
  const syntax::Statement* explain();
  const syntax::Run* run();
  const syntax::Statement* set();
  const syntax::Statement* hint();
  const syntax::Statement* show();
  const syntax::Statement* clear();
  const syntax::Statement* describe();
  const syntax::Statement* save();
  const syntax::Statement* load();
  const syntax::Statement* run_file();
  const syntax::Statement* synthesize();
  syntax::HintItem hint_item();
  syntax::Format format();
  syntax::Target target();
  std::span<const syntax::DataFile> data_files();
  syntax::Goal goal();

  // parse_create.cpp
  const syntax::Statement* create();
  const syntax::Statement* device(std::uint32_t start, bool replace);
  const syntax::Statement* cluster(std::uint32_t start, bool replace);
  const syntax::Statement* stack(std::uint32_t start, bool replace);
  const syntax::Statement* function(std::uint32_t start, bool replace);
  const syntax::Statement* layer(std::uint32_t start, bool replace);
  const syntax::Statement* model(std::uint32_t start, bool replace);
  syntax::Link link();
  syntax::NodesOf nodes_of();
  syntax::Body body(syntax::ObjectKind owner);
  syntax::Size size(syntax::ObjectKind owner);
  syntax::Tensor tensor();
  syntax::Parameter parameter(syntax::ParameterKind kind);
  syntax::Init init();

  // parse_query.cpp
  const syntax::Query* query();
  syntax::Binding binding();
  syntax::Binding update();
  const syntax::Query* query_in_parentheses();
  syntax::Select select();
  syntax::Item item();
  syntax::Source source();
  syntax::LayerArgument layer_argument();
  std::span<const syntax::IndexUse> index_uses();
  syntax::IndexUse index_use();
  syntax::Group group();

  // parse_expression.cpp
  const syntax::Expression* expression(Level loosest = Level::logical_or);
  const syntax::SizeExpression* size_expression();
  Level infix_level() const;
  syntax::Operator take_operator();
  const syntax::Expression* chain(std::uint32_t start, const syntax::Expression* first, Level level);
  const syntax::Expression* comparison(std::uint32_t start, const syntax::Expression* left);
  const syntax::Expression* prefix(Level loosest);
  const syntax::Expression* primary();
  const syntax::Expression* parenthesized();
  const syntax::Expression* choice();
  const syntax::Expression* cast();
  const syntax::Expression* name_or_call();
  const syntax::Expression* call();
  syntax::Argument argument(bool first);
  bool check_size(const syntax::Expression& size);

  // parse_value.cpp
  syntax::Name name(std::string_view what);
  syntax::Text text(std::string_view what);
  syntax::Number number(std::string_view what);  // 12, -0.5, inf
  syntax::Number whole_number(std::string_view what, std::int64_t least);
  syntax::Number take_number();  // REQUIRES: at(Kind::number)
  syntax::Value value();
  syntax::Value quantity(std::string_view what);
  void take_unit(syntax::Value& value);
  syntax::Setting setting();
  std::span<const syntax::Setting> settings();       // "(" setting {"," setting} ")"
  std::span<const syntax::Setting> with_settings();  // [ WITH settings ]
  std::string_view unquoted(const Token& token);

  // parse_error.cpp: error messages and hints.
  void fail(Error error);
  void fail_here(std::string_view message, std::string_view hint = {});
  void fail_expected(std::string_view what, std::string_view hint = {});
  void fail_name(std::string_view what);
  void fail_keyword(Keyword keyword, std::string_view where, std::string_view example = {});
  void fail_close(char opened, Span open);  // of a list
  void fail_group(Span open);               // of a query or expression in parentheses
  void fail_statement();
  void fail_object(std::string_view where);
  void fail_body(const syntax::Body& body, syntax::ObjectKind owner);
  void fail_query();
  void fail_select();
  void end_select(const syntax::Select& select);
  void end_cluster(std::span<const syntax::Link> links);
  void fail_expression();
  void fail_after_name(std::string_view name);
  void fail_label();
  void expect_end(std::initializer_list<Keyword> instead);
  std::string found() const;
  std::string remedy(std::span<const std::string_view> keywords = {}) const;
  std::string_view lexeme(Span span) const { return text_.substr(span.offset, span.length); }

  bool at(Kind kind) const { return token_.kind == kind; }
  bool at(Keyword keyword) const { return token_.keyword == keyword; }
  bool at_name() const { return at(Kind::quoted) || (at(Kind::word) && !is_reserved(token_.keyword)); }

  void advance();
  template <class What>
  bool accept(What what) {
    if (!at(what)) return false;
    advance();
    return true;
  }
  // REQUIRES: "expected KEYWORD where" and "write example" are readable texts.
  void expect(Keyword keyword, std::string_view where, std::string_view example = {}) {
    if (!accept(keyword)) fail_keyword(keyword, where, example);
  }
  void expect(Kind kind, std::string_view what) {
    if (!accept(kind)) fail_expected(what);
  }

  // item {"," item}
  template <class T, class Read>
  std::span<const T> list(Read read);
  // "(" item {"," item} ")"
  template <class T, class Read>
  std::span<const T> parens(std::string_view where, Read read);
  void close_paren(Span open) {
    if (!accept(Kind::right_paren)) fail_close('(', open);
  }

  std::uint32_t here() const { return token_.span.offset; }
  Span since(std::uint32_t start) const { return {start, last_end_ - start}; }

  // Creates a node of an Expression's or Statement's kind with the span from `start` on.
  template <class Node, class... Parts>
  const Node* make(std::uint32_t start, Parts&&... parts) {
    return arena_.make<Node>(base_of<Node>(start), std::forward<Parts>(parts)...);
  }
  template <class Node>
  auto base_of(std::uint32_t start) const {
    if constexpr (std::is_base_of_v<syntax::Expression, Node>)
      return syntax::Expression{Node::kKind, since(start)};
    else
      return syntax::Statement{Node::kKind, since(start)};
  }

  std::string_view text_;
  Arena& arena_;
  Lexer lexer_;
  Token token_, next_;
  std::uint32_t last_end_ = 0;  // the end of the token before token_
  Kind last_kind_ = Kind::end;
  std::uint32_t depth_ = 0;
  std::optional<Error> error_;

  // Stacks on which lists grow, inner lists above outer ones, until their length is known.
  template <class... Ts>
  using Stacks = std::tuple<std::vector<Ts>...>;
  Stacks<syntax::Name, syntax::Number, syntax::Setting, syntax::Option, syntax::Term, syntax::When,
         syntax::Argument, syntax::Item, syntax::IndexUse, syntax::LayerArgument, syntax::Source,
         syntax::Group, syntax::Binding, syntax::Tensor, syntax::Size, syntax::Parameter, syntax::Link,
         syntax::NodesOf, syntax::LinkShare, syntax::HintItem, syntax::Text, syntax::DataFile, syntax::Goal,
         const syntax::Statement*>
      stacks_;
};

// A list under construction.
template <class T>
class Grammar::Gather {
 public:
  explicit Gather(Grammar& grammar)
      : arena_(grammar.arena_), stack_(std::get<std::vector<T>>(grammar.stacks_)), bottom_(stack_.size()) {}
  Gather(const Gather&) = delete;
  ~Gather() { stack_.erase(stack_.begin() + static_cast<std::ptrdiff_t>(bottom_), stack_.end()); }

  void add(const T& item) { stack_.push_back(item); }
  std::span<const T> finish() { return arena_.copy(std::span<const T>(stack_).subspan(bottom_)); }

 private:
  Arena& arena_;
  std::vector<T>& stack_;
  std::size_t bottom_;
};

// Counts one level of nesting during its lifetime.
class Grammar::Nest {
 public:
  explicit Nest(Grammar& grammar) : grammar_(grammar) {
    if (++grammar.depth_ > syntax::kDeepest) refuse();
  }
  Nest(const Nest&) = delete;
  ~Nest() { --grammar_.depth_; }

 private:
  void refuse();
  Grammar& grammar_;
};

template <class T, class Read>
std::span<const T> Grammar::list(Read read) {
  Gather<T> items(*this);
  do items.add(read());
  while (accept(Kind::comma));
  return items.finish();
}

template <class T, class Read>
std::span<const T> Grammar::parens(std::string_view where, Read read) {
  const Span open = token_.span;
  if (!accept(Kind::left_paren)) fail_expected(where);
  const auto items = list<T>(read);
  close_paren(open);
  return items;
}

}  // namespace weft::language
