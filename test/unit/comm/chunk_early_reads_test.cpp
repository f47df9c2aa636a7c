// Reads of a rank's input that precede any write to it, and the copies they save.
#include "weft/communication/comm/chunk/chunk_early_reads.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "weft/collectives/algorithm/library.h"
#include "weft/collectives/check/check.h"
#include "weft/communication/comm/chunk/chunk_memory.h"
#include "weft/communication/comm/chunk/program_store.h"

namespace weft::comm {
namespace {

using collective::Buffer;
using collective::Op;
using collective::Placement;
using collective::Program;
using collective::Step;

// A program with one rank and one threadblock.
Program of_steps(collective::Kind kind, std::int32_t chunks, std::vector<Step> steps) {
  Program program;
  program.name = "made up";
  program.collective.kind = kind;
  program.collective.ranks = 1;
  program.collective.chunks = chunks;
  program.placement = Placement::in_place;
  program.ranks.resize(1);
  program.ranks[0].input_chunks = chunks;
  program.ranks[0].scratch_chunks = 1;
  program.ranks[0].blocks.push_back({.steps = std::move(steps)});
  return program;
}

TEST(ChunkEarlyReads, FindsEarlyReadsOfARingOfTwo) {
  const auto program = program_for("all_reduce_ring", 2, 0);
  ASSERT_TRUE(program.ok());
  const Placement placement = single_placement((*program)->placement);
  const auto reads = find_early_reads(**program, 0, placement);
  ASSERT_TRUE(reads);
  // Chunks that are sent or added before the first receive come from the caller's input.
  std::size_t number = 0;
  bool received = false;
  for (const Step& step : (*program)->ranks[0].blocks.at(0).steps) {
    if (collective::reads_source(step.op)) {
      EXPECT_EQ(reads->sources.at(number), !received) << number;
    }
    received = received || collective::writes_target(step.op);
    number += static_cast<std::size_t>(step.count);
  }
  EXPECT_EQ(number, reads->sources.size());
  EXPECT_EQ(reads->written, std::vector<bool>({true, true}));
}

TEST(ChunkEarlyReads, AReduceReadsTwoChunks) {
  const Step swap{.op = Op::copy, .source = {Buffer::input, 1}, .target = {Buffer::scratch, 0}};
  const Step add{.op = Op::reduce, .source = {Buffer::input, 1}, .target = {Buffer::input, 0}};
  const Step twice{.op = Op::reduce, .source = {Buffer::input, 0}, .target = {Buffer::input, 0}};
  const auto reads =
      find_early_reads(of_steps(Kind::all_reduce, 2, {swap, add, add, twice}), 0, Placement::in_place);
  ASSERT_TRUE(reads);
  EXPECT_EQ(reads->sources, std::vector<bool>({true, true, true, false}));
  EXPECT_EQ(reads->targets, std::vector<bool>({false, true, false, false}));
  EXPECT_EQ(reads->written, std::vector<bool>({true, false}));

  // A chunk that is added to itself is read twice.
  const auto doubled = find_early_reads(of_steps(Kind::all_reduce, 2, {twice}), 0, Placement::in_place);
  ASSERT_TRUE(doubled);
  EXPECT_EQ(doubled->sources, std::vector<bool>({true}));
  EXPECT_EQ(doubled->targets, std::vector<bool>({true}));
}

TEST(ChunkEarlyReads, SkipsCustomPrograms) {
  EXPECT_FALSE(find_early_reads(of_steps(Kind::custom, 1, {}), 0, Placement::in_place));
}

struct Copies {
  std::int64_t before = 0, beside = 0, after = 0;
  friend bool operator==(const Copies&, const Copies&) = default;
};

std::int64_t bytes_of(const std::vector<Copy>& copies) {
  return std::accumulate(copies.begin(), copies.end(), std::int64_t{0},
                         [](std::int64_t sum, const Copy& copy) { return sum + copy.bytes; });
}

// The bytes that `rank` copies for an out-of-place call with `count` elements per block.
Copies copies_of(const std::string& algorithm, std::int32_t ranks, std::int32_t rank, std::int64_t count) {
  const auto program = program_for(algorithm, ranks, 0);
  EXPECT_TRUE(program.ok()) << algorithm;
  if (!program.ok()) return {};
  std::vector<float> input(static_cast<std::size_t>(count * ranks)), output(input.size());
  const Call call{
      .kind = (*program)->collective.kind, .input = input.data(), .output = output.data(), .count = count};
  ChunkShaper shaper(**program, rank);
  const auto shape = shaper.shape(call);
  EXPECT_TRUE(shape.ok());
  ChunkMemory memory(**program, rank);
  EXPECT_TRUE(memory.bind(call, *shape).ok());
  return {bytes_of(memory.before()), bytes_of(memory.beside()), bytes_of(memory.after())};
}

TEST(ChunkEarlyReads, SavesCopies) {
  constexpr std::int64_t kBlock = 24 * sizeof(float);
  EXPECT_EQ(copies_of("all_reduce_ring", 4, 1, 24), Copies{});
  EXPECT_EQ(copies_of("all_reduce_ring", 4, 1, 23), Copies{});  // chunks of two lengths
  EXPECT_EQ(copies_of("all_reduce_all_pairs_one_shot", 4, 3, 24), Copies{});
  EXPECT_EQ(copies_of("reduce_chain", 4, 3, 24), Copies{});
  // A rank's own block stays in the output, and its copy delays no other rank.
  EXPECT_EQ(copies_of("all_gather_ring", 4, 2, 24), (Copies{.beside = kBlock}));
  EXPECT_EQ(copies_of("broadcast_chain", 4, 0, 24), (Copies{.beside = kBlock}));
  EXPECT_EQ(copies_of("broadcast_chain", 4, 1, 24), Copies{});
  // Runs in our own memory except for the block that stays, which is summed in the output.
  EXPECT_EQ(copies_of("reduce_scatter_ring", 4, 2, 24), Copies{});
}

}  // namespace
}  // namespace weft::comm
