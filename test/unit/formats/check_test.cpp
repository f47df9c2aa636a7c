// The checker of chunk programs: correct programs, and every kind of error with its message.
#include "weft/collectives/check/check.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>

#include "chunk_programs.h"
#include "weft/formats/msccl_xml.h"
#include "weft/formats/xml_document.h"

namespace weft::collective {
namespace {

std::string summary(const Report& report) {
  if (!report.finding) return fmt::format("ok, {} slots, {} small", report.slots, report.slots_small);
  return fmt::format("{}: {}", name(report.finding->verdict), print(*report.finding));
}
std::string summary(const Program& program, const CheckOptions& options = {}) {
  return summary(check(program, options));
}

// ---- correct programs

TEST(Check, AcceptsCorrectPrograms) {
  EXPECT_EQ(summary(ring(2)), "ok, 2 slots, 2 small");
  EXPECT_EQ(summary(ring(5)), "ok, 2 slots, 2 small");
  EXPECT_EQ(summary(ring(4, 3)), "ok, 4 slots, 2 small");
  EXPECT_EQ(summary(all_pairs(Kind::all_to_all, 4, 1, Placement::out_of_place)), "ok, 1 slots, 1 small");
  EXPECT_EQ(summary(all_pairs(Kind::all_gather, 4, 3, Placement::either)), "ok, 3 slots, 1 small");
  EXPECT_EQ(summary(chain(4, 3)), "ok, 1 slots, 1 small");
  EXPECT_EQ(summary(there_and_back(2)), "ok, 1 slots, 1 small");
  EXPECT_EQ(summary(empty_program(Kind::all_reduce, 1, 4, Placement::in_place)), "ok, 1 slots, 1 small");
}

// The order may depend on other ranks: nothing local shows that the send of a partial sum is
// complete.
TEST(Check, FollowsOrderThroughOtherRanks) {
  EXPECT_EQ(summary(ring_of_pairs(2)), "ok, 1 slots, 1 small");
  EXPECT_EQ(summary(ring_of_pairs(40)), "ok, 1 slots, 1 small");
}

TEST(Check, InPlaceAllGatherNeedsNoCopyOfItsOwnChunk) {
  Program program = all_pairs(Kind::all_gather, 3, 2, Placement::in_place);
  EXPECT_EQ(summary(program), "ok, 2 slots, 1 small");
  for (RankProgram& rank : program.ranks) {
    rank.input_chunks = 0;
    rank.blocks.pop_back();  // the copy onto itself
  }
  EXPECT_EQ(summary(program), "ok, 2 slots, 1 small");
  program.placement = Placement::out_of_place;
  EXPECT_EQ(summary(program), "wrong-result: gpu 0: output[0] was never written");
}

TEST(Check, SupportsUnequalBlocks) {
  Program program = empty_program(Kind::all_gather, 2, 1, Placement::either);
  program.collective.counts = {1, 3};
  program.ranks[0] = {
      1, 4, 0, {block(1, 1, {send(in(0)), receive(out(1), 3)}), block(-1, -1, {copy(in(0), out(0))})}};
  program.ranks[1] = {
      3, 4, 0, {block(0, 0, {send(in(0), 3), receive(out(0))}), block(-1, -1, {copy(in(0), out(1), 3)})}};
  EXPECT_EQ(summary(program), "ok, 1 slots, 1 small");
}

// ---- form

struct Slip {
  std::string_view name;
  std::function<void(Program&)> make;
  std::string_view expected;
};

TEST(CheckForm, NamesEachError) {
  const auto first = [](Program& program) -> Step& { return program.ranks[1].blocks[0].steps[0]; };
  const std::vector<Slip> slips = {
      {"ranks", [](Program& p) { p.ranks.pop_back(); },
       "malformed: the collective has 3 ranks, the program 2"},
      {"no ranks", [](Program& p) { p.collective.ranks = 0; },
       "malformed: a program has 1 to 1048576 ranks, this one 0"},
      {"chunks", [](Program& p) { p.collective.chunks = 2'000'000'000; },
       "malformed: 3 ranks with blocks of 2000000000 chunks: expected 1 to 33554432 in all"},
      {"counts",
       [](Program& p) {
         p.collective.counts = {1, 2};
       },
       "malformed: expected 3 block sizes, found 2"},
      {"root", [](Program& p) { p.collective.kind = Kind::broadcast, p.collective.root = 3; },
       "malformed: the root is not a rank: gpu 3"},
      {"extent", [](Program& p) { p.ranks[2].input_chunks = 4; },
       "malformed: gpu 2: input has 4 chunks, expected 3 for all_reduce of 3 ranks"},
      {"memory", [](Program& p) { p.ranks[2].scratch_chunks = 2'000'000'000; },
       "malformed: gpu 2: scratch of 2000000000 chunks: expected 0 to 33554432"},
      {"self", [](Program& p) { p.ranks[1].blocks[0].send_to = 1; },
       "malformed: gpu 1 tb 0: sends to its own gpu"},
      {"peer", [](Program& p) { p.ranks[1].blocks[0].receive_from = 3; },
       "malformed: gpu 1 tb 0: receives from gpu 3, which does not exist"},
      {"channel", [](Program& p) { p.ranks[1].blocks[0].channel = 1; },
       "malformed: gpu 1 tb 0: channel 1 does not exist: the program has 1"},
      {"nobody", [](Program& p) { p.ranks[1].blocks[0].send_to = -1; },
       "malformed: gpu 1 tb 0 step 0: send in a threadblock that has no peer to send to"},
      {"shared", [](Program& p) { p.ranks[1].blocks.push_back(block(2, -1, {send(in(0))})); },
       "malformed: gpu 1 tb 1: tb 0 and tb 1 both send to gpu 2 on channel 0"},
      {"count", [&](Program& p) { first(p).count = 0; }, "malformed: gpu 1 tb 0 step 0: send of 0 chunks"},
      {"huge", [&](Program& p) { first(p).count = 2'147'483'647; },
       "malformed: steps over 33554446 chunks: at most 16777216"},
      {"range", [&](Program& p) { first(p).source.index = 2, first(p).count = 2; },
       "malformed: gpu 1 tb 0 step 0: reads input[2..4), which has 3 chunks"},
      {"negative", [&](Program& p) { first(p).source.index = -1; },
       "malformed: gpu 1 tb 0 step 0: reads input[-1..0), which has 3 chunks"},
      {"wait block", [&](Program& p) { first(p).wait_block = 1, first(p).wait_step = 0; },
       "malformed: gpu 1 tb 0 step 0: waits for tb 1, which does not exist"},
      {"wait step",
       [](Program& p) { p.ranks[1].blocks[0].steps[1] = after(0, 9, p.ranks[1].blocks[0].steps[1]); },
       "malformed: gpu 1 tb 0 step 1: waits for step 9 of tb 0, which has 5"},
      {"own step",
       [](Program& p) { p.ranks[1].blocks[0].steps[1] = after(0, 1, p.ranks[1].blocks[0].steps[1]); },
       "malformed: gpu 1 tb 0 step 1: waits for step 1 of its own threadblock"},
  };
  for (const Slip& slip : slips) {
    Program program = ring(3);
    slip.make(program);
    EXPECT_EQ(summary(program), slip.expected) << slip.name;
  }
}

TEST(CheckForm, AcceptsAWaitForAnEarlierStepOfTheSameBlock) {
  Program program = ring(3);
  std::vector<Step>& steps = program.ranks[1].blocks[0].steps;
  steps[0].publishes = true;
  steps[2] = after(0, 0, steps[2]);
  EXPECT_EQ(summary(program), "ok, 2 slots, 2 small");
}

// ---- deadlock

TEST(CheckDeadlock, PrintsTheCycle) {
  Program program = all_pairs(Kind::all_to_all, 2, 1, Placement::out_of_place);
  for (RankProgram& rank : program.ranks) std::swap(rank.blocks[0].steps[0], rank.blocks[0].steps[1]);
  EXPECT_EQ(summary(program),
            "deadlock: gpu 0 tb 0 step 0: waits for a message of gpu 1 tb 0 step 1, held up at step 0, which "
            "waits for a message of gpu 0 tb 0 step 1");

  program = all_pairs(Kind::all_to_all, 2, 1, Placement::out_of_place);
  program.ranks[1].blocks[0].steps[0] = publish(after(1, 0, program.ranks[1].blocks[0].steps[0]));
  program.ranks[1].blocks[1].steps[0] = publish(after(0, 0, program.ranks[1].blocks[1].steps[0]));
  EXPECT_EQ(summary(program),
            "deadlock: gpu 1 tb 0 step 0: waits for tb 1 step 0, which waits for tb 0 step 0");
}

TEST(CheckDeadlock, ShortensALongCycle) {
  Program program = ring(9);
  for (RankProgram& rank : program.ranks) std::swap(rank.blocks[0].steps[0], rank.blocks[0].steps[1]);
  EXPECT_EQ(
      summary(program),
      "deadlock: gpu 0 tb 0 step 0: waits for a message of gpu 8 tb 0 step 0, which waits for a message of "
      "gpu 7 tb 0 step 0, which waits for a message of gpu 6 tb 0 step 0, and so on through 9 threadblocks "
      "back to gpu 0 tb 0 step 0");
}

TEST(CheckDeadlock, NamesTheMissingPartner) {
  Program program = all_pairs(Kind::all_to_all, 2, 1, Placement::out_of_place);
  program.ranks[1].blocks[0].steps.erase(program.ranks[1].blocks[0].steps.begin());
  EXPECT_EQ(summary(program),
            "deadlock: gpu 0 tb 0 step 1: waits for a message from gpu 1 on channel 0 that no rank sends");

  program = ring(3);
  program.ranks[2].blocks[0].steps[3].op = Op::receive;
  EXPECT_EQ(summary(program),
            "deadlock: gpu 0 tb 0 step 4: waits for chunk 3 from gpu 2 on channel 0, which sends only 3");

  program = all_pairs(Kind::all_to_all, 2, 1, Placement::out_of_place);
  program.ranks[1].blocks[0].steps.pop_back();
  EXPECT_EQ(summary(program),
            "deadlock: gpu 0 tb 0 step 0: sends a message to gpu 1 on channel 0 that no rank receives");

  program = there_and_back(2);
  program.ranks[0].blocks[0].steps[0].publishes = false;
  EXPECT_EQ(summary(program), "deadlock: gpu 0 tb 1 step 0: waits for tb 0 step 0, which never publishes");
}

// A later step that publishes works as well, if it can run first.
TEST(CheckDeadlock, AcceptsALaterPublication) {
  Program program = there_and_back(2);
  program.ranks[0].blocks[1].steps[1].publishes = false;
  program.ranks[0].blocks[0].steps[1].wait_step = 1;
  EXPECT_EQ(summary(program), "ok, 1 slots, 1 small");
}

TEST(CheckDeadlock, DetectsMismatchedTransfers) {
  Program program = all_pairs(Kind::all_to_all, 2, 2, Placement::out_of_place);
  program.ranks[1].blocks[0].steps[0].count = 1;
  EXPECT_EQ(summary(program),
            "deadlock: gpu 0 tb 0 step 1: receives 2 chunks from transfer 0 of gpu 1, which carries 1 chunk "
            "(gpu 1 tb 0 "
            "step 0)");
  // The same total in other transfers is correct if a slot holds one chunk, and wrong if it holds
  // more.
  program.ranks[1].blocks[0].steps.insert(program.ranks[1].blocks[0].steps.begin() + 1, send(in(1)));
  EXPECT_EQ(
      summary(program),
      "wrong-result: gpu 0 tb 0 step 1: receives 2 chunks from transfer 0 of gpu 1, which carries 1 chunk "
      "(gpu 1 "
      "tb 0 step 0)");
}

TEST(CheckDeadlock, DetectsTooFewSlots) {
  const Program program = all_pairs(Kind::all_gather, 2, 4, Placement::either);
  EXPECT_EQ(summary(program, {.slots = 4}), "ok, 4 slots, 1 small");
  const Report report = check(program, {.slots = 2});
  EXPECT_EQ(report.slots, 4);
  EXPECT_EQ(summary(report),
            "deadlock: gpu 0 tb 0 step 0: needs 4 slots per connection and has 2: waits for a free slot, "
            "which is freed by gpu 1 tb 0 step 1, held up at step 0, which waits for a free slot, which is "
            "freed by gpu 0 tb 0 step 1");
  EXPECT_EQ(summary(ring(3), {.slots = 1}).substr(0, 70),
            "deadlock: gpu 0 tb 0 step 1: needs 2 slots per connection and has 1: w");
}

// ---- race

TEST(CheckRace, NamesBothAccesses) {
  Program program = there_and_back(2);
  program.ranks[0].blocks[1].steps[0].wait_block = -1;
  EXPECT_EQ(summary(program), "race: gpu 0 tb 0 step 0: writes scratch[0] while tb 1 step 1 reads it");

  program = there_and_back(2);
  program.ranks[0].blocks[0].steps[1].wait_step = 1;
  EXPECT_EQ(summary(program), "race: gpu 0 tb 0 step 1: reads input[1] while tb 1 step 2 writes it");

  program = all_pairs(Kind::all_to_all, 3, 1, Placement::out_of_place);
  program.ranks[0].blocks[0].steps[1].target = out(2);
  EXPECT_EQ(summary(program), "race: gpu 0 tb 1 step 1: writes output[2] while tb 0 step 1 writes it");
}

TEST(CheckRace, DetectsRacesThatOccurInPlaceOnly) {
  const Program program = all_pairs(Kind::all_to_all, 2, 1, Placement::either);
  const Report report = check(program);
  EXPECT_EQ(summary(report).substr(0, 4), "ok, ") << summary(report);  // each block sends before it receives
  Program apart = program;
  for (RankProgram& rank : apart.ranks) {
    const Threadblock pair = rank.blocks[0];
    rank.blocks[0] = block(pair.send_to, -1, {pair.steps[0]});
    rank.blocks.push_back(block(-1, pair.receive_from, {pair.steps[1]}));
  }
  EXPECT_EQ(summary(apart), "race: gpu 1 tb 2 step 0: writes input[0] while tb 0 step 0 reads it (in place)");
}

// A full connection that happens to delay a threadblock establishes no order.
TEST(CheckRace, SlotsDoNotEstablishOrder) {
  Program program = empty_program(Kind::custom, 2, 1, Placement::out_of_place);
  program.channels = 2;
  program.ranks[0] = {
      2,
      2,
      0,
      {block(1, -1, {send(in(0)), publish(send(in(1)))}), block(1, -1, {after(0, 1, send(in(1)))}, 1)}};
  program.ranks[1] = {
      2, 2, 1, {block(-1, 0, {receive(out(0)), receive(scratch(0))}), block(-1, 0, {receive(out(0))}, 1)}};
  // With one slot, rank 1 has received the first chunk before the second can be sent; with two
  // slots, it may not have.
  EXPECT_EQ(summary(program), "race: gpu 1 tb 1 step 0: writes output[0] while tb 0 step 0 writes it");
}

TEST(CheckRace, ChunksOfOneStepMoveTogether) {
  Program program = empty_program(Kind::custom, 1, 1, Placement::out_of_place);
  program.ranks[0] = {4, 4, 0, {block(-1, -1, {copy(in(0), out(0), 4), copy(out(0), out(1), 3)})}};
  EXPECT_EQ(summary(program), "race: gpu 0 tb 0 step 1: reads output[0..3) while it writes output[1..4)");
}

// ---- result

TEST(CheckResult, ReportsWrongResults) {
  Program program = ring(3);
  program.ranks[1].blocks[0].steps[1].op = Op::receive_copy_send;
  EXPECT_EQ(summary(program),
            "wrong-result: gpu 1 tb 0 step 1: overwrites input[0] before any rank has read it, so output[0] "
            "of gpu 0 lacks it");

  program = there_and_back(1);
  program.ranks[0].blocks[1].steps.push_back(publish(reduce(scratch(0), in(0))));
  program.ranks[0].blocks[0].steps[1].wait_step = 2;
  EXPECT_EQ(summary(program), "wrong-result: gpu 0 tb 1 step 2: adds input[0] of gpu 1 to output[0] twice");

  program = all_pairs(Kind::all_to_all, 3, 1, Placement::out_of_place);
  program.ranks[2].blocks[0].steps[0].source = in(1);
  EXPECT_EQ(summary(program),
            "wrong-result: gpu 0 tb 1 step 1: output[2] holds input[1] of gpu 2, expected input[0] of gpu 2");

  program = all_pairs(Kind::all_gather, 2, 1, Placement::out_of_place);
  program.ranks[0].blocks[0].steps[1].op = Op::receive_reduce_copy;
  EXPECT_EQ(summary(program),
            "wrong-result: gpu 0 tb 0 step 1: reads output[1], which was never written before");

  program = all_pairs(Kind::all_gather, 2, 1, Placement::out_of_place);
  program.ranks[0].scratch_chunks = 1;
  program.ranks[0].blocks[1].steps[0].source = scratch(0);
  EXPECT_EQ(summary(program), "wrong-result: gpu 0 tb 1 step 0: reads scratch[0], which was never written");

  program = there_and_back(1);
  program.ranks[0].blocks[1].steps[1] = publish(copy(scratch(0), in(0)));
  EXPECT_EQ(summary(program),
            "wrong-result: gpu 0 tb 1 step 1: overwrites input[0] before any rank has read it, so output[0] "
            "lacks it");

  program = ring(3);
  program.ranks[0].blocks[0].steps[1].op = Op::receive_reduce_send;
  program.ranks[0].blocks[0].steps[1].source = in(0);
  EXPECT_EQ(
      summary(program),
      "wrong-result: gpu 0 tb 0 step 1: adds input[0] of gpu 0 to output[2], which must not contain it");
}

// Repeated doubling yields numbers that overflow any word, and must stay cheap.
TEST(CheckResult, HandlesManyDoublings) {
  Program program = empty_program(Kind::all_reduce, 1, 1, Placement::in_place, 1);
  std::vector<Step> steps;
  for (int i = 0; i < 300; ++i) steps.push_back(reduce(in(0), in(0)));
  program.ranks[0].blocks = {block(-1, -1, steps)};
  EXPECT_EQ(summary(program), "wrong-result: gpu 0 tb 0 step 299: adds input[0] of gpu 0 to output[0] twice");
}

TEST(CheckResult, ChecksCustomWants) {
  Program program = empty_program(Kind::custom, 2, 1, Placement::out_of_place);
  program.collective.wants = {{1, 0, {{0, 0}, {0, 0}, {1, 0}}}};
  program.ranks[0] = {1, 0, 0, {block(1, -1, {send(in(0)), send(in(0))})}};
  program.ranks[1] = {
      1,
      1,
      0,
      {block(-1, 0,
             {step(Op::receive_reduce_copy, in(0), out(0)), step(Op::receive_reduce_copy, out(0), out(0))})}};
  EXPECT_EQ(summary(program), "ok, 1 slots, 1 small");
  program.collective.wants[0].contributions.pop_back();
  EXPECT_EQ(
      summary(program),
      "wrong-result: gpu 1 tb 0 step 0: adds input[0] of gpu 1 to output[0], which must not contain it");
}

TEST(CheckResult, ChecksCustomWithoutWants) {
  Program program = empty_program(Kind::custom, 2, 1, Placement::in_place);
  program.ranks[0] = {1, 1, 0, {block(1, -1, {send(in(0))})}};
  program.ranks[1] = {1, 1, 0, {block(0, 0, {receive(out(0)), send(in(0))})}};
  program.ranks[0].blocks.push_back(block(-1, 1, {receive(out(0))}));
  EXPECT_EQ(
      summary(program),
      "wrong-result: gpu 0 tb 1 step 0: in place, output[0] of gpu 0 holds input[0] of gpu 0, out of place "
      "input[0] of gpu 1");
  program.placement = Placement::out_of_place;
  EXPECT_EQ(summary(program), "ok, 1 slots, 1 small");
  program.ranks[0].blocks[0].steps[0].source = out(0);
  program.ranks[0].blocks[1].steps[0].target = in(0);
  EXPECT_EQ(summary(program), "wrong-result: gpu 0 tb 0 step 0: reads output[0], which was never written");
}

// ---- actions of other machines

// Two agents of one rank with a counter: agent 0 writes output[0] and raises, agent 1 consumes and
// reads it.
class CheckActions : public ::testing::Test {
 protected:
  CheckActions() {
    actions_.collective.kind = Kind::custom;
    actions_.memory = {{{2, 2, 2}}};
  }

  void add_agent(std::vector<Action> own, std::vector<std::vector<Cell>> sources,
                 std::vector<std::vector<Cell>> targets) {
    const auto agent = static_cast<std::int32_t>(actions_.agents.size());
    const auto first = static_cast<std::int32_t>(actions_.actions.size());
    for (std::size_t i = 0; i < own.size(); ++i) {
      own[i].agent = agent;
      own[i].step = static_cast<std::int32_t>(i);
      own[i].first_cell = static_cast<std::int32_t>(actions_.cells.size());
      own[i].sources = static_cast<std::int16_t>(sources[i].size());
      own[i].targets = static_cast<std::int16_t>(targets[i].size());
      for (const auto* cells : {&sources[i], &targets[i]})
        actions_.cells.insert(actions_.cells.end(), cells->begin(), cells->end());
      actions_.actions.push_back(own[i]);
    }
    actions_.agents.push_back({0, agent, first, static_cast<std::int32_t>(actions_.actions.size())});
  }

  std::string summary() const { return collective::summary(check(actions_, nullptr)); }

  static Action raising(std::int32_t counter) {
    Action action;
    action.raise = counter;
    return action;
  }
  static Action consuming(std::int32_t counter) {
    Action action;
    action.consume = counter;
    return action;
  }
  static Action arriving() {
    Action action;
    action.barrier = 0;
    return action;
  }

  static constexpr Cell kIn{0, Buffer::input, false, 0}, kOut{0, Buffer::output, false, 0};
  static constexpr Cell kPacket{0, Buffer::scratch, true, 0}, kOther{0, Buffer::output, false, 1};
  Actions actions_;
};

TEST_F(CheckActions, ACounterEstablishesOrder) {
  actions_.counters = {{0, 0, 0, "semaphore 0"}};
  add_agent({raising(0)}, {{kIn}}, {{kOut}});
  add_agent({consuming(0)}, {{kOut}}, {{kOther}});
  EXPECT_EQ(summary(), "ok, 1 slots, 1 small");
  actions_.counters[0].initial = 1;  // the consumer need not wait now
  EXPECT_EQ(summary(), "race: gpu 0 tb 1 step 0: reads output[0] while tb 0 step 0 writes it");
}

TEST_F(CheckActions, DetectsACounterThatIsNeverRaised) {
  actions_.counters = {{0, 0, 0, "semaphore 0"}};
  add_agent({raising(0)}, {{kIn}}, {{kOut}});
  add_agent({consuming(0), consuming(0)}, {{}, {kOut}}, {{}, {kOther}});
  EXPECT_EQ(summary(), "deadlock: gpu 0 tb 1 step 1: waits for semaphore 0, which no rank raises again");
}

// If two agents raise a counter, only both raises together establish order.
TEST_F(CheckActions, ACounterMayHaveTwoRaisers) {
  actions_.counters = {{0, 0, 0, "semaphore 0"}};
  add_agent({raising(0)}, {{kIn}}, {{kOut}});
  add_agent({raising(0)}, {{}}, {{}});
  add_agent({consuming(0), consuming(0)}, {{}, {kOut}}, {{}, {kOther}});
  EXPECT_EQ(summary(), "ok, 1 slots, 1 small");
  std::swap(actions_.actions[2].sources, actions_.actions[3].sources);  // reads after the first of them
  EXPECT_EQ(summary().substr(0, 5), "race:");
}

TEST_F(CheckActions, ABarrierEstablishesOrder) {
  actions_.barriers = {{0, {0, 1}}};
  add_agent({Action{}, arriving()}, {{kIn}, {}}, {{kOut}, {}});
  add_agent({arriving(), Action{}}, {{}, {kOut}}, {{}, {kOther}});
  EXPECT_EQ(summary(), "ok, 1 slots, 1 small");
  actions_.actions[2].barrier = -1;
  EXPECT_EQ(summary(), "deadlock: gpu 0 tb 0 step 1: waits at barrier 0, which not all threadblocks reach");
  actions_.actions[1].barrier = -1;
  EXPECT_EQ(summary(), "race: gpu 0 tb 1 step 1: reads output[0] while tb 0 step 0 writes it");
}

TEST_F(CheckActions, APacketEstablishesOrder) {
  add_agent({Action{}}, {{kIn}}, {{kPacket}});
  add_agent({Action{}}, {{kPacket}}, {{kOut}});
  EXPECT_EQ(summary(), "ok, 1 slots, 1 small");
  actions_.cells[1].index = 1;
  EXPECT_EQ(summary(), "deadlock: gpu 0 tb 1 step 0: waits for a packet in scratch[0] that no rank writes");
}

TEST_F(CheckActions, APacketMayHaveTwoWriters) {
  actions_.counters = {{0, 0, 0, "semaphore 0"}, {0, 0, 0, "semaphore 1"}};
  add_agent({raising(0)}, {{kIn}}, {{kPacket}});
  add_agent({raising(1)}, {{kPacket}}, {{kOut}});
  add_agent({consuming(0), consuming(1)}, {{}, {kIn}}, {{}, {kPacket}});
  EXPECT_EQ(summary(), "ok, 1 slots, 1 small");  // written again after the read
  actions_.actions[3].consume = -1;
  EXPECT_EQ(summary(), "race: gpu 0 tb 2 step 1: writes scratch[0] while tb 1 step 0 reads it");
}

TEST_F(CheckActions, RejectsAMissingCell) {
  add_agent({Action{}}, {{kIn}}, {{{0, Buffer::output, false, 2}}});
  EXPECT_EQ(summary(), "malformed: gpu 0 tb 0 step 0: uses output[2..3) of gpu 0, which has 2 chunks");
}

// ---- published programs, and broken versions of them

class CheckCorpus : public ::testing::TestWithParam<const char*> {
 protected:
  static constexpr std::uintmax_t kMostBytes = 60'000;  // per file: larger ones are slow unoptimized

  void for_each(const std::function<void(const nlohmann::json&, const Report&)>& judge) {
    const std::filesystem::path folder =
        std::filesystem::path(WEFT_SOURCE_DIR) / "../shared/corpus" / GetParam();
    if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << "no programs in " << folder;
    if (const auto probe = formats::XmlDocument::parse("<a/>"); !probe.ok())
      GTEST_SKIP() << probe.error().message;
    std::ifstream manifest(folder / "manifest.json");
    for (const nlohmann::json& entry : nlohmann::json::parse(manifest)) {
      const std::filesystem::path file = folder / entry.at("file").get<std::string>();
      if (std::filesystem::file_size(file) > kMostBytes) continue;
      std::ifstream stream(file);
      const std::string text{std::istreambuf_iterator<char>(stream), {}};
      const auto read = formats::read_msccl_xml(text);
      Report report;
      if (read.ok())
        report = check(read->program);
      else
        report.finding = Finding{Verdict::malformed, {}, read.error().message};
      judge(entry, report);
    }
  }
};

class CheckRight : public CheckCorpus {};
class CheckBroken : public CheckCorpus {};

TEST_P(CheckRight, AcceptsWithTheExpectedSlots) {
  for_each([](const nlohmann::json& entry, const Report& report) {
    EXPECT_FALSE(report.finding) << entry.at("file") << ": " << summary(report);
    // The manifest tried only powers of two.
    const std::int32_t slots = entry.at("fifo_slots_needed"), small = entry.at("fifo_slots_needed_small");
    EXPECT_TRUE(report.slots <= slots && report.slots > slots / 2)
        << entry.at("file") << ": " << summary(report);
    EXPECT_TRUE(report.slots_small <= small && report.slots_small > small / 2)
        << entry.at("file") << ": " << summary(report);
  });
}

TEST_P(CheckBroken, RejectsWithTheExpectedVerdict) {
  for_each([](const nlohmann::json& entry, const Report& report) {
    const std::string verdict(name(report.verdict()));
    const auto also = entry.at("also_acceptable").get<std::vector<std::string>>();
    EXPECT_TRUE(verdict == entry.at("verdict").get<std::string>() ||
                std::ranges::find(also, verdict) != also.end())
        << entry.at("file") << ", " << entry.at("what") << ": " << summary(report);
  });
}

INSTANTIATE_TEST_SUITE_P(Corpus, CheckRight, ::testing::Values("msccl-xml"));
INSTANTIATE_TEST_SUITE_P(Corpus, CheckBroken, ::testing::Values("msccl-xml-broken"));

}  // namespace
}  // namespace weft::collective
