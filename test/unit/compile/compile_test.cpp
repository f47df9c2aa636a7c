// Moves become programs: what every pass does, and that the result is correct, small and fits the
// FIFOs.
#include "weft/collectives/compile/compile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "weft/collectives/check/check.h"
#include "weft/collectives/chunks/check_moves.h"
#include "weft/collectives/chunks/program_text.h"
#include "weft/collectives/compile/block_waits.h"
#include "weft/collectives/compile/cut.h"
#include "weft/collectives/compile/dependence.h"
#include "weft/collectives/compile/fuse.h"
#include "weft/collectives/compile/instances.h"
#include "weft/collectives/compile/order.h"
#include "weft/collectives/compile/out_of_place.h"
#include "weft/collectives/compile/passes.h"
#include "weft/collectives/compile/split.h"

namespace weft::collective {
namespace {

constexpr Buffer kInput = Buffer::input, kOutput = Buffer::output, kScratch = Buffer::scratch;

Moves start(Kind kind, int ranks, int chunks, bool in_place, int scratch = 0) {
  Moves moves;
  moves.name = std::string(name(kind));
  moves.collective.kind = kind;
  moves.collective.ranks = ranks;
  moves.collective.chunks = chunks;
  moves.in_place = in_place;
  moves.scratch.assign(static_cast<std::size_t>(ranks), scratch);
  return moves;
}

void copy(Moves& moves, Place from, Place to, int count = 1, int channel = -1) {
  moves.moves.push_back({Move::Verb::copy, from, to, count, channel});
}
void reduce(Moves& moves, Place from, Place to, int count = 1, int channel = -1) {
  moves.moves.push_back({Move::Verb::reduce, from, to, count, channel});
}

// Each block of `lanes` chunks goes around the ring twice, lane by lane.
Moves ring_all_reduce(int ranks, int lanes, int channels = 0) {
  Moves moves = start(Kind::all_reduce, ranks, ranks * lanes, true);
  for (int step = 0; step < 2 * (ranks - 1); ++step)
    for (int block = 0; block < ranks; ++block)
      for (int lane = 0; lane < lanes; ++lane) {
        const int from = (block + step + 1) % ranks, index = block * lanes + lane;
        const int channel = channels > 0 ? lane % channels : -1;
        const Place source{from, kInput, index}, target{(from + 1) % ranks, kInput, index};
        if (step < ranks - 1)
          reduce(moves, source, target, 1, channel);
        else
          copy(moves, source, target, 1, channel);
      }
  return moves;
}

Moves ring_all_gather(int ranks, int count) {
  Moves moves = start(Kind::all_gather, ranks, count, true);
  for (int step = 0; step < ranks - 1; ++step)
    for (int block = 0; block < ranks; ++block) {
      const int from = (block + step) % ranks;
      copy(moves, {from, kOutput, block * count}, {(from + 1) % ranks, kOutput, block * count}, count);
    }
  return moves;
}

Moves ring_reduce_scatter(int ranks) {
  Moves moves = start(Kind::reduce_scatter, ranks, 1, true);
  for (int step = 1; step < ranks; ++step)
    for (int block = 0; block < ranks; ++block) {
      const int from = (block + step) % ranks;
      reduce(moves, {from, kInput, block}, {(from + 1) % ranks, kInput, block});
    }
  return moves;
}

Moves recursive_doubling_all_gather(int ranks) {
  Moves moves = start(Kind::all_gather, ranks, 1, true);
  for (int distance = 1; distance < ranks; distance *= 2)
    for (int rank = 0; rank < ranks; ++rank) {
      const int first = rank / distance * distance;
      copy(moves, {rank, kOutput, first}, {rank ^ distance, kOutput, first}, distance);
    }
  return moves;
}

Moves halving_doubling_all_reduce(int ranks) {
  Moves moves = start(Kind::all_reduce, ranks, ranks, true);
  for (int distance = ranks / 2; distance > 0; distance /= 2)
    for (int rank = 0; rank < ranks; ++rank) {
      const int peer = rank ^ distance, first = peer / distance * distance;
      reduce(moves, {rank, kInput, first}, {peer, kInput, first}, distance);
    }
  for (int distance = 1; distance < ranks; distance *= 2)
    for (int rank = 0; rank < ranks; ++rank) {
      const int first = rank / distance * distance;
      copy(moves, {rank, kInput, first}, {rank ^ distance, kInput, first}, distance);
    }
  return moves;
}

// Every rank sends block b to rank b, which reduces it in scratch and sends the sum to all ranks.
Moves all_pairs_all_reduce(int ranks, int count) {
  Moves moves = start(Kind::all_reduce, ranks, ranks * count, true, ranks * count);
  for (int from = 0; from < ranks; ++from)
    for (int to = 0; to < ranks; ++to)
      if (from != to) copy(moves, {from, kInput, to * count}, {to, kScratch, from * count}, count);
  for (int rank = 0; rank < ranks; ++rank)
    for (int other = 0; other < ranks; ++other)
      if (other != rank) reduce(moves, {rank, kScratch, other * count}, {rank, kInput, rank * count}, count);
  for (int from = 0; from < ranks; ++from)
    for (int to = 0; to < ranks; ++to)
      if (from != to) copy(moves, {from, kInput, from * count}, {to, kInput, from * count}, count);
  return moves;
}

// Reduce-scatter within each node, all-reduce across nodes, all-gather within each node, all by
// rings.
Moves hierarchical_all_reduce(int nodes, int local) {
  Moves moves = start(Kind::all_reduce, nodes * local, nodes * local, true);
  const auto rank = [&](int node, int at) { return node * local + at; };
  for (int step = 1; step < local; ++step)
    for (int node = 0; node < nodes; ++node)
      for (int block = 0; block < local; ++block) {
        const int from = (block + step) % local;
        for (int part = 0; part < nodes; ++part) {
          const int index = block * nodes + part;
          reduce(moves, {rank(node, from), kInput, index}, {rank(node, (from + 1) % local), kInput, index});
        }
      }
  for (int step = 0; step < 2 * (nodes - 1); ++step)
    for (int block = 0; block < local; ++block)
      for (int part = 0; part < nodes; ++part) {
        const int from = (part + step + 1) % nodes, index = block * nodes + part;
        const Place source{rank(from, block), kInput, index},
            target{rank((from + 1) % nodes, block), kInput, index};
        if (step < nodes - 1)
          reduce(moves, source, target);
        else
          copy(moves, source, target);
      }
  for (int step = 0; step < local - 1; ++step)
    for (int node = 0; node < nodes; ++node)
      for (int block = 0; block < local; ++block) {
        const int from = (block + step) % local;
        copy(moves, {rank(node, from), kInput, block * nodes},
             {rank(node, (from + 1) % local), kInput, block * nodes}, nodes);
      }
  return moves;
}

Moves binomial_broadcast(int ranks, int count) {
  Moves moves = start(Kind::broadcast, ranks, count, true);
  for (int distance = 1; distance < ranks; distance *= 2)
    for (int rank = 0; rank < distance && rank + distance < ranks; ++rank)
      copy(moves, {rank, kInput, 0}, {rank + distance, kInput, 0}, count);
  return moves;
}

Moves binomial_reduce(int ranks, int count) {
  Moves moves = start(Kind::reduce, ranks, count, true);
  for (int distance = 1; distance < ranks; distance *= 2)
    for (int rank = 0; rank + distance < ranks; rank += 2 * distance)
      reduce(moves, {rank + distance, kInput, 0}, {rank, kInput, 0}, count);
  return moves;
}

Moves all_pairs_all_to_all(int ranks, int count) {
  Moves moves = start(Kind::all_to_all, ranks, count, false);
  for (int from = 0; from < ranks; ++from)
    for (int to = 0; to < ranks; ++to)
      copy(moves, {from, kInput, to * count}, {to, kOutput, from * count}, count);
  return moves;
}

// First within the node to the rank with the target's local index, then across nodes in one
// message.
Moves two_step_all_to_all(int nodes, int local) {
  const int ranks = nodes * local;
  Moves moves = start(Kind::all_to_all, ranks, 1, false, ranks);
  for (int from = 0; from < ranks; ++from)
    for (int to = 0; to < ranks; ++to)
      copy(moves, {from, kInput, to},
           {from / local * local + to % local, kScratch, to / local * local + from % local});
  for (int from = 0; from < ranks; ++from)
    for (int node = 0; node < nodes; ++node)
      copy(moves, {from, kScratch, node * local},
           {node * local + from % local, kOutput, from / local * local}, local);
  return moves;
}

std::string text(const Moves& moves, std::initializer_list<std::string_view> names,
                 CompileOptions options = {}) {
  const Result<std::string> result = run_passes(moves, std::span(names.begin(), names.size()), options);
  return result.ok() ? *result : "error: " + result.error().message;
}

std::vector<Op> ops(const Threadblock& block) {
  std::vector<Op> result;
  for (const Step& step : block.steps) result.push_back(step.op);
  return result;
}

std::int64_t count_of(const Program& program, Op op) {
  std::int64_t total = 0;
  for (const RankProgram& rank : program.ranks)
    for (const Threadblock& block : rank.blocks) total += std::ranges::count(ops(block), op);
  return total;
}

std::int64_t waits(const Program& program) {
  std::int64_t total = 0;
  for (const RankProgram& rank : program.ranks)
    for (const Threadblock& block : rank.blocks)
      total += std::ranges::count_if(block.steps, [](const Step& step) { return step.wait_block >= 0; });
  return total;
}

// MSCCL ignores a file in which a nop is not followed by an instruction that also waits.
bool nops_are_followed_by_waits(const Program& program) {
  for (const RankProgram& rank : program.ranks)
    for (const Threadblock& block : rank.blocks)
      for (std::size_t i = 0; i < block.steps.size(); ++i)
        if (block.steps[i].op == Op::nop && (block.steps[i].wait_block < 0 || i + 1 == block.steps.size() ||
                                             block.steps[i + 1].wait_block < 0))
          return false;
  return true;
}

Program compiled(const Moves& moves, const CompileOptions& options = {}) {
  EXPECT_FALSE(first_wrong(moves).has_value()) << moves.name;
  Result<Program> program = compile(moves, options);
  EXPECT_TRUE(program.ok()) << program.error().message;
  if (!program.ok()) return {};
  const Report report = check(*program);
  EXPECT_FALSE(report.finding.has_value()) << report.finding->text;
  EXPECT_LE(report.slots, options.slots > 0 ? options.slots : fifo_slots(options.protocol));
  EXPECT_TRUE(nops_are_followed_by_waits(*program));
  return *std::move(program);
}

TEST(Dependence, WritersWaitForTheLatestAccessesOnly) {
  Moves moves = start(Kind::all_reduce, 2, 1, true, 1);
  copy(moves, {0, kInput, 0}, {1, kScratch, 0});
  reduce(moves, {1, kScratch, 0}, {1, kInput, 0});
  copy(moves, {0, kInput, 0}, {1, kScratch, 0});
  copy(moves, {1, kInput, 0}, {0, kOutput, 0});  // in place, output[0] is input[0]
  EXPECT_EQ(text(moves, {"dependence"}),
            "   0  copy input[0] of 0 to scratch[0] of 1\n"
            "   1  reduce scratch[0] of 1 into input[0] of 1\n"
            "        to after 0 to (raw)\n"
            "   2  copy input[0] of 0 to scratch[0] of 1\n"
            "        to after 1 to (war)\n"
            "   3  copy input[0] of 1 to output[0] of 0\n"
            "        from after 1 to (raw)\n"
            "        to after 0 from (war), 2 from (war)\n");
}

TEST(Split, EveryMoveBetweenRanksHasTwoEnds) {
  Moves moves = start(Kind::all_gather, 2, 1, true);
  copy(moves, {0, kInput, 0}, {0, kOutput, 0});  // the same chunk: nothing to do
  copy(moves, {0, kInput, 0}, {1, kOutput, 0});
  copy(moves, {1, kInput, 0}, {0, kOutput, 1}, 1, 3);
  EXPECT_EQ(text(moves, {"split"}),
            "rank 0\n"
            "   0  send output[0] to 1 (1)\n"
            "   3  receive output[1] from 1 (2) on 3\n"
            "rank 1\n"
            "   1  receive output[0] from 0 (0)\n"
            "   2  send output[1] to 0 (3) on 3\n");
}

TEST(Fuse, FusesReceiveAndForward) {
  EXPECT_EQ(text(ring_all_gather(3, 1), {"split", "fuse", "assign"}),
            "rank 0\n"
            "  block 0: send to 1, receive from 2, channel 0\n"
            "     0  send output[0] to 1 (1) on 0\n"
            "     5  receive_copy_send output[2] from 2 (4) to 1 (8) on 0\n"
            "     7  receive output[1] from 2 (3) on 0\n"
            "rank 1\n"
            "  block 0: send to 2, receive from 0, channel 0\n"
            "     1  receive_copy_send output[0] from 0 (0) to 2 (6) on 0\n"
            "     2  send output[1] to 2 (3) on 0\n"
            "     8  receive output[2] from 0 (5) on 0\n"
            "rank 2\n"
            "  block 0: send to 0, receive from 1, channel 0\n"
            "     3  receive_copy_send output[1] from 1 (2) to 0 (7) on 0\n"
            "     4  send output[2] to 0 (5) on 0\n"
            "     6  receive output[0] from 1 (1) on 0\n");
}

TEST(Fuse, DoesNotStorePartialSumsThatAreNeverRead) {
  const Program reduce_scatter = compiled(ring_reduce_scatter(4));
  EXPECT_EQ(count_of(reduce_scatter, Op::receive_reduce_send), 4 * 2);
  EXPECT_EQ(count_of(reduce_scatter, Op::receive_reduce_copy), 4);
  // In an all-reduce the complete sum is kept, and the partial sums are overwritten.
  const Program all_reduce = compiled(ring_all_reduce(4, 1));
  EXPECT_EQ(count_of(all_reduce, Op::receive_reduce_send), 4 * 2);
  EXPECT_EQ(count_of(all_reduce, Op::receive_reduce_copy_send), 4);
  EXPECT_EQ(count_of(all_reduce, Op::receive_copy_send), 4 * 2);
  EXPECT_EQ(count_of(all_reduce, Op::receive), 4);
}

TEST(Fuse, StoresSumsThatAreReadElsewhere) {
  Moves moves = start(Kind::reduce, 3, 1, true, 1);
  reduce(moves, {2, kInput, 0}, {1, kInput, 0});
  copy(moves, {1, kInput, 0}, {1, kScratch, 0});
  reduce(moves, {1, kInput, 0}, {0, kInput, 0});
  EXPECT_EQ(count_of(compiled(moves), Op::receive_reduce_copy_send), 1);
}

TEST(Fuse, DoesNotFuseAcrossChannels) {
  Moves moves = start(Kind::broadcast, 3, 1, true);
  copy(moves, {0, kInput, 0}, {1, kInput, 0}, 1, 0);
  copy(moves, {1, kInput, 0}, {2, kInput, 0}, 1, 1);
  EXPECT_EQ(count_of(compiled(moves), Op::receive_copy_send), 0);
  moves.moves[1].channel = -1;
  EXPECT_EQ(count_of(compiled(moves), Op::receive_copy_send), 1);
}

TEST(Fuse, UnfusingKeepsDependencesOnTheSend) {
  Moves moves = start(Kind::all_reduce, 3, 1, true, 1);
  copy(moves, {0, kInput, 0}, {1, kScratch, 0});
  copy(moves, {1, kScratch, 0}, {2, kScratch, 0});
  reduce(moves, {1, kScratch, 0}, {1, kInput, 0});
  copy(moves, {2, kInput, 0}, {1, kScratch, 0});  // overwrites what was sent
  const Cells cells(moves);
  const Instructions together = fuse(split(moves, cells, find_dependences(moves, cells)));
  ASSERT_EQ(together.list[1].op, Op::receive_copy_send);
  const Instructions apart = unfuse_instructions(together, std::array<std::int32_t, 1>{1});
  EXPECT_EQ(apart.list[1].op, Op::receive);
  EXPECT_EQ(apart.list[2].op, Op::send);
  EXPECT_EQ(apart.list[apart.list[2].taker].giver, 2);
  const auto last = apart.dependences(apart.size() - 1);
  EXPECT_NE(std::ranges::find(last, 2), last.end());
}

TEST(Fuse, LaterWritesWaitForReadersOfAnUnstoredSum) {
  // Rank 1 sends its input to 3, adds to it and forwards the sum to 2, which overwrites it.
  Moves moves = start(Kind::custom, 4, 1, true, 1);
  reduce(moves, {0, kInput, 0}, {1, kInput, 0}, 1, 0);
  copy(moves, {1, kInput, 0}, {3, kScratch, 0}, 1, 0);
  reduce(moves, {2, kInput, 0}, {1, kInput, 0}, 1, 0);
  copy(moves, {1, kInput, 0}, {2, kScratch, 0}, 1, 0);
  copy(moves, {2, kScratch, 0}, {1, kInput, 0}, 1, 0);
  copy(moves, {3, kScratch, 0}, {3, kInput, 0});
  moves.collective.wants = {{1, 0, {{0, 0}, {1, 0}, {2, 0}}}, {3, 0, {{0, 0}, {1, 0}}}};
  for (const std::int32_t slots : {1, 2}) compiled(moves, {.max_channels = 1, .slots = slots});
}

TEST(Assign, SplitsChainsWhereTheyLeaveARing) {
  const Program program = compiled(hierarchical_all_reduce(2, 4));
  EXPECT_EQ(program.channels, 1);
  for (const RankProgram& rank : program.ranks) EXPECT_EQ(rank.blocks.size(), 2u);
}

TEST(Assign, UsesTheRequestedChannels) {
  const Program program = compiled(ring_all_reduce(4, 4, 4));
  EXPECT_EQ(program.channels, 4);
  for (const RankProgram& rank : program.ranks) ASSERT_EQ(rank.blocks.size(), 4u);
  const Result<Program> refused = compile(ring_all_reduce(4, 4, 4), {.max_channels = 2});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "channel 2 does not exist: there are 2 channels");
}

TEST(Assign, ConflictingChainsUseAnotherChannel) {
  // What arrives from 0 goes on to 2, and for the other chunk to 3.
  Moves moves = start(Kind::broadcast, 4, 2, true);
  for (const int chunk : {0, 1}) {
    copy(moves, {0, kInput, chunk}, {1, kInput, chunk});
    copy(moves, {1, kInput, chunk}, {2 + chunk, kInput, chunk});
    copy(moves, {2 + chunk, kInput, chunk}, {3 - chunk, kInput, chunk});
  }
  EXPECT_EQ(compiled(moves).channels, 2);
  EXPECT_EQ(count_of(compiled(moves), Op::receive_copy_send), 4);
  const Program narrow = compiled(moves, {.max_channels = 1});
  EXPECT_EQ(narrow.channels, 1);
  EXPECT_LT(count_of(narrow, Op::receive_copy_send), 4);
}

TEST(Assign, RejectsTooManyThreadblocks) {
  const Result<Program> program = compile(all_pairs_all_to_all(8, 1), {.max_blocks = 6});
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.error().message, "too many threadblocks are needed: rank 0 needs 7, at most 6");
}

TEST(Order, RingsFitTheirSlots) {
  for (const int lanes : {1, 2, 5})
    for (const int ranks : {2, 3, 8}) {
      const Program program = compiled(ring_all_reduce(ranks, lanes));
      EXPECT_EQ(waits(program), 0);
      EXPECT_EQ(count(program).most_steps, lanes * (2 * ranks - 1));
      compiled(ring_all_reduce(ranks, lanes), {.protocol = Protocol::ll});
      compiled(ring_all_reduce(ranks, lanes), {.slots = 1});
    }
}

TEST(Order, SplitsLongExchanges) {
  // Both ranks send four chunks and receive four; a connection holds two.
  const Program simple = compiled(ring_all_gather(2, 4));
  const Threadblock& block = simple.ranks[0].blocks.front();
  EXPECT_EQ(ops(block), (std::vector<Op>{Op::send, Op::receive, Op::send, Op::receive}));
  for (const Step& step : block.steps) EXPECT_EQ(step.count, 2);
  // Eight slots hold all four.
  const Program ll = compiled(ring_all_gather(2, 4), {.protocol = Protocol::ll});
  EXPECT_EQ(ops(ll.ranks[0].blocks.front()), (std::vector<Op>{Op::send, Op::receive}));
}

TEST(Order, DoesNotSplitOneWayMessages) {
  const Program program = compiled(binomial_broadcast(8, 16));
  EXPECT_EQ(count(program).messages, 7);
  EXPECT_EQ(count(compiled(binomial_reduce(8, 16))).messages, 7);
}

TEST(Order, UnfusesAChainThatReturnsToItsThreadblock) {
  // Longer than the connection holds: all of it would have to run at once, in a threadblock that
  // runs one instruction at a time.
  Moves moves = start(Kind::custom, 2, 1, false, 6);
  copy(moves, {0, kInput, 0}, {1, kScratch, 0}, 3);
  copy(moves, {1, kScratch, 0}, {0, kScratch, 0}, 3);
  copy(moves, {0, kScratch, 0}, {1, kScratch, 3}, 3);
  copy(moves, {1, kScratch, 3}, {1, kOutput, 0}, 3);
  for (int i = 0; i < 3; ++i) moves.collective.wants.push_back({1, i, {{0, i}}});
  for (const std::int32_t slots : {1, 2, 3, 4}) compiled(moves, {.slots = slots});
}

TEST(BlockWaits, OmitsRedundantWaits) {
  // Both sends wait for the same receive; the second wait is redundant.
  Moves moves = start(Kind::broadcast, 3, 2, true);
  copy(moves, {0, kInput, 0}, {1, kInput, 0}, 2);
  copy(moves, {1, kInput, 0}, {2, kInput, 0});
  copy(moves, {1, kInput, 1}, {2, kInput, 1});
  const Program program = compiled(moves, {.fuse = false});
  EXPECT_EQ(count_of(program, Op::nop), 0);
  EXPECT_LE(waits(program), 1);
}

TEST(BlockWaits, SeveralWaitsBecomeNopsBeforeTheStep) {
  Moves moves = start(Kind::gather, 5, 1, true);
  moves.collective.root = 4;
  for (const int from : {1, 2, 3}) copy(moves, {from, kOutput, from}, {0, kOutput, from});
  copy(moves, {0, kOutput, 0}, {4, kOutput, 0}, 4);
  const Program program = compiled(moves);
  EXPECT_EQ(waits(program), 2);
  EXPECT_EQ(count_of(program, Op::nop), 1);
}

// What rank 0 sends returns on another channel, hence in another threadblock, and overwrites what
// was sent.
Moves there_and_back(int count) {
  Moves moves = start(Kind::custom, 2, 1, true, count);
  copy(moves, {0, kInput, 0}, {1, kScratch, 0}, count, 0);
  copy(moves, {1, kScratch, 0}, {0, kInput, count - 1}, count, 1);
  for (int i = 0; i < count; ++i) moves.collective.wants.push_back({0, count - 1 + i, {{0, i}}});
  return moves;
}

TEST(BlockWaits, AReceivedMessageOrdersOnlyItsFirstChunk) {
  const auto waits_of_0 = [](const Moves& moves) {
    Program program = compiled(moves);
    program.ranks.resize(1);
    return waits(program);
  };
  EXPECT_EQ(waits_of_0(there_and_back(1)), 0);
  EXPECT_EQ(waits_of_0(there_and_back(2)), 1);
}

TEST(Instances, EachHasItsOwnChannelsAndAShareOfEveryChunk) {
  const Program program = compiled(ring_all_reduce(4, 1), {.instances = 3});
  EXPECT_EQ(program.channels, 3);
  EXPECT_EQ(program.collective.chunks, 12);
  EXPECT_EQ(program.ranks[0].blocks.size(), 3u);
  EXPECT_EQ(compiled(recursive_doubling_all_gather(8), {.instances = 2}).channels, 2);
  EXPECT_EQ(compiled(all_pairs_all_reduce(4, 2), {.instances = 4}).ranks[1].scratch_chunks, 32);
  compiled(two_step_all_to_all(2, 2), {.instances = 2});
}

TEST(Instances, CannotDivideABarrier) {
  Moves moves = start(Kind::barrier, 2, 1, true);
  reduce(moves, {0, kInput, 0}, {1, kInput, 0});
  copy(moves, {1, kInput, 0}, {0, kInput, 0});
  compiled(moves);
  EXPECT_FALSE(compile(moves, {.instances = 2}).ok());
}

TEST(Compile, CompilesEveryAlgorithmUnderEveryProtocol) {
  const std::array all = {ring_all_reduce(4, 2),
                          ring_all_reduce(3, 4, 2),
                          ring_all_gather(5, 3),
                          ring_reduce_scatter(5),
                          recursive_doubling_all_gather(16),
                          halving_doubling_all_reduce(8),
                          all_pairs_all_reduce(4, 3),
                          hierarchical_all_reduce(2, 4),
                          hierarchical_all_reduce(3, 3),
                          binomial_broadcast(7, 3),
                          binomial_reduce(7, 3),
                          all_pairs_all_to_all(5, 3),
                          two_step_all_to_all(3, 2)};
  for (const Moves& moves : all)
    for (const Protocol protocol : {Protocol::simple, Protocol::ll})
      for (const bool fuses : {true, false})
        for (const std::int32_t slots : {0, 1}) {
          SCOPED_TRACE(moves.name + (fuses ? " fused" : " plain"));
          compiled(moves, {.protocol = protocol, .slots = slots, .fuse = fuses});
        }
}

TEST(Compile, CompilesLocalWorkOfOneRank) {
  Moves moves = start(Kind::all_to_all, 1, 3, false);
  copy(moves, {0, kInput, 0}, {0, kOutput, 0}, 3);
  EXPECT_EQ(count(compiled(moves)).steps, 1);
  compiled(start(Kind::all_reduce, 1, 4, true));
}

TEST(Compile, RejectsMovesThatDoNotComputeTheCollective) {
  Moves moves = ring_all_reduce(4, 1);
  moves.moves.pop_back();
  const Result<Program> program = compile(moves);
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.error().fault, Fault::user);
  EXPECT_EQ(program.error().message.substr(0, 38), "moves do not compute all_reduce: outpu");
}

TEST(Compile, OutOfPlaceWorksOnACopy) {
  for (const Moves& moves : {ring_all_reduce(4, 1), ring_all_gather(4, 2), ring_reduce_scatter(4),
                             binomial_broadcast(5, 2), binomial_reduce(5, 2)}) {
    const Moves apart = out_of_place(moves);
    EXPECT_FALSE(apart.in_place);
    EXPECT_EQ(compiled(apart).placement, Placement::out_of_place);
    for (const Move& move : apart.moves) EXPECT_NE(move.to.buffer, kInput);
    EXPECT_EQ(out_of_place(apart), apart);
  }
}

TEST(CheckMoves, RejectsMissingRanksAndChunks) {
  const auto message = [](Move move, bool in_place = false) {
    Moves moves = start(Kind::all_gather, 2, 1, in_place, 4);
    moves.moves.push_back(move);
    const Status status = check_moves(moves);
    return status.ok() ? "ok" : status.error().message;
  };
  using enum Move::Verb;
  EXPECT_EQ(message({copy, {0, kInput, 0}, {1, kOutput, 1}}), "ok");
  EXPECT_EQ(message({copy, {0, kInput, 0}, {2, kOutput, 1}}), "there is no rank 2: 2 ranks");
  EXPECT_EQ(message({copy, {0, kInput, 0}, {1, kOutput, -1}}), "there is no chunk output[-1]");
  EXPECT_EQ(message({copy, {0, kInput, 0}, {1, kOutput, 0}, 0}), "expected a count of at least 1, found 0");
  EXPECT_EQ(message({copy, {0, kInput, 0}, {1, kOutput, 0}, 1, -2}),
            "expected a channel of at least 0, found -2");
  EXPECT_EQ(message({copy, {0, kInput, 0}, {1, kOutput, 1}, 2}).substr(0, 22), "move leaves the buffer");
  EXPECT_EQ(message({copy, {0, kScratch, 0}, {0, kScratch, 1}, 2}).substr(0, 25),
            "move reads what it writes");
  EXPECT_EQ(message({copy, {0, kScratch, 0}, {0, kScratch, 2}, 2}), "ok");
  EXPECT_EQ(message({copy, {1, kInput, 0}, {1, kOutput, 1}}, true), "ok");
  EXPECT_EQ(message({reduce, {1, kInput, 0}, {1, kOutput, 1}}, true).substr(0, 25),
            "move reads what it writes");
}

TEST(CheckMoves, RejectsExcessiveMemory) {
  EXPECT_FALSE(check_moves(start(Kind::all_reduce, 1000, 1000000000, true)).ok());
  EXPECT_FALSE(check_moves(start(Kind::all_to_all, 60000, 30000, true)).ok());
  Moves crowd = start(Kind::all_reduce, 1, 1, true);
  crowd.collective.ranks = 2000000000;
  EXPECT_FALSE(check_moves(crowd).ok());
  EXPECT_FALSE(check_moves(start(Kind::all_reduce, 2, 1, true, 1000000000)).ok());
}

TEST(RunPasses, NamesAnUnknownPass) {
  EXPECT_EQ(text(ring_all_gather(2, 1), {"splice"}), "error: there is no pass splice");
  EXPECT_EQ(text(ring_all_gather(2, 1), {"fuse"}), "error: pass fuse is out of order");
}

TEST(RunPasses, CompileMovesToAProgram) {
  EXPECT_EQ(text(ring_all_gather(2, 1), {"split", "fuse", "assign", "order", "waits"}),
            "program all_gather\n"
            "collective all_gather, 2 ranks, 1 chunk, in place\n"
            "protocol Simple, 1 channel\n"
            "\n"
            "rank 0: input 0, output 2, scratch 0\n"
            "  block 0: send to 1, receive from 1, channel 0\n"
            "    0  send output[0]\n"
            "    1  receive output[1]\n"
            "\n"
            "rank 1: input 0, output 2, scratch 0\n"
            "  block 0: send to 0, receive from 0, channel 0\n"
            "    0  send output[1]\n"
            "    1  receive output[0]\n");
}

}  // namespace
}  // namespace weft::collective
