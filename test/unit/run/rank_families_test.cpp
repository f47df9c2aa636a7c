// Five models, each trained on 2, 4 and 8 ranks with every kind of plan that its indices allow, and
// compared with one rank: after 20 steps, loss and parameters agree up to rounding, and a second run is
// bitwise equal.
//
//   rank=4: slice h, f, v, s        a family of plans, identified by an operator: a reduce-scatter
//   data=2: slice b; tensor=2: ...  combined families, on a mesh of two or three axes
//
// A normal run samples them: each model takes one family on 2, 4 or 8 ranks and another on another
// number, and repeats those on four; meshes alternate too. With WEFT_THOROUGH set, all run on all
// numbers, twice.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ranks_case.h"
#include "thorough.h"

namespace weft::session {
namespace {

using comm::TransportKind;
using distribute::DistributedPlan;
using train::Optimizer;

// For the loss, and relative to the largest element of a tensor.
constexpr double kTolerance = 1e-4;

// Twelve and ten do not divide by eight: some ranks hold less than others.
Learner small_mlp(Optimizer optimizer = Optimizer::momentum) {
  return learner("digits_mlp", {{"b", 12, {}}, {"p", 8, {}}, {"f", 12, {}}, {"c", 10, {}}}, optimizer);
}

Learner small_convnet(Optimizer optimizer = Optimizer::momentum) {
  return created_learner(R"(
    CREATE MODEL convnet (b = 8, c = 1, h = 8, w = 4, m = 8, d = m * h / 4 * w / 4, classes = 8)
      INPUT image[b, c, h, w], label[b] OF int32
    AS WITH
      x1     AS (SELECT max_pool(relu(near), size => 2) FROM conv_bn(image, o = m) AS near),
      x2     AS (SELECT max_pool(relu(far), size => 2) FROM conv_bn(x1, o = m) AS far),
      seen   AS (SELECT dropout(flat, rate => 0.25) FROM x2[b, (o, h, w) AS d] AS flat),
      logits AS (SELECT * FROM dense(seen, o = classes) AS head)
    SELECT mean(cross_entropy(logits, label) OVER (PARTITION BY b)) AS loss FROM logits, label;)",
                         optimizer);
}

Learner small_gpt(Optimizer optimizer = Optimizer::momentum) {
  return learner("char_gpt",
                 {{"b", 8, {}}, {"s", 8, {}}, {"d", 8, {}}, {"h", 8, {}}, {"layers", 1, {}}, {"v", 8, {}}},
                 optimizer);
}

// Masked tokens are to be predicted.
Learner small_bert(Optimizer optimizer = Optimizer::momentum) {
  return created_learner(R"(
    CREATE MODEL bert_small (b = 8, s = 8, d = 8, h = 8, layers = 1, v = 8)
      INPUT     tokens[b, s] OF int32, shown[b, s], targets[b, s] OF int32
      PARAMETER word[v, d] INIT normal(0, 0.02), place[s, d] INIT normal(0, 0.02), ln_gain[d] INIT ones, ln_bias[d]
    AS WITH
      mask   AS (SELECT shown > 0.2 FROM shown),
      summed AS (SELECT word + place FROM tokens JOIN word ON v = tokens, place),
      x      AS (SELECT layer_norm(summed) OVER (PARTITION BY b, s) * ln_gain + ln_bias FROM summed, ln_gain, ln_bias),
      REPEAT layers TIMES x AS (SELECT * FROM bert_block(x, mask, h = h)),
      logits AS (SELECT sum(x * word) FROM x, word GROUP BY b, s, v)
    SELECT mean(cross_entropy(logits, targets) OVER (PARTITION BY b, s)) AS loss FROM logits, targets;)",
                         optimizer);
}

Learner small_mixture(Optimizer optimizer = Optimizer::momentum) {
  return created_learner(R"(
    CREATE MODEL mixture (b = 8, s = 8, d = 8, h = 8, f = 8, experts = 8, layers = 1, v = 8)
      INPUT     tokens[b, s] OF int32, targets[b, s] OF int32
      PARAMETER embed[v, d] INIT normal(0, 0.1), norm_gain[d] INIT ones, head[d, v] INIT normal(0, 0.1)
    AS WITH
      x      AS (SELECT embed FROM tokens JOIN embed ON v = tokens),
      REPEAT layers TIMES x AS (
        WITH a AS (SELECT * FROM rotary_attention(x, h = h, e = 2))
        SELECT * FROM expert_mlp(a, f = f, x = experts)),
      n      AS (SELECT rms_norm(x) OVER (PARTITION BY b, s) * norm_gain FROM x, norm_gain),
      logits AS (SELECT sum(n * head) FROM n, head GROUP BY b, s, v)
    SELECT mean(cross_entropy(logits, targets) OVER (PARTITION BY b, s)) AS loss FROM logits, targets;)",
                         optimizer);
}

// The use of an axis, and an operator that its plans contain.
struct Family {
  std::string_view name, use, moves;
};
constexpr Family kData{"data", "slice b", "all-reduce"};
constexpr Family kZeroOptimizer{"ZeRO-1 and -2", "slice b, shard optimizer", "reduce-scatter"};
constexpr Family kZeroParameters{"ZeRO-3", "slice b, shard parameters", "all-gather"};
constexpr Family kTensor{"tensor", "slice h, f", "all-reduce"};
constexpr Family kSequence{"sequence", "slice h, f, v, s", "reduce-scatter"};
constexpr Family kVocabulary{"sliced vocabulary", "slice v", "all-reduce"};
constexpr Family kContext{"context", "slice s", "all-gather"};

bool has(const DistributedPlan& plan, std::string_view operator_name) {
  for (std::size_t n = 0; n < plan.graph.node_count(); ++n)
    if (plan.graph.view(plan::NodeId(n)).op().name() == operator_name) return true;
  return false;
}

void expect_close(const OneRank& alone, const run::DistributedOutcome& found, double least = 1e-3) {
  const double loss = alone.training.last_loss;
  EXPECT_NEAR(found.training.last_loss, loss, kTolerance * std::abs(loss));
  const Apart far = apart(alone.weights, found.weights, least);
  EXPECT_LT(far.relative, kTolerance) << far.worst;
}

// An error in a plan shows after a few steps; in thorough runs, more steps would show growing
// rounding errors.
const int kSteps = thorough_or(20, 8);

// A model trained on one rank, and comparisons with it.
class Against {
 public:
  // `turn`: the index in the list of variants for the first family; the next one gets the next
  // variant.
  Against(Learner learner, std::size_t turn)
      : learner_(std::move(learner)), alone_(train_alone(learner_, kSteps)), turn_(turn) {
    // Otherwise the comparison would prove nothing.
    EXPECT_GT(apart(train_alone(learner_, 1).weights, alone_.weights).relative, 100 * kTolerance);
  }

  void by(const std::vector<Family>& families) {
    constexpr int kTurns[] = {2, 4, 8, 2, 2};
    for (const Family& family : families) {
      const int turn = kTurns[turn_++ % std::size(kTurns)];
      for (const int ranks : {2, 4, 8})
        if (every_plan_ || ranks == turn) by(fmt::format("rank={}: {}", ranks, family.use), family);
    }
  }
  void by(const std::vector<std::string_view>& meshes) {
    for (const std::string_view mesh : meshes)
      if (every_plan_ || turn_++ % 3 == 0) by(mesh, {"mesh", mesh, "all-reduce"});
  }

 private:
  void by(std::string_view distribution, const Family& family) const {
    SCOPED_TRACE(fmt::format("{}: {}", family.name, distribution));
    const DistributedPlan plan = spread(learner_, distribution);
    EXPECT_TRUE(has(plan, family.moves)) << "expected: " << family.moves;
    run::LocalRanksOptions options = on(static_cast<std::int32_t>(plan.mesh.ranks()));
    options.overlap = false;
    const run::DistributedOutcome first = train(learner_, plan, options, kSteps);
    expect_close(alone_, first);
    if (!every_plan_ && (options.ranks != 4 || plan.mesh.axes.size() > 1)) return;
    options.overlap = true;  // overlap must not change results either
    const run::DistributedOutcome again = train(learner_, plan, options, kSteps);
    expect_same_bits(first.weights, again.weights);
    EXPECT_EQ(first.training.last_loss, again.training.last_loss);
  }

  const Learner learner_;
  const OneRank alone_;
  const bool every_plan_ = is_thorough();
  std::size_t turn_;
};

const std::vector<Family> kBatchFamilies = {kData, kZeroOptimizer, kZeroParameters};
const std::vector<Family> kTokenFamilies = {kTensor, kSequence, kVocabulary, kContext};
const std::vector<std::string_view> kHierarchies = {
    "node=2: slice b; gpu=2: slice b, shard parameters",
    "node=2: slice b, shard optimizer; gpu=4: slice b, shard parameters"};
const std::vector<std::string_view> kTokenMeshes = {
    "data=2: slice b; tensor=2: slice h, f, v", "context=2: slice s; tensor=2: slice h, f, v, s",
    "data=2: slice b, shard parameters; context=2: slice s; tensor=2: slice h, f, v"};

TEST(RankFamilies, TrainAnMlpEqually) {
  Against alone(small_mlp(), 0);
  alone.by(kBatchFamilies);
  alone.by({{"tensor", "slice f", "all-reduce"},
            {"rows where units are not", "slice f, b", "reduce-scatter"},
            {"sliced classes", "slice c", "all-reduce"}});
  alone.by(kHierarchies);
  alone.by(
      std::vector<std::string_view>{"data=2: slice b; tensor=2: slice f, c",
                                    "data=2: slice b, shard optimizer; tensor=2: slice f; words=2: slice c"});
}

TEST(RankFamilies, TrainAConvnetEqually) {
  Against alone(small_convnet(), 2);
  alone.by(kBatchFamilies);
  alone.by({{"channels", "slice o", "all-reduce"},
            {"one weird trick", "slice d, b", "reduce-scatter"},
            {"spatial", "slice h", "halo"}});
  alone.by(kHierarchies);
  alone.by(std::vector<std::string_view>{
      "data=2: slice b; space=2: slice h",
      "data=2: slice b, shard optimizer; space=2: slice h; channels=2: slice o"});
}

TEST(RankFamilies, TrainAGptEqually) {
  Against alone(small_gpt(), 3);
  alone.by(kBatchFamilies);
  alone.by(kTokenFamilies);
  alone.by(kHierarchies);
  alone.by(kTokenMeshes);
}

TEST(RankFamilies, TrainABertEqually) {
  WEFT_LONG_TEST();
  Against alone(small_bert(), 5);
  alone.by(kBatchFamilies);
  alone.by(kTokenFamilies);
  alone.by(kHierarchies);
  alone.by(kTokenMeshes);
}

TEST(RankFamilies, TrainAMixtureOfExpertsEqually) {
  Against alone(small_mixture(), 4);
  alone.by(kBatchFamilies);
  alone.by(kTokenFamilies);
  alone.by(std::vector<Family>{{"expert", "slice x, b", "all-to-all"}});
  alone.by(kHierarchies);
  alone.by(std::vector<std::string_view>{
      "data=2: slice b; expert=2: slice x, b",
      "data=2: slice b, shard optimizer; expert=2: slice x, b; tensor=2: slice h, f, v"});
}

TEST(RankFamilies, ProcessesTrainLikeThreads) {
  const Learner gpt = small_gpt();
  const OneRank alone = train_alone(gpt);
  const DistributedPlan mesh = spread(gpt, "data=2: slice b, shard parameters; tensor=2: slice h, f, v");
  const run::DistributedOutcome shared = train(gpt, mesh, on(4, TransportKind::shm));
  expect_close(alone, shared);
  expect_same_bits(shared.weights, train(gpt, mesh, on(4, TransportKind::inproc)).weights);
  const DistributedPlan sequence = spread(gpt, "rank=2: slice h, f, v, s");
  const run::DistributedOutcome sockets = train(gpt, sequence, on(2, TransportKind::tcp));
  expect_close(alone, sockets);
  expect_same_bits(sockets.weights, train(gpt, sequence, on(2, TransportKind::tcp)).weights);
}

// Adam divides a gradient by its own size, so even the smallest gradient gives a step of the size
// of the learning rate, and its rounding error shows in the step. The reference is therefore not
// the parameter but the distance covered in 20 steps. A gradient that is pure rounding, as of a key
// bias, which shifts all scores of a softmax equally, leads anywhere: such parameters only stay
// within one step of each other.
TEST(RankFamilies, AdamAgreesIfGradientsAreSignificant) {
  constexpr double kRate = 1e-3;
  const auto is_rounding = [](const auto& tensor) {
    return tensor.first.ends_with(".bk") || tensor.first.find(".bk.") != std::string::npos;
  };
  const std::pair<Learner, std::string_view> cases[] = {
      {small_mlp(Optimizer::adam), "data=2: slice b, shard parameters; tensor=2: slice f, c"},
      {small_convnet(Optimizer::adam), "rank=2: slice b, shard optimizer"},
      {small_gpt(Optimizer::adam), "data=2: slice b, shard optimizer; tensor=2: slice h, f, v, s"},
      {small_bert(Optimizer::adam), "rank=2: slice s"},
      {small_mixture(Optimizer::adam), "rank=2: slice x, b, shard parameters"}};
  for (const auto& [learner, distribution] : cases) {
    SCOPED_TRACE(fmt::format("{} on {}", learner.graph.name, distribution));
    OneRank alone = train_alone(learner);
    const DistributedPlan plan = spread(learner, distribution);
    run::DistributedOutcome found = train(learner, plan, on(static_cast<std::int32_t>(plan.mesh.ranks())));
    const Apart all = apart(alone.weights, found.weights);
    EXPECT_LT(all.absolute, kRate) << all.worst;
    std::erase_if(alone.weights.tensors, is_rounding);
    std::erase_if(found.weights.tensors, is_rounding);
    expect_close(alone, found, 20 * kRate);
  }
}

}  // namespace
}  // namespace weft::session
