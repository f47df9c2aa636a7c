// Bucketed gradients on ranks: the weights equal those of separate all-reduces, and runs are
// reproducible.
#include <gtest/gtest.h>

#include "bucket_case.h"
#include "ranks_case.h"

namespace weft::session {
namespace {

using distribute::DistributedPlan;
using train::Optimizer;

Learner mlp(Optimizer optimizer) {
  return learner("digits_mlp", {{"b", 12, {}}, {"p", 8, {}}, {"f", 12, {}}, {"c", 10, {}}}, optimizer);
}

Learner gpt(Optimizer optimizer) {
  return learner("char_gpt",
                 {{"b", 8, {}}, {"s", 8, {}}, {"d", 8, {}}, {"h", 8, {}}, {"layers", 1, {}}, {"v", 8, {}}},
                 optimizer);
}

// Two partial values have only one order of summation.
TEST(BucketsOnRanks, TwoRanksAreBitwiseEqual) {
  for (const Learner& model : {mlp(Optimizer::adam), gpt(Optimizer::momentum)}) {
    const DistributedPlan plain = spread(model, "rank=2: slice b");
    const auto by_itself = train(model, plain, on(2), 10);
    for (const std::size_t members : {2u, 5u, 1000u}) {
      const auto together = train(model, search::in_buckets(plain, members), on(2), 10);
      expect_same_bits(together.weights, by_itself.weights);
    }
  }
}

// A bias whose gradient several tasks accumulate next to its position in the bucket.
TEST(BucketsOnRanks, PartialSumsAgree) {
  const Learner model = learner("digits_mlp", {{"b", 1024, {}}, {"p", 8, {}}, {"f", 256, {}}, {"c", 10, {}}},
                                Optimizer::momentum);
  const DistributedPlan plain = spread(model, "rank=2: slice b");
  const auto by_itself = train(model, plain, on(2), 3);
  const auto together = train(model, search::in_buckets(plain, 1000), on(2), 3);
  EXPECT_LT(apart(together.weights, by_itself.weights).relative, 1e-5)
      << apart(together.weights, by_itself.weights).worst;
}

TEST(BucketsOnRanks, SeveralAxesAgreeAndAreReproducible) {
  // Adam would turn the noise in a key's bias, whose gradient is zero, into steps.
  const Learner model = gpt(Optimizer::momentum);
  for (const std::string_view text : {"rank=4: slice b", "data=2: slice b; tensor=2: slice h, f, v, s"}) {
    SCOPED_TRACE(text);
    const DistributedPlan plain = spread(model, text);
    const bool low = text.starts_with("data");
    const DistributedPlan made = search::in_buckets(plain, low ? 3 : 1000, low);
    const auto alone = train_alone(model, 10);
    const auto together = train(model, made, on(4), 10), again = train(model, made, on(4), 10);
    EXPECT_LT(apart(together.weights, alone.weights).relative, 1e-4)
        << apart(together.weights, alone.weights).worst;
    expect_same_bits(together.weights, again.weights);
  }
}

}  // namespace
}  // namespace weft::session
