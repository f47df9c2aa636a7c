// The algorithm language: text in, moves out. Also what is rejected, and with which message.

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "weft/collectives/algorithm/algorithm.h"
#include "weft/collectives/algorithm/claims.h"
#include "weft/collectives/algorithm/library.h"
#include "weft/collectives/chunks/program_text.h"
#include "weft/language/complaint.h"

namespace weft::collective {
namespace {

// Returns only the moves, one per line, or the error message.
std::string run(std::string_view text, const Arguments& arguments, const AlgorithmLibrary& library = {},
                const TraceLimits& limits = {}) {
  const auto algorithm = parse_algorithm(text);
  if (!algorithm.ok()) return language::complain(algorithm.error(), text);
  const auto moves = trace(*algorithm, arguments, library, limits);
  if (!moves.ok()) {
    const Error& error = moves.error();
    return language::complain(error, error.text ? *error.text : "");
  }
  std::string out;
  for (const Move& move : moves->moves) out += print(move) + '\n';
  return out;
}

// Body of an algorithm with 4 ranks, 8 chunks and 5 chunks of scratch, in place.
std::string body(std::string_view statements) {
  return fmt::format(
      "ALGORITHM tried (ranks, chunks = 8)\n  COLLECTIVE all_reduce (chunks => chunks) IN PLACE\n  SCRATCH "
      "5\n"
      "BEGIN\n{}\nEND\n",
      statements);
}
std::string run_body(std::string_view statements) { return run(body(statements), {{"ranks", 4}}); }

// The value of an expression, read from the index of a copy.
std::string value(std::string_view expression) {
  const std::string text = fmt::format(
      "ALGORITHM tried (ranks, x = 6, counts = [3, 1, 4], scheme = 'ring')\n"
      "  COLLECTIVE all_reduce (chunks => 1000) IN PLACE\n"
      "  FUNCTION fib(n) = IF n < 2 THEN n ELSE fib(n - 1) + fib(n - 2)\n"
      "  FUNCTION scaled(ranks) = ranks * x\n"
      "BEGIN COPY data[{}] AT 0 TO data[999] AT 1 END",
      expression);
  const std::string moves = run(text, {{"ranks", 4}});
  if (!moves.starts_with("copy input[")) return moves;
  return moves.substr(11, moves.find(']') - 11);
}

const std::string kRing = R"(
-- Ring all-gather, a chunk at a time.
ALGORITHM all_gather_ring (ranks, chunks = 1)
  COLLECTIVE all_gather (chunks => chunks) IN PLACE
  STEPS ranks - 1
  WIRE (ranks - 1) * chunks
BEGIN
  FOR step IN 1 TO ranks - 1
    FOR rank IN 0 TO ranks - 1
      LET block = (rank - step + 1) MOD ranks
      COPY data[block * chunks] AT rank TO data[block * chunks] AT (rank + 1) MOD ranks COUNT chunks ON 0
    END
  END
END
)";

AlgorithmLibrary library_of(std::initializer_list<std::string_view> texts) {
  AlgorithmLibrary library;
  for (const std::string_view text : texts) library.add(parse_algorithm(text).value());
  return library;
}

TEST(AlgorithmLanguage, UnrollsARing) {
  EXPECT_EQ(run(kRing, {{"ranks", 3}, {"chunks", 2}}),
            "copy output[0..1] of 0 to output[0..1] of 1 on 0\n"
            "copy output[2..3] of 1 to output[2..3] of 2 on 0\n"
            "copy output[4..5] of 2 to output[4..5] of 0 on 0\n"
            "copy output[4..5] of 0 to output[4..5] of 1 on 0\n"
            "copy output[0..1] of 1 to output[0..1] of 2 on 0\n"
            "copy output[2..3] of 2 to output[2..3] of 0 on 0\n");
}

TEST(AlgorithmLanguage, EvaluatesAndMeasuresClaims) {
  const Algorithm ring = parse_algorithm(kRing).value();
  for (std::int64_t ranks = 1; ranks <= 9; ++ranks) {
    const Arguments arguments = {{"ranks", ranks}, {"chunks", 3}};
    const auto claimed = claims(ring, arguments);
    ASSERT_TRUE(claimed.ok());
    const Measure measured = measure(trace(ring, arguments, {}).value());
    EXPECT_EQ(claimed->steps, measured.steps);
    EXPECT_EQ(claimed->wire, measured.wire);
  }
}

TEST(AlgorithmLanguage, MeasuresEveryKindOfDependence) {
  const auto steps = [](std::string_view moves) {
    return measure(parse_moves(
                       fmt::format("moves m collective all_reduce, 4 ranks, 2 chunks, in place scratch 1 {}",
                                   moves))
                       .value())
        .steps;
  };
  EXPECT_EQ(steps("copy input[0] of 0 to input[0] of 1  copy input[1] of 1 to input[1] of 2"), 1);
  EXPECT_EQ(steps("copy input[0] of 0 to input[0] of 1  copy input[0] of 1 to input[0] of 2"),
            2);  // read after write
  EXPECT_EQ(steps("copy input[0] of 0 to input[0] of 1  copy input[0] of 2 to input[0] of 0"),
            2);  // write after read
  EXPECT_EQ(steps("copy input[0] of 0 to input[0] of 1  copy input[0] of 2 to input[0] of 1"),
            2);  // write after write
  EXPECT_EQ(steps("copy input[0] of 0 to input[0] of 1  copy input[0] of 0 to input[0] of 2"),
            1);  // read after read
  EXPECT_EQ(steps("copy input[0] of 0 to scratch[0] of 1  reduce scratch[0] of 1 into output[0] of 1"), 1);
  // In place, output[0] is input[0].
  EXPECT_EQ(steps("copy input[0] of 0 to output[0] of 1  copy input[0] of 1 to input[0] of 2"), 2);
}

TEST(AlgorithmLanguage, EvaluatesExpressions) {
  EXPECT_EQ(value("2 + 3 * 4 - 6 / 4"), "13");
  EXPECT_EQ(value("(2 + 3) * 4"), "20");
  EXPECT_EQ(value("7 + (0 - 7) / 2"), "3");  // rounds down
  EXPECT_EQ(value("7 + -7 DIV 2"), "3");
  EXPECT_EQ(value("-1 MOD 4"), "3");
  EXPECT_EQ(value("IF x = 6 AND NOT x > 7 OR 0 = 1 THEN 10 ELSE 20"), "10");
  EXPECT_EQ(value("(x >= 6) + (x <> 6) * 2 + (x <= 5) * 4"), "1");
  EXPECT_EQ(value("0 AND 1 / 0 = 0"), "0");  // the right side is not evaluated
  EXPECT_EQ(value("min(x, 4, 5) * 10 + max(x)"), "46");
  EXPECT_EQ(value("abs(-3) + log2(9) * 10 + ceil_log2(9) * 100"), "433");
  EXPECT_EQ(value("ceil_log2(1) + log2(1)"), "0");
  EXPECT_EQ(value("pow2(5) + xor(5, 3)"), "38");
  EXPECT_EQ(value("bit_and(12, 10) + bit_or(12, 10)"), "22");
  EXPECT_EQ(value("shift_left(3, 4) + shift_right(100, 3)"), "60");
  EXPECT_EQ(value("popcount(255) + gcd(12, 18)"), "14");
  EXPECT_EQ(value("sum(counts) * 10 + sum(counts, 2)"), "84");
  EXPECT_EQ(value("counts[2] + length(counts) * 10"), "34");
  EXPECT_EQ(value("sum(repeat(7, 3))"), "21");
  EXPECT_EQ(value("fib(12)"), "144");
  EXPECT_EQ(value("scaled(ranks + 1)"), "30");  // ranks of the call, x of the algorithm
  EXPECT_EQ(value("IF scheme = 'ring' AND scheme <> 'tree' THEN 1 ELSE 2"), "1");
}

TEST(AlgorithmLanguage, TracesStatements) {
  EXPECT_EQ(run_body("LET a = 0  WHILE a < 3  COPY data[a] AT 0 TO data[a] AT 1  a := a + 2  END"),
            "copy input[0] of 0 to input[0] of 1\ncopy input[2] of 0 to input[2] of 1\n");
  EXPECT_EQ(run_body("FOR i IN 2 TO 0 BY -1 COPY input[i] AT i TO scratch[0] AT 3 END"),
            "copy input[2] of 2 to scratch[0] of 3\ncopy input[1] of 1 to scratch[0] of 3\n"
            "copy input[0] of 0 to scratch[0] of 3\n");
  EXPECT_EQ(run_body("FOR i IN 1 TO 0 COPY data[0] AT 0 TO data[0] AT 1 END"), "");
  EXPECT_EQ(run_body("FOR i IN 0 TO 2 IF i = 0 THEN REDUCE data[0] AT 0 INTO data[0] AT 1 "
                     "ELSIF i = 1 THEN COPY data[1] AT 0 TO data[1] AT 1 ELSE COPY data[2] AT 0 TO data[2] "
                     "AT 1 END END"),
            "reduce input[0] of 0 into input[0] of 1\ncopy input[1] of 0 to input[1] of 1\n"
            "copy input[2] of 0 to input[2] of 1\n");
  // Keywords that join the parts of a statement are also valid names.
  EXPECT_EQ(run_body("LET at = 1 LET to = 2 LET count = 3 COPY data[at] AT at TO data[to] AT to COUNT count"),
            "copy input[1..3] of 1 to input[2..4] of 2\n");
  // COUNT 0 moves nothing and checks nothing. A copy onto itself is dropped.
  EXPECT_EQ(run_body("COPY data[8] AT 0 TO data[8] AT 1 COUNT 0 COPY data[1] AT 0 TO output[1] AT 0"), "");
}

TEST(AlgorithmLanguage, InPlaceInputAndOutputShareMemory) {
  const auto text = [](std::string_view kind) {
    return fmt::format(
        "ALGORITHM a (ranks) COLLECTIVE {} (chunks => 2) IN PLACE BEGIN COPY input[1] AT 2 TO output[1] AT 1 "
        "END",
        kind);
  };
  EXPECT_EQ(run(text("all_reduce"), {{"ranks", 3}}), "copy input[1] of 2 to input[1] of 1\n");
  EXPECT_EQ(run(text("all_gather"), {{"ranks", 3}}), "copy output[5] of 2 to output[1] of 1\n");
  EXPECT_EQ(run(text("reduce_scatter"), {{"ranks", 3}}), "copy input[1] of 2 to input[3] of 1\n");
}

TEST(AlgorithmLanguage, ReadsListsAsCounts) {
  const std::string text =
      "ALGORITHM gather_v (ranks, counts, root = ranks - 1) COLLECTIVE gather (counts => counts, root => "
      "root) IN PLACE\n"
      "BEGIN FOR r IN 0 TO ranks - 2 COPY input[0] AT r TO output[sum(counts, r)] AT root COUNT counts[r] "
      "END END";
  const std::vector<std::int64_t> counts = {3, 1, 4};
  EXPECT_EQ(run(text, {{"ranks", 3}, {"counts", counts}}),
            "copy output[0..2] of 0 to output[0..2] of 2\ncopy output[3] of 1 to output[3] of 2\n");
  EXPECT_EQ(run(text, {{"ranks", 4}, {"counts", counts}}),
            "error: gather_v: expected 4 counts, one per rank, found 3\n");
  EXPECT_EQ(run(text, {{"ranks", 3}, {"counts", 7}}),
            "error: counts of gather_v is a list, given a number\n");
}

TEST(AlgorithmLanguage, PrintsWantsOfCustomCollectives) {
  const auto moves = trace(parse_algorithm(R"(
ALGORITHM custom_pairs (ranks)
  COLLECTIVE custom (inputs => 1, outputs => 2)
ENSURE
  FOR r IN 0 TO ranks - 1
    WANT output[0] AT r = input[0] AT (r + 1) MOD ranks + input[0] AT r
    FOR s IN 0 TO ranks - 1
      WANT output[1] AT r = input[0] AT s
    END
  END
BEGIN
END)")
                               .value(),
                           {{"ranks", 2}}, {});
  ASSERT_TRUE(moves.ok());
  EXPECT_EQ(print(*moves),
            "moves custom_pairs\ncollective custom, 2 ranks, 1 chunk, out of place\n"
            "want output[0] of 0 = input[0] of 0 + input[0] of 1\nwant output[1] of 0 = input[0] of 0 + "
            "input[0] of 1\n"
            "want output[0] of 1 = input[0] of 0 + input[0] of 1\nwant output[1] of 1 = input[0] of 0 + "
            "input[0] of 1\n");
}

TEST(AlgorithmLanguage, CallsUseTheCallersRanksAndMemory) {
  const std::string outer =
      "ALGORITHM outer (ranks, scheme = 'ring') COLLECTIVE all_reduce (chunks => 8) IN PLACE BEGIN\n"
      "CALL all_gather BY scheme (ranks => 2, chunks => 2) RANK i AT 3 - 2 * i CHUNK j AT 7 - j ON 4\n"
      "CALL all_gather_ring (ranks = 2, chunks = 2) RANK i AT i CHUNK j AT data[2 * i + j] END";
  EXPECT_EQ(
      run(outer, {{"ranks", 4}}, library_of({kRing})),
      // Chunks that are not adjacent, or in reverse order, become separate moves.
      "copy input[7] of 3 to input[7] of 1 on 4\ncopy input[6] of 3 to input[6] of 1 on 4\n"
      "copy input[5] of 1 to input[5] of 3 on 4\ncopy input[4] of 1 to input[4] of 3 on 4\n"
      "copy input[0..1] of 0 to input[2..3] of 1 on 0\ncopy input[4..5] of 1 to input[2..3] of 0 on 0\n");
  EXPECT_EQ(
      run(outer, {{"ranks", 4}, {"scheme", "rind"}}, library_of({kRing})),
      "error 2:1: no such algorithm: all_gather_rind\n"
      "  CALL all_gather BY scheme (ranks => 2, chunks => 2) RANK i AT 3 - 2 * i CHUNK j AT 7 - j ON 4\n"
      "  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
      "  did you mean 'all_gather_ring'?\n");
}

TEST(AlgorithmLanguage, EveryCallGetsFreshScratchFromTheOutermostCaller) {
  const AlgorithmLibrary library = library_of(
      {"ALGORITHM inner (ranks) COLLECTIVE all_reduce (chunks => 1) IN PLACE SCRATCH r + 1 PER r BEGIN\n"
       "COPY data[0] AT 0 TO scratch[1] AT 1 END",
       "ALGORITHM middle (ranks) COLLECTIVE all_reduce (chunks => 1) IN PLACE SCRATCH 10 BEGIN\n"
       "CALL inner (ranks => 2) RANK i AT 1 - i CHUNK j AT scratch[9 + j] END"});
  const auto outer = parse_algorithm(
      "ALGORITHM outer (ranks) COLLECTIVE all_reduce (chunks => 1) IN PLACE SCRATCH 100 BEGIN\n"
      "CALL middle (ranks => 2) RANK i AT 2 + i CHUNK j AT j\nCALL inner (ranks => 2) RANK i AT i CHUNK j AT "
      "j END");
  const auto moves = trace(outer.value(), {{"ranks", 4}}, library);
  ASSERT_TRUE(moves.ok()) << moves.error().message;
  EXPECT_EQ(moves->scratch, (std::vector<std::int32_t>{101, 102, 112, 111}));
  EXPECT_EQ(print(moves->moves[0]), "copy scratch[109] of 3 to scratch[111] of 2");
  EXPECT_EQ(print(moves->moves[1]), "copy input[0] of 0 to scratch[101] of 1");
}

TEST(AlgorithmLanguage, OutOfPlaceCallsPassBothBuffers) {
  const AlgorithmLibrary library = library_of(
      {"ALGORITHM swap (ranks) COLLECTIVE all_to_all BEGIN COPY input[1] AT 0 TO output[0] AT 1 END"});
  EXPECT_EQ(
      run("ALGORITHM outer (ranks) COLLECTIVE all_to_all (chunks => 2) BEGIN\n"
          "CALL swap (ranks => 2) RANK i AT 2 * i INPUT j AT input[j + 1] OUTPUT j AT output[j + 3] END",
          {{"ranks", 3}}, library),
      "copy input[2] of 0 to output[3] of 2\n");
}

TEST(AlgorithmLanguage, RejectsSyntaxErrors) {
  const auto first_line = [](std::string_view text) {
    const auto algorithm = parse_algorithm(text);
    return algorithm.ok() ? "" : algorithm.error().message + " | " + algorithm.error().hint;
  };
  EXPECT_EQ(first_line(""), "expected ALGORITHM, found the end of the text | ");
  EXPECT_EQ(first_line("ALGORITHM a (chunks)"), "expected ranks, the first parameter, found 'chunks' | ");
  EXPECT_EQ(first_line("ALGORITHM a (ranks) COLLECTIVE all_redcue"),
            "unknown collective: all_redcue | did you mean 'all_reduce'?");
  EXPECT_EQ(first_line(body("COPPY data[0] AT 0 TO data[0] AT 1")),
            "expected a statement, found 'COPPY' | did you mean 'COPY'?");
  EXPECT_EQ(first_line(body("COPY data[chunk] AT 0 TO data[0] AT 1")),
            "unknown name: chunk | did you mean 'chunks'?");
  EXPECT_EQ(first_line(body("COPY data[mim(1, 2)] AT 0 TO data[0] AT 1")),
            "unknown function: mim | did you mean 'min'?");
  EXPECT_EQ(first_line(body("COPY dta[0] AT 0 TO data[0] AT 1")),
            "expected input, output, scratch or data, found 'dta' | did you mean 'data'?");
  EXPECT_EQ(first_line(body("LET chunks = 1")),
            "name is already in use: chunks | choose another name, or assign to the variable with :=");
  EXPECT_EQ(first_line(body("chunks := 1")),
            "cannot be assigned: chunks | only variables declared with LET can be assigned, not parameters "
            "or loop variables");
  EXPECT_EQ(first_line(body("LET end = 1")), "expected a name, found the word END | choose another name");
  EXPECT_EQ(first_line(body("LET a = 7 % 2")), "unexpected character: % | a remainder is written a MOD b");
  EXPECT_EQ(first_line(body("LET a = 'x' + 1")), "expected a number, found a word | ");
  EXPECT_EQ(first_line(body("LET a = min()")), "min expects 1 or more operands, found 0 | ");
  EXPECT_EQ(first_line(body("LET a = 99999999999999999999")),
            "number is too large: 99999999999999999999 | numbers have 64 bits");
  EXPECT_EQ(first_line(body("WANT output[0] AT 0 = input[0] AT 0")),
            "WANT is only allowed in ENSURE | write ENSURE ... before BEGIN");
  EXPECT_EQ(
      first_line("ALGORITHM a (ranks) COLLECTIVE all_gather BEGIN COPY data[0] AT 0 TO data[0] AT 1 END"),
      "data is the memory of an algorithm in place | write input or output, or COLLECTIVE ... IN PLACE");
  EXPECT_EQ(
      first_line("ALGORITHM a (ranks, n = f(1)) COLLECTIVE all_gather FUNCTION f(x) = x BEGIN END"),
      "a default cannot use the algorithm's own function: f | functions may use every parameter, and those "
      "after this one have no value yet");
  EXPECT_EQ(first_line(kRing + "BEGIN"),
            "expected the end of the text, found 'BEGIN' | a file holds one algorithm");
}

TEST(AlgorithmLanguage, RejectsErrorsWhileTracing) {
  EXPECT_EQ(run_body("FOR i IN 5 TO 9\n  COPY data[i] AT 0 TO data[i - 5] AT 1 COUNT 2\nEND"),
            "error 6:8: data[7] at rank 0 is out of range: 2 chunks requested, the buffer has 8\n"
            "    COPY data[i] AT 0 TO data[i - 5] AT 1 COUNT 2\n"
            "         ^^^^^^^^^^^^\n"
            "  i = 7\n");
  const auto message = [](std::string_view statements) {
    const auto moves = trace(parse_algorithm(body(statements)).value(), {{"ranks", 4}}, {});
    return moves.ok() ? "" : moves.error().message;
  };
  EXPECT_EQ(message("COPY data[0] AT 0 TO data[0] AT ranks"), "no such rank: 4 of 4");
  EXPECT_EQ(message("COPY data[0] AT 0 TO scratch[5] AT 1"),
            "scratch[5] at rank 1 is out of range: 1 chunk requested, the buffer has 5");
  EXPECT_EQ(message("COPY data[0] AT 0 TO data[0] AT 1 COUNT -1"), "COUNT is negative: -1");
  EXPECT_EQ(message("COPY data[0] AT 0 TO data[0] AT 1 ON 65536"), "channels are 0 to 65535: 65536");
  EXPECT_EQ(message("COPY data[0] AT 0 TO output[1] AT 0 COUNT 2"),
            "a move onto itself: input[0] and input[1] of rank 0, 2 chunks");
  EXPECT_EQ(message("LET a = 1 / (ranks - 4)"), "division by zero: 0");
  EXPECT_EQ(message("LET a = 1 MOD -2"), "MOD by a number that is not positive: -2");
  EXPECT_EQ(message("LET a = 9223372036854775807 + ranks"), "overflows 64 bits: 9223372036854775807 + ranks");
  EXPECT_EQ(message("LET a = shift_left(1, 63)"), "overflows 64 bits: shift_left(1, 63)");
  EXPECT_EQ(message("FOR i IN 1 TO 2 BY 0 END"), "FOR steps by zero");
  EXPECT_EQ(message("REQUIRE ranks = pow2(log2(chunks)), 'as many ranks as chunks'"),
            "as many ranks as chunks: ranks = 4, chunks = 8");
  EXPECT_EQ(message("CALL nobody (ranks => 2) RANK i AT i CHUNK j AT j"), "no such algorithm: nobody");
}

TEST(AlgorithmLanguage, RejectsWrongParameters) {
  const auto message = [](const Arguments& arguments) {
    const auto status = check_arguments(
        parse_algorithm(
            "ALGORITHM a (ranks, chunks, scheme = 'ring') COLLECTIVE all_reduce WHERE ranks MOD 2 = 0\n"
            "BEGIN END")
            .value(),
        arguments);
    return status.ok() ? "" : status.error().message + " | " + status.error().hint;
  };
  EXPECT_EQ(message({{"ranks", 4}, {"chunks", 1}}), "");
  EXPECT_EQ(message({{"ranks", 4}}), "a needs a value for chunks | write a(chunks=...)");
  EXPECT_EQ(message({{"ranks", 4}, {"chunk", 1}}), "a has no such parameter: chunk | did you mean 'chunks'?");
  EXPECT_EQ(message({{"ranks", 4}, {"chunks", "x"}}), "chunks of a is a number, given a word | ");
  EXPECT_EQ(message({{"ranks", 3}, {"chunks", 1}}), "a needs ranks MOD 2 = 0: ranks = 3 | ");
  EXPECT_EQ(message({{"ranks", 65538}, {"chunks", 1}}), "expected 1 to 65536 ranks, found 65538 | ");
}

TEST(AlgorithmLanguage, LimitsRunawayAlgorithms) {
  const TraceLimits limits{.moves = 100, .moved_chunks = 200, .memory_chunks = 500, .work = 10000};
  const auto message = [&](std::string_view statements, std::int64_t chunks = 8) {
    const auto algorithm = parse_algorithm(body(statements));
    if (!algorithm.ok()) return algorithm.error().message;
    const auto moves = trace(*algorithm, {{"ranks", 4}, {"chunks", chunks}},
                             library_of({body("CALL tried (ranks => 4) RANK i AT i CHUNK j AT j")}), limits);
    return moves.ok() ? "" : moves.error().message;
  };
  EXPECT_EQ(message("WHILE 1 END"), "tried runs too long");
  EXPECT_EQ(message("FOR i IN 0 TO 9223372036854775807 END"), "tried runs too long");
  EXPECT_EQ(message("FOR i IN 0 TO 100 COPY data[0] AT 0 TO data[0] AT 1 END"),
            "too many moves: at most 100 moves and 200 chunks moved");
  EXPECT_EQ(message("FOR i IN 0 TO 100 COPY data[0] AT 0 TO data[0] AT 1 COUNT 8 END"),
            "too many moves: at most 100 moves and 200 chunks moved");
  EXPECT_EQ(message("", 1000),
            "tried needs too much memory: 2005 chunks or more over all ranks, at most 500");
  EXPECT_EQ(message("", 1 << 30),
            "tried needs too much memory: 2147483653 chunks or more over all ranks, at most 500");
  EXPECT_EQ(message("CALL tried (ranks => 4) RANK i AT i CHUNK j AT j"),
            "algorithms call each other too deep: 17");
  std::string deep = "LET a = ", nested;
  for (int i = 0; i < 5000; ++i) deep += '(';
  for (int i = 0; i < 5000; ++i) nested += "WHILE 1 ";
  EXPECT_TRUE(message(deep).starts_with("expression is nested too deeply"));
  EXPECT_TRUE(message(nested).starts_with("statements are nested too deeply"));
  std::string sum = "LET a = 1";
  for (int i = 0; i < 5000; ++i) sum += " + 1";
  EXPECT_TRUE(message(sum).starts_with("expression is nested too deeply"));
  const std::string recursion =
      "ALGORITHM a (ranks) COLLECTIVE all_reduce STEPS f(1) FUNCTION f(n) = f(n) + f(n) BEGIN END";
  EXPECT_EQ(claims(parse_algorithm(recursion).value(), {{"ranks", 2}}).error().message,
            "function calls are nested too deeply: 65");
}

TEST(AlgorithmLanguage, PrintedAlgorithmsParseToTheSame) {
  for (const std::string& text :
       {kRing, body("LET a = -(-1) - (2 - 3) * (4 + 5) / (6 / 7)\na := NOT (a = 1 AND (a > 2 OR a < 3))"),
        body("LET a = (IF ranks = 1 THEN 2 ELSE 3) + 1\nLET b = IF a = 1 THEN 2 ELSE IF a = 2 THEN 3 ELSE 4"),
        body("IF 1 THEN ELSIF 2 THEN COPY data[0] AT (1 = 1) TO data[1] AT -1 COUNT 2 ON 3 ELSE WHILE 0 END "
             "END"),
        body("CALL all_gather BY 'it''s' (ranks => 2, counts => [1, 2]) RANK i AT i CHUNK j AT scratch[j] ON "
             "1\n"
             "FOR k IN 0 TO 9 BY 3 REQUIRE k > -1, 'k''s sign' END"),
        std::string(
            "algorithm x (ranks, w = 'a', l = repeat(1, ranks), n = min(1, 2, ranks)) collective custom\n"
            "(inputs => 1) scratch r * sum(l, r) per r where w <> 'b', n != 2 wire f(1) steps 0\n"
            "function f(a) = a + l[0] ensure want output[0] at 0 = input[0] at 1 + 1 + input[0] at 0\n"
            "begin call x (ranks = 1) rank i at i input j at input[j] output j at output[j] end")}) {
    const auto parsed = parse_algorithm(text);
    ASSERT_TRUE(parsed.ok()) << language::complain(parsed.error(), text);
    const std::string printed = print(*parsed);
    const auto again = parse_algorithm(printed);
    ASSERT_TRUE(again.ok()) << language::complain(again.error(), printed);
    EXPECT_EQ(print(*again), printed);
  }
  EXPECT_EQ(print(parse_algorithm(kRing).value()), kRing.substr(kRing.find("ALGORITHM")));
}

TEST(AlgorithmReference, ParsesAndPrints) {
  const auto read =
      parse_reference("all_reduce_ring (chunks=-4, ranks=8, within=Ring, gate='a b', counts=[3, 1])");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(print(*read), "all_reduce_ring(ranks=8, chunks=-4, counts=[3, 1], gate='a b', within=ring)");
  EXPECT_EQ(parse_reference(print(*read)).value(), *read);
  EXPECT_EQ(print(parse_reference("send_direct").value()), "send_direct()");
  EXPECT_EQ(print(parse_reference("a(b='Ring', c=-9223372036854775808)").value()),
            "a(b='Ring', c=-9223372036854775808)");
  EXPECT_EQ(parse_reference("a(b=1, b=2)").error().message, "given twice: b");
  EXPECT_EQ(parse_reference("a(b)").error().message, "expected '=', found ')'");
  EXPECT_EQ(find_algorithm(library_of({kRing}), "all_gather_rnig").error().hint,
            "did you mean 'all_gather_ring'?");
}

TEST(AlgorithmLibrary, FilesAreNamedAfterTheirAlgorithms) {
  const EmbeddedFile right{"algorithms/all_gather_ring.algorithm", kRing},
      wrong{"algorithms/b.algorithm", kRing}, broken{"algorithms/c.algorithm", "ALGORITHM"};
  EXPECT_NE(parse_library({&right, 1}).value().find("all_gather_ring"), nullptr);
  EXPECT_EQ(parse_library({&wrong, 1}).error().message,
            "algorithms/b.algorithm defines a different algorithm: all_gather_ring");
  EXPECT_EQ(parse_library({&broken, 1}).error().message,
            "algorithms/c.algorithm: expected the algorithm's name, found the end of the text");
}

}  // namespace
}  // namespace weft::collective
