// all_reduce_window: partitioned all-reduces. gradient_delay: gradients applied one step late.
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "session_case.h"
#include "temporary_folder.h"
#include "thorough.h"
#include "weft/formats/safetensors.h"

namespace weft::session {
namespace {

const std::string kDigitsFile = WEFT_SOURCE_DIR "/examples/digits.csv.gz";

using Learned = std::map<std::string, std::string>;  // bytes of parameters and states by name

Learned bytes_of(const std::string& file) {
  Learned found;
  const auto loaded = formats::load(file);
  EXPECT_TRUE(loaded.ok());
  if (!loaded.ok()) return found;
  for (const formats::TensorEntry& entry : loaded->tensors)
    found[std::string(entry.name)] =
        std::string(reinterpret_cast<const char*>(entry.data.data()), entry.data.size());
  return found;
}

class WindowAndDelay : public testing::Test {
 protected:
  std::string train(int ranks, int steps, const std::string& with) const {
    return fmt::format(
        "TRAIN digits_mlp ON LOCAL {0} FROM '{1}' STEPS {2} WITH (b = 13, f = 200, seed = 5, threads = 1, "
        "transport = inproc, replica_check_every = 1, rules = false, distribution = 'rank={0}: slice b', "
        "{3})",
        ranks, kDigitsFile, steps, with);
  }

  Learned learned(int ranks, int steps, const std::string& with) {
    const std::string file = folder_ / "learned.safetensors";
    Session session;
    answer(session, train(ranks, steps, with));
    answer(session, fmt::format("SAVE digits_mlp TO '{}'", file));
    return bytes_of(file);
  }

  static Learned without_states(Learned all) {
    std::erase_if(all, [](const auto& entry) { return entry.first.find('.') != std::string::npos; });
    return all;
  }

  const TemporaryFolder folder_;
};

// 200 x 64 numbers are 50 KiB: two partitions by themselves, and several in a bucket.
TEST_F(WindowAndDelay, PartitionsAreBitwiseEqualToTheWhole) {
  for (const int ranks : thorough_or<std::vector<int>>({2, 3, 4}, {3})) {
    const Learned whole = learned(ranks, 3, "prove = false, all_reduce_window = off");
    EXPECT_EQ(learned(ranks, 3, "prove = false, all_reduce_window = '32 KiB', buckets = off"), whole)
        << ranks;
    EXPECT_EQ(learned(ranks, 3, "prove = false, all_reduce_window = '33 KiB', buckets = '1 MiB'"), whole)
        << ranks;
  }
}

TEST_F(WindowAndDelay, AWindowIsReportedAndProven) {
  Session session;
  const std::string explain = fmt::format(
      "EXPLAIN TRAIN digits_mlp ON LOCAL 3 WITH (b = 13, f = 200, distribution = 'rank=3: slice b', "
      "buckets = '1 MiB', all_reduce_window = '32 KiB')");
  const nlohmann::json explained = answer(session, explain);
  EXPECT_NE(explained.dump().find("1 all-reduce in 3 parts of at most 32 KiB"), std::string::npos)
      << explained.dump(2);
  EXPECT_NE(explained.dump().find("proven equal to the plan of one device"), std::string::npos);
}

TEST_F(WindowAndDelay, RejectsInvalidWindows) {
  Session session;
  const auto refused = [&](const std::string& with) {
    return complaint(session, fmt::format("EXPLAIN TRAIN digits_mlp ON LOCAL 2 WITH ({})", with));
  };
  EXPECT_NE(refused("all_reduce_window = '16 KiB'").find("expected a window of 32 KiB or more"),
            std::string::npos);
  EXPECT_NE(refused("all_reduce_window = '4 MiB', micro_batches = 2")
                .find("all_reduce_window cannot be combined with stages"),
            std::string::npos);
}

// -- delay -----------------------------------------------------------------------------------------

TEST_F(WindowAndDelay, ZeroDelayIsTheSynchronousPlan) {
  EXPECT_EQ(learned(3, 3, "prove = false, gradient_delay = 0"), learned(3, 3, "prove = false"));
}

// The first step applies nothing, and each later one applies the gradient of the step before.
TEST_F(WindowAndDelay, AppliesGradientsOneStepLate) {
  const std::string sgd = "prove = false, optimizer = sgd, learning_rate = 0.1";
  for (const int ranks : thorough_or<std::vector<int>>({2, 3, 4}, {2, 3})) {
    const Learned late = learned(ranks, 2, sgd + ", gradient_delay = 1, all_reduce_window = '32 KiB'"),
                  once = learned(ranks, 1, sgd);
    EXPECT_TRUE(late.contains("w1.delayed.rank")) << ranks;
    EXPECT_EQ(without_states(late), without_states(once)) << ranks;
    EXPECT_NE(without_states(learned(ranks, 3, sgd + ", gradient_delay = 1")),
              without_states(learned(ranks, 2, sgd)))
        << "two steps computed gradients with the same weights, and a third did not";
  }
}

TEST_F(WindowAndDelay, ContinuesFromACheckpointExactly) {
  const std::string kept = folder_ / "kept.safetensors", whole = folder_ / "whole.safetensors";
  const auto to = [&](const std::string& file) {
    return fmt::format("prove = false, gradient_delay = 1, checkpoint = '{}'", file);
  };
  Session session, first, second;
  answer(session, train(3, 5, to(whole)));
  answer(first, train(3, 2, to(kept)));
  answer(second, fmt::format("LOAD digits_mlp FROM '{}'", kept));
  answer(second, train(3, 3, to(kept)));
  EXPECT_EQ(bytes_of(kept), bytes_of(whole));
}

TEST_F(WindowAndDelay, IsProvenUpToTheDelayWithWindowsAndShards) {
  Session session;
  for (const std::string spread : {"node=4: slice b; gpu=8: slice b", "node=4: slice b; gpu=8: slice f",
                                   "node=4: slice b; gpu=8: slice b, shard optimizer",
                                   "node=4: slice b; gpu=8: slice b, shard parameters"}) {
    const nlohmann::json explained = answer(
        session,
        fmt::format(
            "EXPLAIN TRAIN digits_mlp ON pod WITH (b = 96, f = 2000, gradient_delay = 1, all_reduce_window = "
            "'32 KiB', distribution = '{}')",
            spread));
    EXPECT_NE(explained.dump().find("except that gradients are applied one step later"), std::string::npos)
        << spread << explained.dump(2);
    EXPECT_NE(explained.dump().find("summed and applied one step later"), std::string::npos) << spread;
  }
}

TEST_F(WindowAndDelay, TrainsAsWithoutThem) {
  Session session;
  const auto loss = [&](const std::string& with) {
    return answer(
               session,
               fmt::format(
                   "TRAIN digits_mlp ON LOCAL 2 FROM '{}' STEPS 150 WITH (f = 32, b = 32, seed "
                   "= 1, from_scratch = true, threads = 1, transport = inproc, prove = false, rules = false, "
                   "holdout = 300, distribution = 'rank=2: slice b', learning_rate = 0.003{})",
                   kDigitsFile, with))["test"]["loss"]
        .get<double>();
  };
  EXPECT_LT(loss(", gradient_delay = 1"), 1.2 * loss(""));
}

TEST_F(WindowAndDelay, RejectsInvalidDelayCombinations) {
  Session session;
  const auto refused = [&](const std::string& with) {
    return complaint(session, fmt::format("EXPLAIN TRAIN digits_mlp ON LOCAL 2 WITH ({})", with));
  };
  EXPECT_NE(refused("gradient_delay = 2").find("expected 0 or 1 steps"), std::string::npos);
  EXPECT_NE(refused("gradient_delay = 1, sync_every = 4").find("delay cannot be combined with sync_every"),
            std::string::npos);
  EXPECT_NE(
      refused("gradient_delay = 1, codecs = 'gradients: int8'").find("delay cannot be combined with codecs"),
      std::string::npos);
  EXPECT_NE(
      refused("gradient_delay = 1, precision = f16").find("delay cannot be combined with precision = f16"),
      std::string::npos);
  EXPECT_NE(refused("gradient_delay = 1, micro_batches = 2").find("delay cannot be combined with stages"),
            std::string::npos);
}

}  // namespace
}  // namespace weft::session
