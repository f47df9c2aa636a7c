#include "weft/parallel/pipeline/expression.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "weft/base/nearest.h"
#include "weft/base/number.h"

namespace weft::pipeline {
namespace {

constexpr int kDeepest = 100;                // nested parentheses
constexpr std::size_t kMostText = 64 << 20;  // bytes; 32 stages x 256 micro-batches take 0.2 MB

bool is_letter(char letter) { return std::isalpha(static_cast<unsigned char>(letter)) != 0 || letter == '_'; }
bool is_digit(char letter) { return std::isdigit(static_cast<unsigned char>(letter)) != 0; }

Span span_of(std::size_t from, std::size_t to) {
  return {static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(to - from)};
}

}  // namespace

Result<std::vector<Word>> split(std::string_view text) {
  if (text.size() > kMostText)
    return user_error(
        fmt::format("expected at most {} bytes of schedule text, found {}", kMostText, text.size()));
  std::vector<Word> words;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t from = at;
    if (std::isspace(static_cast<unsigned char>(text[at])) != 0) {
      ++at;
    } else if (text.substr(at, 2) == "--") {
      at = std::min(text.size(), text.find('\n', at));
    } else if (is_letter(text[at])) {
      while (at < text.size() && (is_letter(text[at]) || is_digit(text[at]))) ++at;
      words.push_back({Word::Kind::name, std::string(text.substr(from, at - from)), 0, span_of(from, at)});
    } else if (is_digit(text[at])) {
      while (at < text.size() &&
             (is_digit(text[at]) || (text[at] == '.' && at + 1 < text.size() && is_digit(text[at + 1]))))
        ++at;
      const std::string number(text.substr(from, at - from));
      const auto value = read_number<double>(number);
      if (!value)
        return user_error(fmt::format("expected a number, found {}", number), {}, span_of(from, at));
      words.push_back({Word::Kind::number, number, *value, span_of(from, at)});
    } else {
      const std::string_view two = text.substr(at, 2);
      at += two == "<=" || two == ">=" || two == "==" || two == "!=" ? 2 : 1;
      const std::string sign(text.substr(from, at - from));
      if (sign.size() == 1 && std::string_view("+-*/()<>=,.:").find(sign) == std::string_view::npos)
        return user_error("unexpected character in a schedule", {}, span_of(from, at));
      words.push_back({Word::Kind::sign, sign, 0, span_of(from, at)});
    }
  }
  words.push_back({Word::Kind::end, "the end", 0, span_of(text.empty() ? 0 : text.size() - 1, text.size())});
  return words;
}

double Expression::value(std::int32_t node, const std::vector<double>& slots) const {
  const Node& at = nodes_[static_cast<std::size_t>(node)];
  const auto a = [&] { return value(at.a, slots); };
  const auto b = [&] { return value(at.b, slots); };
  switch (at.op) {
    case Op::number: return at.number;
    case Op::slot: return slots[static_cast<std::size_t>(at.slot)];
    case Op::add: return a() + b();
    case Op::subtract: return a() - b();
    case Op::multiply: return a() * b();
    case Op::divide: return a() / b();
    case Op::whole: return std::floor(a() / b());
    case Op::modulo: {
      const double whole = a(), parts = b();
      return whole - parts * std::floor(whole / parts);
    }
    case Op::less: return a() < b() ? 1 : 0;
    case Op::less_equal: return a() <= b() ? 1 : 0;
    case Op::equal: return a() == b() ? 1 : 0;
    case Op::differs: return a() != b() ? 1 : 0;
    case Op::both: return a() != 0 && b() != 0 ? 1 : 0;
    case Op::either: return a() != 0 || b() != 0 ? 1 : 0;
    case Op::negate: return a() == 0 ? 1 : 0;
    case Op::minimum: return std::min(a(), b());
    case Op::maximum: return std::max(a(), b());
    case Op::floor: return std::floor(a());
    case Op::ceil: return std::ceil(a());
    case Op::choose: return a() != 0 ? b() : value(at.c, slots);
  }
  return 0;
}

Word Reader::take() {
  Word word = words_[at_];
  if (at_ + 1 < words_.size()) ++at_;
  return word;
}

bool Reader::is(std::string_view text) const { return peek().kind != Word::Kind::end && peek().text == text; }

bool Reader::accept(std::string_view text) {
  if (!is(text)) return false;
  take();
  return true;
}

Error Reader::unexpected(std::string_view wanted) const {
  return user_error(fmt::format("expected {}, found {}", wanted, peek().text), {}, peek().span);
}

Status Reader::expect(std::string_view text) {
  if (!accept(text)) return unexpected(text);
  return {};
}

Result<std::string> Reader::name(std::string_view what) {
  if (peek().kind != Word::Kind::name) return unexpected(what);
  return take().text;
}

std::int32_t Reader::slot(const std::string& name) {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found != names_.end()) return static_cast<std::int32_t>(found - names_.begin());
  names_.push_back(name);
  return slots() - 1;
}

std::int32_t Reader::add(Expression& to, Expression::Node node) {
  to.nodes_.push_back(node);
  return static_cast<std::int32_t>(to.nodes_.size()) - 1;
}

Result<Expression> Reader::expression() {
  Expression made;
  WEFT_TRY(root, choice(made));
  made.root_ = root;
  return made;
}

Result<std::int32_t> Reader::choice(Expression& to) {
  if (!accept("IF")) return chain(to, 0);
  if (++depth_ > kDeepest) return user_error("the expression is nested too deeply", {}, peek().span);
  WEFT_TRY(condition, choice(to));
  WEFT_TRY_STATUS(expect("THEN"));
  WEFT_TRY(then, choice(to));
  WEFT_TRY_STATUS(expect("ELSE"));
  WEFT_TRY(otherwise, choice(to));
  --depth_;
  return add(to, {Op::choose, 0, 0, condition, then, otherwise});
}

// One precedence level of left-associative operators, the lowest first.
Result<std::int32_t> Reader::chain(Expression& to, int level) {
  struct Sign {
    std::string_view text;
    Op op;
    bool swapped = false;
  };
  static const std::array<std::vector<Sign>, 5> kLevels = {
      std::vector<Sign>{{"OR", Op::either}}, std::vector<Sign>{{"AND", Op::both}},
      std::vector<Sign>{{"<", Op::less},
                        {"<=", Op::less_equal},
                        {">", Op::less, true},
                        {">=", Op::less_equal, true},
                        {"==", Op::equal},
                        {"!=", Op::differs}},
      std::vector<Sign>{{"+", Op::add}, {"-", Op::subtract}},
      std::vector<Sign>{{"*", Op::multiply}, {"/", Op::divide}, {"DIV", Op::whole}, {"MOD", Op::modulo}}};
  if (level == static_cast<int>(kLevels.size())) return factor(to);
  WEFT_TRY(left, chain(to, level + 1));
  const auto& signs = kLevels[static_cast<std::size_t>(level)];
  for (;;) {
    const auto sign = std::find_if(signs.begin(), signs.end(), [&](const Sign& one) { return is(one.text); });
    if (sign == signs.end()) return left;
    take();
    WEFT_TRY(right, chain(to, level + 1));
    left = sign->swapped ? add(to, {sign->op, 0, 0, right, left, -1})
                         : add(to, {sign->op, 0, 0, left, right, -1});
  }
}

Result<std::int32_t> Reader::factor(Expression& to) {
  if (depth_ >= kDeepest) return user_error("the expression is nested too deeply", {}, peek().span);
  ++depth_;
  struct Leave {
    int& depth;
    ~Leave() { --depth; }
  } leave{depth_};
  if (accept("-")) {
    WEFT_TRY(inner, factor(to));
    return add(to, {Op::subtract, 0, 0, add(to, {}), inner, -1});
  }
  if (accept("NOT")) {
    WEFT_TRY(inner, factor(to));
    return add(to, {Op::negate, 0, 0, inner, -1, -1});
  }
  if (accept("(")) {
    WEFT_TRY(inner, choice(to));
    WEFT_TRY_STATUS(expect(")"));
    return inner;
  }
  if (peek().kind == Word::Kind::number) return add(to, {Op::number, take().number, 0, -1, -1, -1});
  if (peek().kind != Word::Kind::name) return unexpected("a number or a name");
  static constexpr std::pair<std::string_view, Op> kFunctions[] = {
      {"min", Op::minimum}, {"max", Op::maximum}, {"floor", Op::floor}, {"ceil", Op::ceil}};
  for (const auto& [word, op] : kFunctions) {
    if (!accept(word)) continue;
    WEFT_TRY_STATUS(expect("("));
    WEFT_TRY(first, choice(to));
    std::int32_t second = -1;
    if (op == Op::minimum || op == Op::maximum) {
      WEFT_TRY_STATUS(expect(","));
      WEFT_TRY(read, choice(to));
      second = read;
    }
    WEFT_TRY_STATUS(expect(")"));
    return add(to, {op, 0, 0, first, second, -1});
  }
  if (std::find(names_.begin(), names_.end(), peek().text) == names_.end()) {
    const std::vector<std::string_view> known(names_.begin(), names_.end());
    return user_error(fmt::format("unknown name: {}", peek().text), did_you_mean(peek().text, known),
                      peek().span);
  }
  return add(to, {Op::slot, 0, slot(take().text), -1, -1, -1});
}

}  // namespace weft::pipeline
