// Chunk programs and moves as text: printed text parses back, and errors point at their location.

#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "weft/base/random.h"
#include "weft/collectives/chunks/program_text.h"
#include "weft/language/complaint.h"

namespace weft::collective {
namespace {

constexpr std::string_view kProgram = R"(program all_reduce_pair
collective all_reduce, 2 ranks, 2 chunks, in place
protocol Simple, 1 channel, at least 1024 bytes, at most 65536 bytes

rank 0: input 2, output 0, scratch 1
  block 0: send to 1, receive from 1, channel 0
    0  send input[1]
    1  receive_reduce_copy_send input[0] -> output[0] after 1.0
    2  receive input[0..1] publish
  block 1: channel 0
    0  copy input[0] -> scratch[0] publish
    1  nop after 0.2

rank 1: input 2, output 0, scratch 0
  block 0: receive from 0, channel 0
)";

constexpr std::string_view kMoves = R"(moves custom_two
collective custom, 3 ranks, 1 chunk, out of place
want output[0] of 1 = input[0] of 0 + input[0] of 2
want output[1] of 1 = nothing
scratch [0, 2, 1]

copy input[0] of 0 to scratch[0] of 1 on 2
reduce scratch[0..1] of 1 into output[4..5] of 1
)";

std::string complaint(const Result<Program>& program, std::string_view text) {
  return program.ok() ? "" : language::complain(program.error(), text);
}
std::string complaint(const Result<Moves>& moves, std::string_view text) {
  return moves.ok() ? "" : language::complain(moves.error(), text);
}

std::string replaced(std::string_view text, std::string_view what, std::string_view by) {
  std::string result(text);
  return result.replace(result.find(what), what.size(), by);
}

TEST(ProgramText, ParsesAProgram) {
  const auto program = parse_program(kProgram);
  ASSERT_TRUE(program.ok()) << complaint(program, kProgram);
  EXPECT_EQ(program->name, "all_reduce_pair");
  EXPECT_EQ(program->collective.kind, Kind::all_reduce);
  EXPECT_EQ(program->placement, Placement::in_place);
  EXPECT_EQ(program->min_bytes, 1024);
  EXPECT_EQ(program->max_bytes, 65536);
  ASSERT_EQ(program->ranks.size(), 2u);
  ASSERT_EQ(program->ranks[0].blocks.size(), 2u);
  EXPECT_EQ(program->ranks[0].scratch_chunks, 1);
  const Threadblock& block = program->ranks[0].blocks[0];
  EXPECT_EQ(block.send_to, 1);
  EXPECT_EQ(block.steps[1],
            (Step{Op::receive_reduce_copy_send, {Buffer::input, 0}, {Buffer::output, 0}, 1, 1, 0, false}));
  EXPECT_EQ(block.steps[2], (Step{Op::receive, {Buffer::input, 0}, {Buffer::input, 0}, 2, -1, -1, true}));
  EXPECT_EQ(program->ranks[1].blocks[0].send_to, -1);
  EXPECT_EQ(print(*program), kProgram);
}

TEST(ProgramText, IgnoresLineEndsCaseAndComments) {
  std::string flat = "-- a pair\n";
  for (const char c : kProgram) flat += c == '\n' ? ' ' : c;
  const auto program = parse_program(replaced(flat, "receive_reduce", "RECEIVE_reduce"));
  ASSERT_TRUE(program.ok()) << complaint(program, flat);
  EXPECT_EQ(print(*program), kProgram);
}

TEST(ProgramText, WritesAnyName) {
  Program program = parse_program(kProgram).value();
  for (const std::string name : {"plain_1", "two words", "it's", "", "1st", "a\nb", "\xff-"}) {
    program.name = name;
    EXPECT_EQ(parse_program(print(program)).value(), program) << name;
  }
}

TEST(ProgramText, ReportsErrorsWithTheirLocation) {
  const auto said = [](std::string_view what, std::string_view by) {
    const std::string text = replaced(kProgram, what, by);
    return complaint(parse_program(text), text);
  };
  EXPECT_EQ(said("receive_reduce_copy_send", "receive_redcue_copy_send"),
            "error 8:8: expected what the step does, found 'receive_redcue_copy_send'\n"
            "      1  receive_redcue_copy_send input[0] -> output[0] after 1.0\n"
            "         ^^^^^^^^^^^^^^^^^^^^^^^^\n"
            "  did you mean 'receive_reduce_copy_send'?\n");
  EXPECT_EQ(said("    2  receive", "    3  receive"),
            "error 9:5: steps are numbered in order: expected 2, found 3\n"
            "      3  receive input[0..1] publish\n"
            "      ^\n");
  EXPECT_EQ(said("send input[1]", "send input[1] -> output[1]"),
            "error 7:22: send has no target\n"
            "      0  send input[1] -> output[1]\n"
            "                       ^^\n");
  EXPECT_EQ(said("scratch[0] publish", "scratch[0..1] publish"),
            "error 11:22: source and target differ in length: 1 and 2\n"
            "      0  copy input[0] -> scratch[0..1] publish\n"
            "                       ^^\n");
  EXPECT_EQ(said("input[0..1]", "input[0..4000000000]"),
            "error 9:22: range is too long: 0..4000000000\n"
            "      2  receive input[0..4000000000] publish\n"
            "                       ^^^^^^^^^^^^^\n");
  EXPECT_EQ(said("Simple", "Simpel"),
            "error 3:10: expected Simple, LL or LL128, found 'Simpel'\n"
            "  protocol Simpel, 1 channel, at least 1024 bytes, at most 65536 bytes\n"
            "           ^^^^^^\n");
  EXPECT_EQ(said("after 0.2\n", "after 0.2 later\n"),
            "error 12:22: expected rank, block or a step, found 'later'\n"
            "      1  nop after 0.2 later\n"
            "                       ^^^^^\n");
}

// Valid or not, every program parses back as printed.
Program random_program(Random& random) {
  const auto small = [&](std::int32_t least, std::int32_t most) {
    return least + static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(most - least + 1)));
  };
  Program program;
  program.name = "p";
  program.collective.kind = static_cast<Kind>(random.below(11));
  program.collective.ranks = small(-1, 5);
  program.collective.chunks = small(0, 3);
  program.collective.root = small(-1, 3);
  program.collective.peer = small(-1, 3);
  for (int i = small(0, 2); i > 0; --i) program.collective.counts.push_back(small(-2, 9));
  if (program.collective.kind == Kind::custom)
    program.collective.wants = {{0, 1, {}}, {2, small(0, 3), {{1, 2}, {3, small(-4, 4)}}}};
  program.protocol = static_cast<Protocol>(random.below(3));
  program.placement = static_cast<Placement>(random.below(3));
  program.channels = small(0, 4);
  program.min_bytes = small(-1, 1);
  program.max_bytes = small(0, 1) * std::numeric_limits<std::int64_t>::max();
  program.ranks.resize(random.below(4));
  for (RankProgram& rank : program.ranks) {
    rank.input_chunks = small(-1, 3);
    rank.output_chunks = small(0, 3);
    rank.scratch_chunks = small(0, 3);
    rank.blocks.resize(random.below(3));
    for (Threadblock& block : rank.blocks) {
      block.send_to = small(-1, 2);
      block.receive_from = small(-2, 2);
      block.channel = small(-1, 2);
      block.steps.resize(random.below(5));
      for (Step& step : block.steps) {
        step.op = static_cast<Op>(random.below(kOps));
        step.count = small(-1, 3);
        step.wait_block = small(-1, 1);
        step.wait_step = small(-1, 1);
        step.publishes = random.below(2) == 1;
        if (step.op == Op::nop) continue;
        step.source = {static_cast<Buffer>(random.below(3)), small(-1, 3)};
        step.target = step.source;
        if (reads_source(step.op) && writes_target(step.op)) step.target.index = small(0, 9);
      }
    }
  }
  return program;
}

TEST(ProgramText, PrintedTextParsesBack) {
  Random random(7);
  for (int i = 0; i < 300; ++i) {
    const Program program = random_program(random);
    const std::string text = print(program);
    const auto again = parse_program(text);
    ASSERT_TRUE(again.ok()) << complaint(again, text) << text;
    EXPECT_EQ(*again, program) << text;
  }
}

TEST(MovesText, ParsesAProgram) {
  const auto moves = parse_moves(kMoves);
  ASSERT_TRUE(moves.ok()) << complaint(moves, kMoves);
  EXPECT_EQ(moves->collective.wants[0], (CustomWant{1, 0, {{0, 0}, {2, 0}}}));
  EXPECT_EQ(moves->scratch, (std::vector<std::int32_t>{0, 2, 1}));
  EXPECT_EQ(moves->moves[0], (Move{Move::Verb::copy, {0, Buffer::input, 0}, {1, Buffer::scratch, 0}, 1, 2}));
  EXPECT_EQ(moves->moves[1],
            (Move{Move::Verb::reduce, {1, Buffer::scratch, 0}, {1, Buffer::output, 4}, 2, -1}));
  EXPECT_EQ(print(*moves), kMoves);
}

TEST(MovesText, ChecksBufferBounds) {
  const auto said = [](std::string_view move,
                       std::string_view head = "all_gather, 2 ranks, 2 chunks, in place") {
    const auto moves =
        parse_moves("moves m collective " + std::string(head) + " scratch 1 " + std::string(move));
    return moves.ok() ? "" : moves.error().message;
  };
  EXPECT_EQ(said("copy input[0..1] of 0 to output[2..3] of 0"), "");
  EXPECT_EQ(said("copy input[0..2] of 0 to output[0..2] of 1"),
            "input[0..2] at rank 0 is out of range: 2 chunks");
  EXPECT_EQ(said("copy input[0] of 0 to output[4] of 1"), "output[4] at rank 1 is out of range: 4 chunks");
  EXPECT_EQ(said("copy input[-1] of 0 to output[0] of 1"), "input[-1] at rank 0 is out of range: 2 chunks");
  EXPECT_EQ(said("copy input[0] of 2 to output[0] of 1"), "no such rank: 2 of 2");
  EXPECT_EQ(said("copy input[1..0] of 0 to output[1..0] of 1"),
            "expected a move of at least 1 chunk, found 0");
  EXPECT_EQ(said("copy input[0..1] of 0 to output[0] of 1"), "source and target differ in length: 2 and 1");
  EXPECT_EQ(said("move input[0] of 0 to output[0] of 1"), "expected copy or reduce, found 'move'");
  EXPECT_EQ(said("", "all_reduce, 70000 ranks, 1 chunk, in place"), "expected 1 to 65536 ranks, found 70000");
  EXPECT_EQ(said("", "all_reduce, 2 ranks, 2000000000 chunks, in place"),
            "buffers are too large: 2000000000 chunks per block, 2 ranks");
  EXPECT_EQ(said("", "all_gather, 2 ranks, 1 chunk, counts [1], in place"),
            "expected 2 counts, one per rank, found 1");
  EXPECT_EQ(said("", "gather, 2 ranks, 1 chunk, root 2, in place"), "root is not a rank: 2 of 2");
  EXPECT_EQ(said("", "all_reduce, 2 ranks, 1 chunk, in or out of place"),
            "moves are in place or out of place, not both");
}

TEST(MovesText, ChecksBoundsOfUnequalBlocks) {
  const auto said = [](std::string_view move) {
    const auto moves =
        parse_moves("moves m collective all_to_all, 2 ranks, 1 chunk, counts [1, 2, 0, 4], out of place " +
                    std::string(move));
    return moves.ok() ? "" : moves.error().message;
  };
  EXPECT_EQ(said("copy input[2] of 0 to output[5] of 1"), "");
  EXPECT_EQ(said("copy input[3] of 0 to output[5] of 1"), "input[3] at rank 0 is out of range: 3 chunks");
  EXPECT_EQ(said("copy input[0] of 1 to output[1] of 0"), "output[1] at rank 0 is out of range: 1 chunks");
}

RC_GTEST_PROP(MovesText, PrintedTextParsesBack, (std::vector<std::uint32_t> numbers)) {
  Moves moves;
  moves.name = "m";
  moves.collective = {
      .kind = Kind::all_gather, .ranks = 4, .chunks = 3, .root = 0, .peer = 0, .counts = {}, .wants = {}};
  moves.in_place = numbers.size() % 2 == 1;
  moves.scratch = {3, 3, 3, static_cast<std::int32_t>(3 + numbers.size() % 3)};
  for (const std::uint32_t number : numbers) {
    const auto rank = static_cast<std::int32_t>(number % 4);
    moves.moves.push_back({number & 16 ? Move::Verb::copy : Move::Verb::reduce,
                           {rank, Buffer::input, static_cast<std::int32_t>(number / 32 % 2)},
                           {(rank + 1) % 4, number & 64 ? Buffer::output : Buffer::scratch, 1},
                           1 + static_cast<std::int32_t>(number / 128 % 2),
                           static_cast<std::int32_t>(number / 256 % 3) - 1});
  }
  const auto again = parse_moves(print(moves));
  RC_ASSERT(again.ok());
  RC_ASSERT(*again == moves);
}

}  // namespace
}  // namespace weft::collective
