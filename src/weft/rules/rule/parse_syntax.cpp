#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include "weft/base/nearest.h"
#include "weft/base/token_reader.h"
#include "weft/language/complaint.h"
#include "weft/rules/rule/syntax.h"

namespace weft::rule::syntax {
namespace {

// Deeper nesting is an attack on the stack.
constexpr int kDeepest = 64;
// Within what 16-bit numbers can count, for both sides together.
constexpr std::size_t kMostStatements = 256, kMostParts = 64, kMostRules = 65536;

constexpr std::size_t kLongestFile = std::size_t{1} << 24;

constexpr auto kSigns = std::to_array<Sign>({
    {"!=", TokenKind::not_equal},     {"<>", TokenKind::not_equal},    {"<=", TokenKind::less_equal},
    {">=", TokenKind::greater_equal}, {"(", TokenKind::left_paren},    {")", TokenKind::right_paren},
    {"[", TokenKind::left_bracket},   {"]", TokenKind::right_bracket}, {",", TokenKind::comma},
    {":", TokenKind::colon},          {".", TokenKind::dot},           {"+", TokenKind::plus},
    {"-", TokenKind::minus},          {"*", TokenKind::star},          {"/", TokenKind::slash},
    {"%", TokenKind::percent},        {"=", TokenKind::equal},         {"<", TokenKind::less},
    {">", TokenKind::greater},
});

constexpr auto kQuotes = std::to_array<Quote>({
    {.in_one_line = true, .not_closed = "a quoted word has no end", .remedy = "close it with '"},
});

Error stranger(std::string_view character, Span span) {
  const char c = character[0];
  const bool printable = c > ' ' && c < 127;
  return user_error(
      printable ? fmt::format("nothing in a rule begins with '{}'", c)
                : fmt::format("nothing in a rule begins with byte {}", +static_cast<unsigned char>(c)),
      {}, span);
}

constexpr Lexicon kLexicon = indexed({.signs = kSigns,
                                      .quotes = kQuotes,
                                      .line_comment = "#",
                                      .numbers = Numbers::real,
                                      .stranger = stranger});

constexpr std::array<std::string_view, 9> kSections = {"rule",  "guard", "why",   "cite", "any",
                                                       "given", "left",  "right", "when"};

bool is_section(std::string_view word) { return std::ranges::find(kSections, word) != kSections.end(); }

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text), reader_(kLexicon, text) {}

  Result<File> file() {
    File result;
    while (!reader_.at_end()) {
      if (reader_.take_word("rule"))
        result.rules.push_back(rule());
      else if (reader_.take_word("guard"))
        result.guards.push_back(guard());
      else
        reader_.fail_expected("'rule' or 'guard'");
      if (result.rules.size() + result.guards.size() > kMostRules)
        reader_.fail_at(reader_.token().span, fmt::format("a file has at most {} rules", kMostRules));
    }
    if (reader_.failed()) return reader_.error();
    return result;
  }

 private:
  Word word(std::string_view what) {
    const Span span = reader_.token().span;
    if (reader_.at(TokenKind::word) && is_section(reader_.spelling()))
      reader_.fail_expected(what, fmt::format("'{}' begins a part of a rule", reader_.spelling()));
    return {reader_.name(what), span};
  }

  // weave.reverse
  Word dotted(std::string_view what) {
    const Span start = reader_.token().span;
    word(what);
    while (reader_.take(TokenKind::dot)) reader_.name("a name");
    const Span span = reader_.since(start);
    return {reader_.failed() ? std::string_view() : reader_.spelling(span), span};
  }

  // Reads a comma-separated list, calling `one` for each element.
  template <class Read>
  void each(Read one) {
    std::size_t count = 0;
    do {
      one();
      if (++count > kMostParts && !reader_.failed())
        reader_.fail_at(reader_.token().span, fmt::format("a list has at most {} parts", kMostParts));
    } while (reader_.take(TokenKind::comma));
  }

  Guard guard() {
    Guard result;
    result.name = word("the name of a guard");
    reader_.expect(TokenKind::left_paren);
    if (!reader_.at(TokenKind::right_paren)) each([&] { result.parameters.push_back(word("a parameter")); });
    reader_.expect(TokenKind::right_paren);
    reader_.expect(TokenKind::colon);
    result.all = conditions();
    return result;
  }

  Rule rule() {
    Rule result;
    result.line = static_cast<std::uint32_t>(language::position(text_, reader_.token().span.offset).line);
    result.name = dotted("the name of a rule");
    const Span header = reader_.token().span;
    if (reader_.take_word("normalize"))
      result.normalize = true;
    else if (!reader_.take_word("explore"))
      reader_.fail_at(header,
                      fmt::format("a rule is of kind explore or normalize, found '{}'", reader_.spelling()),
                      "explore: decided by cost; normalize: always applied");
    if (reader_.take_word("both")) {
      if (!reader_.take_word("ways")) reader_.fail_expected("'ways'");
      result.both_ways = true;
    }
    while (!reader_.at_end() && !reader_.at_word("rule") && !reader_.at_word("guard")) section(result);
    const auto need = [&](bool there, std::string_view what) {
      if (!there) reader_.fail_at(result.name.span, fmt::format("rule {} has no {}", result.name.text, what));
    };
    need(!result.given.empty(), "'given' part");
    need(!result.left.empty(), "'left' part");
    need(!result.right.empty(), "'right' part");
    return result;
  }

  void section(Rule& rule) {
    const auto once = [&](bool seen) {
      if (seen)
        reader_.fail_at(reader_.token().span,
                        fmt::format("'{}' is given twice in rule {}", reader_.spelling(), rule.name.text));
    };
    const auto sentence = [&](Word& into) {
      once(into.span.known());
      into.span = reader_.token().span;
      into.text = reader_.line();
    };
    if (reader_.at_word("why")) return sentence(rule.why);
    if (reader_.at_word("cite")) return sentence(rule.cite);
    if (reader_.at_word("given")) {
      once(!rule.given.empty());
      reader_.advance();
      return each([&] { rule.given.push_back(input()); });
    }
    if (reader_.at_word("left") || reader_.at_word("right")) {
      std::vector<Statement>& side = reader_.at_word("left") ? rule.left : rule.right;
      once(!side.empty());
      reader_.advance();
      return statements(side);
    }
    if (reader_.at_word("when")) {
      once(!rule.when.empty());
      reader_.advance();
      rule.when = conditions();
      return;
    }
    if (reader_.take_word("any"))
      return each([&] {
        const Word of = word("unary, binary or word");
        rule.any.push_back({of, word("the name of a variable")});
      });
    reader_.fail_expected("a part of a rule",
                          reader_.at(TokenKind::word) ? did_you_mean(reader_.spelling(), kSections) : "");
  }

  Input input() {
    Input result;
    result.name = word("the name of an input");
    result.list = name_list();
    if (reader_.at_word("in")) {
      reader_.advance();
      if (!reader_.take_word("order")) reader_.fail_expected("'order'");
      result.in_order = true;
    }
    constexpr std::array<std::string_view, 4> kLayouts = {"replicated", "sliced", "partial", "varying"};
    if (reader_.at(TokenKind::word) && std::ranges::find(kLayouts, reader_.spelling()) != kLayouts.end()) {
      result.layout = word("a layout");
      if (result.layout.text == "sliced" || result.layout.text == "partial") {
        reader_.expect(TokenKind::left_paren);
        result.of = word(result.layout.text == "sliced" ? "an index" : "sum, max or min");
        reader_.expect(TokenKind::right_paren);
      }
      if (!reader_.take_word("on")) reader_.fail_expected("'on' and a mesh axis");
      result.axis = word("a mesh axis");
    }
    return result;
  }

  std::vector<Word> name_list() {
    std::vector<Word> result;
    reader_.expect(TokenKind::left_bracket);
    if (!reader_.at(TokenKind::right_bracket)) each([&] { result.push_back(word("an index")); });
    reader_.expect(TokenKind::right_bracket);
    return result;
  }

  void statements(std::vector<Statement>& side) {
    do {
      Statement statement;
      each([&] { statement.names.push_back(word("the name of a value")); });
      reader_.expect(TokenKind::equal);
      statement.term = term(0);
      side.push_back(std::move(statement));
      if (side.size() > kMostStatements)
        reader_.fail_at(reader_.token().span, fmt::format("a side has at most {} nodes", kMostStatements));
    } while (reader_.at(TokenKind::word) && !is_section(reader_.spelling()));
  }

  // Operator names may contain hyphens, as in plans: max-pool.
  Word operator_name() {
    const Span start = reader_.token().span;
    bool goes_on = reader_.touches_next();
    word("a value or an operator");
    while (goes_on && reader_.at(TokenKind::minus) && reader_.touches_next() &&
           reader_.after().kind == TokenKind::word) {
      reader_.advance();
      goes_on = reader_.touches_next();
      reader_.advance();
    }
    const Span span = reader_.since(start);
    return {reader_.failed() ? std::string_view() : reader_.spelling(span), span};
  }

  bool too_deep(int depth) {
    if (depth > kDeepest)
      reader_.fail_at(reader_.token().span, fmt::format("nested too deeply: more than {}", kDeepest));
    return depth > kDeepest;
  }

  Term term(int depth) {
    Term result;
    if (too_deep(depth)) return result;
    result.name = operator_name();
    if (reader_.take(TokenKind::left_paren)) {
      result.call = true;
      if (!reader_.at(TokenKind::right_paren))
        each([&] {
          if (reader_.at(TokenKind::word) && reader_.after().kind == TokenKind::equal) {
            const Word attribute = word("an attribute");
            reader_.expect(TokenKind::equal);
            result.attributes.push_back({attribute, expression(0)});
          } else {
            result.operands.push_back(term(depth + 1));
          }
        });
      reader_.expect(TokenKind::right_paren);
    }
    result.span = reader_.since(result.name.span);
    return result;
  }

  Expression expression(int depth) {
    if (reader_.at(TokenKind::left_bracket)) return list(depth);
    if (!reader_.at(TokenKind::string)) return sum(depth);
    Expression result;
    result.kind = Expression::Kind::quoted;
    result.span = reader_.token().span;
    const std::string_view quoted = reader_.spelling();
    result.name = {quoted.substr(1, quoted.size() - 2), result.span};
    reader_.advance();
    return result;
  }

  Expression list(int depth) {
    Expression result;
    result.kind = Expression::Kind::list;
    result.span = reader_.token().span;
    reader_.expect(TokenKind::left_bracket);
    if (!reader_.at(TokenKind::right_bracket))
      each([&] {
        result.names.push_back(word("an index"));
        Expression size;
        size.none = true;
        result.parts.push_back(reader_.take(TokenKind::colon) ? sum(depth + 1) : size);
      });
    reader_.expect(TokenKind::right_bracket);
    result.span = reader_.since(result.span);
    return result;
  }

  Expression joined(char op, Expression left, Expression right) {
    Expression result;
    result.kind = Expression::Kind::arithmetic;
    result.op = op;
    result.span = reader_.since(left.span);
    result.parts.push_back(std::move(left));
    result.parts.push_back(std::move(right));
    return result;
  }

  // Operators are left-associative, so a long chain is a deep tree: its length counts towards the
  // depth.
  Expression sum(int depth) {
    Expression result = product(depth);
    for (int length = depth; reader_.at(TokenKind::plus) || reader_.at(TokenKind::minus);) {
      if (too_deep(++length)) return result;
      const char op = reader_.at(TokenKind::plus) ? '+' : '-';
      reader_.advance();
      result = joined(op, std::move(result), product(depth + 1));
    }
    return result;
  }

  Expression product(int depth) {
    Expression result = primary(depth);
    for (int length = depth;
         reader_.at(TokenKind::star) || reader_.at(TokenKind::slash) || reader_.at(TokenKind::percent);) {
      if (too_deep(++length)) return result;
      const char op = reader_.spelling()[0];
      reader_.advance();
      result = joined(op, std::move(result), primary(depth + 1));
    }
    return result;
  }

  Expression primary(int depth) {
    Expression result;
    result.span = reader_.token().span;
    if (too_deep(depth)) return result;
    if (reader_.at(TokenKind::number) && reader_.token().whole) {
      result.number = reader_.number("a number");
    } else if (reader_.at(TokenKind::number)) {
      result.kind = Expression::Kind::real;
      result.real = reader_.real("a number");
    } else if (reader_.take(TokenKind::minus)) {
      Expression of = primary(depth + 1);
      if (of.kind == Expression::Kind::name && of.name.text == "inf") {  // -inf, for masked scores
        of.kind = Expression::Kind::real;
        of.real = std::numeric_limits<double>::infinity();
      }
      if (of.kind == Expression::Kind::number) {
        of.number = -of.number;
        of.span = reader_.since(result.span);
        return of;
      }
      if (of.kind == Expression::Kind::real) {
        of.real = -of.real;
        of.span = reader_.since(result.span);
        return of;
      }
      return joined('-', std::move(result), std::move(of));
    } else if (reader_.take(TokenKind::left_paren)) {
      result = sum(depth + 1);
      reader_.expect(TokenKind::right_paren);
    } else if (reader_.at(TokenKind::word)) {
      result.kind = Expression::Kind::name;
      result.name = word("a number");
      if (reader_.take(TokenKind::left_paren)) {
        result.kind = Expression::Kind::call;
        if (!reader_.at(TokenKind::right_paren)) each([&] { result.parts.push_back(sum(depth + 1)); });
        reader_.expect(TokenKind::right_paren);
        result.span = reader_.since(result.span);
      }
    } else {
      reader_.fail_expected("a number, a name or a list");
    }
    return result;
  }

  std::vector<Comparison> conditions() {
    std::vector<Comparison> result;
    do {
      result.push_back(comparison());
      if (result.size() > kMostParts)
        reader_.fail_at(reader_.token().span, fmt::format("a guard has at most {} parts", kMostParts));
    } while (reader_.take_word("and"));
    return result;
  }

  Comparison comparison() {
    Comparison result;
    result.span = reader_.token().span;
    result.left = sum(0);
    using Kind = Comparison::Kind;
    const auto compare = [&](Kind kind, bool swapped = false) {
      reader_.advance();
      result.kind = kind;
      result.right = sum(0);
      if (swapped) std::swap(result.left, result.right);
    };
    switch (reader_.token().kind) {
      case TokenKind::equal: compare(Kind::equal); break;
      case TokenKind::not_equal: compare(Kind::unequal); break;
      case TokenKind::less: compare(Kind::less); break;
      case TokenKind::less_equal: compare(Kind::less_equal); break;
      case TokenKind::greater: compare(Kind::less, true); break;
      case TokenKind::greater_equal: compare(Kind::less_equal, true); break;
      default:
        if (result.left.kind != Expression::Kind::call)
          reader_.fail_expected("a comparison", "such as size(x, n) <= 4096");
    }
    result.span = reader_.since(result.span);
    return result;
  }

  std::string_view text_;
  TokenReader reader_;
};

}  // namespace

Result<File> parse(std::string_view text) {
  if (text.size() >= kLongestFile)
    return user_error(fmt::format("a rule file has at most {} bytes, found {}", kLongestFile, text.size()));
  return Parser(text).file();
}

}  // namespace weft::rule::syntax
