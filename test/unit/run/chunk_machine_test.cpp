// Chunk programs on threads of this process: every shipped algorithm, odd sizes, all types and
// operations.
#include "weft/communication/comm/chunk/chunk_machine.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "thorough.h"
#include "weft/collectives/algorithm/library.h"
#include "weft/collectives/check/check.h"
#include "weft/communication/comm/chunk/chunk_classes.h"
#include "weft/communication/comm/chunk/chunk_cursor.h"
#include "weft/communication/comm/chunk/program_store.h"
#include "weft/formats/collective_source.h"
#include "weft/runtime/run/collective_trial.h"

namespace weft::comm {
namespace {

namespace fs = std::filesystem;
using collective::Program;
using run::CollectiveTrial;
using run::TrialOutcome;

constexpr std::chrono::seconds kTimeout{20};

CollectiveTrial trial_of(std::shared_ptr<const Program> program, std::int64_t bytes) {
  CollectiveTrial trial;
  const collective::Report report = collective::check(*program);
  EXPECT_FALSE(report.finding) << program->name;
  trial.slots = std::max(report.slots, report.slots_small);
  trial.program = std::move(program);
  trial.verify = true;
  return run::with_bytes(std::move(trial), bytes);
}

std::shared_ptr<const Program> shipped(const std::string& name, std::int32_t ranks) {
  auto program = program_for(name, ranks, 0);
  EXPECT_TRUE(program.ok()) << name << ": " << (program.ok() ? "" : program.error().message);
  return program.ok() ? *program : nullptr;
}

// Runs it, checks the result, and returns a checksum of the bits on each rank.
std::vector<std::uint64_t> expect_correct(const CollectiveTrial& trial, const std::string& what) {
  std::vector<std::uint64_t> sums;
  const auto outcomes = run::run_trial_on_threads(trial, kTimeout);
  EXPECT_TRUE(outcomes.ok()) << what << ": " << (outcomes.ok() ? "" : outcomes.error().message);
  if (!outcomes.ok()) return sums;
  for (const TrialOutcome& outcome : *outcomes) {
    EXPECT_EQ(outcome.wrong, 0) << what << ": " << outcome.first_wrong;
    sums.push_back(outcome.checksum);
  }
  return sums;
}

TEST(ChunkMachine, RunsEveryShippedAlgorithm) {
  int ran = 0;
  for (const std::string_view kind : collective::kind_names())
    for (const std::int32_t ranks : {2, 3, 4, 8})
      for (const std::string& name : programs_for(*collective::find_kind(kind), ranks)) {
        CollectiveTrial trial = trial_of(shipped(name, ranks), 4 * 197);  // 197: no chunk count divides it
        trial.in_place = ran % 2 == 0;
        expect_correct(trial, name + " of " + std::to_string(ranks));
        ++ran;
      }
  EXPECT_GT(ran, 100);
}

// Slots of 16 bytes: many slices, and messages with a few of a step's chunks.
TEST(ChunkMachine, SplitsMessagesLongerThanASlot) {
  for (const std::string name :
       {"all_reduce_ring(chunks=3)", "all_to_all_pairwise(chunks=5)", "all_gather_bruck",
        "reduce_scatter_ring(chunks=2)", "broadcast_chain(chunks=4)"})
    for (const std::int64_t slot_bytes : {8, 24, 1000}) {
      CollectiveTrial trial = trial_of(shipped(name, 4), 4 * 1013);
      trial.slot_bytes = slot_bytes;
      expect_correct(trial, name);
    }
}

TEST(ChunkMachine, FragmentsChunksBetweenHosts) {
  const MessageLimits as_they_fit{.slot_bytes = 128 << 10}, pieces{128 << 10, 32 << 10};
  EXPECT_EQ(as_they_fit.longest(1 << 10), 128 << 10);
  EXPECT_EQ(pieces.longest(1 << 10), 32 << 10);
  EXPECT_EQ(pieces.longest(512 << 10), 64 << 10);
  EXPECT_EQ(pieces.longest(16 << 20), 128 << 10);
  EXPECT_EQ((MessageLimits{16 << 10, 32 << 10}).longest(16 << 20), 16 << 10);
}

// Each type with each operation, cycling through the algorithms.
TEST(ChunkMachine, SupportsAllTypesAndOperations) {
  const std::vector<std::string> names = {"all_reduce_ring", "reduce_scatter_recursive_halving",
                                          "reduce_binomial"};
  std::size_t turn = 0;
  for (std::size_t type = 0; type < device::kElementTypes; ++type)
    for (std::size_t op = 0; op < device::kReduceOps; ++op) {
      if (device::is_bitwise(static_cast<ReduceOp>(op)) && !device::is_whole(static_cast<ElementType>(type)))
        continue;
      ++turn;
      for (std::size_t i = 0; i < names.size(); ++i) {
        if (i != turn % names.size() && !is_thorough()) continue;
        const std::string& name = names[i];
        CollectiveTrial trial = trial_of(shipped(name, 4), 0);
        trial.type = static_cast<ElementType>(type);
        trial.op = static_cast<ReduceOp>(op);
        trial.count = 131;
        expect_correct(trial, name);
        trial.in_place = true;
        expect_correct(trial, name + " in place");
      }
    }
}

TEST(ChunkMachine, SupportsFewerElementsThanChunks) {
  for (const std::int64_t count : {0, 1, 2, 5})
    for (const std::string name :
         {"all_reduce_ring(chunks=4)", "all_gather_ring(chunks=3)", "all_to_all_bruck"}) {
      CollectiveTrial trial = trial_of(shipped(name, 4), 0);
      trial.count = count;
      expect_correct(trial, name);
    }
}

TEST(ChunkMachine, SupportsUnequalCounts) {
  // Programs compiled for unequal blocks, and programs compiled for equal ones.
  for (const std::string name :
       {"all_gather_ring_v(counts=[3, 1, 0, 4])", "all_gather_ring", "reduce_scatter_ring", "gather_linear",
        "scatter_binomial", "all_gather_bruck"}) {
    CollectiveTrial trial = trial_of(shipped(name, 4), 0);
    trial.counts = {31, 7, 0, 90};
    expect_correct(trial, name);
    trial.in_place = true;
    expect_correct(trial, name + " in place");
  }
  CollectiveTrial pairs = trial_of(shipped("all_to_all_pairwise", 3), 0);
  pairs.counts = {1, 20, 3, 0, 50, 6, 7, 8, 90};
  expect_correct(pairs, "all_to_all_pairwise");
  // A block for which the program has no chunk.
  CollectiveTrial unfit = trial_of(shipped("all_gather_ring_v(counts=[3, 1, 0, 4])", 4), 0);
  unfit.counts = {31, 7, 1, 90};
  const auto outcomes = run::run_trial_on_threads(unfit, kTimeout);
  ASSERT_FALSE(outcomes.ok());
  EXPECT_EQ(outcomes.error().message, "the program has no chunk for a block of 1 elements: block 2");
}

// Numbers that do not sum exactly: another order of additions would show.
TEST(ChunkMachine, IsBitwiseReproducible) {
  for (const std::string name : {"all_reduce_ring", "all_reduce_swing", "all_reduce_double_binary_tree"}) {
    CollectiveTrial trial = trial_of(shipped(name, 4), 40'000);
    trial.repeat = 4;
    const auto first = expect_correct(trial, name);
    EXPECT_EQ(expect_correct(trial, name), first);
    EXPECT_EQ(std::ranges::count(first, first[0]), 4) << "ranks differ";
  }
}

TEST(ChunkMachine, ClassesDetermineLengths) {
  const auto ring = shipped("all_reduce_ring", 4);
  const auto classes = classify(*ring, 0, ClassGrain::place);
  ASSERT_TRUE(classes);
  EXPECT_EQ(*std::ranges::max_element(*classes), 3);
  Call call{.kind = Kind::all_reduce, .count = 10};
  const auto sizes = class_sizes(ring->collective, ClassGrain::place, call);
  ASSERT_TRUE(sizes.ok());
  EXPECT_EQ(*sizes, (std::vector<std::int64_t>{3, 3, 2, 2}));
}

TEST(ProgramStore, CompilesOnce) {
  EXPECT_EQ(shipped("all_reduce_ring", 4), shipped("all_reduce_ring()", 4));
  EXPECT_NE(shipped("all_reduce_ring", 4), shipped("all_reduce_ring", 5));
  EXPECT_EQ((*program_for("broadcast_chain", 4, 3))->collective.root, 3);
  EXPECT_FALSE(program_for("all_reduce_ring(ranks=3)", 4, 0).ok());
  EXPECT_FALSE(program_for("all_reduce_rnig", 4, 0).ok());
  const auto names = programs_for(Kind::all_gather, 5);
  EXPECT_EQ(std::ranges::count(names, "all_gather_ring"), 1);
  EXPECT_EQ(std::ranges::count(names, "all_gather_neighbor_exchange"), 0) << "is for even numbers";
}

// A sample of the corpus; WEFT_WHOLE_CORPUS=1 in the environment runs all of it up to 16 ranks.
TEST(ChunkMachine, RunsPublishedPrograms) {
  const fs::path folder = WEFT_SOURCE_DIR "/../shared/corpus/msccl-xml";
  if (!fs::exists(folder)) GTEST_SKIP() << "the corpus of MSCCL programs is not installed";
  const bool whole = std::getenv("WEFT_WHOLE_CORPUS") != nullptr;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".xml") files.push_back(entry.path());
  std::ranges::sort(files);
  int ran = 0, custom = 0;
  for (std::size_t i = 0; i < files.size(); i += whole ? 1 : 9) {
    auto source = formats::read_collective(files[i].string());
    ASSERT_TRUE(source.ok()) << files[i];
    if (source->collective().ranks > (whole ? 16 : 8)) continue;
    auto program = formats::to_program(*source);
    ASSERT_TRUE(program.ok()) << files[i];
    const bool known = program->collective.kind != Kind::custom || !program->collective.wants.empty();
    CollectiveTrial trial = trial_of(std::make_shared<const Program>(std::move(*program)), 30'011);
    trial.verify = known;  // an unknown collective only has to end, with the same bits every time
    const auto out_of_place = expect_correct(trial, files[i].filename().string());
    EXPECT_EQ(expect_correct(trial, files[i].filename().string()), out_of_place);
    if (known) {
      trial.in_place = true;
      expect_correct(trial, files[i].filename().string() + " in place");
    }
    ++(known ? ran : custom);
  }
  std::printf("%d programs right, %d custom ones came to their end\n", ran, custom);
  EXPECT_GT(ran, whole ? 100 : 5);
}

}  // namespace
}  // namespace weft::comm
