#include "weft/language/parser.h"

#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "weft/base/random.h"
#include "weft/language/complaint.h"
#include "weft/language/lexer.h"
#include "weft/language/print.h"

namespace weft::language {
namespace {

using namespace syntax;

// Owns the text that its script points into.
struct Parsed {
  explicit Parsed(std::string source) : text(std::move(source)), script(parse(text)) {}

  template <class T>
  const T& only() const {
    return script->statements[0]->template as<T>();
  }
  std::string text;
  Result<Script> script;
};

#define EXPECT_PARSES(parsed) ASSERT_TRUE(parsed.script.ok()) << complain(parsed.script.error(), parsed.text)

std::string complaint(const std::string& text) {
  const auto script = parse(text);
  return script ? "" : complain(script.error(), text);
}

// An expression as the parsed tree, with every operator in parentheses.
std::string tree(const std::string& expression) {
  const Parsed parsed("CREATE MODEL m AS SELECT " + expression + " FROM x");
  if (!parsed.script) return complain(parsed.script.error(), parsed.text);
  return print(*parsed.only<CreateModel>().body.query->select.items[0].value, Parentheses::all);
}

TEST(Parser, AcceptsEmptyScripts) {
  for (const char* text : {"", " ", ";", " ; ;; -- nothing\n", "/* nothing */"}) {
    const Parsed parsed(text);
    EXPECT_PARSES(parsed);
    EXPECT_TRUE(parsed.script->statements.empty());
  }
}

TEST(Parser, TheLastSemicolonIsOptional) {
  const Parsed parsed("SHOW MODELS; SHOW RULES");
  EXPECT_PARSES(parsed);
  ASSERT_EQ(parsed.script->statements.size(), 2u);
  EXPECT_EQ(parsed.script->statements[1]->span, (Span{13, 10}));
}

TEST(Parser, ReadsDevices) {
  const Parsed parsed(
      "CREATE OR REPLACE DEVICE h100 (bf16 = 989 TFLOP/s, memory = 80GiB, launch = 4 us, kind = gpu)");
  EXPECT_PARSES(parsed);
  const auto& device = parsed.only<CreateDevice>();
  EXPECT_TRUE(device.replace);
  EXPECT_EQ(device.name.text, "h100");
  ASSERT_EQ(device.settings.size(), 4u);
  EXPECT_EQ(device.settings[0].value.quantity, (Quantity{989e12, Dimension::flops_per_second}));
  EXPECT_EQ(device.settings[0].value.text, "TFLOP/s");
  EXPECT_EQ(device.settings[1].value.quantity, (Quantity{80.0 * (1 << 30), Dimension::bytes}));
  EXPECT_EQ(device.settings[3].value.kind, ValueKind::word);
}

TEST(Parser, JoinsUnitsAcrossSpaces) {
  const Parsed parsed("SET rate = 450 GB / s");
  EXPECT_PARSES(parsed);
  const Value& value = parsed.only<Set>().value;
  EXPECT_EQ(value.text, "GB/s");
  EXPECT_EQ(value.quantity, (Quantity{450e9, Dimension::bytes_per_second}));
  EXPECT_EQ(value.span, (Span{11, 10}));
}

TEST(Parser, ReadsClusters) {
  const Parsed parsed(
      "CREATE CLUSTER pod AS 4 NODES OF 8 DEVICES h100\n"
      "  LINK gpu WITHIN node (450 GB/s, 1.5 us) LINK ib ACROSS node (400 Gb/s, 5 us)");
  EXPECT_PARSES(parsed);
  const auto& cluster = parsed.only<CreateCluster>();
  EXPECT_EQ(cluster.nodes.whole, 4);
  EXPECT_EQ(cluster.devices.whole, 8);
  EXPECT_EQ(cluster.device.text, "h100");
  ASSERT_EQ(cluster.links.size(), 2u);
  EXPECT_EQ(cluster.links[0].kind, LinkKind::within);
  EXPECT_EQ(cluster.links[1].kind, LinkKind::across);
  EXPECT_EQ(cluster.links[1].level.text, "node");
  EXPECT_EQ(cluster.links[1].bandwidth.quantity.value, 50e9);
  EXPECT_EQ(cluster.links[1].latency.quantity.dimension, Dimension::seconds);
}

TEST(Parser, ReadsModels) {
  const Parsed parsed(
      "CREATE MODEL mlp (b = 64, f = 4 * (b + 2)) INPUT x[b, d], y[b] OF int32\n"
      "PARAMETER w[d] INIT normal(0, -0.02), v STATE m[d] INIT zeros\n"
      "AS SELECT x FROM x");
  EXPECT_PARSES(parsed);
  const Body& body = parsed.only<CreateModel>().body;
  ASSERT_EQ(body.sizes.size(), 2u);
  EXPECT_EQ(print(*body.sizes[1].value), "4 * (b + 2)");
  ASSERT_EQ(body.inputs.size(), 2u);
  EXPECT_EQ(body.inputs[0].indices.size(), 2u);
  EXPECT_FALSE(body.inputs[0].dtype.given());
  EXPECT_EQ(body.inputs[1].dtype.text, "int32");
  ASSERT_EQ(body.parameters.size(), 3u);
  EXPECT_EQ(body.parameters[0].init->arguments[1].value, -0.02);
  EXPECT_TRUE(body.parameters[1].tensor.indices.empty());
  EXPECT_FALSE(body.parameters[1].init);
  EXPECT_EQ(body.parameters[2].kind, ParameterKind::state);
  EXPECT_EQ(body.parameters[2].init->name.text, "zeros");
}

TEST(Parser, ReadsLayers) {
  const Parsed parsed("CREATE LAYER block(x[b, s, d], mask[s] OF bool) (h, e = 64) AS SELECT x FROM x");
  EXPECT_PARSES(parsed);
  const auto& layer = parsed.only<CreateLayer>();
  ASSERT_EQ(layer.arguments.size(), 2u);
  EXPECT_EQ(layer.arguments[1].dtype.text, "bool");
  ASSERT_EQ(layer.body.sizes.size(), 2u);
  EXPECT_EQ(layer.body.sizes[0].value, nullptr);
  EXPECT_NE(layer.body.sizes[1].value, nullptr);
}

TEST(Parser, ReadsQueries) {
  const Parsed parsed(
      "CREATE MODEL m AS WITH h AS (SELECT x FROM x), REPEAT 2 * n TIMES x AS (SELECT * FROM block(x[b], e = "
      "4))\n"
      "SELECT a AS p, b FROM q, k[b, s AS t, d AS (h, e), (u, v) AS w] AS z, (SELECT a FROM a)[b] AS c\n"
      "JOIN table[v, d] ON v = tokens WHERE i < 3 GROUP BY b, slot AS n");
  EXPECT_PARSES(parsed);
  const Query& query = *parsed.only<CreateModel>().body.query;
  ASSERT_EQ(query.bindings.size(), 2u);
  EXPECT_EQ(query.bindings[0].repeat, nullptr);
  EXPECT_EQ(print(*query.bindings[1].repeat), "2 * n");
  const Source& call = query.bindings[1].query->select.sources[0];
  EXPECT_EQ(query.bindings[1].query->select.items[0].value, nullptr);
  EXPECT_EQ(call.kind, SourceKind::call);
  ASSERT_EQ(call.arguments.size(), 2u);
  EXPECT_EQ(call.arguments[0].indices.size(), 1u);
  EXPECT_EQ(print(*call.arguments[1].size), "4");

  const Select& select = query.select;
  ASSERT_EQ(select.items.size(), 2u);
  EXPECT_EQ(select.items[0].alias.text, "p");
  ASSERT_EQ(select.sources.size(), 4u);
  const auto& indices = select.sources[1].indices;
  ASSERT_EQ(indices.size(), 4u);
  EXPECT_EQ(indices[0].kind, IndexUseKind::plain);
  EXPECT_EQ(indices[1].kind, IndexUseKind::rename);
  EXPECT_EQ(indices[1].to.text, "t");
  EXPECT_EQ(indices[2].kind, IndexUseKind::split);
  EXPECT_EQ(indices[2].parts.size(), 2u);
  EXPECT_EQ(indices[3].kind, IndexUseKind::merge);
  EXPECT_EQ(indices[3].to.text, "w");
  EXPECT_EQ(select.sources[1].label().text, "z");
  EXPECT_EQ(select.sources[2].kind, SourceKind::query);
  EXPECT_EQ(select.sources[2].on, nullptr);
  EXPECT_EQ(print(*select.sources[3].on), "v = tokens");
  EXPECT_EQ(print(*select.where), "i < 3");
  ASSERT_EQ(select.groups.size(), 2u);
  EXPECT_EQ(select.groups[1].alias.text, "n");
}

TEST(Parser, BindsOperatorsByPrecedence) {
  EXPECT_EQ(tree("a OR b AND NOT c = d + e * -f"), "(a OR (b AND (NOT (c = (d + (e * (-f)))))))");
  EXPECT_EQ(tree("a - b + c"), "(a - b + c)");
  EXPECT_EQ(tree("a - (b + c)"), "(a - (b + c))");
  EXPECT_EQ(tree("(a - b) + c"), "((a - b) + c)");
  EXPECT_EQ(tree("-a * b"), "((-a) * b)");
  EXPECT_EQ(tree("a BETWEEN 1 AND b + 1 AND c"), "((a BETWEEN 1 AND (b + 1)) AND c)");
  EXPECT_EQ(tree("NOT a AND b"), "((NOT a) AND b)");
  EXPECT_EQ(tree("a != b"), "(a <> b)");
  EXPECT_EQ(tree("+a % 2"), "(a % 2)");
}

TEST(Parser, ReadsEveryPrimary) {
  EXPECT_EQ(tree("CASE WHEN t <= s THEN scores WHEN true THEN 1 ELSE -inf END"),
            "CASE WHEN (t <= s) THEN scores WHEN true THEN 1 ELSE (-inf) END");
  EXPECT_EQ(tree("cast(x AS bf16)"), "CAST(x AS bf16)");
  EXPECT_EQ(tree("conv2d(x, w, stride => 2 + 1)"), "conv2d(x, w, stride => (2 + 1))");
  EXPECT_EQ(tree("softmax(x) OVER ()"), "softmax(x) OVER ()");
  EXPECT_EQ(tree("softmax(x) over (partition by b, s)"), "softmax(x) OVER (PARTITION BY b, s)");
  EXPECT_EQ(tree("f()"), "f()");
  EXPECT_EQ(tree("sum(x = y)"), "sum((x = y))");
  EXPECT_EQ(tree("1e-5 + 1_000 + 2.0"), "(1e-05 + 1000 + 2.0)");
}

TEST(Parser, AllowsContextualKeywordsAsNames) {
  EXPECT_EQ(tree("nodes + steps * cast - local"), "(nodes + (steps * cast) - local)");
  EXPECT_EQ(tree("\"from\" + \"a \"\"b\"\"\""), "(\"from\" + \"a \"\"b\"\"\")");
}

TEST(Parser, ReadsTheOtherStatements) {
  const Parsed parsed(
      "DROP CLUSTER pod;"
      "EXPLAIN ANALYZE (VERBOSE, FORMAT json, depth 3, quick) TRAIN mlp ON pod;"
      "TRAIN mlp WITH (b = 4096, rate = -1e-3) STEPS 1_000 FROM 'it''s.bin' ON LOCAL 4;"
      "INFER mlp ON local;"
      "SET memory_limit TO '40 GiB';"
      "HINT SLICE b OF x ACROSS node, REPLICATE w ACROSS gpu;"
      "SHOW MODELS;"
      "DESCRIBE mlp WITH (b = 8);"
      "SAVE mlp TO 'a'; LOAD mlp FROM 'a';"
      "SYNTHESIZE ALLGATHER ON pod WITH (chunks = 8)");
  EXPECT_PARSES(parsed);
  const auto& statements = parsed.script->statements;
  ASSERT_EQ(statements.size(), 11u);
  EXPECT_EQ(statements[0]->as<Drop>().object, ObjectKind::cluster);

  const auto& explain = statements[1]->as<Explain>();
  EXPECT_TRUE(explain.analyze && explain.verbose);
  EXPECT_EQ(explain.format, Format::json);
  ASSERT_EQ(explain.options.size(), 2u);
  EXPECT_EQ(explain.options[0].value->number.whole, 3);
  EXPECT_FALSE(explain.options[1].value);
  EXPECT_EQ(explain.run->target->cluster.text, "pod");

  const auto& train = statements[2]->as<syntax::Run>();
  EXPECT_EQ(train.task, Task::train);
  EXPECT_EQ(train.steps->whole, 1000);
  EXPECT_EQ(train.data[0].file.text, "it's.bin");
  EXPECT_TRUE(train.target->local);
  EXPECT_EQ(train.target->ranks->whole, 4);
  EXPECT_EQ(train.settings[1].value.number.value, -1e-3);

  EXPECT_TRUE(statements[3]->as<syntax::Run>().target->local);
  EXPECT_EQ(statements[4]->as<Set>().value.text, "40 GiB");
  const auto& hints = statements[5]->as<Hint>().items;
  EXPECT_EQ(hints[0].tensor.text, "x");
  EXPECT_EQ(hints[1].kind, HintKind::replicate);
  EXPECT_EQ(statements[6]->as<Show>().what.text, "MODELS");
  EXPECT_EQ(statements[7]->as<Describe>().settings.size(), 1u);
  EXPECT_EQ(statements[8]->as<Save>().file.text, "a");
  EXPECT_EQ(statements[9]->as<Load>().name.text, "mlp");
  EXPECT_EQ(statements[10]->as<Synthesize>().collective.text, "ALLGATHER");
}

TEST(Parser, ReadsNumbersExactly) {
  const Parsed parsed("SET a = 9223372036854775807; SET b = -inf; SET c = 0.1");
  EXPECT_PARSES(parsed);
  EXPECT_EQ(parsed.only<Set>().value.number.whole, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(parsed.script->statements[1]->as<Set>().value.number.value,
            -std::numeric_limits<double>::infinity());
  EXPECT_EQ(parsed.script->statements[2]->as<Set>().value.number.value, 0.1);
}

TEST(Parser, GivesEveryNodeItsSpan) {
  const Parsed parsed("CREATE MODEL m AS SELECT f(a + b) - 1 FROM x[b, s AS t]");
  EXPECT_PARSES(parsed);
  const auto text = [&](Span span) { return parsed.text.substr(span.offset, span.length); };
  const Select& select = parsed.only<CreateModel>().body.query->select;
  const auto& difference = select.items[0].value->as<Chain>();
  EXPECT_EQ(text(difference.span), "f(a + b) - 1");
  EXPECT_EQ(text(difference.rest[0].op_span), "-");
  EXPECT_EQ(text(difference.first->span), "f(a + b)");
  EXPECT_EQ(text(difference.first->as<Call>().arguments[0].value->span), "a + b");
  EXPECT_EQ(text(select.sources[0].span), "x[b, s AS t]");
  EXPECT_EQ(text(select.sources[0].indices[1].span), "s AS t");
  EXPECT_EQ(text(parsed.script->statements[0]->span), parsed.text);
}

std::string repeated(std::string_view text, std::size_t times) {
  std::string result;
  for (std::size_t i = 0; i < times; ++i) result += text;
  return result;
}

TEST(Parser, RejectsDeepNesting) {
  const std::string deep = "nested too deeply: more than 200 levels";
  for (const std::string_view opening : {"(", "- ", "NOT ", "f(", "1 + (", "CASE WHEN ", "CAST(", "+"})
    EXPECT_NE(tree(repeated(opening, 100'000)).find(deep), std::string::npos) << opening;
  EXPECT_NE(complaint("CREATE MODEL m AS SELECT x FROM " + repeated("(SELECT x FROM ", 100'000)).find(deep),
            std::string::npos);
  EXPECT_NE(complaint("CREATE MODEL m AS " + repeated("WITH x AS (", 100'000)).find(deep), std::string::npos);
  EXPECT_NE(complaint("CREATE MODEL m (b = " + repeated("(", 100'000)).find(deep), std::string::npos);
}

TEST(Parser, AcceptsModestNestingAndLongChains) {
  EXPECT_EQ(tree(repeated("(", 190) + "a" + repeated(")", 190)), "a");
  const std::string sum = tree("a" + repeated(" + a", 100'000));
  EXPECT_EQ(sum.size(), 2 + 1 + 4 * 100'000u);
}

TEST(Parser, RejectsTextsBeyondTheLimit) {
  // Rejected by its size alone: no byte of this text is read.
  const std::string_view text(std::string_view("SHOW").data(), kLongestText);
  const auto script = parse(text);
  ASSERT_FALSE(script.ok());
  EXPECT_EQ(script.error().message, "script is too long: 1073741824 bytes, at most 1073741823");
}

TEST(Parser, FindsTheEndOfAStatement) {
  EXPECT_EQ(statement_end("SHOW MODELS; SHOW"), 12u);
  EXPECT_EQ(statement_end("SHOW MODELS"), std::string_view::npos);
  EXPECT_EQ(statement_end("SET a = 'x;"), std::string_view::npos);
  EXPECT_EQ(statement_end("SET a = 'x;';"), 13u);
  EXPECT_EQ(statement_end("SHOW \"a;"), std::string_view::npos);
  EXPECT_EQ(statement_end("SHOW -- a;"), std::string_view::npos);
  EXPECT_EQ(statement_end("SHOW /* ; */ ;"), 14u);
  EXPECT_EQ(statement_end("SHOW /* ;"), std::string_view::npos);
  EXPECT_EQ(statement_end("@ nonsense;"), 11u);
  EXPECT_EQ(statement_end(""), std::string_view::npos);
}

// Each line of `what` must occur in the error message for `text`.
void expect_complaint(const std::string& text, std::initializer_list<const char*> what) {
  const std::string found = complaint(text);
  for (const char* line : what) EXPECT_NE(found.find(line), std::string::npos) << text << "\n" << found;
}

TEST(ParserError, PointsAtTheToken) {
  EXPECT_EQ(complaint("CREATE MODEL m AS SELECT a FORM x"),
            "error 1:28: expected ',' or FROM, found 'FORM'\n"
            "  CREATE MODEL m AS SELECT a FORM x\n"
            "                             ^^^^\n"
            "  did you mean 'FROM'?\n");
  EXPECT_EQ(complaint("SHOW MODELS;\nTRAIN mlp ON  -- where?\n"),
            "error 2:13: expected LOCAL or a cluster name after ON, found the end of the text\n"
            "  TRAIN mlp ON  -- where?\n"
            "              ^\n");
}

TEST(ParserError, SuggestsAWord) {
  expect_complaint("CRAETE MODEL m", {"expected a statement, found 'CRAETE'", "did you mean 'CREATE'?"});
  expect_complaint("CREATE MODLE m", {"did you mean 'MODEL'?"});
  expect_complaint("TRAIN m STPES 3", {"did you mean 'STEPS'?"});
  expect_complaint("EXPLAIN (FORMAT jsn) TRAIN m", {"did you mean 'json'?"});
  expect_complaint("SET a = 3 GBps", {"unknown unit: GBps", "did you mean 'GB/s'?"});
  expect_complaint("SELECT x FROM y", {"a query belongs in a model"});
  expect_complaint("CREATE MODEL m AS SELECT a FROM x ORDER BY b", {"WeftQL has no ORDER BY"});
}

TEST(ParserError, SuggestsAFix) {
  expect_complaint("CREATE MODEL m AS SELECT a FROM x GROUP b",
                   {"expected BY after GROUP, found 'b'", "GROUP BY b"});
  expect_complaint("CREATE MODEL m AS SELECT a b FROM x", {"write AS b"});
  expect_complaint("CREATE MODEL m AS SELECT FROM x", {"expected a value to select, found 'FROM'"});
  expect_complaint("CREATE MODEL m AS SELECT a, FROM x", {"remove the comma before it"});
  expect_complaint("CREATE MODEL m AS SELECT f(a b) FROM x", {"is a comma missing before it?"});
  expect_complaint("CREATE MODEL m AS SELECT f(a FROM x",
                   {"expected ',' or ')', found 'FROM'", "( at 1:27 is not closed"});
  expect_complaint("CREATE MODEL m AS SELECT f(a, s = 2) FROM x",
                   {"1:33: expected => after", "usage: s => ..."});
  expect_complaint("CREATE MODEL m AS SELECT a == b FROM x", {"equality is written ="});
  expect_complaint("CREATE MODEL m AS SELECT a < b < c FROM x",
                   {"comparisons do not chain", "a < b AND b < c"});
  expect_complaint("CREATE MODEL group AS SELECT a FROM x",
                   {"GROUP is a reserved word; as a name, write \"group\""});
  expect_complaint("CREATE MODEL m INPUT x[b] SELECT a FROM x", {"put AS before the query"});
  expect_complaint("CREATE MODEL m (b) AS SELECT a FROM x", {"a model's sizes have defaults: b = 64"});
  expect_complaint("CREATE MODEL m (b = 1.5) AS SELECT a FROM x", {"1:21: a size is a whole number"});
  expect_complaint("CREATE LAYER m(x) INPUT y AS SELECT a FROM x", {"a LAYER has no INPUT"});
  expect_complaint("SET a = \"b\"", {"a string is written 'in single quotes'"});
  expect_complaint("TRAIN m FROM \"b\"", {"a string is written 'in single quotes'"});
  expect_complaint("TRAIN m STEPS 1 STEPS 2", {"1:17: STEPS is given twice"});
  expect_complaint("TRAIN m WITH (a = 1) WITH (a = 2)", {"1:22: WITH is given twice"});
  expect_complaint("CREATE MODEL m AS SELECT a FROM x WHERE a WHERE b", {"WHERE is given twice"});
  expect_complaint("SHOW MODELS SHOW RULES", {"expected ';', found 'SHOW'", "is a ';' missing before it?"});
  expect_complaint("INFER m STEPS 3", {"INFER has no STEPS"});
  expect_complaint("SET a = 99999999999999999999", {"number is too large"});
  expect_complaint("SET a = 1e999", {"number is out of range"});
}

TEST(ParserError, ReportsTheFirstError) {
  // The string is unclosed, but the parser meets the stray word first.
  expect_complaint("SHOW MODELS stray 'open", {"1:13: expected ';', found 'stray'"});
}

// Any sequence of tokens gets an answer, and an error always has a message and a location.
TEST(ParserError, AnswersAnything) {
  Random random(7);
  const char* const pieces[] = {"CREATE", "MODEL", "AS",   "SELECT", "FROM",    "WHERE",   "GROUP", "BY",
                                "(",      ")",     "[",    "]",      ",",       ";",       "x",     "1",
                                "'s'",    "\"q\"", "=",    "=>",     "<",       "-",       "*",     "NOT",
                                "CASE",   "WHEN",  "WITH", "REPEAT", "TIMES",   "JOIN",    "ON",    "INPUT",
                                "STATE",  "OVER",  "END",  "LAYER",  "TRAIN",   "EXPLAIN", "SET",   "HINT",
                                "SLICE",  "LINK",  ".",    "==",     "CLUSTER", "FUNCTION"};
  for (int round = 0; round < 3000; ++round) {
    std::string text = round % 2 ? "CREATE MODEL m AS SELECT " : "";
    for (std::uint64_t i = random.below(30); i > 0; --i)
      text += std::string(pieces[random.below(std::size(pieces))]) + ' ';
    const auto script = parse(text);
    if (script) continue;
    EXPECT_FALSE(script.error().message.empty());
    EXPECT_TRUE(script.error().span.known());
    EXPECT_LE(script.error().span.offset, text.size());
    EXPECT_FALSE(complain(script.error(), text).empty());
  }
}

}  // namespace
}  // namespace weft::language
