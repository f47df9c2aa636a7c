// weft/language/syntax.h -- the syntax tree of a script, before binding.
//
//   SELECT relu(sum(x * w1)) AS h FROM x, w1 GROUP BY b, f
//
//   Query
//   └─ Select
//      ├─ Item h ── Call relu ── Call sum ── Chain x, (* w1)
//      ├─ Source x, Source w1
//      └─ Group b, Group f
//
// Nodes are plain structs in the arena of their Script, with names that point into its text.
// Statements and expressions have kinds: switch on `kind`, then `as<Call>()`. Every node has the
// span of the text it was parsed from.
//
// Guarantees of a Script returned by parse():
//   - No pointer is null and no list is empty unless its comment says that it may be.
//   - No node is more than kDeepest levels below its statement, so recursion is safe. This includes
//     long sums: a + b + c + ... is one Chain, however many terms it has.
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
  std::span<const Tensor> inputs;         // may be empty; a LAYER has none
  std::span<const Parameter> parameters;  // may be empty; in source order
  const Query* query = nullptr;
  std::span<const Binding> updates;  // UPDATE state AS (query): its next value; may be empty
};

enum class StatementKind : std::uint8_t {
  create_device,
  create_cluster,
  create_stack,
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

// Base of all statement kinds, as with Expression. The span excludes the semicolon.
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
struct LinkShare {  // 4 NODES 0.8
  Number nodes, share;
};
struct Link {  // LINK ib ACROSS node (50 GB/s, 5 us)
  Name name;
  LinkKind kind;
  Name level;
  Value bandwidth, latency;                 // both ValueKind::quantity; the binder checks the dimensions
  Name shape;                               // SHAPE torus(4, 4): may be absent
  std::span<const Number> sides;            // may be empty; integers of at least 1
  std::optional<Number> oversubscribed;     // OVERSUBSCRIBED 2
  std::span<const LinkShare> scaling = {};  // SCALING (4 NODES 0.8, 64 NODES 0.5): may be empty
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
  std::span<const Text> logs;          // FROM 'log.txt': a measurement log; may be empty
  Number nodes, devices;               // integers of at least 1; `devices` is per node. 0: from a log
  Name device;                         // absent if a log states it
  std::span<const Link> links;         // may be empty
  std::span<const NodesOf> more = {};  // further nodes with other devices
};

struct CreateStack : Statement {  // megatron VERSION '0.14' (host_layer = 1 ms, ..)
  static constexpr auto kKind = StatementKind::create_stack;
  bool replace;
  Name name;
  std::optional<Text> version;
  std::span<const Setting> settings;
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

enum class ObjectKind : std::uint8_t { device, cluster, function, layer, model, stack };
struct Drop : Statement {
  static constexpr auto kKind = StatementKind::drop;
  ObjectKind object;
  Name name;
};

struct Target {  // pod, LOCAL, LOCAL 4, GPU RANKS 4
  bool local = false;
  std::optional<Number> ranks;  // integer of at least 1
  Name cluster;                 // set unless local
  Span span;
};

struct DataFile {  // 'mnist.csv', pixels = 'images.npy'
  Name input;      // absent for a single file with all inputs
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
  std::span<const DataFile> data;     // FROM 'mnist.csv'; may be empty
  std::optional<Number> steps;        // not for infer; integer, not negative
  std::optional<Text> into;           // infer only: the output file
  std::optional<Text> prompt;         // generate only: the text to continue
  std::span<const Goal> goals;        // train only, MINIMIZE; empty: the first output, over all parameters
  std::span<const Setting> settings;  // may be empty
};

// The format of a printed plan. From megatron on: formats of other tools.
enum class Format : std::uint8_t {
  text,
  json,
  plan,
  megatron,
  deepspeed,
  torchtitan,
  nemo,
  bridge,
  accelerate,
  maxtext,
  torch,
  torchtitan_toml
};
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
// The hint kinds after replicate, in order.
inline constexpr std::string_view kParallelisms[] = {"DP", "TP", "PP", "EP", "CP", "ZERO"};
struct HintItem {  // SLICE b OF x ACROSS node, REPLICATE w ACROSS gpu, TP 8 WITHIN node, ZERO 1
  HintKind kind;
  Name subject;  // slice: an index; replicate: a tensor
  Name tensor;   // slice: after OF; may be absent
  Name axis;     // may be absent after a degree
  Number degree;
  bool within;  // WITHIN the axis instead of ON it
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

// Owns the nodes. The caller owns the text, which must outlive the Script.
struct Script {
  std::string_view text;
  std::span<const Statement* const> statements;  // in order; may be empty
  Arena arena;
};

}  // namespace weft::language::syntax
