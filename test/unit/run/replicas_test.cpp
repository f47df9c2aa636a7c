// Ranks whose replicas of a tensor diverge.
#include <cstring>
#include <thread>

#include <gtest/gtest.h>

#include "ranks_case.h"

namespace weft::session {
namespace {

// Gives all threads but the first another label in the batch of the fourth step.
class CrookedFeed final : public run::Feed {
 public:
  explicit CrookedFeed(std::shared_ptr<const run::Feed> straight) : straight_(std::move(straight)) {
    name_inputs({straight_->input_names().begin(), straight_->input_names().end()});
  }

  std::string_view example() const override { return straight_->example(); }
  std::int64_t examples_per_step() const override { return straight_->examples_per_step(); }
  std::int64_t test_examples() const override { return 0; }
  void fill_test(exec::Rank&, std::int64_t) const override {}
  Digest digest() const override { return straight_->digest(); }
  void fill(std::span<const run::InputMemory> inputs, std::int64_t step) const override {
    straight_->fill(inputs, step);
    if (step != 3 || std::this_thread::get_id() == first_) return;
    std::int32_t label = 0;
    std::memcpy(&label, inputs[1].bytes.data(), sizeof label);
    label = (label + 1) % 5;
    std::memcpy(inputs[1].bytes.data(), &label, sizeof label);
  }

 private:
  std::shared_ptr<const run::Feed> straight_;
  std::thread::id first_ = std::this_thread::get_id();
};

TEST(Replicas, NamesRanksThatDiverge) {
  const Learner mlp = learner("digits_mlp", {{"b", 12, {}}, {"p", 8, {}}, {"f", 12, {}}, {"c", 5, {}}},
                              train::Optimizer::momentum);
  const CrookedFeed crooked(mlp.feed);
  run::DistributedRun run = steps(20);
  for (const std::int64_t every : {1, 5}) {
    run.check_every = every;
    // All ranks see the whole batch, so their replicas should be equal.
    const auto apart =
        run::run_distributed(spread(mlp, "rank=3: slice f"), on(3), crooked, from_seed(7), run);
    ASSERT_FALSE(apart.ok());
    EXPECT_EQ(apart.error().fault, Fault::world);
    EXPECT_TRUE(apart.error().message.starts_with("rank 0 has other values of ")) << apart.error().message;
    EXPECT_NE(apart.error().message.find(every == 1 ? " than rank 1 and rank 2 after step 4"
                                                    : " than rank 1 and rank 2 after step 5"),
              std::string::npos)
        << apart.error().message;
  }
  run.check_every = 0;
  EXPECT_TRUE(run::run_distributed(spread(mlp, "rank=3: slice f"), on(3), crooked, from_seed(7), run).ok());
}

}  // namespace
}  // namespace weft::session
