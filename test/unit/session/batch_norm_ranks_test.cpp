// A convolutional net with batch norms, on ranks that hold some of the images or rows of them,
// trains as on one rank. EXPLAIN finds data parallelism for it.
#include <cmath>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "distribute_case.h"
#include "ranks_case.h"
#include "thorough.h"
#include "weft/app/session/session.h"
#include "weft/parallel/distribute/prove.h"
#include "weft/parallel/train/local_norms.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/ops/operators.h"

namespace weft::session {
namespace {

constexpr std::string_view kConvnet = R"(
    CREATE MODEL normed (b = 6, c = 2, y = 8, x = 6, m = 4, n = 4, r = 3, q = 3, classes = 4)
      INPUT     image[b, c, y, x], label[b] OF int32
      PARAMETER k1[m, c, r, q] INIT normal(0, 0.4), g1[m] INIT ones, b1[m],
                k2[n, m, r, q] INIT normal(0, 0.3), g2[n] INIT ones, b2[n], w[n, classes] INIT normal(0, 0.3)
      STATE     mean1[m], variance1[m] INIT ones, mean2[n], variance2[n] INIT ones
    AS WITH
      y1     AS (SELECT conv2d(image, k1, padding => 1) FROM image, k1),
      x1     AS (SELECT relu(batch_norm(y1, mean1, variance1) OVER (PARTITION BY m) * g1 + b1)
                 FROM y1, mean1, variance1, g1, b1),
      y2     AS (SELECT conv2d(x1, k2, stride => 2, padding => 1) FROM x1, k2),
      x2     AS (SELECT relu(batch_norm(y2, mean2, variance2) OVER (PARTITION BY n) * g2 + b2)
                 FROM y2, mean2, variance2, g2, b2),
      pooled AS (SELECT mean(x2) FROM x2 GROUP BY b, n),
      logits AS (SELECT sum(pooled * w) FROM pooled, w GROUP BY b, classes)
    SELECT mean(cross_entropy(logits, label) OVER (PARTITION BY b)) AS loss FROM logits, label;)";

Learner normed_convnet() { return created_learner(kConvnet, train::Optimizer::momentum); }

// The same with separate statistics for each of `shares` shards of the batch.
Learner locally_normed_convnet(std::int64_t shares) {
  language::Catalog catalog;
  const auto source = language::parse_and_keep(kConvnet).value();
  const auto& model = source->script.statements.back()->as<language::syntax::CreateModel>();
  language::BindOptions options;
  options.mode = language::Mode::train;
  const auto bound = language::bind(catalog, language::ModelDefinition{source, &model}, options);
  return learner(train::with_local_norms(bound.value().graph, shares).value(), train::Optimizer::momentum);
}

// Weights and running statistics, because those are learned too.
TEST(BatchNormOnRanks, TrainsLikeOneRank) {
  const Learner learner = normed_convnet();
  const OneRank alone = train_alone(learner);
  for (const std::string_view text :
       {"rank=2: slice b", "rank=3: slice b", "rank=2: slice y", "data=2: slice b; rows=2: slice y",
        "data=2: slice b; maps=2: slice m, n"}) {
    SCOPED_TRACE(text);
    const distribute::DistributedPlan plan = spread(learner, text);
    EXPECT_EQ(plan.opened.size(), 2u);
    EXPECT_EQ(distribute::count(plan, "batch-norm"), 0);
    const run::DistributedOutcome found =
        train(learner, plan, on(static_cast<std::int32_t>(plan.mesh.ranks())));
    EXPECT_NEAR(found.training.last_loss, alone.training.last_loss,
                1e-4 * std::abs(alone.training.last_loss));
    const Apart far = apart(alone.weights, found.weights);
    EXPECT_LT(far.relative, 1e-4) << far.worst;
  }
}

TEST(BatchNormOnRanks, ProcessesTrainLikeThreads) {
  const Learner learner = normed_convnet();
  const auto threads = train(learner, "rank=2: slice b", on(2), 5);
  const auto processes = train(learner, "rank=2: slice b", on(2, comm::TransportKind::shm), 5);
  const Apart far = apart(threads.weights, processes.weights);
  EXPECT_LT(far.relative, 1e-4) << far.worst;
}

// One rank runs all shards, two or three ranks run some each.
TEST(BatchNormOnRanks, ShardsAreTheSameOnAnyRanks) {
  const OneRank global = train_alone(normed_convnet());
  for (const auto& [shares, text] :
       {std::pair(2, "rank=2: slice b"), std::pair(3, "rank=3: slice b"), std::pair(6, "rank=2: slice b")}) {
    SCOPED_TRACE(shares);
    const Learner learner = locally_normed_convnet(shares);
    const OneRank alone = train_alone(learner);
    const distribute::DistributedPlan plan = spread(learner, text);
    EXPECT_EQ(distribute::count(plan, "all-gather"), 0);
    const run::DistributedOutcome found =
        train(learner, plan, on(static_cast<std::int32_t>(plan.mesh.ranks())));
    const Apart far = apart(alone.weights, found.weights);
    EXPECT_LT(far.relative, 1e-4) << far.worst;
    EXPECT_GT(apart(global.weights, alone.weights).relative, 1e-3);  // a different model
  }
}

nlohmann::json explained(const std::string& statement) {
  Session session;
  const Reply reply = session.execute("EXPLAIN (FORMAT json) " + statement);
  if (reply.exit_code != ExitCode::ok) throw std::runtime_error(reply.complaint);
  return nlohmann::json::parse(reply.output);
}

// A rank sends its gradients, not gigabytes of activations, and no other family is much faster.
TEST(BatchNormOnRanks, ResNetIsDataParallel) {
  WEFT_LONG_TEST();
  const nlohmann::json json =
      explained("TRAIN resnet50 ON pod WITH (b = 1024, distribution = 'node=4: slice b; gpu=8: slice b')");
  EXPECT_TRUE(json.at("proven")) << json.at("proof");
  constexpr double kWeights = 25'557'032 * 4.0;
  double sent = 0;
  for (const auto& [axis, bytes] : json.at("bytes_sent_by_axis").items()) sent += bytes.get<double>();
  EXPECT_LT(sent, 2.2 * kWeights);
  for (const nlohmann::json& other : json.at("alternatives"))
    EXPECT_LT(json.at("step_seconds").get<double>(), 1.2 * other.at("step_seconds").get<double>())
        << other.at("name");
}

constexpr std::string_view kNormed = R"(
CREATE MODEL normed (b = 12, c = 2, y = 8, x = 6, m = 4, r = 3, q = 3, classes = 4)
  INPUT     image[b, c, y, x], label[b] OF int32
  PARAMETER k[m, c, r, q] INIT normal(0, 0.4), g[m] INIT ones, w[m, classes] INIT normal(0, 0.3)
  STATE     mean[m], variance[m] INIT ones
AS WITH
  conv   AS (SELECT conv2d(image, k, padding => 1) FROM image, k),
  norm   AS (SELECT relu(batch_norm(conv, mean, variance) OVER (PARTITION BY m) * g) FROM conv, mean, variance, g),
  pooled AS (SELECT mean(norm) FROM norm GROUP BY b, m),
  logits AS (SELECT sum(pooled * w) FROM pooled, w GROUP BY b, classes)
SELECT mean(cross_entropy(logits, label) OVER (PARTITION BY b)) AS loss FROM logits, label;
)";

std::string said_of(std::string_view statement) {
  Session session;
  const Reply reply = session.execute(std::string(kNormed) + std::string(statement));
  return reply.exit_code == ExitCode::ok ? reply.output : reply.complaint;
}

// A different model, which the plan states and proves.
TEST(BatchNormOnRanks, ReportsLocalStatistics) {
  const std::string local = said_of(
      "EXPLAIN (SUMMARY) TRAIN normed ON LOCAL 2 WITH (batch_norm = local, "
      "distribution = 'rank=2: slice b', rules = false)");
  EXPECT_NE(local.find("proven equal to the plan of one device except for local batch norm statistics"),
            std::string::npos)
      << local;
  const std::string global = said_of(
      "EXPLAIN (SUMMARY) TRAIN normed ON LOCAL 2 WITH (batch_norm = global, "
      "distribution = 'rank=2: slice b', rules = false)");
  EXPECT_EQ(global.find("except for"), std::string::npos) << global;
  EXPECT_NE(global.find("proven equal to the plan of one device"), std::string::npos) << global;
  // One rank has the whole batch in any case.
  EXPECT_EQ(said_of("EXPLAIN (FORMAT plan) TRAIN normed WITH (batch_norm = local)").find("split"),
            std::string::npos);
}

TEST(BatchNormOnRanks, LocalStatisticsNeedEqualShards) {
  const std::string wrong = said_of("EXPLAIN TRAIN normed ON LOCAL 2 WITH (batch_norm = local, b = 5)");
  EXPECT_NE(wrong.find("b of 5 cannot be split into 2 equal shares"), std::string::npos) << wrong;
  EXPECT_NE(said_of("SET batch_norm = mine").find("expected one of global, local"), std::string::npos);
}

// Ranks receive their plans as text, and reject one in which a node reads from a later phase.
TEST(BatchNormOnRanks, RunsRewrittenPlans) {
  for (const std::string_view with : {"accumulate = 2", "clip_norm = 1", "clip_norm = 1, accumulate = 2",
                                      "tile_collectives = 2", "accumulate = 2, optimizer = sgd"}) {
    const std::string text =
        said_of(fmt::format("EXPLAIN (FORMAT plan) TRAIN normed ON LOCAL 2 WITH (rules = true, "
                            "{}, distribution = 'rank=2: slice b')",
                            with));
    const auto read = plan::read(text.substr(std::min(text.find("plan normed"), text.size())), ops::all());
    EXPECT_TRUE(read.ok()) << with << ": " << (read.ok() ? "" : read.error().message) << text.substr(0, 300);
  }
}

TEST(BatchNormOnRanks, RunsLocalStatistics) {
  EXPECT_NE(
      said_of("EXPLAIN ANALYZE TRAIN normed ON LOCAL 2 STEPS 2 WITH (batch_norm = local, transport = inproc, "
              "distribution = 'rank=2: slice b')")
          .find("measured"),
      std::string::npos);
}

}  // namespace
}  // namespace weft::session
