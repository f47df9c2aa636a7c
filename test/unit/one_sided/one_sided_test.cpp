// Plans with put and signal: lowered from programs with send and receive, checked, and broken on
// purpose.
#include "weft/collectives/one_sided/one_sided.h"

#include <gtest/gtest.h>

#include <algorithm>

#include <rapidcheck/gtest.h>

#include "weft/collectives/chunks/program_text.h"
#include "weft/collectives/one_sided/lower_one_sided.h"

namespace weft::collective {
namespace {

// Each rank's threadblock passes partial sums around the ring, then the results; `count` chunks at
// a time.
Program ring_all_reduce(std::int32_t ranks, std::int32_t count) {
  Program program;
  program.name = "ring";
  program.collective = {
      .kind = Kind::all_reduce, .ranks = ranks, .chunks = ranks * count, .counts = {}, .wants = {}};
  program.placement = Placement::in_place;
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    Threadblock block{.send_to = (rank + 1) % ranks, .receive_from = (rank + ranks - 1) % ranks, .steps = {}};
    const auto add = [&](Op op, std::int32_t behind) {
      const Slot slot{Buffer::input, (rank + 2 * ranks - behind) % ranks * count};
      block.steps.push_back({.op = op, .source = slot, .target = slot, .count = count});
    };
    add(Op::send, 0);
    for (std::int32_t k = 1; k < ranks - 1; ++k) add(Op::receive_reduce_send, k);
    add(Op::receive_reduce_copy_send, ranks - 1);
    for (std::int32_t k = 0; k < ranks - 2; ++k) add(Op::receive_copy_send, k);
    add(Op::receive, ranks - 2);
    program.ranks.push_back({.input_chunks = ranks * count, .blocks = {block}});
  }
  return program;
}

// A chain in which other threadblocks forward what one has received.
constexpr std::string_view kChain = R"(program chain
collective broadcast, 3 ranks, 2 chunks, out of place
protocol Simple, 2 channels

rank 0: input 2, output 2, scratch 0
  block 0: send to 1, channel 0
    0  send input[0]
    1  send input[1]
  block 1: channel 0
    0  copy input[0..1] -> output[0..1]
rank 1: input 2, output 2, scratch 0
  block 0: receive from 0, channel 0
    0  receive output[0] publish
    1  receive output[1] publish
  block 1: send to 2, channel 0
    0  send output[0] after 0.0
    1  nop after 0.0
    2  send output[1] after 0.1
rank 2: input 2, output 2, scratch 0
  block 0: receive from 1, channel 0
    0  receive output[0]
    1  receive output[1]
)";

Program chain() {
  auto program = parse_program(kChain);
  EXPECT_TRUE(program.ok()) << program.error().message;
  return std::move(program).value();
}

OneSided lowered(const Program& program, const OneSidedOptions& options = {}) {
  auto plan = lower_one_sided(program, options);
  EXPECT_TRUE(plan.ok()) << plan.error().message;
  return std::move(plan).value();
}

std::string finding_text(const Report& report) { return report.finding ? print(*report.finding) : "right"; }

std::vector<OneSidedStep>& steps(OneSided& plan, std::int32_t rank, std::int32_t block = 0) {
  return plan.ranks[rank].blocks[block];
}

void erase_first(std::vector<OneSidedStep>& from, Verb verb) {
  const auto at = std::ranges::find(from, verb, &OneSidedStep::verb);
  ASSERT_NE(at, from.end());
  from.erase(at);
}

TEST(OneSidedVerbs, EveryVerbHasItsOwnName) {
  for (std::size_t i = 0; i < kVerbs; ++i)
    EXPECT_EQ(find_verb(word(static_cast<Verb>(i))), static_cast<Verb>(i)) << name(static_cast<Verb>(i));
  EXPECT_EQ(find_verb("glre"), std::nullopt);
  EXPECT_TRUE(sums(Verb::reduce_send_packets));
  EXPECT_TRUE(sums(Verb::switch_reduce_store));
  EXPECT_FALSE(sums(Verb::put));
  EXPECT_FALSE(sums(Verb::read_put_packets));
}

TEST(LowerOneSided, LowersASendToPutNopSignal) {
  const Program program = ring_all_reduce(2, 1);
  ASSERT_EQ(check(program).finding, std::nullopt) << finding_text(check(program));
  const OneSided plan = lowered(program);
  std::vector<std::string_view> words;
  for (const OneSidedStep& step : plan.ranks[0].blocks[0]) words.push_back(word(step.verb));
  EXPECT_EQ(words,
            (std::vector<std::string_view>{"rlxsignal", "rlxwait", "nop", "put", "nop", "signal", "wait",
                                           "nop", "res", "nop", "signal", "wait", "nop", "copy"}));
  EXPECT_EQ(plan.ranks[0].scratch_chunks, 2) << "one chunk per message";
  EXPECT_EQ(plan.collective_word, "allreduce");
}

RC_GTEST_PROP(LowerOneSided, RingsStayCorrect, ()) {
  const auto ranks = *rc::gen::inRange(2, 6);
  const auto count = *rc::gen::inRange(1, 4);
  const auto node = *rc::gen::inRange(0, 4);
  const Program program = ring_all_reduce(ranks, count);
  RC_ASSERT(finding_text(check(program)) == "right");
  const auto plan = lower_one_sided(program, {.ranks_per_node = node});
  RC_ASSERT(plan.ok());
  RC_ASSERT(finding_text(check(*plan)) == "right");
}

TEST(LowerOneSided, WaitsWithinARankBecomeSemaphores) {
  const Program program = chain();
  ASSERT_EQ(finding_text(check(program)), "right");
  OneSided plan = lowered(program);
  EXPECT_EQ(plan.ranks[1].semaphores, std::vector<std::int32_t>{0}) << "one per pair of threadblocks";
  EXPECT_EQ(std::ranges::count(steps(plan, 1, 1), Verb::acquire, &OneSidedStep::verb), 2)
      << "redundant waits are omitted";
  EXPECT_EQ(finding_text(check(plan)), "right");

  OneSided broken = plan;
  erase_first(steps(broken, 1, 1), Verb::acquire);
  EXPECT_EQ(check(broken).verdict(), Verdict::race) << finding_text(check(broken));
  broken = plan;
  erase_first(steps(broken, 1, 0), Verb::release);
  EXPECT_EQ(check(broken).verdict(), Verdict::deadlock) << finding_text(check(broken));
}

TEST(LowerOneSided, ReachesOtherNodesThroughPorts) {
  OneSided plan = lowered(ring_all_reduce(4, 1), {.ranks_per_node = 2});
  EXPECT_EQ(plan.ranks[1].memory_peers, std::vector<std::int32_t>{0});
  EXPECT_EQ(plan.ranks[1].port_peers, std::vector<std::int32_t>{2});
  EXPECT_EQ(std::ranges::count(steps(plan, 1), Verb::put_signal_flush, &OneSidedStep::verb), 6);
  EXPECT_EQ(finding_text(check(plan)), "right");
}

TEST(LowerOneSided, RejectsWhatDoesNotFit) {
  const auto ring = lower_one_sided(ring_all_reduce(12, 1));
  ASSERT_FALSE(ring.ok());
  EXPECT_EQ(ring.error().message, "gpu 0 tb 0: expected at most 64 operations, found 124");
  Program uneven = ring_all_reduce(2, 1);
  uneven.collective.counts = {1, 1};
  EXPECT_EQ(lower_one_sided(uneven).error().message, "expected blocks of one size, found several");
}

TEST(CheckOneSided, FindsEveryMissingStep) {
  const OneSided plan = lowered(ring_all_reduce(3, 1));
  OneSided broken = plan;
  erase_first(steps(broken, 1), Verb::wait);
  EXPECT_EQ(check(broken).verdict(), Verdict::race) << finding_text(check(broken));
  broken = plan;
  erase_first(steps(broken, 1), Verb::signal);
  EXPECT_EQ(check(broken).verdict(), Verdict::deadlock) << finding_text(check(broken));
  broken = plan;
  std::ranges::find(steps(broken, 2), Verb::put, &OneSidedStep::verb)->sources[0].index = 0;
  EXPECT_EQ(check(broken).verdict(), Verdict::wrong_result) << finding_text(check(broken));
}

// One rank, one threadblock, one step.
OneSided single(OneSidedStep step) {
  OneSided plan;
  plan.collective_word = "test";
  plan.ranks.resize(2);
  plan.collective.ranks = 2;
  for (OneSidedRank& rank : plan.ranks) {
    rank.input_chunks = rank.output_chunks = rank.scratch_chunks = 4;
    rank.memory_peers = {&rank == &plan.ranks[0] ? 1 : 0};
    rank.switches = {{Buffer::input, {0, 1}}};
    rank.semaphores = {0};
  }
  plan.ranks[0].blocks = {{std::move(step)}};
  return plan;
}

Operand at(Buffer buffer, std::int32_t index, std::int32_t count = 1) {
  return {Operand::Where::local, 0, buffer, index, count};
}
Operand remote(std::int32_t rank, Buffer buffer, std::int32_t index, std::int32_t count = 1) {
  return {Operand::Where::remote, rank, buffer, index, count};
}

TEST(CheckOneSided, ChecksFormFirst) {
  const auto text = [](OneSidedStep step) {
    const auto finding = check_form(single(std::move(step)));
    return finding ? print(*finding) : "fine";
  };
  using enum Buffer;
  EXPECT_EQ(text({.verb = Verb::copy, .sources = {at(input, 0)}, .targets = {at(output, 3)}}), "fine");
  EXPECT_EQ(text({.verb = Verb::copy, .sources = {at(input, 0)}, .targets = {at(output, 4)}}),
            "gpu 0 tb 0 step 0: expected a range within 4 chunks of output of gpu 0, found 1 from 4");
  EXPECT_EQ(text({.verb = Verb::copy, .sources = {at(input, 0, 2)}, .targets = {at(output, 0)}}),
            "gpu 0 tb 0 step 0: expected equal sizes, found 2 and 1");
  EXPECT_EQ(text({.verb = Verb::copy, .sources = {at(input, 0)}}),
            "gpu 0 tb 0 step 0: expected 1 targets of copy, found 0");
  EXPECT_EQ(
      text({.verb = Verb::put, .path = Path::memory, .sources = {at(input, 0)}, .targets = {at(input, 1)}}),
      "gpu 0 tb 0 step 0: expected remote buffers among the targets of put, found a local one");
  EXPECT_EQ(text({.verb = Verb::put, .sources = {at(input, 0)}, .targets = {remote(1, input, 1)}}),
            "gpu 0 tb 0 step 0: expected a memory or port channel type for a remote buffer, found none");
  EXPECT_EQ(text({.verb = Verb::put,
                  .path = Path::memory,
                  .sources = {at(input, 0)},
                  .targets = {remote(7, input, 1)}}),
            "gpu 0 tb 0 step 0: expected a buffer of one of 2 ranks, found 7");
  EXPECT_EQ(text({.verb = Verb::signal, .path = Path::memory, .channels = {1}}),
            "gpu 0 tb 0 step 0: expected one of 1 memory channels, found 1");
  EXPECT_EQ(text({.verb = Verb::acquire, .semaphores = {3}}),
            "gpu 0 tb 0 step 0: expected one of 1 semaphores, found 3");
  EXPECT_EQ(text({.verb = Verb::barrier, .barrier = 0, .members = 2}),
            "gpu 0: expected 2 threadblocks at barrier 0, found 1");
  EXPECT_EQ(
      text(
          {.verb = Verb::copy, .sources = {at(input, 0)}, .targets = {at(output, 0)}, .part = 2, .parts = 2}),
      "gpu 0 tb 0 step 0: expected a part of 2, found 2");
  EXPECT_EQ(
      text({.verb = Verb::copy, .sources = {at(input, 0)}, .targets = {at(output, 0)}, .parts = 1 << 20}),
      "expected groups of threadblocks that divide a chunk into at most 4096 parts, found more");
}

TEST(OneSidedActions, AGroupDividesEveryChunk) {
  OneSided plan = single({.verb = Verb::copy,
                          .sources = {at(Buffer::input, 1)},
                          .targets = {at(Buffer::output, 2)},
                          .part = 1,
                          .parts = 3});
  const Actions actions = to_actions(plan, Grain::step);
  ASSERT_EQ(actions.actions.size(), 1u);
  EXPECT_EQ(actions.memory[0].chunks[0], 12);
  EXPECT_EQ(actions.actions[0].count, 1);
  EXPECT_EQ(actions.cells[0].index, 4) << "the second third of chunk 1";
  EXPECT_EQ(actions.cells[1].index, 7);
}

TEST(OneSidedActions, ASwitchReachesAllItsRanks) {
  const Operand all{Operand::Where::switched, 0, Buffer::input, 2, 1};
  const Actions actions = to_actions(
      single({.verb = Verb::switch_reduce_store, .path = Path::switched, .sources = {all}, .targets = {all}}),
      Grain::chunk);
  ASSERT_EQ(actions.actions.size(), 1u);
  EXPECT_EQ(actions.actions[0].sources, 2);
  EXPECT_EQ(actions.actions[0].targets, 2);
  EXPECT_EQ(actions.cells[3].rank, 1);
  EXPECT_EQ(actions.cells[3].index, 2);
}

TEST(OneSidedActions, ASignalRaisesTheOtherEnd) {
  OneSided plan = single({.verb = Verb::signal, .path = Path::memory, .channels = {0}});
  Actions actions = to_actions(plan, Grain::chunk);
  ASSERT_EQ(actions.actions.size(), 1u);
  const Counter& raised = actions.counters[actions.actions[0].raise];
  EXPECT_EQ(raised.rank, 1);
  EXPECT_EQ(raised.name, "memory channel 0 from gpu 0");
  plan.ranks[1].memory_peers.clear();
  actions = to_actions(plan, Grain::chunk);
  EXPECT_EQ(actions.actions[0].raise, -1) << "no rank is at the other end";
}

}  // namespace
}  // namespace weft::collective
