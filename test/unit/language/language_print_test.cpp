#include "weft/language/print.h"

#include <string>

#include <gtest/gtest.h>

#include "weft/base/random.h"
#include "weft/language/complaint.h"
#include "weft/language/parser.h"

namespace weft::language {
namespace {

std::string printed(const std::string& text, Parentheses parentheses = Parentheses::needed) {
  const auto script = parse(text);
  return script ? print(*script, parentheses) : complain(script.error(), text);
}

// The canonical text of `text` means the same and is its own canonical text.
void expect_round_trip(const std::string& text) {
  const std::string once = printed(text);
  EXPECT_EQ(printed(once), once) << text;
  EXPECT_EQ(printed(once, Parentheses::all), printed(text, Parentheses::all)) << text;
}

TEST(Print, FormatsModels) {
  EXPECT_EQ(
      printed("create model mlp (b=64,d=784) input x[b,d],y[b] of int32 parameter w1[d,f] init normal(0,0.02)"
              " state m as with h as (select relu(sum(x*w1)) from x,w1 group by b,f),"
              " logits as (select sum(h*w2) from h,w2 group by b,c)"
              " select mean(cross_entropy(logits,y) over (partition by b)) as loss from logits,y;"),
      "CREATE MODEL mlp\n"
      "  (b = 64, d = 784)\n"
      "  INPUT     x[b, d], y[b] OF int32\n"
      "  PARAMETER w1[d, f] INIT normal(0, 0.02)\n"
      "  STATE     m\n"
      "AS WITH\n"
      "  h      AS (SELECT relu(sum(x * w1)) FROM x, w1 GROUP BY b, f),\n"
      "  logits AS (SELECT sum(h * w2) FROM h, w2 GROUP BY b, c)\n"
      "SELECT mean(cross_entropy(logits, y) OVER (PARTITION BY b)) AS loss FROM logits, y;\n");
}

TEST(Print, BreaksLongQueriesByClause) {
  EXPECT_EQ(
      printed("CREATE LAYER l(x[b]) (h) AS WITH a_rather_long_name AS (SELECT softmax(CASE WHEN t <= s THEN "
              "scores ELSE -inf END) OVER (PARTITION BY b, h, s) AS probabilities FROM scores, others[b AS c]"
              " WHERE b > 1 GROUP BY b) SELECT x FROM x"),
      "CREATE LAYER l(x[b])\n"
      "  (h)\n"
      "AS WITH\n"
      "  a_rather_long_name AS (\n"
      "    SELECT softmax(CASE WHEN t <= s THEN scores ELSE -inf END) OVER (PARTITION BY b, h, s)"
      " AS probabilities\n"
      "    FROM scores, others[b AS c]\n"
      "    WHERE b > 1\n"
      "    GROUP BY b)\n"
      "SELECT x FROM x;\n");
}

TEST(Print, FormatsClusters) {
  EXPECT_EQ(printed("create cluster pod as 4 nodes of 8 devices h100 link gpu within node(450GB/s,1.5us)"
                    " link ib across node (50 GB / s, 5 us); show models"),
            "CREATE CLUSTER pod AS\n"
            "  4 NODES OF 8 DEVICES h100\n"
            "  LINK gpu WITHIN node (450 GB/s, 1.5 us)\n"
            "  LINK ib ACROSS node (50 GB/s, 5 us);\n"
            "\n"
            "SHOW models;\n");
}

TEST(Print, RoundTripsEveryStatement) {
  for (const char* text :
       {"DROP MODEL \"from\"", "EXPLAIN VERBOSE (FORMAT plan, \"format\" 'x', depth -3) INFER m ON \"local\"",
        "EXPLAIN (ANALYZE) TRAIN m ON LOCAL FROM 'it''s' STEPS 0 WITH (a = 1.0, b = 1e30, c = -inf, d = "
        "adam)",
        "SET x = true", "SET x = 'a''b'", "SET x = 0.1 GiB", "SET x = 1_000",
        "HINT SLICE b ACROSS node, SLICE f OF w ACROSS gpu, REPLICATE w ACROSS gpu", "SHOW \"odd name\"",
        "DESCRIBE m WITH (b = 3)", "SAVE m TO 'f'", "LOAD m FROM 'f'",
        "SYNTHESIZE ALLGATHER ON pod WITH (chunks = 8)", "CREATE OR REPLACE DEVICE d (a = 3, b = 4 us)",
        "CREATE LAYER l(x[b] OF bf16, y) (h, e = 4 / (2 - 1)) PARAMETER w[h] STATE s[h] PARAMETER v INIT ones"
        " AS SELECT * FROM block(x[b AS c], n = 3 * h)[(a, b) AS c, d AS (e, f)] AS z JOIN t[v] AS u ON v = "
        "z"}) {
    const auto script = parse(text);
    ASSERT_TRUE(script.ok()) << complain(script.error(), text);
    expect_round_trip(text);
  }
}

TEST(Print, KeepsOnlyNecessaryParentheses) {
  const auto item = [](const std::string& expression) {
    const std::string all = printed("CREATE MODEL m AS SELECT " + expression + " FROM x");
    const std::string begin = "CREATE MODEL m\nAS SELECT ";
    return all.substr(begin.size(), all.find(" FROM") - begin.size());
  };
  EXPECT_EQ(item("((a * b)) + (c)"), "a * b + c");
  EXPECT_EQ(item("a * (b + c)"), "a * (b + c)");
  EXPECT_EQ(item("a - (b - c)"), "a - (b - c)");
  EXPECT_EQ(item("-(-a)"), "-(-a)");
  EXPECT_EQ(item("a - -b"), "a - -b");
  EXPECT_EQ(item("(NOT a) = b"), "(NOT a) = b");
  EXPECT_EQ(item("NOT (a = b)"), "NOT a = b");
  EXPECT_EQ(item("f(a, (b = c))"), "f(a, (b = c))");
  EXPECT_EQ(item("f((b = c))"), "f(b = c)");
  EXPECT_EQ(item("\"cast\"(a)"), "\"cast\"(a)");
  EXPECT_EQ(item("(a OR b) AND c"), "(a OR b) AND c");
}

// Writes random, syntactically valid expressions and queries.
class Writer {
 public:
  explicit Writer(std::uint64_t seed) : random_(seed) {}

  std::string expression(int depth) {
    const auto inner = [&] { return expression(depth - 1); };
    switch (random_.below(depth > 0 ? 13 : 4)) {
      case 0: return name();
      case 1: return std::to_string(random_.below(1000));
      case 2: return one_of({"0.5", "1e-5", "2.0", "inf", "true", "1e300"});
      case 3: return one_of({"\"from\"", "\"a \"\"b\"", "cast", "x"});
      case 4: return "(" + inner() + ")";
      case 5:
        return "(" + inner() + ") " + one_of({"+", "-", "*", "/", "%", "AND", "OR"}) + " (" + inner() + ")";
      case 6:
        return name() + one_of({" + ", " * ", " - "}) + name() + one_of({" * ", " / "}) + "(" + inner() + ")";
      case 7: return one_of({"-", "+", "- -"}) + ("(" + inner() + ")");
      case 8: return "(NOT (" + inner() + "))";
      case 9: return "((" + inner() + ") " + one_of({"=", "<>", "<", ">="}) + " (" + inner() + "))";
      case 10: return "((" + inner() + ") BETWEEN (" + inner() + ") AND (" + inner() + "))";
      case 11: return "CASE WHEN " + inner() + " THEN " + inner() + maybe(" ELSE " + inner()) + " END";
      default: return call(depth);
    }
  }

  std::string query(int depth) {
    std::string result;
    if (depth > 0 && random_.below(2))
      result += "WITH " + maybe("REPEAT 2*(n+1) TIMES ") + name() + " AS (" + query(depth - 1) + ") ";
    result +=
        "SELECT " + expression(depth) + maybe(" AS " + name()) + maybe(", *") + " FROM " + source(depth);
    if (random_.below(2)) result += ", " + source(depth);
    if (random_.below(3) == 0) result += " JOIN " + source(depth) + " ON " + expression(depth);
    return result + maybe(" WHERE " + expression(depth)) + maybe(" GROUP BY a, b" + maybe(" AS c"));
  }

 private:
  std::string call(int depth) {
    std::string result = one_of({"f", "\"cast\"", "sum"}) + "(" + expression(depth - 1);
    if (random_.below(2)) result += ", (" + expression(depth - 1) + ")";
    result += maybe(", label => " + expression(depth - 1)) + ")";
    return result + maybe(" OVER (" + maybe("PARTITION BY a, b") + ")");
  }

  std::string source(int depth) {
    const std::string indices = maybe("[a, b AS c, (d, e) AS f, g AS (h, i)]");
    if (depth > 0 && random_.below(3) == 0) return "(" + query(depth - 1) + ")" + indices + " AS " + name();
    return name() + maybe("(x, y[a], n = 4)") + indices + maybe(" AS " + name());
  }

  std::string name() { return one_of({"x", "steps", "\"with\"", "\"ü\"", "local", "w1"}); }
  std::string maybe(const std::string& text) { return random_.below(2) ? text : ""; }
  std::string one_of(std::initializer_list<const char*> choices) {
    return choices.begin()[random_.below(choices.size())];
  }

  Random random_;
};

TEST(Print, RoundTripsRandomQueries) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const std::string text = "CREATE MODEL m AS " + Writer(seed).query(3);
    const auto script = parse(text);
    ASSERT_TRUE(script.ok()) << complain(script.error(), text);
    expect_round_trip(text);
  }
}

}  // namespace
}  // namespace weft::language
