// Batch norms with separate statistics for each shard of the batch.
#include "weft/parallel/train/local_norms.h"

#include <gtest/gtest.h>

#include "distribute_case.h"
#include "ops_case.h"
#include "weft/parallel/distribute/prove.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/graph/verify.h"

namespace weft::train {
namespace {

constexpr std::string_view kNorm =
    "plan norm\n"
    "%0 = input {name=x, type=f32[b=4,o=1,h=1]}\n"
    "%1 = parameter {name=gain, type=f32[o=1]}\n"
    "%2 = state {name=mean, type=f32[o=1]}\n"
    "%3 = state {name=variance, type=f32[o=1]}\n"
    "%4, %5, %6, %7 = batch-norm %0, %2, %3 {over=[b,h], epsilon=0, momentum=0.5}\n"
    "%8 = mul %4, %1\n"
    "%9 = mul %8, %0\n"
    "%10 = reduce %9 {kind=sum, to=[]}\n"
    "return loss=%10, y=%4, \"next mean\"=%5, \"next variance\"=%6\n";

TEST(LocalNorms, EachShardHasItsOwnStatistics) {
  const plan::Graph model = ops::read_plan(kNorm);
  EXPECT_EQ(count_batch_norms(model), 1);
  const auto local = with_local_norms(model, 2);
  ASSERT_TRUE(local.ok()) << local.error().message;
  ASSERT_TRUE(plan::verify(*local).ok());
  ops::Tensors<double> inputs;
  inputs["x"] = {{4, 1, 1}, {1, 3, 10, 20}};
  inputs["gain"] = {{1}, {1}};
  inputs["mean"] = {{1}, {0}};
  inputs["variance"] = {{1}, {1}};
  const auto found = ops::outputs_of<double>(*local, inputs, {});
  EXPECT_EQ(found[1].sizes, (std::vector<std::int64_t>{4, 1, 1}));
  const double y[] = {-1, 1, -1, 1};
  for (std::size_t b = 0; b < 4; ++b) EXPECT_NEAR(found[1].data[b], y[b], 1e-12);
  EXPECT_NEAR(found[2].data[0], 0.5 * (2.0 + 15.0) / 2, 1e-12);            // of means 2 and 15
  EXPECT_NEAR(found[3].data[0], 0.5 * 1 + 0.5 * (2.0 + 50.0) / 2, 1e-12);  // of unbiased variances 2 and 50
}

TEST(LocalNorms, RejectsABatchThatDoesNotDivide) {
  const auto local = with_local_norms(ops::read_plan(kNorm), 3);
  ASSERT_FALSE(local.ok());
  EXPECT_NE(local.error().message.find("b of 4 cannot be split into 3 equal shares"), std::string::npos)
      << local.error().message;
  EXPECT_EQ(local.error().hint, "b = 3, or batch_norm = global");
}

TEST(LocalNorms, DoesNotChangeInference) {
  const plan::Graph asked = ops::read_plan(
      "plan norm\n"
      "%0 = input {name=x, type=f32[b=4,o=2]}\n"
      "%1 = state {name=mean, type=f32[o=2]}\n"
      "%2 = state {name=variance, type=f32[o=2]}\n"
      "%3, %4, %5, %6 = batch-norm %0, %1, %2 {over=[b], mode=infer}\n"
      "return y=%3\n");
  EXPECT_EQ(count_batch_norms(asked), 0);
  EXPECT_EQ(plan::print(with_local_norms(asked, 2).value()), plan::print(asked));
}

// Only the running statistics are communicated, and they wait for no rank.
TEST(LocalNorms, DataParallelNeedsNoCommunicationForStatistics) {
  const auto local = with_local_norms(ops::read_plan(kNorm), 2);
  ASSERT_TRUE(local.ok());
  const auto training = make_training_plan(local->clone(), {.optimizer = Optimizer::sgd});
  ASSERT_TRUE(training.ok()) << training.error().message;
  const auto plan =
      distribute::distribute(training->graph, distribute::read_distribution("gpu=2: slice b").value());
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_TRUE(plan->opened.empty());
  EXPECT_EQ(distribute::count(*plan, "batch-norm"), 1);
  EXPECT_EQ(distribute::count(*plan, "all-gather"), 0);
  EXPECT_EQ(distribute::count(*plan, "all-reduce", plan::Phase::forward),
            2 + 1);                                          // the running statistics, and the loss
  EXPECT_EQ(distribute::count(*plan, "all-reduce") - 3, 1);  // gain's gradient
  const auto proof = distribute::prove(training->graph, *plan, {.draws = 1});
  ASSERT_TRUE(proof.ok()) << proof.error().message;
  EXPECT_TRUE(proof->holds()) << proof->wrong->what;
}

}  // namespace
}  // namespace weft::train
