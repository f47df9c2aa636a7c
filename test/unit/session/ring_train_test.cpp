// Ring attention: the same losses as on one rank, and less memory.
#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "session_case.h"
#include "weft/app/session/session.h"

namespace weft::session {
namespace {

using Json = nlohmann::json;

const std::string kText = WEFT_SOURCE_DIR "/LICENSE";  // a text that does not change

double loss_after(const std::string& model, int ranks, const std::string& with) {
  Session session;
  const std::string on = ranks > 1 ? fmt::format("ON LOCAL {}", ranks) : "ON LOCAL 1";
  return answer(
             session,
             fmt::format("TRAIN {} FROM '{}' STEPS 6 {} WITH (transport = inproc, replica_check_every = 3, "
                         "learning_rate = 0.01, seed = 4, {})",
                         model, kText, on, with))["last_loss"]
      .get<double>();
}

void expect_one_ranks_loss(const std::string& model, int ranks, const std::string& sizes, double within) {
  const double alone = loss_after(model, 1, sizes);
  const double found = loss_after(
      model, ranks, fmt::format("{}, distribution = 'rank={}: slice s, ring attention'", sizes, ranks));
  EXPECT_NEAR(found, alone, within * alone) << model << " on " << ranks << ": " << sizes;
}

TEST(RingTrain, TrainsLikeOneRank) {
  const std::string small = "b = 2, d = 16, h = 2, layers = 1, prove = false";
  expect_one_ranks_loss("char_gpt", 2, "s = 32, " + small, 1e-4);
  expect_one_ranks_loss("char_gpt", 3, "s = 31, " + small, 1e-4);  // blocks of 11, 11 and 9
  expect_one_ranks_loss("char_gpt", 4, "s = 6, " + small, 1e-4);   // 2, 2, 2 and none
  expect_one_ranks_loss("char_gpt", 2, "s = 32, precision = bf16, " + small, 2e-2);
  expect_one_ranks_loss("char_gpt", 2, "s = 32, micro_batches = 2, " + small, 1e-4);
}

TEST(RingTrain, IsProvenAndReportsItsDistribution) {
  Session session;
  const Json explained =
      answer(session, fmt::format("TRAIN char_gpt FROM '{}' STEPS 1 ON LOCAL 2 WITH (transport = inproc, "
                                  "b = 2, s = 16, d = 16, h = 2, layers = 1, "
                                  "distribution = 'rank=2: slice s, ring attention')",
                                  kText));
  EXPECT_EQ(explained.value("plan", ""), "rank=2: slice s, ring attention") << explained.dump(1);
  EXPECT_FALSE(explained.contains("unproven")) << explained.dump(1);
}

}  // namespace
}  // namespace weft::session
