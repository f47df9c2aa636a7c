// sync_every: ranks train independently for some steps and then average their parameters.
#include <cmath>
#include <cstring>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "session_case.h"
#include "temporary_folder.h"
#include "weft/formats/safetensors.h"

namespace weft::session {
namespace {

const std::string kDigits = WEFT_SOURCE_DIR "/examples/digits.csv.gz";

constexpr std::string_view kSmall =
    "b = 12, f = 8, seed = 5, threads = 1, transport = inproc, prove = false, rules = false, "
    "replica_check_every = "
    "1, "
    "buckets = off";

// All parameters and states by name.
std::map<std::string, std::vector<float>> floats_of(const std::string& file) {
  std::map<std::string, std::vector<float>> found;
  const auto loaded = formats::load(file);
  EXPECT_TRUE(loaded.ok());
  if (!loaded.ok()) return found;
  for (const formats::TensorEntry& entry : loaded->tensors) {
    std::vector<float>& values = found[std::string(entry.name)];
    values.resize(entry.data.size() / sizeof(float));
    std::memcpy(values.data(), entry.data.data(), values.size() * sizeof(float));
  }
  return found;
}

class SyncEvery : public testing::Test {
 protected:
  // The result of a training ON LOCAL 3 in several parts, each in its own session.
  std::map<std::string, std::vector<float>> learned(const std::vector<int>& parts, const std::string& with) {
    const std::string file = folder_ / "learned.safetensors";
    bool first = true;
    for (const int steps : parts) {
      Session session;
      if (!first) answer(session, fmt::format("LOAD digits_mlp FROM '{}'", file));
      first = false;
      answer(session, fmt::format("TRAIN digits_mlp ON LOCAL 3 FROM '{}' STEPS {} WITH ({}, distribution = "
                                  "'rank=3: slice b', {})",
                                  kDigits, steps, kSmall, with));
      answer(session, fmt::format("SAVE digits_mlp TO '{}'", file));
    }
    return floats_of(file);
  }

 private:
  const TemporaryFolder folder_;
};

double farthest(const std::map<std::string, std::vector<float>>& a,
                const std::map<std::string, std::vector<float>>& b) {
  double most = 0;
  for (const auto& [name, values] : a) {
    if (!b.contains(name) || b.at(name).size() != values.size()) return INFINITY;
    for (std::size_t i = 0; i < values.size(); ++i)
      most = std::max(most, std::abs(static_cast<double>(values[i]) - b.at(name)[i]));
  }
  return most;
}

// The mean of one step per rank, each by its own gradient, equals the step by the averaged
// gradient.
TEST_F(SyncEvery, OneStepEqualsASynchronousStep) {
  const auto together = learned({1}, "optimizer = sgd, learning_rate = 0.1");
  EXPECT_LT(farthest(learned({1}, "optimizer = sgd, learning_rate = 0.1, sync_every = 4"), together), 1e-6);
}

TEST_F(SyncEvery, OneIsTheSynchronousPlan) {
  EXPECT_EQ(learned({5}, "sync_every = 1"), learned({5}, "optimizer = adam"));
}

// For several steps they differ, or no rank would have trained independently.
TEST_F(SyncEvery, RanksDiverge) {
  const auto together = learned({4}, "optimizer = sgd, learning_rate = 0.1");
  const double apart =
      farthest(learned({4}, "optimizer = sgd, learning_rate = 0.1, sync_every = 4"), together);
  EXPECT_GT(apart, 1e-6);
  EXPECT_LT(apart, 0.1);
}

// Saved when ranks agreed, training continues with equal bits; moments were averaged then too.
TEST_F(SyncEvery, ContinuesFromAFileExactly) {
  for (const std::string with :
       {"sync_every = 2", "sync_every = 2, outer_learning_rate = 0.7, outer_momentum = 0.9"}) {
    const auto parts = learned({4, 4}, with);
    EXPECT_EQ(parts, learned({4, 4}, with)) << with;
    EXPECT_EQ(parts.contains("w1.outer"), with.find("outer") != std::string::npos);
  }
  Session session;
  const TemporaryFolder folder;
  const std::string kept = folder / "kept.safetensors", whole = folder / "whole.safetensors";
  const auto train = [&](int steps, const std::string& with) {
    return fmt::format(
        "TRAIN digits_mlp ON LOCAL 3 FROM '{}' STEPS {} WITH ({}, distribution = 'rank=3: slice b', "
        "sync_every = 2, outer_learning_rate = 0.7, outer_momentum = 0.9{})",
        kDigits, steps, kSmall, with);
  };
  answer(session, train(8, fmt::format(", checkpoint = '{}', checkpoint_every = 4", whole)));
  Session other;
  answer(other, train(4, fmt::format(", checkpoint = '{}'", kept)));
  Session after;
  answer(after, fmt::format("LOAD digits_mlp FROM '{}'", kept));
  answer(after, train(4, ""));
  answer(after, fmt::format("SAVE digits_mlp TO '{}'", kept));
  EXPECT_EQ(floats_of(kept), floats_of(whole));
}

// An outer update starts from the saved parameters, which are rounded in narrow types.
TEST_F(SyncEvery, ContinuesFromAFileExactlyInNarrowTypes) {
  const TemporaryFolder folder;
  const std::string kept = folder / "kept.safetensors", whole = folder / "whole.safetensors";
  const auto train = [&](int steps, const std::string& file) {
    return fmt::format(
        "TRAIN digits_mlp ON LOCAL 3 FROM '{}' STEPS {} WITH ({}, distribution = 'rank=3: slice "
        "b', sync_every = 4, outer_learning_rate = 0.7, precision = pure_bf16, checkpoint = '{}', "
        "checkpoint_every = 5)",
        kDigits, steps, kSmall, file);
  };
  Session session, other, after;
  answer(session, train(12, whole));
  answer(other, train(5, kept));
  answer(after, fmt::format("LOAD digits_mlp FROM '{}'", kept));
  answer(after, train(7, kept));
  const auto bytes = [](const std::string& file) {
    std::map<std::string, std::string> found;
    const auto loaded = formats::load(file);
    EXPECT_TRUE(loaded.ok());
    for (const formats::TensorEntry& entry : loaded->tensors)
      found[std::string(entry.name)] =
          std::string(reinterpret_cast<const char*>(entry.data.data()), entry.data.size());
    return found;
  };
  EXPECT_EQ(bytes(kept), bytes(whole));
}

TEST_F(SyncEvery, TrainsAboutAsWellAsSynchronously) {
  Session session;
  const auto losses = [&](const std::string& with) {
    return answer(
               session,
               fmt::format("TRAIN digits_mlp ON LOCAL 2 FROM '{}' STEPS 120 WITH (f = 32, b = 32, seed = 1, "
                           "from_scratch = true, threads = 1, transport = inproc, prove = false, holdout = "
                           "300, distribution = 'rank=2: slice b', {})",
                           kDigits, with))["test"]["loss"]
        .get<double>();
  };
  const double together = losses("learning_rate = 0.003");
  EXPECT_LT(losses("learning_rate = 0.003, sync_every = 8"), 1.3 * together);
  EXPECT_LT(losses("learning_rate = 0.003, sync_every = 8, outer_learning_rate = 0.7, outer_momentum = 0.5"),
            1.5 * together);
}

// Master weights are averaged, and the weights rounded from them again.
TEST_F(SyncEvery, AveragesMasterWeights) {
  const auto found = learned({3}, "sync_every = 3, precision = bf16");
  ASSERT_TRUE(found.contains("w1.master"));
  EXPECT_LT(
      farthest({{"w1.master", found.at("w1.master")}}, learned({3}, "sync_every = 3, precision = bf16")),
      1e-9);
}

TEST_F(SyncEvery, IsProvenUpToAveraging) {
  Session session;
  session.format = Format::text;
  const Reply reply = session.execute(
      "EXPLAIN VERBOSE TRAIN digits_mlp ON LOCAL 2 WITH (b = 6, p = 9, f = 8, c = 5, distribution = 'rank=2: "
      "slice "
      "b', sync_every = 8)");
  EXPECT_EQ(reply.exit_code, ExitCode::ok) << reply.complaint;
  const std::string flat = std::regex_replace(reply.output, std::regex("\\s+"), " ");
  EXPECT_NE(flat.find("4 gradients not summed across ranks"), std::string::npos) << flat;
  EXPECT_NE(flat.find("proven equal except that ranks average parameters"), std::string::npos) << flat;
}

TEST_F(SyncEvery, ReportsInvalidCombinations) {
  Session session;
  const auto train = [&](const std::string& with) {
    return complaint(session, fmt::format("TRAIN digits_mlp ON LOCAL 2 FROM '{}' STEPS 1 WITH (b = 12, {})",
                                          kDigits, with));
  };
  EXPECT_NE(train("sync_every = 0").find("expected a whole number from 1 to 1,000,000,000"),
            std::string::npos);
  EXPECT_NE(train("sync_every = 2.5").find("whole number"), std::string::npos);
  EXPECT_NE(
      train("sync_every = 2, codecs = 'gradients: int8'").find("sync_every cannot be combined with codecs"),
      std::string::npos);
  EXPECT_NE(train("sync_every = 2, precision = f16").find("cannot be combined with precision = f16"),
            std::string::npos);
  EXPECT_NE(train("sync_every = 2, precision = f64").find("cannot be combined with precision = f64"),
            std::string::npos);
  EXPECT_NE(train("sync_every = 2, micro_batches = 2").find("stages or micro-batches"), std::string::npos);
  EXPECT_NE(train("sync_every = 2, distribution = 'rank=2: slice b, shard parameters'").find("split"),
            std::string::npos);
  EXPECT_NE(train("sync_every = 2, distribution = 'rank=2: slice f'").find("does not sum gradients"),
            std::string::npos);
}

}  // namespace
}  // namespace weft::session
