#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "weft/base/letters.h"
#include "weft/base/nearest.h"
#include "weft/collectives/algorithm/algorithm_parser.h"
#include "weft/collectives/chunks/collective_text.h"
#include "weft/collectives/chunks/lexicon.h"

namespace weft::collective {
namespace {

constexpr std::size_t kLongestAlgorithm = std::size_t{1} << 18;  // bytes
constexpr std::size_t kMostNames = 1000;

// Words that cannot name a variable: they start statements, join expressions or name memory.
// Others, such as AT and TO, only follow an expression, where no name can occur.
constexpr auto kReserved = std::to_array<std::string_view>(
    {"algorithm", "collective", "begin", "end",  "ensure", "function", "let",    "for",     "while",
     "if",        "then",       "elsif", "else", "copy",   "reduce",   "call",   "require", "want",
     "and",       "or",         "not",   "mod",  "div",    "input",    "output", "scratch", "data"});

bool is_reserved(std::string_view name) { return std::ranges::find(kReserved, name) != kReserved.end(); }

}  // namespace

AlgorithmParser::AlgorithmParser(std::string_view text) : reader_(kLexicon, text) {
  if (text.size() > kLongestAlgorithm)
    reader_.fail_at(
        {}, fmt::format("algorithm is too long: {} bytes, at most {}", text.size(), kLongestAlgorithm));
  else
    syntax_.text = std::make_shared<const std::string>(text);
}

Result<Algorithm> AlgorithmParser::parse() {
  find_functions();
  reader_.expect_word("ALGORITHM");
  syntax_.name = lower(reader_.name("the algorithm's name"));
  parameters();
  collective();
  clauses();
  while (reader_.at_word("function")) function();
  if (reader_.at_word("ensure")) {
    if (syntax_.kind != Kind::custom)
      reader_.fail(fmt::format("{} is a built-in collective and cannot have ENSURE", name(syntax_.kind)),
                   "only COLLECTIVE custom has ENSURE");
    reader_.advance();
    syntax_.ensure = block(true);
  }
  reader_.expect_word("BEGIN");
  syntax_.body = block(false);
  reader_.expect_word("END");
  if (!reader_.at_end()) reader_.fail_expected(reader_.name(TokenKind::end), "a file holds one algorithm");
  if (!reader_.failed() && function_heads_.size() != syntax_.functions.size())
    reader_.fail("FUNCTION is not allowed here", "define functions before ENSURE and BEGIN");
  if (reader_.failed()) return reader_.error();
  decide_parameters();
  return Algorithm(std::make_shared<const AlgorithmSyntax>(std::move(syntax_)));
}

// STEPS and WIRE precede the functions they use, and functions may use each other. So all function
// heads are collected first.
void AlgorithmParser::find_functions() {
  TokenReader ahead = reader_;
  while (!ahead.at_end() && !reader_.failed()) {
    if (!ahead.take_word("function")) {
      ahead.advance();
      continue;
    }
    FunctionHead head;
    if (ahead.at(TokenKind::word)) head.name = lower(ahead.spelling());
    ahead.advance();
    if (!ahead.take(TokenKind::left_paren)) continue;
    for (; ahead.at(TokenKind::word); ahead.take(TokenKind::comma)) {
      ++head.parameters;
      ahead.advance();
    }
    function_heads_.push_back(std::move(head));
    if (function_heads_.size() > kMostNames)
      reader_.fail(fmt::format("too many functions: at most {}", kMostNames));
  }
}

void AlgorithmParser::parameters() {
  in_defaults_ = true;
  reader_.expect(TokenKind::left_paren);
  if (!reader_.at_word("ranks")) reader_.fail_expected("ranks, the first parameter");
  do parameter();
  while (reader_.take(TokenKind::comma));
  reader_.expect(TokenKind::right_paren);
  in_defaults_ = false;
}

void AlgorithmParser::parameter() {
  Name made;
  made.spelling = new_name("a parameter");
  made.kind = syntax_.parameters.empty() ? NameKind::number : NameKind::undecided;
  ExpressionId otherwise = kNoExpression;
  if (reader_.take(TokenKind::equal)) {
    otherwise = expression();
    made.kind = NameKind::undecided;
  }
  intern(made.spelling);
  made.parameter = static_cast<std::int32_t>(syntax_.parameters.size());
  syntax_.parameters.push_back({made.spelling, ParameterType::number, otherwise != kNoExpression});
  syntax_.defaults.push_back(otherwise);
  syntax_.parameter_places.push_back(0);
  if (otherwise != kNoExpression || made.kind == NameKind::number) {
    made.kind = NameKind::undecided;
    decide(made, type(otherwise));
  }
  names_.push_back(std::move(made));
}

void AlgorithmParser::decide(Name& name, ParameterType type) {
  if (name.kind != NameKind::undecided) return;
  switch (type) {
    case ParameterType::number: name.kind = NameKind::number, name.place = next_slot_++; break;
    case ParameterType::word: name.kind = NameKind::word, name.place = syntax_.word_slots++; break;
    case ParameterType::list: name.kind = NameKind::list, name.place = syntax_.list_slots++; break;
  }
  syntax_.slots = std::max(syntax_.slots, next_slot_);
  syntax_.parameters[name.parameter].type = type;
  syntax_.parameter_places[name.parameter] = name.place;
}

// An unused parameter is a number.
void AlgorithmParser::decide_parameters() {
  for (Name& name : names_) decide(name, ParameterType::number);
}

void AlgorithmParser::collective() {
  reader_.expect_word("COLLECTIVE");
  const Token start = reader_.token();
  const std::string_view spelling = reader_.name("a kind of collective");
  if (const auto kind = find_kind(spelling)) {
    syntax_.kind = *kind;
  } else {
    reader_.fail_at(start.span, fmt::format("unknown collective: {}", spelling),
                    did_you_mean(spelling, kind_names()));
  }
  if (reader_.take(TokenKind::left_paren)) {
    do collective_argument();
    while (reader_.take(TokenKind::comma));
    reader_.expect(TokenKind::right_paren);
  }
  if (reader_.take_word("in")) {
    reader_.expect_word("PLACE");
    syntax_.in_place = true;
  }
}

void AlgorithmParser::collective_argument() {
  struct Field {
    std::string_view name;
    ExpressionId AlgorithmSyntax::*value;
    bool custom;
  };
  static constexpr auto kFields = std::to_array<Field>({{"chunks", &AlgorithmSyntax::chunks, false},
                                                        {"root", &AlgorithmSyntax::root, false},
                                                        {"peer", &AlgorithmSyntax::peer, false},
                                                        {"counts", &AlgorithmSyntax::counts, false},
                                                        {"inputs", &AlgorithmSyntax::inputs, true},
                                                        {"outputs", &AlgorithmSyntax::outputs, true}});
  const Token start = reader_.token();
  const std::string spelling = lower(reader_.name("chunks, root, peer or counts"));
  if (!reader_.take(TokenKind::equal)) reader_.expect(TokenKind::arrow);
  for (const Field& field : kFields) {
    if (field.name != spelling) continue;
    if (field.custom != (syntax_.kind == Kind::custom))
      reader_.fail_at(start.span, fmt::format("{} has no {}", name(syntax_.kind), spelling));
    if (syntax_.*field.value != kNoExpression)
      reader_.fail_at(start.span, fmt::format("given twice: {}", spelling));
    const ExpressionId value = spelling == "counts" ? list() : number();
    syntax_.*field.value = value;
    return;
  }
  std::vector<std::string_view> known;
  for (const Field& field : kFields) known.push_back(field.name);
  reader_.fail_at(start.span, fmt::format("a collective has no {}", spelling), did_you_mean(spelling, known));
}

void AlgorithmParser::clauses() {
  for (;;) {
    const auto once = [&](bool given) {
      if (given) reader_.fail("given twice");
      reader_.advance();
    };
    if (reader_.at_word("scratch")) {
      once(syntax_.scratch != kNoExpression);
      scratch();
    } else if (reader_.at_word("where")) {
      once(!syntax_.where.empty());
      do syntax_.where.push_back(number());
      while (reader_.take(TokenKind::comma));
    } else if (reader_.at_word("steps")) {
      once(syntax_.steps != kNoExpression);
      syntax_.steps = number();
    } else if (reader_.at_word("wire")) {
      once(syntax_.wire != kNoExpression);
      syntax_.wire = number();
    } else {
      return;
    }
  }
}

void AlgorithmParser::scratch() {
  const std::size_t names = names_.size();
  find_rank_variable();
  syntax_.scratch = number();
  if (syntax_.scratch_slot >= 0 && reader_.take_word("per")) reader_.advance();
  close_scope(names);
}

// `SCRATCH rank MOD 2 PER rank`: the variable is declared after its use.
void AlgorithmParser::find_rank_variable() {
  TokenReader ahead = reader_;
  constexpr std::array<std::string_view, 6> kNext = {"where", "steps", "wire", "function", "ensure", "begin"};
  while (!ahead.at_end() && !ahead.take_word("per")) {
    if (std::ranges::any_of(kNext, [&](std::string_view word) { return ahead.at_word(word); })) return;
    ahead.advance();
  }
  if (!ahead.at(TokenKind::word)) return;
  const std::string spelling = lower(ahead.spelling());
  if (find(spelling) || is_reserved(spelling)) {
    reader_.fail_at(ahead.token().span, fmt::format("name is already in use: {}", spelling));
    return;
  }
  syntax_.scratch_slot = declare(spelling, false);
  syntax_.scratch_name = intern(spelling);
}

void AlgorithmParser::function() {
  FunctionSyntax result;
  reader_.expect_word("FUNCTION");
  const Token start = reader_.token();
  result.name = lower(reader_.name("the function's name"));
  const bool builtin = std::ranges::any_of(
      builtin_functions(), [&](const BuiltinFunction& known) { return known.name == result.name; });
  const bool twice = std::ranges::any_of(
      syntax_.functions, [&](const FunctionSyntax& known) { return known.name == result.name; });
  if (builtin || twice)
    reader_.fail_at(start.span, fmt::format("function is already defined: {}", result.name));
  const std::size_t place = syntax_.functions.size();
  if (place >= function_heads_.size() || function_heads_[place].name != result.name)
    reader_.fail_at(start.span, "FUNCTION is not allowed here");
  const std::size_t names = names_.size();
  reader_.expect(TokenKind::left_paren);
  if (!reader_.at(TokenKind::right_paren)) {
    do {
      Name made;
      made.spelling = new_name("a parameter", names);
      made.kind = NameKind::argument;
      made.place = static_cast<std::int32_t>(result.parameters.size());
      result.parameters.push_back(intern(made.spelling));
      names_.push_back(std::move(made));
    } while (reader_.take(TokenKind::comma));
  }
  if (result.parameters.size() > kMostFunctionParameters)
    reader_.fail_at(start.span, fmt::format("function has too many parameters: {}, at most {}",
                                            result.parameters.size(), kMostFunctionParameters));
  reader_.expect(TokenKind::right_paren);
  reader_.expect(TokenKind::equal);
  result.body = number();
  names_.resize(names);
  syntax_.functions.push_back(std::move(result));
}

std::string AlgorithmParser::new_name(std::string_view what, std::size_t outer) {
  const Token start = reader_.token();
  const std::string result = lower(reader_.name(what));
  if (is_reserved(result))
    reader_.fail_at(start.span, fmt::format("expected {}, found the word {}", what, upper(result)),
                    "choose another name");
  if (std::ranges::find(names_.begin() + outer, names_.end(), result, &Name::spelling) != names_.end())
    reader_.fail_at(start.span, fmt::format("name is already in use: {}", result),
                    "choose another name, or assign to the variable with :=");
  return result;
}

std::int32_t AlgorithmParser::declare(const std::string& spelling, bool assignable) {
  Name made;
  made.spelling = spelling;
  made.place = next_slot_++;
  made.assignable = assignable;
  syntax_.slots = std::max(syntax_.slots, next_slot_);
  names_.push_back(std::move(made));
  return next_slot_ - 1;
}

// The next scope reuses the slots, except those of parameters, whose types may be decided late.
void AlgorithmParser::close_scope(std::size_t names) { names_.resize(std::min(names, names_.size())); }

AlgorithmParser::Name* AlgorithmParser::find(std::string_view spelling) {
  const std::string wanted = lower(spelling);
  const auto found = std::ranges::find(names_.rbegin(), names_.rend(), wanted, &Name::spelling);
  return found == names_.rend() ? nullptr : &*found;
}

std::int32_t AlgorithmParser::intern(const std::string& spelling) {
  const auto found = std::ranges::find(syntax_.names, spelling);
  if (found != syntax_.names.end()) return static_cast<std::int32_t>(found - syntax_.names.begin());
  if (syntax_.names.size() >= kMostNames) reader_.fail(fmt::format("too many names: at most {}", kMostNames));
  syntax_.names.push_back(spelling);
  return static_cast<std::int32_t>(syntax_.names.size() - 1);
}

Result<Algorithm> parse_algorithm(std::string_view text) { return AlgorithmParser(text).parse(); }

const std::string& Algorithm::name() const { return syntax_->name; }
Kind Algorithm::kind() const { return syntax_->kind; }
bool Algorithm::in_place() const { return syntax_->in_place; }
std::span<const Algorithm::Parameter> Algorithm::parameters() const { return syntax_->parameters; }
const std::string& Algorithm::text() const { return *syntax_->text; }

}  // namespace weft::collective
