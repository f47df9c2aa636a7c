// Parses and prints the text of schedules.
#include "weft/parallel/pipeline/schedule_text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "weft/base/nearest.h"

namespace weft::pipeline {
namespace {

constexpr int kDeepestBody = 50;  // nested loops

std::optional<Kind> find_kind(std::string_view word) {
  for (const Kind kind : {Kind::forward, Kind::backward, Kind::weight, Kind::whole_backward})
    if (name(kind) == word) return kind;
  return {};
}

class ScheduleReader {
 public:
  ScheduleReader(std::string_view text, std::vector<Word> words) : text_(text), reader_(std::move(words)) {}

  Result<ScheduleText> read() {
    // unfold() relies on the order of these slots.
    for (const char* known : {"stage", "F", "B", "W"}) reader_.slot(known);
    made_.comment = opening_comment();
    WEFT_TRY_STATUS(reader_.expect("SCHEDULE"));
    WEFT_TRY(name, reader_.name("a name"));
    made_.name = name;
    WEFT_TRY_STATUS(read_parameters());
    WEFT_TRY_STATUS(read_clauses());
    while (reader_.is("STAGE")) WEFT_TRY_STATUS(read_stage());
    WEFT_TRY(body, read_body(0));
    made_.body = std::move(body);
    if (!made_.body.empty() && !made_.orders.empty())
      return user_error("a schedule has STAGE lines or statements, not both", {}, reader_.peek().span);
    WEFT_TRY_STATUS(reader_.expect("END"));
    if (reader_.peek().kind != Word::Kind::end)
      return user_error(fmt::format("expected the end, found {}", reader_.peek().text), {},
                        reader_.peek().span);
    made_.slots = reader_.slots();
    return std::move(made_);
  }

 private:
  std::string opening_comment() const {
    std::string comment;
    std::string_view rest = text_;
    while (rest.starts_with("--")) {
      std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(rest.size(), line.size() + 1));
      line.remove_prefix(2);
      if (line.starts_with(" ")) line.remove_prefix(1);
      comment += fmt::format("{}\n", line);
    }
    return comment;
  }

  Status read_parameters() {
    WEFT_TRY_STATUS(reader_.expect("("));
    do {
      const Span span = reader_.peek().span;
      WEFT_TRY(name, reader_.name("a parameter"));
      for (const auto& known : made_.parameters)
        if (known.name == name) return user_error(fmt::format("parameter given twice: {}", name), {}, span);
      ScheduleText::Parameter parameter{name, {}};
      if (reader_.accept("=")) {
        if (reader_.peek().kind != Word::Kind::number)
          return user_error(fmt::format("expected a number, found {}", reader_.peek().text), {},
                            reader_.peek().span);
        parameter.value = reader_.take().number;
      }
      if (reader_.slot(name) < 4)
        return user_error(fmt::format("the name is already used: {}", name), {}, span);
      made_.parameters.push_back(parameter);
    } while (reader_.accept(","));
    for (const char* needed : {"stages", "micro_batches"})
      if (std::none_of(made_.parameters.begin(), made_.parameters.end(),
                       [&](const auto& one) { return one.name == needed; }))
        return user_error(fmt::format("a schedule has the parameter {}", needed), {}, reader_.peek().span);
    return reader_.expect(")");
  }

  // An expression and its source text.
  Status read_formula(Expression& formula, std::string& as_written) {
    const std::uint32_t from = reader_.peek().span.offset;
    WEFT_TRY(read, reader_.expression());
    formula = std::move(read);
    std::string_view text = text_.substr(from, reader_.peek().span.offset - from);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\n')) text.remove_suffix(1);
    as_written = std::string(text.substr(0, text.find('\n')));
    return {};
  }

  Status read_clauses() {
    while (!reader_.accept("BEGIN")) {
      const Word word = reader_.take();
      std::string unused;
      if (word.text == "ROUTE") {
        WEFT_TRY_STATUS(
            read_word(made_.route, {Route::line, Route::loop, Route::v, Route::both_ways}, "route"));
      } else if (word.text == "CLOCK") {
        WEFT_TRY_STATUS(read_word(made_.clock, {Clock::end, Clock::span}, "clock"));
      } else if (word.text == "WHERE") {
        WEFT_TRY_STATUS(read_formula(made_.where, unused));
      } else if (word.text == "OVERLAP") {
        WEFT_TRY_STATUS(read_formula(made_.overlap, unused));
      } else if (word.text == "BUBBLE") {
        WEFT_TRY_STATUS(read_formula(made_.bubble, made_.bubble_text));
      } else if (word.text == "PEAK") {
        WEFT_TRY_STATUS(read_formula(made_.peak, made_.peak_text));
      } else if (word.text == "FROM") {
        WEFT_TRY_STATUS(read_formula(made_.from, made_.from_text));
      } else {
        return user_error(
            fmt::format("expected ROUTE, CLOCK, WHERE, OVERLAP, BUBBLE, PEAK, FROM or BEGIN, found {}",
                        word.text),
            {}, word.span);
      }
    }
    return {};
  }

  template <class T>
  Status read_word(T& to, const std::vector<T>& choices, std::string_view what) {
    const Word word = reader_.take();
    std::vector<std::string_view> names;
    for (const T choice : choices) {
      names.push_back(name(choice));
      if (names.back() != word.text) continue;
      to = choice;
      return {};
    }
    return user_error(fmt::format("unknown {}: {}", what, word.text), did_you_mean(word.text, names),
                      word.span);
  }

  Status read_stage() {
    reader_.take();
    const Word number = reader_.take();
    if (number.kind != Word::Kind::number || number.number > 1e6 ||
        number.number != std::floor(number.number))
      return user_error(fmt::format("expected a stage number, found {}", number.text), {}, number.span);
    WEFT_TRY_STATUS(reader_.expect(":"));
    std::vector<Pass> order;
    while (!reader_.is("STAGE") && !reader_.is("END")) {
      WEFT_TRY(pass, read_pass());
      order.push_back(pass);
    }
    made_.orders.emplace_back(static_cast<std::int32_t>(number.number), std::move(order));
    return {};
  }

  Result<Pass> read_pass() {
    const Word word = reader_.take();
    const std::size_t digits = word.text.find_first_of("0123456789");
    const auto wrong = [&] {
      return user_error(fmt::format("expected a pass such as F0 or B3.1, found {}", word.text), {},
                        word.span);
    };
    if (word.kind != Word::Kind::name || digits == std::string::npos) return wrong();
    const auto kind = find_kind(std::string_view(word.text).substr(0, digits));
    const std::string micro = word.text.substr(digits);
    if (!kind || micro.size() > 7 || micro.find_first_not_of("0123456789") != std::string::npos)
      return wrong();
    Pass pass{*kind, static_cast<std::int32_t>(std::stol(micro)), 0};
    if (reader_.accept(".")) {
      const Word chunk = reader_.take();
      if (chunk.kind != Word::Kind::number || chunk.number > 1e6 || chunk.number != std::floor(chunk.number))
        return user_error(fmt::format("expected a chunk number, found {}", chunk.text), {}, chunk.span);
      pass.chunk = static_cast<std::int32_t>(chunk.number);
    }
    return pass;
  }

  Result<std::vector<Statement>> read_body(int depth) {
    if (depth > kDeepestBody) return user_error("loops are nested too deeply", {}, reader_.peek().span);
    std::vector<Statement> body;
    while (!reader_.is("END") && !reader_.is("ELSE")) {
      WEFT_TRY(statement, read_statement(depth));
      body.push_back(std::move(statement));
    }
    return body;
  }

  Result<Statement> read_statement(int depth) {
    Statement made;
    const Word word = reader_.take();
    made.span = word.span;
    if (word.text == "LET") {
      made.kind = Statement::Kind::let;
      WEFT_TRY(name, reader_.name("a name"));
      WEFT_TRY_STATUS(reader_.expect("="));
      WEFT_TRY(value, reader_.expression());
      made.first = std::move(value);
      made.slot = reader_.slot(name);
    } else if (word.text == "FOR") {
      made.kind = Statement::Kind::loop;
      WEFT_TRY(name, reader_.name("a name"));
      WEFT_TRY_STATUS(reader_.expect("IN"));
      WEFT_TRY(first, reader_.expression());
      WEFT_TRY_STATUS(reader_.expect("TO"));
      WEFT_TRY(last, reader_.expression());
      made.first = std::move(first);
      made.second = std::move(last);
      made.slot = reader_.slot(name);
      WEFT_TRY(body, read_body(depth + 1));
      made.body = std::move(body);
      WEFT_TRY_STATUS(reader_.expect("END"));
    } else if (word.text == "IF") {
      made.kind = Statement::Kind::choice;
      WEFT_TRY(condition, reader_.expression());
      made.first = std::move(condition);
      WEFT_TRY_STATUS(reader_.expect("THEN"));
      WEFT_TRY(body, read_body(depth + 1));
      made.body = std::move(body);
      if (reader_.accept("ELSE")) {
        WEFT_TRY(otherwise, read_body(depth + 1));
        made.otherwise = std::move(otherwise);
      }
      WEFT_TRY_STATUS(reader_.expect("END"));
    } else if (const auto kind = find_kind(word.text)) {
      made.pass = *kind;
      WEFT_TRY_STATUS(reader_.expect("("));
      WEFT_TRY(micro, reader_.expression());
      made.first = std::move(micro);
      if (reader_.accept(",")) {
        WEFT_TRY(chunk, reader_.expression());
        made.second = std::move(chunk);
      }
      WEFT_TRY_STATUS(reader_.expect(")"));
      if (reader_.accept("AT")) {
        WEFT_TRY(at, reader_.expression());
        made.at = std::move(at);
      } else if (reader_.accept("WHEN")) {
        WEFT_TRY_STATUS(reader_.expect("IDLE"));
        made.when_idle = true;
      }
    } else {
      return user_error(fmt::format("expected LET, FOR, IF or a pass, found {}", word.text), {}, word.span);
    }
    return made;
  }

  std::string_view text_;
  Reader reader_;
  ScheduleText made_;
};

}  // namespace

Result<ScheduleText> parse_schedule(std::string_view text) {
  WEFT_TRY(words, split(text));
  return ScheduleReader(text, std::move(words)).read();
}

std::string print(const Schedule& schedule) {
  std::string text = fmt::format("SCHEDULE {} (stages = {}, micro_batches = {}", schedule.name,
                                 schedule.stages, schedule.micro_batches);
  if (schedule.chunks > 1) text += fmt::format(", chunks = {}", schedule.chunks);
  text += fmt::format(")\n  ROUTE {}\n  CLOCK {}\n{}BEGIN\n", name(schedule.route), name(schedule.clock),
                      schedule.overlaps ? "  OVERLAP 1\n" : "");
  for (std::size_t stage = 0; stage < schedule.orders.size(); ++stage) {
    text += fmt::format("  STAGE {}:", stage);
    for (const Pass& pass : schedule.orders[stage]) text += " " + print(pass, schedule.chunks > 1);
    text += "\n";
  }
  return text + "END\n";
}

}  // namespace weft::pipeline
