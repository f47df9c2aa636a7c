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
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "weft/base/arena.h"
#include "weft/base/check.h"
#include "weft/base/result.h"
#include "weft/language/syntax_expression.h"
#include "weft/language/syntax_query.h"
#include "weft/language/syntax_value.h"

namespace weft::language::syntax {

inline constexpr std::uint32_t kDeepest = 200;

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
  std::span<const Binding> updates;  // UPDATE state AS (query): what it holds next; may be empty
};

enum class StatementKind : std::uint8_t {
  create_device,
  create_cluster,
  create_function,
  create_layer,
  create_model,
  drop,
  explain,
  run,
  set,
  hint,
  show,
  clear,
  describe,
  save,
  load,
  run_file,
  synthesize
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
  Value bandwidth, latency;              // both ValueKind::quantity; the dimensions are the binder's to check
  Name shape;                            // SHAPE torus(4, 4): may be absent
  std::span<const Number> sides;         // may be empty; whole, at least 1
  std::optional<Number> oversubscribed;  // OVERSUBSCRIBED 2
  Span span;
};
struct NodesOf {  // 1 NODES OF 8 DEVICES a100
  Number nodes, devices;
  Name device;
};
struct CreateCluster : Statement {
  static constexpr auto kKind = StatementKind::create_cluster;
  bool replace;
  Name name;
  std::span<const Text> logs;          // FROM 'log.txt': what was measured there; may be empty
  Number nodes, devices;               // whole, at least 1; `devices` counts those of one node. 0: a log says
  Name device;                         // absent where a log says
  std::span<const Link> links;         // may be empty
  std::span<const NodesOf> more = {};  // nodes of other devices, after a comma
};

struct CreateFunction : Statement {  // softplus(x) AS log(1 + exp(x))
  static constexpr auto kKind = StatementKind::create_function;
  bool replace;
  Name name;
  std::span<const Name> parameters;
  const Expression* body;
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

enum class ObjectKind : std::uint8_t { device, cluster, function, layer, model };
struct Drop : Statement {
  static constexpr auto kKind = StatementKind::drop;
  ObjectKind object;
  Name name;
};

struct Target {  // pod, LOCAL, LOCAL 4, GPU RANKS 4
  bool local = false;
  std::optional<Number> ranks;  // whole, at least 1
  Name cluster;                 // given unless local
  Span span;
};

struct DataFile {  // 'mnist.csv', pixels = 'images.npy'
  Name input;      // absent where the file has all of them; then there is one file
  Text file;
};

struct Goal {                        // d_loss OVER (d_w, "d_*") BY adam(learning_rate = 0.0002)
  Name loss;                         // an output
  std::span<const Name> over;        // parameters; empty: all
  Name optimizer;                    // may be absent
  std::span<const Setting> options;  // may be empty
  Span span;
};

enum class Task : std::uint8_t { train, infer, generate };
struct Run : Statement {
  static constexpr auto kKind = StatementKind::run;
  Task task;
  Name model;
  std::optional<Target> target;
  std::span<const DataFile> data;  // FROM 'mnist.csv'; may be empty
  std::optional<Number> steps;     // not of infer; whole, not negative
  std::optional<Text> into;        // infer only: a file for what comes out
  std::optional<Text> prompt;      // generate only: what is continued
  std::span<const Goal> goals;  // train only, MINIMIZE; may be empty: the first output, over all parameters
  std::span<const Setting> settings;  // may be empty
};

// How a plan is answered: the last four are the words of those who would run it.
enum class Format : std::uint8_t { text, json, plan, megatron, deepspeed, torchtitan, dtensor };
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

enum class HintKind : std::uint8_t { slice, replicate, data, tensor, pipeline, expert, context, zero };
// Of those after replicate, in their order.
inline constexpr std::string_view kParallelisms[] = {"DP", "TP", "PP", "EP", "CP", "ZERO"};
struct HintItem {  // SLICE b OF x ACROSS node, REPLICATE w ACROSS gpu, TP 8 WITHIN node, ZERO 1
  HintKind kind;
  Name subject;  // slice: an index; replicate: a tensor
  Name tensor;   // slice: after OF; may be absent
  Name axis;     // may be absent after a degree
  Number degree;
  bool within;  // WITHIN the axis, not ON it
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

struct Clear : Statement {
  static constexpr auto kKind = StatementKind::clear;
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

struct RunFile : Statement {  // RUN 'setup.weft'
  static constexpr auto kKind = StatementKind::run_file;
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
