// weft/language/syntax_query.h -- WITH, SELECT, FROM, WHERE and GROUP BY.
#pragma once
#include <cstdint>
#include <span>

#include "weft/base/result.h"
#include "weft/language/syntax_expression.h"

namespace weft::language::syntax {

struct Query;

struct Item {
  const Expression* value;  // null for *
  Name alias;               // may be absent
  Span span;
};

// How a query refers to a source's index.
enum class IndexUseKind : std::uint8_t {
  plain,   // s
  rename,  // s AS t
  split,   // s AS (t, u)
  merge    // (t, u) AS s
};
struct IndexUse {
  IndexUseKind kind = IndexUseKind::plain;
  Name from;                    // all but merge
  Name to;                      // rename, merge
  std::span<const Name> parts;  // split: the new names; merge: the old ones
  Span span;
};

// An argument of a layer call: a tensor, or the size of an index.
struct LayerArgument {
  Name name;
  std::span<const IndexUse> indices;     // may be empty
  const SizeExpression* size = nullptr;  // 12 in block(h = 12); null for a tensor
  Span span;
};

enum class SourceKind : std::uint8_t { tensor, call, query };
struct Source {
  SourceKind kind = SourceKind::tensor;
  Name name;                                 // of a tensor or call
  std::span<const LayerArgument> arguments;  // of a call; may be empty
  const Query* query = nullptr;              // of a query; null otherwise
  std::span<const IndexUse> indices;         // may be empty: the indices as declared
  Name alias;                                // set for a query, may be absent otherwise
  const Expression* on = nullptr;            // null unless joined by JOIN
  Span span;

  const Name& label() const { return alias.given() ? alias : name; }
};

struct Group {
  Name name;
  Name alias;  // n in `slot AS n`; may be absent
  Span span;
};

struct Select {
  std::span<const Item> items;
  std::span<const Source> sources;
  const Expression* where = nullptr;  // null without WHERE
  std::span<const Group> groups;      // empty without GROUP BY
  Span span;
};

struct Binding {                           // name AS (query)
  const SizeExpression* repeat = nullptr;  // REPEAT repeat TIMES name AS (query); null without
  Name over;                               // SCAN OVER over name AS (query); may be absent
  Name name;
  const Query* query = nullptr;
  Span span;
};

struct Query {
  std::span<const Binding> bindings;  // empty without WITH
  Select select;
  Span span;
};

}  // namespace weft::language::syntax
