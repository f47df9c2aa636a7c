// weft/language/syntax.h -- what a script says, before anyone asks whether it makes sense.
//
//   SELECT relu(sum(x * w1)) AS h FROM x, w1 GROUP BY b, f
//
//   Query
//   └─ Select
//      ├─ Item h ── Call relu ── Call sum ── Chain x, (* w1)
//      ├─ Source x, Source w1
//      └─ Group b, Group f
//
// Plain structs that live in the arena of their Script, with names that point into its text.
// Statements and expressions come in kinds: switch on `kind`, then `as<Call>()`. Every node
// has the span of the text it was read from.
//
// A Script that parse() returns keeps these promises:
//   - No pointer is null and no list is empty unless its comment says that it may be.
//   - No node lies more than kDeepest levels under its statement, so recursion is safe. Long
//     sums are no exception: a + b + c + ... is one Chain, however many terms it has.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "weft/base/arena.h"
#include "weft/base/check.h"
#include "weft/base/result.h"
#include "weft/base/units.h"

namespace weft::language::syntax {

inline constexpr std::uint32_t kDeepest = 200;

// A name as it is meant: without quotes where it was quoted. Names may be absent.
struct Name {
  std::string_view text;
  Span span;

  bool given() const { return !text.empty(); }
};

// A string as it is meant: 'it''s' is it's. May be empty.
struct Text {
  std::string_view text;
  Span span;
};

struct Number {
  double value = 0;        // always set; infinite for inf
  std::int64_t whole = 0;  // the exact value, where is_whole
  bool is_whole = false;   // written without fraction or exponent: 12, 1_000, -3
  Span span;
};

// What a setting is set to: 8, -1.5, 40 GiB, 'mnist.bin', adam, true.
enum class ValueKind : std::uint8_t { number, quantity, text, word, boolean };

struct Value {
  ValueKind kind = ValueKind::number;
  bool truth = false;     // boolean
  Number number;          // number, quantity: as written, 40
  Quantity quantity;      // number, quantity: in base units; Dimension::count for a plain number
  std::string_view text;  // text: its contents; word: its letters; quantity: its unit, GiB
  Span span;
};

struct Setting {  // optimizer = adam
  Name name;
  Value value;
};

struct Expression;
struct Query;

// ---- expressions

enum class ExpressionKind : std::uint8_t {
  literal, boolean, name, negate, invert, chain, comparison, between, choice, cast, call
};

// In order of precedence, loosest first.
enum class Operator : std::uint8_t {
  logical_or, logical_and,
  equal, not_equal, less, less_equal, greater, greater_equal,
  add, subtract,
  multiply, divide, remainder
};

constexpr std::string_view spelling(Operator op) {
  constexpr std::string_view kSpellings[] = {"OR", "AND", "=", "<>", "<", "<=", ">",
                                             ">=", "+",   "-", "*",  "/", "%"};
  return kSpellings[static_cast<std::size_t>(op)];
}

// The kinds derive from it; none has more than the fields shown.
struct Expression {
  ExpressionKind kind;
  Span span;

  // REQUIRES: kind == Kind::kKind
  template <class Kind>
  const Kind& as() const {
    WEFT_CHECK(kind == Kind::kKind);
    return static_cast<const Kind&>(*this);
  }
  // Null when the kind is another.
  template <class Kind>
  const Kind* if_a() const {
    return kind == Kind::kKind ? static_cast<const Kind*>(this) : nullptr;
  }
};

struct Literal : Expression {  // 0.02, inf
  static constexpr auto kKind = ExpressionKind::literal;
  double value;
  std::int64_t whole;  // the exact value, where is_whole
  bool is_whole;
};

struct Boolean : Expression {  // true, false
  static constexpr auto kKind = ExpressionKind::boolean;
  bool truth;
};

struct NameUse : Expression {  // a tensor, an index or a size: the binder knows
  static constexpr auto kKind = ExpressionKind::name;
  std::string_view name;
};

struct Negate : Expression {  // -x; a plus sign leaves no trace
  static constexpr auto kKind = ExpressionKind::negate;
  const Expression* operand;
};

struct Invert : Expression {  // NOT x
  static constexpr auto kKind = ExpressionKind::invert;
  const Expression* operand;
};

// Operators of one precedence, applied from the left: a - b + c is {a, [(-, b), (+, c)]}.
// The operators are all OR, all AND, a mix of + -, or a mix of * / %.
struct Term {
  Operator op;
  Span op_span;
  const Expression* operand;
};
struct Chain : Expression {
  static constexpr auto kKind = ExpressionKind::chain;
  const Expression* first;
  std::span<const Term> rest;
};

struct Comparison : Expression {  // left < right; comparisons do not chain
  static constexpr auto kKind = ExpressionKind::comparison;
  Operator op;
  Span op_span;
  const Expression* left;
  const Expression* right;
};

struct Between : Expression {  // value BETWEEN low AND high, both included
  static constexpr auto kKind = ExpressionKind::between;
  const Expression* value;
  const Expression* low;
  const Expression* high;
};

struct When {
  const Expression* condition;
  const Expression* result;
};
struct Choice : Expression {  // CASE WHEN .. THEN .. ELSE .. END
  static constexpr auto kKind = ExpressionKind::choice;
  std::span<const When> whens;
  const Expression* otherwise;  // null without ELSE
};

struct Cast : Expression {  // CAST(operand AS dtype)
  static constexpr auto kKind = ExpressionKind::cast;
  const Expression* operand;
  Name dtype;
};

struct Argument {
  Name label;  // stride in stride => 2; absent when the argument goes by its position
  const Expression* value;
};
struct Call : Expression {  // softmax(x) OVER (PARTITION BY b, s)
  static constexpr auto kKind = ExpressionKind::call;
  Name function;
  std::span<const Argument> arguments;  // may be empty
  bool windowed;                        // has OVER
  std::span<const Name> partition;      // empty for OVER () and without OVER
};

// A size is an Expression too, of whole literals, names and chains of + - * / only.
using SizeExpression = Expression;

// ---- queries

struct Item {
  const Expression* value;  // null for *
  Name alias;               // may be absent
  Span span;
};

// How a source's index is seen by the query.
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
  const SizeExpression* size = nullptr;  // null for a tensor: block(x[b, s, d]); set for block(h = 12)
  Span span;
};

enum class SourceKind : std::uint8_t { tensor, call, query };
struct Source {
  SourceKind kind = SourceKind::tensor;
  Name name;                                 // tensor, call
  std::span<const LayerArgument> arguments;  // call; may be empty
  const Query* query = nullptr;              // query; null otherwise
  std::span<const IndexUse> indices;         // may be empty: the indices as they are declared
  Name alias;                                // given for a query, may be absent otherwise
  const Expression* on = nullptr;            // null unless it came by JOIN
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
  Name name;
  const Query* query = nullptr;
  Span span;
};

struct Query {
  std::span<const Binding> bindings;  // empty without WITH
  Select select;
  Span span;
};

// ---- declarations

struct Tensor {  // mask[s] OF bool
  Name name;
  std::span<const Name> indices;  // empty for a scalar
  Name dtype;                     // may be absent
  Span span;
};

struct Size {  // d = 4 * e
  Name name;
  const SizeExpression* value = nullptr;  // null for a LAYER's size without default
  Span span;
};

struct Init {  // normal(0, 0.02)
  Name name;
  std::span<const Number> arguments;  // may be empty
  Span span;
};

enum class ParameterKind : std::uint8_t { parameter, state };
struct Parameter {
  ParameterKind kind = ParameterKind::parameter;
  Tensor tensor;
  std::optional<Init> init;
  Span span;
};

struct Body {
  std::span<const Size> sizes;            // may be empty
  std::span<const Tensor> inputs;         // may be empty; always in a LAYER
  std::span<const Parameter> parameters;  // may be empty; in the order written
  const Query* query = nullptr;
};

// ---- statements

enum class StatementKind : std::uint8_t {
  create_device, create_cluster, create_layer, create_model, drop, explain, run, set, hint, show,
  describe, save, load, synthesize
};

// The kinds derive from it, as with Expression. The span leaves out the semicolon.
struct Statement {
  StatementKind kind;
  Span span;

  // REQUIRES: kind == Kind::kKind
  template <class Kind>
  const Kind& as() const {
    WEFT_CHECK(kind == Kind::kKind);
    return static_cast<const Kind&>(*this);
  }
};

struct CreateDevice : Statement {
  static constexpr auto kKind = StatementKind::create_device;
  bool replace;
  Name name;
  std::span<const Setting> settings;
};

enum class LinkKind : std::uint8_t { within, across };
struct Link {  // LINK ib ACROSS node (50 GB/s, 5 us)
  Name name;
  LinkKind kind;
  Name level;
  Value bandwidth, latency;  // both ValueKind::quantity; the dimensions are the binder's to check
  Span span;
};
struct CreateCluster : Statement {
  static constexpr auto kKind = StatementKind::create_cluster;
  bool replace;
  Name name;
  Number nodes, devices;  // whole, at least 1; `devices` counts those of one node
  Name device;
  std::span<const Link> links;  // may be empty
};

struct CreateLayer : Statement {
  static constexpr auto kKind = StatementKind::create_layer;
  bool replace;
  Name name;
  std::span<const Tensor> arguments;
  Body body;
};

struct CreateModel : Statement {
  static constexpr auto kKind = StatementKind::create_model;
  bool replace;
  Name name;
  Body body;
};

enum class ObjectKind : std::uint8_t { device, cluster, layer, model };
struct Drop : Statement {
  static constexpr auto kKind = StatementKind::drop;
  ObjectKind object;
  Name name;
};

struct Target {  // pod, LOCAL, LOCAL 4
  bool local = false;
  std::optional<Number> ranks;  // LOCAL only; whole, at least 1
  Name cluster;                 // given unless local
  Span span;
};

enum class Task : std::uint8_t { train, infer };
struct Run : Statement {
  static constexpr auto kKind = StatementKind::run;
  Task task;
  Name model;
  std::optional<Target> target;
  std::optional<Text> data;           // FROM 'mnist.bin'
  std::optional<Number> steps;        // train only; whole, not negative
  std::span<const Setting> settings;  // may be empty
};

enum class Format : std::uint8_t { text, json, plan };
struct Option {  // an EXPLAIN option beyond ANALYZE, VERBOSE and FORMAT
  Name name;
  std::optional<Value> value;
};
struct Explain : Statement {
  static constexpr auto kKind = StatementKind::explain;
  bool analyze, verbose;
  Format format;
  std::span<const Option> options;  // may be empty
  const Run* run;
};

struct Set : Statement {
  static constexpr auto kKind = StatementKind::set;
  Name name;
  Value value;
};

enum class HintKind : std::uint8_t { slice, replicate };
struct HintItem {  // SLICE b OF x ACROSS node, REPLICATE w ACROSS gpu
  HintKind kind;
  Name subject;  // slice: an index; replicate: a tensor
  Name tensor;   // slice: after OF; may be absent
  Name axis;
  Span span;
};
struct Hint : Statement {
  static constexpr auto kKind = StatementKind::hint;
  std::span<const HintItem> items;
};

struct Show : Statement {
  static constexpr auto kKind = StatementKind::show;
  Name what;  // any word
};

struct Describe : Statement {
  static constexpr auto kKind = StatementKind::describe;
  Name name;
  std::span<const Setting> settings;  // may be empty
};

struct Save : Statement {
  static constexpr auto kKind = StatementKind::save;
  Name name;
  Text file;
};

struct Load : Statement {
  static constexpr auto kKind = StatementKind::load;
  Name name;
  Text file;
};

struct Synthesize : Statement {
  static constexpr auto kKind = StatementKind::synthesize;
  Name collective;
  Name cluster;
  std::span<const Setting> settings;  // may be empty
};

// Owns the nodes; the text it was read from is the caller's and must outlive it.
struct Script {
  std::string_view text;
  std::span<const Statement* const> statements;  // in order; may be empty
  Arena arena;
};

}  // namespace weft::language::syntax
