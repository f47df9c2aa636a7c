// query     = [ WITH binding {"," binding} ] select
// binding   = [ REPEAT size TIMES | SCAN OVER name ] name AS "(" query ")"
// select    = SELECT item {"," item} FROM source { "," source | JOIN source ON expression }
//             [ WHERE expression ] [ GROUP BY group {"," group} ]
// item      = "*" | expression [ AS name ]
// source    = ( name [ "(" [ argument {"," argument} ] ")" ] | "(" query ")" )
//             [ indices ] [ AS name ]
//             A query in parentheses has a name.
// argument  = name [ indices ] | name "=" size
// indices   = "[" index {"," index} "]"
// index     = name [ AS name ] | name AS "(" name {"," name} ")" | "(" name {"," name} ")" AS name
// group     = name [ AS name ]
#include <fmt/format.h>

#include "weft/base/letters.h"
#include "weft/language/grammar.h"

namespace weft::language {

using namespace syntax;

const Query* Grammar::query() {
  const Nest nest(*this);
  const std::uint32_t start = here();
  std::span<const Binding> bindings;
  if (accept(Keyword::kw_with)) bindings = list<Binding>([&] { return binding(); });
  const Select last = select();
  return arena_.make<Query>(bindings, last, since(start));
}

Binding Grammar::binding() {
  const std::uint32_t start = here();
  Binding result;
  if (accept(Keyword::kw_repeat)) {
    result.repeat = size_expression();
    expect(Keyword::kw_times, "after the count of REPEAT", "REPEAT 12 TIMES x AS (SELECT ...)");
  } else if (at(Kind::word) && next_.keyword == Keyword::kw_over && lower(lexeme(token_.span)) == "scan") {
    // A contextual keyword, so that a tensor may be called scan.
    advance();
    advance();
    result.over = name("an index to scan over");
  }
  result.name = name("a name for a query");
  expect(Keyword::kw_as, "and a query in parentheses", "h AS (SELECT ...)");
  result.query = query_in_parentheses();
  result.span = since(start);
  return result;
}

Binding Grammar::update() {
  const std::uint32_t start = here();
  Binding result;
  result.name = name("a STATE to update");
  expect(Keyword::kw_as, "and a query in parentheses", "UPDATE mean AS (SELECT ...)");
  result.query = query_in_parentheses();
  result.span = since(start);
  return result;
}

const Query* Grammar::query_in_parentheses() {
  const Span open = token_.span;
  expect(Kind::left_paren, "'(' and a query");
  const Query* const inside = query();
  if (!accept(Kind::right_paren)) fail_group(open);
  return inside;
}

Select Grammar::select() {
  const std::uint32_t start = here();
  Select result;
  if (!accept(Keyword::kw_select)) fail_query();
  if (at(Keyword::kw_from)) fail_expected("a value to select", "SELECT * selects every value");
  result.items = list<Item>([&] { return item(); });
  if (!accept(Keyword::kw_from)) fail_select();

  Gather<Source> sources(*this);
  sources.add(source());
  for (;;) {
    if (accept(Kind::comma)) {
      sources.add(source());
    } else if (accept(Keyword::kw_join)) {
      Source joined = source();
      expect(Keyword::kw_on, "after the source of JOIN", "JOIN table[v, d] ON v = tokens");
      joined.on = expression();
      joined.span = {joined.span.offset, last_end_ - joined.span.offset};
      sources.add(joined);
    } else {
      break;
    }
  }
  result.sources = sources.finish();

  if (accept(Keyword::kw_where)) result.where = expression();
  if (accept(Keyword::kw_group)) {
    expect(Keyword::kw_by, "after GROUP", "GROUP BY b");
    result.groups = list<Group>([&] { return group(); });
  }
  result.span = since(start);
  end_select(result);
  return result;
}

Item Grammar::item() {
  const std::uint32_t start = here();
  if (accept(Kind::star)) return {nullptr, {}, since(start)};
  const Expression* value = expression();
  const Name alias = accept(Keyword::kw_as) ? name("a name after AS") : Name{};
  return {value, alias, since(start)};
}

Source Grammar::source() {
  const std::uint32_t start = here();
  Source result;
  if (at(Kind::left_paren)) {
    const Span open = token_.span;
    advance();
    result.kind = SourceKind::query;
    result.query = query();
    if (!accept(Kind::right_paren)) fail_group(open);
  } else {
    result.name = name("a tensor, a layer or a query in parentheses");
    if (at(Kind::left_paren)) {
      result.kind = SourceKind::call;
      const Span open = token_.span;
      advance();
      if (!accept(Kind::right_paren)) {
        result.arguments = list<LayerArgument>([&] { return layer_argument(); });
        close_paren(open);
      }
    }
  }
  if (at(Kind::left_bracket)) result.indices = index_uses();
  if (accept(Keyword::kw_as)) {
    result.alias = name("a name after AS");
  } else if (result.kind == SourceKind::query) {
    fail_keyword(Keyword::kw_as, "and a name for the query", "FROM (SELECT ...) AS h");
  }
  result.span = since(start);
  return result;
}

LayerArgument Grammar::layer_argument() {
  const std::uint32_t start = here();
  LayerArgument result;
  result.name = name("a tensor or a size");
  if (accept(Kind::equal)) {
    result.size = size_expression();
  } else if (at(Kind::arrow)) {
    fail_expected("= after the size's name", fmt::format("usage: {} = ...", result.name.text));
  } else if (at(Kind::left_bracket)) {
    result.indices = index_uses();
  }
  result.span = since(start);
  return result;
}

std::span<const IndexUse> Grammar::index_uses() {
  const Span open = token_.span;
  advance();
  const auto uses = list<IndexUse>([&] { return index_use(); });
  if (!accept(Kind::right_bracket)) fail_close('[', open);
  return uses;
}

IndexUse Grammar::index_use() {
  const std::uint32_t start = here();
  const auto names = [&] { return parens<Name>("'('", [&] { return name("an index"); }); };
  IndexUse result;
  if (at(Kind::left_paren)) {
    result.kind = IndexUseKind::merge;
    result.parts = names();
    expect(Keyword::kw_as, "and a name for the merged index", "(h, e) AS d");
    result.to = name("an index");
  } else {
    result.from = name("an index");
    if (accept(Keyword::kw_as)) {
      if (at(Kind::left_paren)) {
        result.kind = IndexUseKind::split;
        result.parts = names();
      } else {
        result.kind = IndexUseKind::rename;
        result.to = name("an index");
      }
    }
  }
  result.span = since(start);
  return result;
}

Group Grammar::group() {
  const std::uint32_t start = here();
  const Name by = name("an index or a value to group by");
  const Name alias = accept(Keyword::kw_as) ? name("a name after AS") : Name{};
  return {by, alias, since(start)};
}

}  // namespace weft::language
