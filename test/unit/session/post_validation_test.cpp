// Steps taken before the norm of all gradients is known, and undone if necessary: bitwise equal to
// steps that wait for it.
#include <cmath>
#include <cstring>
#include <map>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "session_case.h"
#include "temporary_folder.h"
#include "weft/formats/safetensors.h"

namespace weft::session {
namespace {

struct Learned {
  nlohmann::json said;
  std::map<std::string, std::string> tensors;  // bytes
};

Learned learn(const std::string& on, const std::string& with) {
  const TemporaryFolder folder;
  const std::string file = folder / "learned.safetensors";
  Session session;
  Learned learned;
  learned.said = answer(
      session, fmt::format("TRAIN char_gpt {} FROM '" WEFT_SOURCE_DIR
                           "/README.md' STEPS 4 WITH (b = 8, s = 8, d = 16, h = 2, layers = 2, seed = 3, "
                           "threads = 1, transport = inproc, rules = false, {})",
                           on, with));
  answer(session, fmt::format("SAVE char_gpt TO '{}'", file));
  const auto loaded = formats::load(file);
  EXPECT_TRUE(loaded.ok());
  if (loaded.ok())
    for (const formats::TensorEntry& entry : loaded->tensors)
      learned.tensors[std::string(entry.name)] =
          std::string(reinterpret_cast<const char*>(entry.data.data()), entry.data.size());
  return learned;
}

struct How {
  std::string name, on, with;
};

class PostValidation : public testing::TestWithParam<How> {};
INSTANTIATE_TEST_SUITE_P(
    Plans, PostValidation,
    testing::Values(How{"OneRank", "", "optimizer = adamw"},
                    How{"Data", "ON LOCAL 2", "distribution = 'rank=2: slice b, shard optimizer'"},
                    How{"Stages", "ON LOCAL 2", "distribution = 'stage=2: stage; micro=4; schedule zb_h1'"},
                    How{"StagesAndData", "ON LOCAL 4",
                        "optimizer = momentum, distribution = 'stage=2: stage; data=2: slice b; micro=2'"},
                    How{"Narrow", "", "precision = f16, loss_scale = 1024"},
                    // Gradients that overflow: the step is undone, whatever the norm.
                    How{"Overflow", "ON LOCAL 2",
                        "precision = f16, loss_scale = 1e19, distribution = 'stage=2: stage; micro=2'"}),
    [](const auto& info) { return info.param.name; });

TEST_P(PostValidation, GivesEqualBits) {
  const How& how = GetParam();
  std::map<std::string, std::string> by_clip;
  for (const std::string clip : {"1000", "0.01"}) {
    const std::string with = fmt::format("{}, clip_norm = {}", how.with, clip);
    // Results do not depend on the proof; proving once is enough.
    const bool proven = clip == "1000";
    const Learned before = learn(how.on, with + ", prove = false"),
                  after = learn(how.on, fmt::format("{}, post_validation = true, prove = {}", with, proven));
    EXPECT_TRUE(before.tensors == after.tensors) << clip;
    EXPECT_EQ(before.said.at("last_loss"), after.said.at("last_loss")) << clip;
    if (proven) EXPECT_FALSE(after.said.contains("unproven")) << after.said;
    for (const auto& [name, bytes] : after.tensors) by_clip[clip] += bytes;
  }
  // With one of the clips the norm is too large, with the other it is not; steps that overflow
  // change nothing with either.
  EXPECT_EQ(by_clip["1000"] == by_clip["0.01"], how.name == "Overflow");
}

// NaN gradients give NaN weights, the same ones with and without post-validation.
TEST(PostValidation, NaNGradientsGiveEqualWeights) {
  const auto learned = [](const std::string& more) {
    const TemporaryFolder folder;
    const std::string file = folder / "root.safetensors";
    Session session;
    const auto said =
        answer(session,
               "CREATE MODEL root (b = 4) INPUT x[b], y[b] PARAMETER w[b], v[b] INIT ones AS "
               "WITH q AS (SELECT x * sqrt(w) + v - y FROM x, w, v, y) SELECT mean(q * q) AS loss FROM q; "
               "TRAIN root ON LOCAL 2 FROM '" WEFT_SOURCE_DIR
               "/test/data/line.csv' STEPS 1 WITH (threads = 1, transport = inproc, clip_norm = 1.0, "
               "distribution = 'rank=2: slice b'" +
                   more + ")");
    EXPECT_TRUE(std::isfinite(said.at("last_loss").get<double>()));
    answer(session, fmt::format("SAVE root TO '{}'", file));
    const auto loaded = formats::load(file);
    EXPECT_TRUE(loaded.ok());
    float first = 0;
    std::string bytes;
    for (const formats::TensorEntry& entry : loaded->tensors) {
      if (entry.name == "w") std::memcpy(&first, entry.data.data(), sizeof first);
      bytes += std::string(reinterpret_cast<const char*>(entry.data.data()), entry.data.size());
    }
    EXPECT_FALSE(std::isfinite(first));
    return bytes;
  };
  EXPECT_EQ(learned(""), learned(", post_validation = true"));
}

}  // namespace
}  // namespace weft::session
