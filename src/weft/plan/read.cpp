// Plan text, the reading half: one pass of a cursor over the bytes, no tokens kept.
#include <charconv>
#include <cmath>
#include <limits>
#include <unordered_map>

#include <fmt/format.h>

#include "weft/base/nearest.h"
#include "weft/plan/text.h"

namespace weft::plan {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Reader {
 public:
  Reader(std::string_view text, const OperatorSet& operators)
      : operators_(operators), begin_(text.data()), at_(begin_), end_(begin_ + text.size()) {}

  Result<Graph> read() {
    if (static_cast<std::size_t>(end_ - begin_) >= std::numeric_limits<std::uint32_t>::max())
      return user_error("plan text of 4 GiB or more");
    skip_blank_lines();
    WEFT_TRY_STATUS(expect_word("plan", "a plan starts with the line: plan NAME"));
    WEFT_TRY(name, word("the plan's name"));
    graph_.name = std::string(name);
    WEFT_TRY_STATUS(expect_line_end());
    for (;;) {
      skip_blank_lines();
      if (at_ == end_) return fail("expected a node or the final line 'return ...'");
      if (*at_ != '%') break;
      WEFT_TRY_STATUS(node());
    }
    WEFT_TRY_STATUS(outputs());
    skip_blank_lines();
    if (at_ != end_) return fail("expected nothing after the return line");
    return std::move(graph_);
  }

 private:
  // -- the cursor
  void skip_spaces() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\r')) ++at_;
    if (at_ != end_ && *at_ == '#')
      while (at_ != end_ && *at_ != '\n') ++at_;
  }

  void skip_blank_lines() {
    for (skip_spaces(); at_ != end_ && *at_ == '\n'; skip_spaces()) ++at_;
  }

  bool take(char c) {
    skip_spaces();
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }

  Span span_from(const char* from) const {
    return Span{static_cast<std::uint32_t>(from - begin_),
                static_cast<std::uint32_t>(std::max<std::ptrdiff_t>(1, at_ - from))};
  }

  // What stands at the cursor, as an error message quotes it.
  std::string found() const {
    if (at_ == end_) return "the end of the text";
    if (*at_ == '\n') return "the end of the line";
    const char* stop = at_ + 1;
    if (is_letter(*at_) || is_digit(*at_))
      while (stop != end_ && stop - at_ < 40 && (is_letter(*stop) || is_digit(*stop))) ++stop;
    const auto byte = static_cast<unsigned char>(*at_);
    if (byte < 0x20 || byte >= 0x7f) return fmt::format("byte 0x{:02x}", byte);
    return fmt::format("'{}'", std::string_view(at_, stop));
  }

  Error fail(std::string_view expected, std::string hint = {}) const {
    const char* stop = at_;
    while (stop != end_ && (is_letter(*stop) || is_digit(*stop))) ++stop;
    const Span span{static_cast<std::uint32_t>(at_ - begin_),
                    static_cast<std::uint32_t>(std::max<std::ptrdiff_t>(1, stop - at_))};
    return user_error(fmt::format("{}, found {}", expected, found()), std::move(hint), span);
  }

  Status expect(char c, std::string_view why) {
    if (take(c)) return {};
    return fail(fmt::format("expected '{}' {}", c, why));
  }

  Status expect_line_end() {
    skip_spaces();
    if (at_ == end_ || *at_ == '\n') return {};
    return fail("expected the end of the line");
  }

  // A plain word as it stands, or "" when there is none.
  std::string_view plain_word() {
    skip_spaces();
    const char* from = at_;
    if (at_ != end_ && is_letter(*at_))
      while (at_ != end_ && (is_letter(*at_) || is_digit(*at_))) ++at_;
    return {from, static_cast<std::size_t>(at_ - from)};
  }

  // Operator names may hold dashes: layer-norm.
  std::string_view operator_word() {
    skip_spaces();
    const char* from = at_;
    while (at_ != end_ && (is_letter(*at_) || is_digit(*at_) || *at_ == '-')) ++at_;
    return {from, static_cast<std::size_t>(at_ - from)};
  }

  // A plain or a quoted word. The view lives until the next quoted word is read.
  Result<std::string_view> word(std::string_view what) {
    const std::string_view plain = plain_word();
    if (!plain.empty()) return plain;
    if (at_ == end_ || *at_ != '"') return fail(fmt::format("expected {}", what));
    const char* from = at_++;
    quoted_.clear();
    while (at_ != end_ && *at_ != '"' && *at_ != '\n') {
      if (*at_ == '\\' && at_ + 1 != end_ && at_[1] != '\n') {
        ++at_;
        quoted_ += *at_ == 'n' ? '\n' : *at_;
      } else {
        quoted_ += *at_;
      }
      ++at_;
    }
    if (at_ == end_ || *at_ == '\n')
      return user_error("a quoted name is not closed on its line", "close it with \"", span_from(from));
    ++at_;
    return std::string_view(quoted_);
  }

  Status expect_word(std::string_view wanted, std::string hint) {
    skip_spaces();
    const char* from = at_;
    if (plain_word() == wanted) return {};
    at_ = from;
    return fail(fmt::format("expected '{}'", wanted), std::move(hint));
  }

  Result<Symbol> symbol(std::string_view what) {
    WEFT_TRY(text, word(what));
    return graph_.symbol(text);
  }

  Result<std::int64_t> integer(std::string_view what) {
    skip_spaces();
    std::int64_t number = 0;
    const auto [stop, status] = std::from_chars(at_, end_, number);
    if (status == std::errc::result_out_of_range) {
      const char* from = at_;
      at_ = stop;
      return user_error(fmt::format("{} does not fit in 64 bits", what), {}, span_from(from));
    }
    if (status != std::errc()) return fail(fmt::format("expected {}", what));
    at_ = stop;
    return number;
  }

  Result<double> real() {
    skip_spaces();
    double number = 0;
    const auto [stop, status] = std::from_chars(at_, end_, number);
    if (status != std::errc() || std::isnan(number)) return fail("expected a number");
    at_ = stop;
    return number;
  }

  // -- types and attributes
  Result<DType> dtype() {
    skip_spaces();
    const char* from = at_;
    const std::string_view text = plain_word();
    if (const auto known = find_dtype(text)) return *known;
    at_ = from;
    return fail("expected a dtype such as f32", did_you_mean(text, dtype_spellings()));
  }

  Result<TypeId> type() {
    skip_spaces();
    const char* from = at_;
    WEFT_TRY(element, dtype());
    WEFT_TRY_STATUS(expect('[', "after a dtype"));
    dims_.clear();
    if (!take(']')) {
      do {
        WEFT_TRY(index, symbol("an index name"));
        WEFT_TRY_STATUS(expect('=', "between an index and its size"));
        WEFT_TRY(size, integer("an index size"));
        dims_.push_back(Dim{index, size});
      } while (take(','));
      WEFT_TRY_STATUS(expect(']', "after the indices"));
    }
    auto interned = graph_.intern_type(element, dims_);
    if (!interned.ok()) return located(std::move(interned).error(), from);
    return *interned;
  }

  Error located(Error error, const char* from) const {
    if (!error.span.known()) error.span = span_from(from);
    return error;
  }

  Result<AttributeValue> attribute(const AttributeSpec& spec, std::vector<Symbol>& list) {
    switch (spec.kind) {
      case AttributeKind::integer: {
        WEFT_TRY(number, integer("an integer"));
        return AttributeValue(number);
      }
      case AttributeKind::real: {
        WEFT_TRY(number, real());
        return AttributeValue(number);
      }
      case AttributeKind::word:
      case AttributeKind::index: {
        WEFT_TRY(text, symbol(spec.kind == AttributeKind::word ? "a word" : "an index name"));
        return AttributeValue(text);
      }
      case AttributeKind::indices: {
        WEFT_TRY_STATUS(expect('[', "before a list of indices"));
        list.clear();
        if (!take(']')) {
          do {
            WEFT_TRY(index, symbol("an index name"));
            list.push_back(index);
          } while (take(','));
          WEFT_TRY_STATUS(expect(']', "after the list of indices"));
        }
        return AttributeValue(std::span<const Symbol>(list));
      }
      case AttributeKind::dtype: {
        WEFT_TRY(known, dtype());
        return AttributeValue(known);
      }
      case AttributeKind::type: {
        WEFT_TRY(known, type());
        return AttributeValue(known);
      }
    }
    return fail("expected an attribute");
  }

  Status attributes(const Operator& op) {
    const std::span<const AttributeSpec> specs = op.attributes();
    values_.assign(specs.size(), AttributeValue());
    if (lists_.size() < specs.size()) lists_.resize(specs.size());
    if (!take('{')) return {};
    do {
      skip_spaces();
      const char* from = at_;
      const std::string_view key = plain_word();
      std::size_t k = 0;
      while (k < specs.size() && specs[k].name != key) ++k;
      if (k == specs.size()) {
        at_ = from;
        std::vector<std::string_view> names;
        for (const AttributeSpec& spec : specs) names.push_back(spec.name);
        std::string hint = did_you_mean(key, names);
        if (hint.empty() && !names.empty())
          hint = fmt::format("{} has {}", op.name(), fmt::join(names, ", "));
        return fail(fmt::format("expected an attribute of {}", op.name()), std::move(hint));
      }
      if (!std::holds_alternative<std::monostate>(values_[k]))
        return user_error(fmt::format("attribute {} is given twice", key), {}, span_from(from));
      WEFT_TRY_STATUS(expect('=', "between an attribute and its value"));
      WEFT_TRY(value, attribute(specs[k], lists_[k]));
      values_[k] = value;
    } while (take(','));
    return expect('}', "after the attributes");
  }

  // -- nodes
  // %7 where 7 is the next value's number, or an earlier one when `defined`.
  Result<ValueId> value(bool defined) {
    skip_spaces();
    const char* from = at_;
    if (at_ == end_ || *at_ != '%') return fail("expected a value such as %3");
    ++at_;
    if (at_ == end_ || !is_digit(*at_)) return fail("expected a value's number after '%'");
    WEFT_TRY(number, integer("a value's number"));
    if (defined && static_cast<std::size_t>(number) >= graph_.value_count())
      return user_error(fmt::format("%{} is not made by an earlier line", number), {}, span_from(from));
    return ValueId(static_cast<std::size_t>(number));
  }

  Status place() {
    graph_.set_label({});
    graph_.set_scope({});
    if (!take('@')) return {};
    const char* path = at_;
    const char* scope_end = at_;
    ScopeId scope;
    for (int depth = 0;; ++depth) {
      if (depth == kDeepestScope)
        return fail(fmt::format("expected at most {} nested scopes", kDeepestScope));
      WEFT_TRY(name, word("a name after '@'"));
      const bool inner = at_ != end_ && *at_ == '.';
      if (!inner) {
        graph_.set_label(graph_.symbol(name));
        break;
      }
      Scope next{.parent = scope, .name = graph_.symbol(name), .iteration = -1};
      ++at_;
      if (at_ != end_ && is_digit(*at_)) {
        WEFT_TRY(iteration, integer("an iteration"));
        if (iteration > std::numeric_limits<std::int32_t>::max()) return fail("expected a smaller iteration");
        next.iteration = static_cast<std::int32_t>(iteration);
        if (at_ == end_ || *at_ != '.') return fail("expected '.' after an iteration");
        ++at_;
      }
      scope_end = at_;
      const auto [known, fresh] =
          scopes_.try_emplace(std::string_view(path, static_cast<std::size_t>(scope_end - path)), ScopeId());
      if (fresh) known->second = graph_.add_scope(next);
      scope = known->second;
      if (at_ == end_ || *at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t' || *at_ == '#') break;
    }
    graph_.set_scope(scope);
    return {};
  }

  Status node() {
    const char* line = at_;
    std::size_t results = 0;
    do {
      skip_spaces();
      const char* from = at_;
      WEFT_TRY(id, value(false));
      const std::size_t next = graph_.value_count() + results;
      if (id.value != next)
        return user_error(fmt::format("expected %{}, found %{}", next, id.value),
                          "values are numbered in order", span_from(from));
      ++results;
    } while (take(','));
    WEFT_TRY_STATUS(expect('=', "after the values a node makes"));

    skip_spaces();
    const char* op_at = at_;
    const std::string_view op_name = operator_word();
    const Operator* op = operators_.find(op_name);
    if (op == nullptr) {
      at_ = op_at;
      return fail("expected an operator", did_you_mean(op_name, operators_.names()));
    }
    inputs_.clear();
    skip_spaces();
    if (at_ != end_ && *at_ == '%') {
      do {
        WEFT_TRY(input, value(true));
        inputs_.push_back(input);
      } while (take(','));
    }
    WEFT_TRY_STATUS(attributes(*op));

    stated_.clear();
    const char* types_at = at_;
    if (take(':')) {
      types_at = at_;
      do {
        WEFT_TRY(stated, type());
        stated_.push_back(stated);
      } while (take(','));
    }
    WEFT_TRY_STATUS(place());
    WEFT_TRY_STATUS(expect_line_end());

    auto added = graph_.add(*op, inputs_, values_);
    if (!added.ok()) return located(std::move(added).error(), line);
    const Node& made = graph_.node(*added);
    if (made.result_count != results)
      return user_error(
          fmt::format("{} makes {} values, found {} on the left", op->name(), made.result_count, results), {},
          span_from(line));
    if (stated_.empty()) return {};
    if (stated_.size() != results)
      return user_error(fmt::format("expected {} types, found {}", results, stated_.size()), {},
                        span_from(types_at));
    for (std::size_t k = 0; k < results; ++k) {
      const TypeId inferred = graph_.value(graph_.result(*added, k)).type;
      if (inferred != stated_[k])
        return user_error(fmt::format("%{} has type {}, found {}", graph_.result(*added, k).value,
                                      print(graph_.type(inferred), graph_.symbols()),
                                      print(graph_.type(stated_[k]), graph_.symbols())),
                          {}, span_from(types_at));
    }
    return {};
  }

  Status outputs() {
    WEFT_TRY_STATUS(expect_word("return", "a plan ends with the line: return NAME=%VALUE, ..."));
    skip_spaces();
    if (at_ == end_ || *at_ == '\n') return {};
    do {
      WEFT_TRY(name, symbol("an output's name"));
      WEFT_TRY_STATUS(expect('=', "between an output and its value"));
      WEFT_TRY(id, value(true));
      graph_.add_output(name, id);
    } while (take(','));
    return expect_line_end();
  }

  const OperatorSet& operators_;
  const char* begin_;
  const char* at_;
  const char* end_;
  Graph graph_;
  std::string quoted_;
  std::vector<Dim> dims_;
  std::vector<ValueId> inputs_;
  std::vector<AttributeValue> values_;
  std::vector<std::vector<Symbol>> lists_;
  std::vector<TypeId> stated_;
  std::unordered_map<std::string_view, ScopeId> scopes_;
};

}  // namespace

Result<Graph> read(std::string_view text, const OperatorSet& operators) {
  return Reader(text, operators).read();
}

}  // namespace weft::plan
