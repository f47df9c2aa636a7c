#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "weft/collectives/chunks/collective_text.h"
#include "weft/collectives/chunks/lexicon.h"
#include "weft/collectives/chunks/program_text.h"

namespace weft::collective {
namespace {

class ProgramReader {
 public:
  explicit ProgramReader(std::string_view text) : reader_(kLexicon, text) {}

  Result<Program> read() {
    reader_.expect_word("program");
    program_.name = reader_.at(TokenKind::string) ? reader_.string("a name")
                                                  : std::string(reader_.name("the program's name"));
    read_collective(reader_, program_.collective, program_.placement);
    protocol();
    while (reader_.at_word("rank")) rank();
    if (!reader_.at_end()) reader_.fail_expected("rank, block or a step");
    if (reader_.failed()) return reader_.error();
    return std::move(program_);
  }

 private:
  void protocol() {
    using enum Protocol;
    reader_.expect_word("protocol");
    constexpr std::array kProtocols = {simple, ll, ll128};
    const auto found =
        std::ranges::find_if(kProtocols, [&](Protocol protocol) { return reader_.at_word(name(protocol)); });
    if (found == kProtocols.end())
      reader_.fail_expected("Simple, LL or LL128");
    else
      program_.protocol = *found;
    reader_.advance();
    reader_.expect(TokenKind::comma);
    program_.channels = reader_.small_number("how many channels");
    read_plural(reader_, "channel");
    while (reader_.take(TokenKind::comma)) {
      reader_.expect_word("at");
      const bool least = reader_.take_word("least");
      if (!least) reader_.expect_word("most");
      (least ? program_.min_bytes : program_.max_bytes) = reader_.wide_number("how many bytes");
      read_plural(reader_, "byte");
    }
  }

  // Ranks, blocks and steps are numbered from 0; the written number is for human readers.
  void in_order(std::string_view what, std::size_t expected) {
    const Token start = reader_.token();
    const std::int64_t number = reader_.number(fmt::format("the number of a {}", what));
    if (!reader_.failed() && number != static_cast<std::int64_t>(expected))
      reader_.fail_at(start.span, fmt::format("{}s are numbered in order: expected {}, found {}", what,
                                              expected, number));
  }

  void rank() {
    reader_.expect_word("rank");
    in_order("rank", program_.ranks.size());
    reader_.expect(TokenKind::colon);
    RankProgram result;
    reader_.expect_word("input");
    result.input_chunks = reader_.small_number("how many chunks");
    reader_.expect(TokenKind::comma);
    reader_.expect_word("output");
    result.output_chunks = reader_.small_number("how many chunks");
    reader_.expect(TokenKind::comma);
    reader_.expect_word("scratch");
    result.scratch_chunks = reader_.small_number("how many chunks");
    while (reader_.at_word("block")) block(result);
    program_.ranks.push_back(std::move(result));
  }

  void block(RankProgram& rank) {
    reader_.expect_word("block");
    in_order("block", rank.blocks.size());
    reader_.expect(TokenKind::colon);
    Threadblock result;
    if (reader_.take_word("send")) {
      reader_.expect_word("to");
      result.send_to = reader_.small_number("a rank");
      if (reader_.take_word("over")) do {
          result.links.push_back(reader_.small_number("a link"));
        } while (reader_.at(TokenKind::number));
      reader_.expect(TokenKind::comma);
    }
    if (reader_.take_word("receive")) {
      reader_.expect_word("from");
      result.receive_from = reader_.small_number("a rank");
      reader_.expect(TokenKind::comma);
    }
    reader_.expect_word("channel");
    result.channel = reader_.small_number("a channel");
    while (reader_.at(TokenKind::number)) step(result);
    rank.blocks.push_back(std::move(result));
  }

  Op op() {
    std::array<std::string_view, kOps> names;
    for (std::size_t i = 0; i < kOps; ++i) names[i] = name(static_cast<Op>(i));
    const auto found =
        std::ranges::find_if(names, [&](std::string_view known) { return reader_.at_word(known); });
    if (found == names.end()) {
      reader_.fail_expected("what the step does", names);
      return Op::nop;
    }
    reader_.advance();
    return static_cast<Op>(found - names.begin());
  }

  void step(Threadblock& block) {
    in_order("step", block.steps.size());
    Step result;
    result.op = op();
    if (reads_source(result.op) || writes_target(result.op)) {
      slots(result);
    } else if (reader_.take_word("count")) {
      result.count = reader_.small_number("how many chunks");
    }
    if (reader_.take_word("after")) {
      result.wait_block = reader_.small_number("a block");
      reader_.expect(TokenKind::dot);
      result.wait_step = reader_.small_number("a step");
    }
    result.publishes = reader_.take_word("publish");
    block.steps.push_back(result);
  }

  void slots(Step& step) {
    const SlotRange source = read_slots(reader_);
    step.source = step.target = source.first;
    step.count = source.count;
    const Token arrow = reader_.token();
    if (!reader_.take(TokenKind::thin_arrow)) return;
    const SlotRange target = read_slots(reader_);
    if (!reads_source(step.op) || !writes_target(step.op))
      reader_.fail_at(arrow.span, fmt::format("{} has no {}", name(step.op),
                                              reads_source(step.op) ? "target" : "source"));
    else if (!reader_.failed() && target.count != source.count)
      reader_.fail_at(arrow.span, fmt::format("source and target differ in length: {} and {}", source.count,
                                              target.count));
    step.target = target.first;
  }

  TokenReader reader_;
  Program program_;
};

}  // namespace

Result<Program> parse_program(std::string_view text) { return ProgramReader(text).read(); }

}  // namespace weft::collective
