#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "weft/base/letters.h"
#include "weft/base/nearest.h"
#include "weft/collectives/algorithm/algorithm_parser.h"

namespace weft::collective {
namespace {

constexpr auto kStatements = std::to_array<std::string_view>(
    {"LET", "FOR", "WHILE", "IF", "COPY", "REDUCE", "CALL", "REQUIRE", "WANT", "END", "ELSE", "ELSIF"});

}  // namespace

bool AlgorithmParser::at_block_end() const {
  return reader_.at_end() || reader_.at_word("end") || reader_.at_word("else") || reader_.at_word("elsif") ||
         reader_.at_word("begin");
}

Block AlgorithmParser::block(bool promises) {
  Block result;
  if (++block_level_ > kDeepestBlock)
    reader_.fail(fmt::format("statements are nested too deeply: {}", block_level_));
  const std::size_t names = names_.size();
  while (!at_block_end()) result.push_back(statement(promises));
  close_scope(names);
  --block_level_;
  return result;
}

Statement AlgorithmParser::statement(bool promises) {
  const Token start = reader_.token();
  Statement result;
  if (reader_.at_word("let")) {
    result.does = let();
  } else if (reader_.at_word("for")) {
    result.does = for_loop(promises);
  } else if (reader_.at_word("while")) {
    result.does = while_loop(promises);
  } else if (reader_.at_word("if")) {
    result.does = branch(promises);
  } else if (reader_.at_word("copy") || reader_.at_word("reduce")) {
    if (promises) reader_.fail("moves are not allowed in ENSURE", "put moves between BEGIN and END");
    result.does = transfer();
  } else if (reader_.at_word("call")) {
    if (promises) reader_.fail("CALL is not allowed in ENSURE", "put calls between BEGIN and END");
    result.does = call();
  } else if (reader_.at_word("require")) {
    result.does = requirement();
  } else if (reader_.at_word("want")) {
    if (!promises) reader_.fail("WANT is only allowed in ENSURE", "write ENSURE ... before BEGIN");
    result.does = promise();
  } else if (reader_.at(TokenKind::word) && reader_.after().kind == TokenKind::assign) {
    result.does = assignment();
  } else {
    reader_.fail_expected("a statement", kStatements);
  }
  result.span = reader_.since(start);
  return result;
}

Assignment AlgorithmParser::let() {
  reader_.expect_word("LET");
  const std::string name = new_name("a name");
  reader_.expect(TokenKind::equal);
  const ExpressionId value = number();  // before the name is declared: it cannot use itself
  return {declare(name, true), intern(name), value, true};
}

Assignment AlgorithmParser::assignment() {
  const Token start = reader_.token();
  const std::string spelling = lower(reader_.name("a name"));
  Name* const name = find(spelling);
  if (!name) unknown_name(spelling, start.span, false);
  if (name && !name->assignable)
    reader_.fail_at(start.span, fmt::format("cannot be assigned: {}", spelling),
                    "only variables declared with LET can be assigned, not parameters or loop variables");
  reader_.expect(TokenKind::assign);
  const std::int32_t slot = name ? name->place : 0;
  const ExpressionId value = number();
  return {slot, intern(spelling), value, false};
}

ForLoop AlgorithmParser::for_loop(bool promises) {
  ForLoop loop;
  reader_.expect_word("FOR");
  const std::string name = new_name("a name");
  reader_.expect_word("IN");
  loop.from = number();
  reader_.expect_word("TO");
  loop.to = number();
  if (reader_.take_word("by")) loop.by = number();
  const std::size_t names = names_.size();
  loop.slot = declare(name, false);
  loop.name = intern(name);
  loop.body = block(promises);
  close_scope(names);
  reader_.expect_word("END");
  return loop;
}

WhileLoop AlgorithmParser::while_loop(bool promises) {
  WhileLoop loop;
  reader_.expect_word("WHILE");
  loop.condition = number();
  loop.body = block(promises);
  reader_.expect_word("END");
  return loop;
}

Branch AlgorithmParser::branch(bool promises) {
  Branch result;
  reader_.expect_word("IF");
  do {
    const ExpressionId condition = number();
    reader_.expect_word("THEN");
    result.arms.push_back({condition, block(promises)});
  } while (reader_.take_word("elsif"));
  if (reader_.take_word("else")) result.arms.push_back({kNoExpression, block(promises)});
  reader_.expect_word("END");
  return result;
}

Transfer AlgorithmParser::transfer() {
  Transfer result;
  const bool copies = reader_.take_word("copy");
  if (!copies) reader_.expect_word("REDUCE");
  result.verb = copies ? Move::Verb::copy : Move::Verb::reduce;
  result.from = place();
  reader_.expect_word(copies ? "TO" : "INTO");
  result.to = place();
  if (reader_.take_word("count")) result.count = number();
  if (reader_.take_word("on")) result.channel = number();
  return result;
}

PlaceBuffer AlgorithmParser::place_buffer() {
  constexpr std::array<std::string_view, 4> kBuffers = {"input", "output", "scratch", "data"};
  for (std::size_t i = 0; i < kBuffers.size(); ++i) {
    if (!reader_.at_word(kBuffers[i])) continue;
    if (kBuffers[i] == "data" && !syntax_.in_place)
      reader_.fail("data is the memory of an algorithm in place",
                   "write input or output, or COLLECTIVE ... IN PLACE");
    reader_.advance();
    return static_cast<PlaceBuffer>(i);
  }
  reader_.fail_expected("input, output, scratch or data", kBuffers);
  return PlaceBuffer::input;
}

PlaceSyntax AlgorithmParser::place() {
  const Token start = reader_.token();
  PlaceSyntax result;
  result.buffer = place_buffer();
  reader_.expect(TokenKind::left_bracket);
  result.index = number();
  reader_.expect(TokenKind::right_bracket);
  reader_.expect_word("AT");
  result.rank = sum_of_numbers();
  result.span = reader_.since(start);
  return result;
}

Call AlgorithmParser::call() {
  Call result;
  reader_.expect_word("CALL");
  result.callee = lower(reader_.name("the name of an algorithm"));
  if (reader_.take_word("by")) {
    const Token start = reader_.token();
    result.scheme = scheme();
    if (!reader_.failed() && !find_kind(result.callee))
      reader_.fail_at(start.span, fmt::format("BY follows a kind of collective: {}", result.callee));
  }
  reader_.expect(TokenKind::left_paren);
  if (!reader_.at(TokenKind::right_paren)) {
    do {
      const Token start = reader_.token();
      Call::NamedArgument argument;
      argument.name = lower(reader_.name("the name of a parameter"));
      if (!reader_.take(TokenKind::equal)) reader_.expect(TokenKind::arrow);
      argument.value = expression();
      argument.type = type(argument.value);
      argument.span = reader_.since(start);
      result.arguments.push_back(std::move(argument));
    } while (reader_.take(TokenKind::comma));
  }
  reader_.expect(TokenKind::right_paren);

  const std::size_t names = names_.size();
  reader_.expect_word("RANK");
  const std::string rank = new_name("a name for the rank");
  reader_.expect_word("AT");
  result.rank_slot = declare(rank, false);
  result.rank_name = intern(rank);
  result.rank = number();
  if (reader_.take_word("chunk")) {
    result.chunk = mapping();
  } else {
    if (reader_.take_word("input")) result.input = mapping();
    if (reader_.take_word("output")) result.output = mapping();
    if (!result.input && !result.output) reader_.expect_word("CHUNK");
  }
  close_scope(names);
  if (reader_.take_word("on")) result.channel = number();
  return result;
}

// Arguments of the CALL follow a name here: within (ranks => 4) is not a function call.
ExpressionId AlgorithmParser::scheme() {
  if (!reader_.at(TokenKind::word) || reader_.at_word("if")) return word();
  const Token start = reader_.token();
  const std::string spelling = lower(reader_.name("a word"));
  Name* const name = find(spelling);
  if (!name) return unknown_name(spelling, start.span, false);
  decide(*name, ParameterType::word);
  const ExpressionId result = name_reference(*name, start);
  require(result, ParameterType::word);
  return result;
}

Call::Mapping AlgorithmParser::mapping() {
  Call::Mapping result;
  const std::size_t names = names_.size();
  const std::string chunk = new_name("a name for the chunk");
  reader_.expect_word("AT");
  result.slot = declare(chunk, false);
  result.name = intern(chunk);
  const bool names_buffer = reader_.at(TokenKind::word) && reader_.after().kind == TokenKind::left_bracket &&
                            !find(reader_.spelling());
  if (names_buffer) {
    result.buffer = place_buffer();
    reader_.expect(TokenKind::left_bracket);
    result.index = number();
    reader_.expect(TokenKind::right_bracket);
  } else {
    if (!syntax_.in_place)
      reader_.fail("the caller is not in place and has no data", "write output[...] or scratch[...]");
    result.index = number();
  }
  close_scope(names);
  return result;
}

Requirement AlgorithmParser::requirement() {
  reader_.expect_word("REQUIRE");
  const ExpressionId condition = number();
  reader_.expect(TokenKind::comma);
  return {condition, reader_.string("why it is required")};
}

WantClause AlgorithmParser::promise() {
  WantClause result;
  reader_.expect_word("WANT");
  if (!reader_.at_word("output")) reader_.expect_word("output");
  result.output = place();
  reader_.expect(TokenKind::equal);
  do {
    if (!reader_.at_word("input")) reader_.expect_word("input");
    result.inputs.push_back(place());
  } while (reader_.take(TokenKind::plus));
  return result;
}

}  // namespace weft::collective
