// Reads plan text in a single pass over the bytes, without storing tokens.
#include <charconv>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "weft/base/letters.h"
#include "weft/base/nearest.h"
#include "weft/base/scanner.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/graph/verify.h"
#include "weft/plan/graph/words.h"

namespace weft::plan {
namespace {

class Reader {
 public:
  Reader(std::string_view text, const OperatorSet& operators) : operators_(operators), scanner_(text) {}

  Result<Graph> read() {
    if (scanner_.left() >= std::numeric_limits<std::uint32_t>::max())
      return user_error("plan text of 4 GiB or more");
    skip_blank_lines();
    WEFT_TRY_STATUS(expect_word("plan", "a plan starts with the line: plan NAME"));
    WEFT_TRY(name, word("the plan's name"));
    graph_.name = std::string(name);
    WEFT_TRY_STATUS(expect_line_end());
    for (;;) {
      skip_blank_lines();
      if (scanner_.at_end()) return fail("expected a node or the final line 'return ...'");
      if (!scanner_.at('%')) break;
      WEFT_TRY_STATUS(node());
    }
    WEFT_TRY_STATUS(outputs());
    skip_blank_lines();
    if (!scanner_.at_end()) return fail("expected nothing after the return line");
    return std::move(graph_);
  }

 private:
  // -- the cursor
  void skip_spaces() {
    scanner_.skip_while([](char c) { return c == ' ' || c == '\t' || c == '\r'; });
    if (scanner_.at('#')) scanner_.skip_line();
  }

  void skip_blank_lines() {
    for (skip_spaces(); scanner_.take('\n');) skip_spaces();
  }

  bool take(char c) {
    skip_spaces();
    return scanner_.take(c);
  }

  bool at_line_end() const { return scanner_.at_end() || scanner_.at('\n'); }

  Span span_from(std::size_t from) const {
    Span span = scanner_.span_since(from);
    span.length = std::max(span.length, 1u);
    return span;
  }

  // The text at the cursor, as quoted in error messages.
  std::string found() const {
    if (scanner_.at_end()) return "the end of the text";
    if (scanner_.at('\n')) return "the end of the line";
    const auto byte = static_cast<unsigned char>(scanner_.here());
    if (byte < 0x20 || byte >= 0x7f) return fmt::format("byte 0x{:02x}", byte);
    Scanner ahead = scanner_;
    ahead.step();
    if (is_in_word(scanner_.here())) ahead.skip_while(is_in_word);
    return fmt::format("'{}'", ahead.text_since(scanner_.place()).substr(0, 40));
  }

  Error fail(std::string_view expected, std::string hint = {}) const {
    Scanner ahead = scanner_;
    ahead.skip_while(is_in_word);
    Span span = ahead.span_since(scanner_.place());
    span.length = std::max(span.length, 1u);
    return user_error(fmt::format("{}, found {}", expected, found()), std::move(hint), span);
  }

  Status expect(char c, std::string_view why) {
    if (take(c)) return {};
    return fail(fmt::format("expected '{}' {}", c, why));
  }

  Status expect_line_end() {
    skip_spaces();
    if (at_line_end()) return {};
    return fail("expected the end of the line");
  }

  // An unquoted word, or "" if there is none.
  std::string_view plain_word() {
    skip_spaces();
    const std::size_t from = scanner_.place();
    if (is_letter(scanner_.here())) scanner_.skip_while(is_in_word);
    return scanner_.text_since(from);
  }

  // Operator names may contain dashes: layer-norm.
  std::string_view operator_word() {
    skip_spaces();
    const std::size_t from = scanner_.place();
    scanner_.skip_while([](char c) { return is_in_word(c) || c == '-'; });
    return scanner_.text_since(from);
  }

  // An unquoted or quoted word. The view is valid until the next quoted word is read.
  Result<std::string_view> word(std::string_view what) {
    const std::string_view plain = plain_word();
    if (!plain.empty()) return plain;
    const std::size_t from = scanner_.place();
    if (!scanner_.take('"')) return fail(fmt::format("expected {}", what));
    quoted_.clear();
    while (!at_line_end() && !scanner_.at('"')) {
      const bool escape = scanner_.at('\\') && scanner_.left() > 1 && scanner_.ahead(1) != '\n';
      if (escape) scanner_.step();
      quoted_ += escape && scanner_.at('n') ? '\n' : scanner_.here();
      scanner_.step();
    }
    if (!scanner_.take('"'))
      return user_error("a quoted name is not closed on its line", "close it with \"", span_from(from));
    return std::string_view(quoted_);
  }

  Status expect_word(std::string_view wanted, std::string hint) {
    skip_spaces();
    const std::size_t from = scanner_.place();
    if (plain_word() == wanted) return {};
    scanner_.go_to(from);
    return fail(fmt::format("expected '{}'", wanted), std::move(hint));
  }

  Result<Symbol> symbol(std::string_view what) {
    WEFT_TRY(text, word(what));
    return graph_.symbol(text);
  }

  Result<std::int64_t> integer(std::string_view what) {
    skip_spaces();
    std::int64_t number = 0;
    const std::size_t from = scanner_.place();
    const std::errc status = take_number(number);
    if (status == std::errc::result_out_of_range)
      return user_error(fmt::format("{} does not fit in 64 bits", what), {}, span_from(from));
    if (status != std::errc()) return fail(fmt::format("expected {}", what));
    return number;
  }

  Result<double> real() {
    skip_spaces();
    double number = 0;
    const std::size_t from = scanner_.place();
    if (take_number(number) == std::errc() && !std::isnan(number)) return number;
    scanner_.go_to(from);
    return fail("expected a number");
  }

  template <class Number>
  std::errc take_number(Number& number) {
    const std::string_view rest = scanner_.rest();
    const auto [stop, status] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    scanner_.step(static_cast<std::size_t>(stop - rest.data()));
    return status;
  }

  // -- types and attributes
  Result<DType> dtype() {
    skip_spaces();
    const std::size_t from = scanner_.place();
    const std::string_view text = plain_word();
    if (const auto known = find_dtype(text)) return *known;
    scanner_.go_to(from);
    return fail("expected a dtype such as f32", did_you_mean(text, dtype_spellings()));
  }

  Result<TypeId> type() {
    skip_spaces();
    const std::size_t from = scanner_.place();
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

  Error located(Error error, std::size_t from) const {
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
      const std::size_t from = scanner_.place();
      const std::string_view key = plain_word();
      std::size_t k = 0;
      while (k < specs.size() && specs[k].name != key) ++k;
      if (k == specs.size()) {
        scanner_.go_to(from);
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
  // %7, where 7 is the number of an earlier value if `defined`, else of the next value.
  Result<ValueId> value(bool defined) {
    skip_spaces();
    const std::size_t from = scanner_.place();
    if (!scanner_.take('%')) return fail("expected a value such as %3");
    if (!is_digit(scanner_.here())) return fail("expected a value's number after '%'");
    WEFT_TRY(number, integer("a value's number"));
    if (defined && static_cast<std::size_t>(number) >= graph_.value_count())
      return user_error(fmt::format("%{} is not made by an earlier line", number), {}, span_from(from));
    return ValueId(static_cast<std::size_t>(number));
  }

  Status place() {
    graph_.set_label({});
    graph_.set_scope({});
    if (!take('@')) return {};
    const std::size_t path = scanner_.place();
    ScopeId scope;
    for (int depth = 0;; ++depth) {
      if (depth == kDeepestScope)
        return fail(fmt::format("expected at most {} nested scopes", kDeepestScope));
      WEFT_TRY(name, word("a name after '@'"));
      if (!scanner_.at('.')) {
        graph_.set_label(graph_.symbol(name));
        break;
      }
      Scope next{.parent = scope, .name = graph_.symbol(name), .iteration = -1};
      scanner_.step();
      if (is_digit(scanner_.here())) {
        WEFT_TRY(iteration, integer("an iteration"));
        if (iteration > std::numeric_limits<std::int32_t>::max()) return fail("expected a smaller iteration");
        next.iteration = static_cast<std::int32_t>(iteration);
        if (!scanner_.take('.')) return fail("expected '.' after an iteration");
      }
      const auto [known, fresh] = scopes_.try_emplace(scanner_.text_since(path), ScopeId());
      if (fresh) known->second = graph_.add_scope(next);
      scope = known->second;
      constexpr std::string_view kBehind = " \n\r\t#";
      if (scanner_.at_end() || kBehind.find(scanner_.here()) != kBehind.npos) break;
    }
    graph_.set_scope(scope);
    return {};
  }

  // "in backward"; the default is the forward pass.
  Status when() {
    graph_.set_when({});
    skip_spaces();
    std::size_t from = scanner_.place();
    if (plain_word() != "in") {
      scanner_.go_to(from);
      return {};
    }
    skip_spaces();
    from = scanner_.place();
    const std::string_view text = plain_word();
    if (const auto phase = find_phase(text)) {
      graph_.set_when({*phase});
      return {};
    }
    scanner_.go_to(from);
    std::string hint = did_you_mean(text, phase_names());
    return fail(
        "expected a phase after 'in'",
        hint.empty() ? fmt::format("phases are {}", fmt::join(phase_names(), ", ")) : std::move(hint));
  }

  Status node() {
    const std::size_t line = scanner_.place();
    std::size_t results = 0;
    do {
      skip_spaces();
      const std::size_t from = scanner_.place();
      WEFT_TRY(id, value(false));
      const std::size_t next = graph_.value_count() + results;
      if (id.value != next)
        return user_error(fmt::format("expected %{}, found %{}", next, id.value),
                          "values are numbered in order", span_from(from));
      ++results;
    } while (take(','));
    WEFT_TRY_STATUS(expect('=', "after the values a node makes"));

    skip_spaces();
    const std::size_t op_at = scanner_.place();
    const std::string_view op_name = operator_word();
    const Operator* op = operators_.find(op_name);
    if (op == nullptr) {
      scanner_.go_to(op_at);
      return fail("expected an operator", did_you_mean(op_name, operators_.names()));
    }
    inputs_.clear();
    skip_spaces();
    if (scanner_.at('%')) {
      do {
        WEFT_TRY(input, value(true));
        inputs_.push_back(input);
      } while (take(','));
    }
    WEFT_TRY_STATUS(attributes(*op));

    stated_.clear();
    std::size_t types_at = scanner_.place();
    if (take(':')) {
      types_at = scanner_.place();
      do {
        WEFT_TRY(stated, type());
        stated_.push_back(stated);
      } while (take(','));
    }
    WEFT_TRY_STATUS(place());
    WEFT_TRY_STATUS(when());
    WEFT_TRY_STATUS(expect_line_end());

    auto added = graph_.add(*op, inputs_, values_);
    if (!added.ok()) return located(std::move(added).error(), line);
    if (Status status = verify_phases(graph_, *added); !status.ok())
      return located(std::move(status).error(), line);
    const Node& made = graph_.node(*added);
    if (is_named_source(made) && !source_names_.insert(made.attributes[0].id).second)
      return user_error(fmt::format("a second source is named {}", graph_.view(*added).word(0)), {},
                        span_from(line));
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
    if (at_line_end()) return {};
    do {
      skip_spaces();
      const std::size_t from = scanner_.place();
      WEFT_TRY(name, symbol("an output's name"));
      if (!output_names_.insert(name.value).second)
        return user_error(fmt::format("output {} is returned twice", graph_.text(name)), {}, span_from(from));
      WEFT_TRY_STATUS(expect('=', "between an output and its value"));
      WEFT_TRY(id, value(true));
      const std::string_view text = graph_.text(name);
      if (text.starts_with(kNextWord))
        graph_.add_update(text.substr(kNextWord.size()), id);
      else
        graph_.add_output(name, id);
    } while (take(','));
    return expect_line_end();
  }

  const OperatorSet& operators_;
  Scanner scanner_;
  Graph graph_;
  std::string quoted_;
  std::vector<Dim> dims_;
  std::vector<ValueId> inputs_;
  std::vector<AttributeValue> values_;
  std::vector<std::vector<Symbol>> lists_;
  std::vector<TypeId> stated_;
  std::unordered_map<std::string_view, ScopeId> scopes_;
  std::unordered_set<std::uint32_t> source_names_, output_names_;  // symbols
};

}  // namespace

Result<Graph> read(std::string_view text, const OperatorSet& operators) {
  return Reader(text, operators).read();
}

}  // namespace weft::plan
