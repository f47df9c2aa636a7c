// Moves recovered from threadblocks must do the same.
#include "weft/collectives/check/recover_moves.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "weft/base/file.h"
#include "weft/collectives/check/check.h"
#include "weft/collectives/chunks/check_moves.h"
#include "weft/collectives/chunks/program_text.h"
#include "weft/collectives/one_sided/one_sided.h"
#include "weft/formats/mscclpp_json.h"

namespace weft::collective {
namespace {

std::string moves_of(std::string_view text, Placement placement) {
  const auto program = parse_program(text);
  EXPECT_TRUE(program.ok()) << program.error().message;
  EXPECT_EQ(check(*program).verdict(), Verdict::ok);
  const auto moves = recover_moves(to_actions(*program, placement, Grain::chunk), program->name);
  EXPECT_TRUE(moves.ok()) << moves.error().message;
  const Status sound = check_moves(*moves);
  EXPECT_TRUE(sound.ok()) << sound.error().message;
  EXPECT_EQ(first_wrong(*moves), std::nullopt);
  return print(*moves);
}

TEST(RecoverMoves, ReadsAMessageAtItsSender) {
  EXPECT_EQ(moves_of(R"(program pair
collective all_reduce, 2 ranks, 2 chunks, in place
protocol Simple, 1 channel
rank 0: input 2, output 0, scratch 0
  block 0: send to 1, receive from 1, channel 0
    0  send input[0]
    1  receive_reduce_copy_send input[1]
    2  receive input[0]
rank 1: input 2, output 0, scratch 0
  block 0: send to 0, receive from 0, channel 0
    0  send input[1]
    1  receive_reduce_copy_send input[0]
    2  receive input[1]
)",
                     Placement::in_place),
            R"(moves pair
collective all_reduce, 2 ranks, 2 chunks, in place

reduce input[0] of 0 into input[0] of 1
reduce input[1] of 1 into input[1] of 0
copy input[0] of 1 to input[0] of 0
copy input[1] of 0 to input[1] of 1
)");
}

TEST(RecoverMoves, ForwardsAMessageBeforeItsChunkChanges) {
  const std::string moves = moves_of(R"(program overtaken
collective custom, 2 ranks, 1 chunk, out of place
want output[0] of 1 = input[0] of 0
want output[1] of 1 = input[1] of 0
protocol Simple, 1 channel
rank 0: input 2, output 0, scratch 1
  block 0: send to 1, channel 0
    0  copy input[0] -> scratch[0]
    1  send scratch[0]
    2  copy input[1] -> scratch[0]
    3  send scratch[0]
rank 1: input 0, output 2, scratch 0
  block 0: receive from 0, channel 0
    0  receive output[0]
    1  receive output[1]
)",
                                     Placement::out_of_place);
  EXPECT_NE(moves.find("copy scratch[0] of 0 to scratch[0] of 1"), std::string::npos) << moves;
}

TEST(RecoverMoves, ComputesForwardedSumsInScratch) {
  const std::string moves = moves_of(R"(program through
collective reduce, 3 ranks, 1 chunk, root 2, out of place
protocol Simple, 1 channel
rank 0: input 1, output 1, scratch 0
  block 0: send to 1, channel 0
    0  send input[0]
rank 1: input 1, output 1, scratch 0
  block 0: send to 2, receive from 0, channel 0
    0  receive_reduce_send input[0]
rank 2: input 1, output 1, scratch 0
  block 0: receive from 1, channel 0
    0  receive_reduce_copy input[0] -> output[0]
)",
                                     Placement::out_of_place);
  EXPECT_NE(moves.find("copy input[0] of 1 to scratch[0] of 1\nreduce input[0] of 0 into scratch[0] of 1\n"),
            std::string::npos)
      << moves;
}

TEST(RecoverMoves, MergesConsecutiveChunks) {
  const std::string moves = moves_of(R"(program row
collective broadcast, 2 ranks, 4 chunks, out of place
protocol Simple, 1 channel
rank 0: input 4, output 4, scratch 0
  block 0: send to 1, channel 0
    0  send input[0..3]
    1  copy input[0..3] -> output[0..3]
rank 1: input 4, output 4, scratch 0
  block 0: receive from 0, channel 0
    0  receive output[0..3]
)",
                                     Placement::out_of_place);
  EXPECT_NE(moves.find("copy input[0..3] of 0 to output[0..3] of 1"), std::string::npos) << moves;
}

TEST(RecoverMoves, RejectsADeadlock) {
  OneSided plan;
  plan.collective_word = "test";
  plan.ranks.resize(1);
  plan.ranks[0].semaphores = {0};
  plan.ranks[0].blocks = {{{.verb = Verb::acquire, .semaphores = {0}}}};
  ASSERT_EQ(check_form(plan), std::nullopt);
  const auto moves = recover_moves(to_actions(plan, Grain::chunk), "stuck");
  ASSERT_FALSE(moves.ok());
  EXPECT_EQ(moves.error().message, "expected a plan that terminates, found a deadlock");
}

TEST(RecoverMoves, CorpusPlansDoTheSameAsMoves) {
  const std::filesystem::path corpus = WEFT_SOURCE_DIR "/../shared/corpus/mscclpp-json";
  if (!std::filesystem::exists(corpus)) GTEST_SKIP() << "the corpus of MSCCL++ plans is not installed";
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    if (entry.path().extension() != ".json") continue;
    if (entry.file_size() > 60'000) continue;  // larger ones are slow and add nothing
    const auto text = read_file(entry.path().string(), 1 << 20);
    ASSERT_TRUE(text.ok());
    const auto plan = formats::read_mscclpp_json(*text);
    if (!plan.ok() || plan->collective.kind == Kind::custom) continue;
    const auto moves = recover_moves(to_actions(*plan, Grain::chunk), plan->name);
    ASSERT_TRUE(moves.ok()) << entry.path();
    const Status sound = check_moves(*moves);
    ASSERT_TRUE(sound.ok()) << entry.path() << sound.error().message;
    EXPECT_EQ(first_wrong(*moves), std::nullopt) << entry.path();
    ++seen;
  }
  EXPECT_GE(seen, 20);
}

}  // namespace
}  // namespace weft::collective
