// Error messages and hints. This code runs at most once per parse.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "weft/base/letters.h"
#include "weft/base/nearest.h"
#include "weft/base/utf8.h"
#include "weft/language/complaint.h"
#include "weft/language/grammar.h"

namespace weft::language {
namespace {

using enum Keyword;

constexpr std::size_t kShown = 40;  // maximum bytes of a token in a message

constexpr auto kStatementWords =
    std::to_array<std::string_view>({"CREATE", "DROP", "EXPLAIN", "TRAIN", "INFER", "GENERATE", "SET", "HINT",
                                     "SHOW", "CLEAR", "DESCRIBE", "SAVE", "LOAD", "RUN", "SYNTHESIZE"});

// Keywords of other SQL dialects, and their WeftQL equivalents.
constexpr auto kOtherDialectWords = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"HAVING", "WeftQL has no HAVING: filter in a query around this one"},
    {"ORDER", "WeftQL has no ORDER BY: GROUP BY gives the order of the indices"},
    {"LIMIT", "WeftQL has no LIMIT: write WHERE i < 10"},
    {"UNION", "WeftQL has no UNION: write concat(a, b, along => i)"},
    {"LEFT", "WeftQL has one JOIN: JOIN t[v, d] ON v = tokens"},
    {"RIGHT", "WeftQL has one JOIN: JOIN t[v, d] ON v = tokens"},
    {"FULL", "WeftQL has one JOIN: JOIN t[v, d] ON v = tokens"},
    {"INNER", "WeftQL has one JOIN: JOIN t[v, d] ON v = tokens"},
    {"CROSS", "write a comma between the sources"},
    {"IN", "WHERE takes i BETWEEN 1 AND 2, CASE WHEN takes i = 1 OR i = 2"},
    {"IS", "WeftQL has no NULL"},
    {"DISTINCT", "WeftQL has no DISTINCT"},
    {"INSERT", "WeftQL has no INSERT: TRAIN and INFER read tensors FROM a file"},
    {"UPDATE",
     "UPDATE comes last in a model: SELECT ... UPDATE state AS (SELECT ...); TRAIN updates parameters"},
    {"DELETE", "WeftQL has no DELETE: DROP removes an object"},
    {"ALTER", "WeftQL has no ALTER: write CREATE OR REPLACE"},
});

// Examples for expected items, if no common mistake explains the token found.
constexpr auto kExamples = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"DEVICE, CLUSTER, FUNCTION, LAYER or MODEL after CREATE", "usage: CREATE MODEL name ... AS SELECT ..."},
    {"DEVICE, CLUSTER, FUNCTION, LAYER or MODEL after DROP", "write DROP MODEL name"},
    {"'(' and the arguments of the function", "usage: CREATE FUNCTION name(x, ...) AS expression"},
    {"AS and an expression", "usage: CREATE FUNCTION name(x, ...) AS expression"},
    {"TRAIN or INFER", "write EXPLAIN TRAIN name or EXPLAIN INFER name"},
    {"text, json, plan, megatron, deepspeed, torchtitan, nemo, bridge, accelerate, maxtext, torch or "
     "torchtitan_toml after FORMAT",
     "write EXPLAIN (FORMAT json) INFER name"},
    {"SLICE, REPLICATE, DP, TP, PP, EP, CP or ZERO",
     "for example: HINT TP 8 WITHIN node, PP 4, or HINT SLICE b ACROSS node"},
    {"what to show, such as MODELS", "write SHOW MODELS"},
    {"what to clear, such as STATISTICS", "write CLEAR STATISTICS"},
    {"= or TO after the setting's name", "write SET name = value"},
    {"'(' and a query", "usage: name AS (SELECT ... FROM ...)"},
    {"',' or FROM", "a SELECT needs a FROM: SELECT ... FROM x"},
    {"an expression", "a value is a tensor, a number, a function or CASE"},
    {"WITHIN or ACROSS", "write LINK gpu WITHIN node (450 GB/s, 1.5 us)"},
    {"'(', a bandwidth and a latency", "write LINK gpu WITHIN node (450 GB/s, 1.5 us)"},
    {"',' and a latency", "write LINK gpu WITHIN node (450 GB/s, 1.5 us)"},
    {"a shape such as ring",
     "shapes are switch, ring, full, mesh(4, 4), torus(4, 4), hybrid_cube_mesh and mi250"},
    {"how many times, such as 2", "write OVERSUBSCRIBED 2 for half the bandwidth of the nodes' links"},
    {"'(' and the shares of the bandwidth", "write SCALING (4 NODES 0.8, 64 NODES 0.5)"},
    {"a share such as 0.8",
     "write SCALING (4 NODES 0.8) if collectives among 4 nodes reach 80 % of the rate"},
    {"'(' and the parameters to train", "write MINIMIZE loss OVER (w1, w2)"},
    {"a name", "a name has letters, digits and _; any other is written in double quotes"},
});

// Only reserved nouns: if FROM or AND is in place of a value, something else is missing.
bool could_be_meant_as_name(Keyword keyword) {
  static constexpr auto kNouns =
      std::to_array({kw_input, kw_parameter, kw_state, kw_init, kw_times, kw_group, kw_repeat});
  return std::ranges::find(kNouns, keyword) != kNouns.end();
}

std::string advice_on_reserved(Keyword keyword, std::string_view word) {
  return fmt::format("{} is a reserved word; as a name, write \"{}\"", spelling(keyword), word);
}

}  // namespace

void Grammar::fail(Error error) {
  if (!error_) error_ = std::move(error);
  lexer_ = Lexer({});
  token_ = next_ = Token{};
  token_.span.offset = next_.span.offset = last_end_;
}

void Grammar::fail_here(std::string_view message, std::string_view hint) {
  const Span place = at(Kind::end) ? Span{last_end_, 1} : token_.span;
  fail(user_error(std::string(message), std::string(hint), place));
}

void Grammar::fail_expected(std::string_view what, std::string_view hint) {
  if (error_) return;
  std::string advice = hint.empty() ? remedy() : std::string(hint);
  const auto example = std::ranges::find(kExamples, what, [](const auto& row) { return row.first; });
  if (advice.empty() && example != kExamples.end()) advice = example->second;
  fail_here(fmt::format("expected {}, found {}", what, found()), advice);
}

void Grammar::fail_keyword(Keyword keyword, std::string_view where, std::string_view example) {
  if (error_) return;
  const std::string_view word = spelling(keyword);
  std::string hint = remedy({&word, 1});
  if (hint.empty() && !example.empty())
    hint = fmt::format("{} {}", example.find("...") == example.npos ? "write" : "usage:", example);
  fail_expected(fmt::format("{} {}", word, where), hint);
}

void Grammar::fail_name(std::string_view what) {
  if (error_) return;
  std::string hint;
  const bool stray_comma = last_kind_ == Kind::comma && !could_be_meant_as_name(token_.keyword);
  if (at(Kind::word) && !stray_comma) hint = advice_on_reserved(token_.keyword, lexeme(token_.span));
  if (at(Kind::string)) hint = "a name is written without quotes, or in double quotes";
  if (at(Kind::number) && next_.kind == Kind::word) hint = "a name starts with a letter or _";
  fail_expected(what, hint);
}

void Grammar::fail_close(char opened, Span open) {
  if (error_) return;
  const bool starts_item = at_name() || at(Kind::number) || at(Kind::string) || at(Kind::left_paren);
  std::string hint = remedy();
  if (hint.empty() && starts_item) hint = "is a comma missing before it?";
  const auto [line, column] = position(text_, open.offset);
  if (hint.empty()) hint = fmt::format("the {} at {}:{} is not closed", opened, line, column);
  fail_expected(opened == '(' ? "',' or ')'" : "',' or ']'", hint);
}

void Grammar::fail_group(Span open) {
  if (error_) return;
  const auto [line, column] = position(text_, open.offset);
  std::string hint = remedy();
  if (hint.empty()) hint = fmt::format("the ( at {}:{} is not closed", line, column);
  fail_expected("')'", hint);
}

void Grammar::fail_statement() {
  if (error_) return;
  static constexpr auto kQueryWords = std::to_array<std::string_view>({"SELECT", "WITH"});
  std::string hint = remedy(kStatementWords);
  if (at(Kind::word) && !nearest(lexeme(token_.span), kQueryWords).empty())
    hint = "a query belongs in a model: CREATE MODEL name AS SELECT ...";
  if (hint.empty()) hint = fmt::format("statements are {}", fmt::join(kStatementWords, " "));
  fail_expected("a statement", hint);
}

void Grammar::fail_object(std::string_view where) {
  if (error_) return;
  static constexpr auto kObjects =
      std::to_array<std::string_view>({"DEVICE", "CLUSTER", "FUNCTION", "LAYER", "MODEL"});
  fail_expected(fmt::format("DEVICE, CLUSTER, FUNCTION, LAYER or MODEL {}", where), remedy(kObjects));
}

// The declarations of a model or layer have been read and AS does not follow.
void Grammar::fail_body(const syntax::Body& body, syntax::ObjectKind owner) {
  if (error_) return;
  const bool is_model = owner == syntax::ObjectKind::model;
  if (at(kw_input) && !is_model)
    return fail_here("a LAYER has no INPUT", "its arguments are its inputs: LAYER l(x[b, d])");
  if (at(kw_input) && !body.inputs.empty())
    return fail_here("INPUT is given twice", "separate the tensors with commas");
  if (at(kw_input)) return fail_here("INPUT must come before PARAMETER and STATE", "move it to the front");

  static constexpr auto kSections = std::to_array<std::string_view>({"INPUT", "PARAMETER", "STATE", "AS"});
  const bool may_input = is_model && body.inputs.empty() && body.parameters.empty();
  const auto next = std::span(kSections).subspan(may_input ? 0 : 1);
  std::string hint = remedy(next);
  if (at(kw_select) || at(kw_with)) hint = "put AS before the query";
  if (hint.empty() && last_kind_ == Kind::right_bracket && at_name()) hint = "is a comma missing before it?";
  fail_expected(may_input ? "INPUT, PARAMETER, STATE or AS" : "PARAMETER, STATE or AS", hint);
}

void Grammar::fail_query() {
  if (error_) return;
  static constexpr auto kBegin = std::to_array<std::string_view>({"SELECT", "WITH"});
  std::string hint = remedy(kBegin);
  const bool after_binding = last_kind_ == Kind::right_paren;
  if (hint.empty() && after_binding && at_name()) hint = "is a comma missing before it?";
  fail_expected(after_binding ? "',' or SELECT" : "SELECT or WITH", hint);
}

// The list of a SELECT has been read and FROM does not follow.
void Grammar::fail_select() {
  if (error_) return;
  static constexpr auto kNext = std::to_array<std::string_view>({"FROM", "AS"});
  std::string hint = remedy(kNext);
  if (last_kind_ == Kind::number && at(Kind::word) && here() == last_end_)
    hint = "a product is written with *";
  if (hint.empty() && at_name())
    hint = fmt::format("to name the value, write AS {}", lexeme(token_.span).substr(0, kShown));
  if (hint.empty() && at(Kind::right_paren)) hint = "this ) has no matching (: remove it";
  fail_expected("',' or FROM", hint);
}

void Grammar::end_select(const syntax::Select& select) {
  if (error_) return;
  const bool filtered = select.where != nullptr, grouped = !select.groups.empty();
  if (at(kw_where) && filtered) return fail_here("WHERE is given twice", "combine the conditions with AND");
  if (at(kw_where))
    return fail_here("WHERE must come before GROUP BY", "usage: SELECT ... FROM ... WHERE ... GROUP BY ...");
  if (at(kw_group)) return fail_here("GROUP BY is given twice", "separate the indices with commas");
  if (at(kw_from)) return fail_here("FROM is given twice", "separate the sources with commas");
  if (at(kw_join))
    return fail_here("JOIN must come before WHERE and GROUP BY",
                     "usage: SELECT ... FROM a JOIN b ON ... WHERE ...");
  if (at(kw_update) && depth_ == 1) return;  // the UPDATE of the model or layer
  if (grouped) return expect_end({});
  if (filtered) return expect_end({kw_group});
  expect_end({kw_join, kw_where, kw_group});
}

// The last link may still have SHAPE, OVERSUBSCRIBED and SCALING.
void Grammar::end_cluster(std::span<const syntax::Link> links) {
  const bool told = links.empty() || links.back().shape.given() || !links.back().scaling.empty();
  if (told) return expect_end({kw_link});
  if (links.back().kind == syntax::LinkKind::within) return expect_end({kw_shape, kw_link});
  if (links.back().oversubscribed) return expect_end({kw_scaling, kw_link});
  expect_end({kw_oversubscribed, kw_scaling, kw_link});
}

// A query or a statement may end here, or continue with one of some clauses.
void Grammar::expect_end(std::initializer_list<Keyword> instead) {
  const bool nested = depth_ > 1;  // a model's query has depth one
  if (at(Kind::semicolon) || at(Kind::end) || (nested && at(Kind::right_paren)) || error_) return;
  std::vector<std::string_view> words;
  std::string expected;
  for (const Keyword keyword : instead) {
    words.push_back(spelling(keyword));
    expected += fmt::format("{}{}, ", spelling(keyword), keyword == kw_group ? " BY" : "");
  }
  if (!expected.empty()) expected.replace(expected.size() - 2, 2, " or ");
  std::string hint = remedy(words);
  if (hint.empty() && at_name() && depth_ > 0)
    hint = fmt::format("to rename, write AS {}", lexeme(token_.span).substr(0, kShown));
  fail_expected(expected + (nested ? "')'" : "';'"), hint);
}

void Grammar::fail_expression() {
  if (error_) return;
  std::string hint;
  const bool half = last_kind_ == Kind::less || last_kind_ == Kind::greater;
  if (at(Kind::string)) hint = "an expression has no strings; unusual names are written in double quotes";
  if (at(Kind::star) && last_kind_ == Kind::star) hint = "a power is written pow(x, 2)";
  if (at(Kind::star) && last_kind_ == Kind::left_paren) hint = "name the tensor: sum(x)";
  if (at(Kind::equal) && half) hint = "write <= or >= without a space";
  if (at(kw_select)) hint = "a query cannot be used in an expression: name it in WITH or FROM";
  if (could_be_meant_as_name(token_.keyword)) hint = advice_on_reserved(token_.keyword, lexeme(token_.span));
  fail_expected("an expression", hint);
}

// An expression names a tensor and continues with something that only FROM allows.
void Grammar::fail_after_name(std::string_view name) {
  if (at(Kind::left_bracket))
    fail_here("an expression cannot select indices", fmt::format("usage: FROM {}[...]", name));
  else
    fail_here("a name has one part, found '.'", "an index must have the same name in all tensors");
}

// At the name of an argument that is followed by =.
void Grammar::fail_label() {
  const std::string_view label = lexeme(token_.span);
  advance();
  fail_expected("=> after the argument's name",
                fmt::format("usage: {} => ...; a comparison goes in parentheses", label));
}

std::string Grammar::found() const {
  const std::string_view whole = lexeme(token_.span);
  std::size_t length = std::min(whole.size(), kShown);
  while (length < whole.size() && !starts_character(whole[length])) --length;
  const std::string shown = fmt::format("{}{}", whole.substr(0, length), length < whole.size() ? "…" : "");
  switch (token_.kind) {
    case Kind::end: return "the end of the text";
    case Kind::string: return fmt::format("the string {}", shown);
    case Kind::quoted: return fmt::format("the name {}", shown);
    case Kind::number: return fmt::format("the number {}", shown);
    default: return fmt::format("'{}'", shown);
  }
}

// A hint for the current token where one of `keywords` was possible; often empty.
std::string Grammar::remedy(std::span<const std::string_view> keywords) const {
  const std::string_view word = lexeme(token_.span);
  const bool is_keyword = is_reserved(token_.keyword);
  if (at(Kind::word) && !is_keyword) {
    for (const auto& [foreign, advice] : kOtherDialectWords)
      if (same_word(word, foreign)) return std::string(advice);
    // A single letter is a name, not a misspelled BY or AS.
    std::string hint = word.size() > 1 ? did_you_mean(word, keywords) : "";
    if (!hint.empty()) return hint;
  }
  const bool closes =
      at(Kind::right_paren) || at(Kind::right_bracket) || at(Kind::semicolon) || at(Kind::end) || is_keyword;
  if (last_kind_ == Kind::comma && closes) return "remove the comma before it";
  if (at(Kind::comma) && last_kind_ == Kind::comma) return "remove one of the commas";
  if (at(Kind::double_equal)) return "equality is written =";
  if (at(Kind::dot)) return "names have one part: no dots";
  const bool begins = std::ranges::count(kStatementWords, spelling(token_.keyword)) != 0;
  if (begins && last_end_ != 0) return "is a ';' missing before it?";
  return {};
}

void Grammar::Nest::refuse() {
  grammar_.fail_here(fmt::format("nested too deeply: more than {} levels", syntax::kDeepest),
                     "move the inner expressions to WITH");
}

}  // namespace weft::language
