// Matches a pattern by backtracking, with an explicit stack.
#include <string>
#include <utility>

#include <fmt/format.h>

#include "weft/text/code_points.h"
#include "weft/text/pattern.h"
#include "weft/text/pattern_program.h"

namespace weft::text {
namespace {

constexpr std::size_t kNoMatch = SIZE_MAX;

// Steps that a search may take: far more than any pattern of a tokenizer needs, few enough that a
// pattern with exponential backtracking fails within seconds.
constexpr std::size_t kFreeSteps = 20'000'000, kStepsPerByte = 20'000;

class Matcher {
 public:
  Matcher(const PatternProgram& program, std::string_view text)
      : program_(program), text_(text), steps_left_(kFreeSteps + kStepsPerByte * text.size()) {}

  bool exhausted() const { return steps_left_ == 0; }

  // The end of the match of the instructions from `pc` that begins at `at`.
  std::size_t run(std::uint32_t pc, std::size_t at) {
    const std::size_t bottom = choices_.size();
    for (;;) {
      const std::size_t end = advance(pc, at);
      if (end != kNoMatch || exhausted()) {
        choices_.resize(bottom);
        return exhausted() ? kNoMatch : end;
      }
      do {
        if (choices_.size() == bottom) return kNoMatch;
      } while (!resume(pc, at));
    }
  }

 private:
  // A state to continue from if what was tried first fails.
  struct Choice {
    std::uint32_t pc = 0;
    Greed greed = Greed::greedy;
    std::size_t at = 0;
    std::size_t least = 0;   // greedy span: the first position it may end at
    std::uint32_t more = 0;  // lazy span: the code points it may still take
  };

  bool takes(const CodePointSet& set, std::size_t at, std::size_t& length) const {
    if (at >= text_.size()) return false;
    const CodePoint c = code_point_at(text_, at);
    length = c.length;
    return set.contains(c.value);
  }

  // Executes instructions until the pattern ends, returning the position, or one does not match.
  std::size_t advance(std::uint32_t pc, std::size_t at) {
    using Kind = Instruction::Kind;
    for (;;) {
      if (--steps_left_ == 0) return kNoMatch;
      const Instruction& code = program_.code[pc];
      std::size_t length = 0;
      switch (code.kind) {
        case Kind::end: return at;
        case Kind::one:
          if (!takes(program_.sets[code.set], at, length)) return kNoMatch;
          at += length;
          break;
        case Kind::span:
          if (!span(code, pc, at)) return kNoMatch;
          break;
        case Kind::split:
          choices_.push_back({.pc = code.other, .at = at, .least = at});
          pc = code.next;
          continue;
        case Kind::jump: pc = code.next; continue;
        case Kind::look_ahead:
          if ((run(code.next, at) != kNoMatch) == code.negated) return kNoMatch;
          pc = code.other;
          continue;
        case Kind::atomic:
          at = run(code.next, at);
          if (at == kNoMatch) return kNoMatch;
          pc = code.other;
          continue;
        default:
          if (!holds(code, at)) return kNoMatch;
      }
      ++pc;
    }
  }

  // Takes as many (lazy: as few) code points as allowed, and records that it could be fewer (more).
  bool span(const Instruction& code, std::uint32_t pc, std::size_t& at) {
    const CodePointSet& set = program_.sets[code.set];
    const std::uint32_t limit = code.greed == Greed::lazy ? code.least : code.most;
    std::size_t length = 0, first_end = at;
    std::uint32_t count = 0;
    for (; count < limit && takes(set, at, length); ++count) {
      at += length;
      if (count < code.least) first_end = at;
    }
    if (count < code.least) return false;
    steps_left_ -= std::min<std::size_t>(steps_left_ - 1, count / 16);
    if (code.greed == Greed::greedy && at > first_end)
      choices_.push_back({.pc = pc + 1, .at = at, .least = first_end});
    if (code.greed == Greed::lazy && code.most > count)
      choices_.push_back({.pc = pc,
                          .greed = Greed::lazy,
                          .at = at,
                          .more = code.most == kUnbounded ? kUnbounded : code.most - count});
    return true;
  }

  // Takes the last choice: sets where to continue. False if nothing is left of it.
  bool resume(std::uint32_t& pc, std::size_t& at) {
    Choice& last = choices_.back();
    if (last.greed == Greed::lazy) {
      const Instruction& code = program_.code[last.pc];
      std::size_t length = 0;
      if (!takes(program_.sets[code.set], last.at, length)) {
        choices_.pop_back();
        return false;
      }
      pc = last.pc + 1;
      at = last.at + length;
      last.at = at;
      if (last.more != kUnbounded && --last.more == 0) choices_.pop_back();
      return true;
    }
    pc = last.pc;
    if (last.at > last.least) {  // a span gives back one code point
      last.at -= code_point_before(text_, last.at).length;
      at = last.at;
      if (last.at == last.least) choices_.pop_back();
      return true;
    }
    at = last.at;
    choices_.pop_back();
    return true;
  }

  bool holds(const Instruction& code, std::size_t at) const {
    using Kind = Instruction::Kind;
    switch (code.kind) {
      case Kind::look_back:
        return (at > 0 && program_.sets[code.set].contains(code_point_before(text_, at).value)) !=
               code.negated;
      case Kind::line_begin: return at == 0 || (text_[at - 1] == '\n' && at < text_.size());
      case Kind::line_end: return at == text_.size() || text_[at] == '\n';
      case Kind::text_begin: return at == 0;
      case Kind::text_end: return at == text_.size();
      default: return at == text_.size() || (at + 1 == text_.size() && text_[at] == '\n');
    }
  }

  const PatternProgram& program_;
  std::string_view text_;
  std::size_t steps_left_;
  std::vector<Choice> choices_;
};

std::vector<Match> find_literal(std::string_view literal, std::string_view text) {
  std::vector<Match> matches;
  for (std::size_t at = text.find(literal); at != std::string_view::npos;
       at = text.find(literal, at + literal.size()))
    matches.push_back({at, at + literal.size()});
  return matches;
}

}  // namespace

Pattern Pattern::literal(std::string_view text) {
  PatternProgram program;
  program.literal = text;
  return Pattern(std::make_shared<const PatternProgram>(std::move(program)));
}

Result<Pattern> Pattern::parse(std::string_view pattern) {
  WEFT_TRY(program, compile_pattern(pattern));
  return Pattern(std::make_shared<const PatternProgram>(std::move(program)));
}

Result<std::vector<Match>> Pattern::find_all(std::string_view text) const {
  if (!program_->literal.empty()) return find_literal(program_->literal, text);
  std::vector<Match> matches;
  if (program_->code.empty()) return matches;
  Matcher matcher(*program_, text);
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t step = at < text.size() ? code_point_at(text, at).length : 1;
    const bool possible =
        at == text.size() ? program_->first.all() : program_->first[static_cast<unsigned char>(text[at])];
    const std::size_t end = possible ? matcher.run(0, at) : kNoMatch;
    if (matcher.exhausted())
      return user_error("the pattern of a tokenizer backtracks too much on this text",
                        "nested repetitions such as (a+)+ cause this");
    // An empty match directly after a match does not count.
    const bool empty_again = end == at && !matches.empty() && matches.back().end == at;
    if (end == kNoMatch || empty_again) {
      at += step;
      continue;
    }
    matches.push_back({at, end});
    at = end;
  }
  return matches;
}

}  // namespace weft::text
