// Images sliced by rows and by columns: which neighbouring elements windows need, the plans that
// fetch them, their proof and refutation, and a convolutional net trained on ranks that hold some
// rows each.
#include <cmath>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "distribute_case.h"
#include "lockstep_ranks.h"
#include "ranks_case.h"
#include "weft/app/session/session.h"
#include "weft/parallel/distribute/index_roles.h"
#include "weft/parallel/distribute/prove.h"
#include "weft/parallel/distribute/replay.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/ops/sliding.h"
#include "weft/plan/spmd/localize.h"
#include "weft/predict/cost/step_costs.h"
#include "weft/predict/sim/step/rank_classes.h"

namespace weft {
namespace {

using distribute::DistributedPlan;
using ops::Borders;
using ops::Sees;
using ops::Sliding;
using plan::Share;

DistributedPlan spread_text(const plan::Graph& graph, std::string_view text) {
  auto made = distribute::distribute(graph, distribute::read_distribution(text).value());
  if (!made.ok()) throw std::runtime_error(made.error().message);
  return std::move(made).value();
}

// "" if the plan verifies, computes what one device does, over the field, and the ranks' programs
// compute what the plan says.
std::string wrong_with(const plan::Graph& graph, std::string_view text) {
  const DistributedPlan plan = spread_text(graph, text);
  const std::string wrong = distribute::difference<ops::Field>(graph, plan);
  return wrong.empty() ? program::difference_in_lockstep(plan.graph, plan.mesh) : wrong;
}

struct Image {
  std::int64_t high = 8, wide = 4, window = 3, stride = 1, padding = 1;

  std::int64_t along(std::int64_t size) const { return (size + 2 * padding - window) / stride + 1; }
  bool is_legal() const { return std::min(high, wide) + 2 * padding >= window; }
};

plan::Graph convolution(const Image& of) {
  const std::string x = fmt::format("f32[b=2,c=2,y={},x={}]", of.high, of.wide);
  const std::string w = fmt::format("f32[o=2,c=2,r={0},q={0}]", of.window);
  const std::string windows = fmt::format("stride={}, padding={}", of.stride, of.padding);
  return ops::read_plan(fmt::format(R"(plan convolution
%0 = input {{name=x, type={0}}}
%1 = parameter {{name=w, type={1}}}
%2 = conv2d %0, %1 {{{2}}}
%3 = input {{name=dy, type=f32[b=2,o=2,y={3},x={4}]}}
%4 = conv2d-input-gradient %3, %1 {{{2}, type={0}}}
%5 = conv2d-weight-gradient %3, %0 {{{2}, type={1}}}
return y=%2, dx=%4, dw=%5
)",
                                    x, w, windows, of.along(of.high), of.along(of.wide)));
}

plan::Graph pools(const Image& of) {
  const std::string x = fmt::format("f32[b=2,y={},x={}]", of.high, of.wide);
  const std::string windows = fmt::format("size={}, stride={}, padding={}", of.window, of.stride, of.padding);
  return ops::read_plan(fmt::format(R"(plan pools
%0 = input {{name=x, type={0}}}
%1 = max-pool %0 {{{1}}}
%2 = avg-pool %0 {{{1}}}
%3 = input {{name=dy, type=f32[b=2,y={2},x={3}]}}
%4 = max-pool-gradient %3, %0 {{{1}}}
%5 = avg-pool-gradient %3 {{{1}, type={0}}}
return most=%1, mean=%2, dmost=%4, dmean=%5
)",
                                    x, windows, of.along(of.high), of.along(of.wide)));
}

TEST(Sliding, ABlockNeedsHalosOfItsNeighbours) {
  const Sliding same{.window = 3, .stride = 1, .padding = 1, .elements = 8, .windows = 8, .operands = {}};
  EXPECT_EQ(same.seen(Sees::elements, {0, 4}), (Share{0, 5}));
  EXPECT_EQ(same.seen(Sees::elements, {4, 4}), (Share{3, 5}));
  EXPECT_EQ(same.seen(Sees::windows, {4, 4}), (Share{3, 5}));
  EXPECT_EQ(same.seen(Sees::neighbours, {4, 4}), (Share{2, 6}));
  const Sliding halving{.window = 3, .stride = 2, .padding = 1, .elements = 8, .windows = 4, .operands = {}};
  EXPECT_EQ(halving.seen(Sees::elements, {2, 2}), (Share{3, 5}));
  EXPECT_EQ(halving.seen(Sees::windows, {0, 4}), (Share{0, 3}));
  // Windows of one element with gaps: the gap belongs to the block that begins before it.
  const Sliding apart{.window = 1, .stride = 2, .padding = 0, .elements = 8, .windows = 4, .operands = {}};
  EXPECT_EQ(apart.seen(Sees::windows, {3, 1}), (Share{1, 1}));
  EXPECT_EQ(apart.seen(Sees::elements, {2, 2}), (Share{4, 3}));
}

TEST(Sliding, HalosHaveTheWidthOfTheLargestNeed) {
  // Without padding, 28 rows become 24: blocks of 7 and of 6 drift apart from rank to rank.
  const Sliding shrinking{.window = 5,
                          .stride = 1,
                          .padding = 0,
                          .elements = 28,
                          .windows = 24,
                          .operands = {Sees::elements, Sees::nothing}};
  EXPECT_EQ(shrinking.borders(0, 2).before, 2);
  EXPECT_EQ(shrinking.borders(0, 2).after, 2);
  EXPECT_EQ(shrinking.borders(0, 4).before, 3);
  EXPECT_EQ(shrinking.borders(0, 4).after, 3);
  EXPECT_EQ(shrinking.borders(1, 4).after, 0);
}

TEST(Halo, LayoutsWithHalosPrintAndParse) {
  const plan::Graph graph = ops::read_plan("plan p\n%0 = input {name=x, type=f32[y=8]}\nreturn y=%0\n");
  const plan::Type type = graph.type(graph.outputs()[0].value);
  const plan::Mesh mesh{{{"rank", 3}}};
  const auto layout = read_layout("sliced(y, 1, 2) on rank", mesh, type, graph.symbols());
  ASSERT_TRUE(layout.ok()) << layout.error().message;
  EXPECT_EQ(print(*layout, mesh, graph.symbols()), "sliced(y, 1, 2) on rank");
  EXPECT_EQ(shares_of(type, *layout, mesh, 0)[0], (Share{0, 5}));
  EXPECT_EQ(shares_of(type, *layout, mesh, 1)[0], (Share{2, 6}));
  EXPECT_EQ(shares_of(type, *layout, mesh, 2)[0], (Share{5, 3}));
  for (const std::string_view bad :
       {"sliced(y, 1) on rank", "sliced(y, -1, 2) on rank", "sliced(y, 1, x) on rank",
        "sliced(y, 1, 70000) on rank", "sliced(y, 1, 2, 3) on rank"})
    EXPECT_FALSE(read_layout(bad, mesh, type, graph.symbols()).ok()) << bad;
  const plan::Mesh two{{{"a", 2}, {"b", 2}}};
  EXPECT_FALSE(read_layout("sliced(y, 1, 1) on a, sliced(y) on b", two, type, graph.symbols()).ok());
}

TEST(Halo, SlicesConvolutionsAndTheirGradientsByRows) {
  const plan::Graph graph = convolution({});
  const DistributedPlan plan = spread_text(graph, "rank=2: slice y");
  EXPECT_EQ(distribute::count(plan, "halo"), 2);  // of x, once for both readers, and of dy
  EXPECT_EQ(distribute::count(plan, "all-gather"), 0);
  EXPECT_EQ(distribute::count(plan, "all-reduce"), 1);  // the weight's gradient
  EXPECT_EQ(distribute::difference<ops::Field>(graph, plan), "");
}

TEST(Halo, WorksForAnyWindowsAndBlocks) {
  Random random(3);
  for (int round = 0; round < 60; ++round) {
    Image image{.high = random.between(3, 11),
                .wide = random.between(2, 6),
                .window = random.between(1, 5),
                .stride = random.between(1, 3),
                .padding = random.between(0, 2)};
    if (!image.is_legal()) continue;
    const std::int64_t ranks = random.between(2, 4);
    const std::string_view axis = random.below(3) == 0 ? "x" : "y";
    SCOPED_TRACE(fmt::format("{} x {}, window {}, stride {}, padding {}, {} ranks along {}", image.high,
                             image.wide, image.window, image.stride, image.padding, ranks, axis));
    const std::string text = fmt::format("rank={}: slice {}", ranks, axis);
    EXPECT_EQ(wrong_with(convolution(image), text), "");
    image.padding = std::min(image.padding, image.window / 2);
    if (!image.is_legal()) continue;
    EXPECT_EQ(wrong_with(pools(image), text), "");
  }
}

TEST(Halo, CombinesRowsWithColumnsOrImages) {
  const Image image{.high = 9, .wide = 7, .window = 3, .stride = 2, .padding = 1};
  for (const std::string_view text : {"a=2: slice y; b=2: slice x", "a=2: slice x; b=3: slice y",
                                      "a=2: slice b; b=2: slice y", "a=2: slice y; b=2: slice y"}) {
    SCOPED_TRACE(text);
    EXPECT_EQ(wrong_with(convolution(image), text), "");
    EXPECT_EQ(wrong_with(pools(image), text), "");
  }
}

// Columns get explicit padding equal to that of the rows, whatever happens to the rows.
TEST(Halo, SupportsPaddingOnAllSides) {
  const plan::Graph graph = ops::read_plan(R"(plan p
%0 = input {name=x, type=f32[b=1,c=1,y=6,x=3]}
%1 = parameter {name=w, type=f32[o=1,c=1,r=3,q=1]}
%2 = conv2d %0, %1 {padding=1}
return y=%2
)");
  EXPECT_EQ(distribute::count(spread_text(graph, "rank=2: slice y"), "halo"), 1);
  EXPECT_EQ(wrong_with(graph, "rank=2: slice y"), "");
  EXPECT_EQ(wrong_with(graph, "rank=2: slice x"), "");
}

// With blocks of one row, windows of seven need more than one neighbour has.
TEST(Halo, GathersIfWindowsReachTooFar) {
  const plan::Graph graph = convolution({.high = 4, .wide = 4, .window = 7, .stride = 1, .padding = 3});
  const DistributedPlan plan = spread_text(graph, "rank=4: slice y");
  EXPECT_EQ(distribute::count(plan, "halo"), 0);
  EXPECT_EQ(distribute::difference<ops::Field>(graph, plan), "");
}

TEST(Halo, RejectsAHaloThatIsTooNarrow) {
  const plan::Graph graph = convolution({});
  const DistributedPlan plan = spread_text(graph, "rank=2: slice y");
  std::string text = plan::print(plan.graph);
  const std::size_t at = text.find("before=1");
  ASSERT_NE(at, std::string::npos) << text;
  text.replace(at, 8, "before=0");
  DistributedPlan narrow;
  narrow.graph = ops::read_plan(text);
  narrow.mesh = plan.mesh;
  narrow.layouts = plan.layouts;
  narrow.origin = plan.origin;
  const auto proof = distribute::prove(graph, narrow);
  ASSERT_FALSE(proof.ok());
  EXPECT_NE(proof.error().message.find("conv2d"), std::string::npos) << proof.error().message;
  EXPECT_NE(proof.error().message.find("must be sliced(y, 1, 1)"), std::string::npos)
      << proof.error().message;
}

// The halos of 30 rows on four ranks differ from those of 9 rows on two.
TEST(Halo, APlanIsProvenAtOtherSizes) {
  const plan::Graph large = convolution({.high = 30, .wide = 16, .window = 5, .stride = 2, .padding = 1});
  const plan::Graph small = convolution({.high = 9, .wide = 6, .window = 5, .stride = 2, .padding = 1});
  const DistributedPlan plan = spread_text(large, "rank=4: slice y");
  EXPECT_GT(distribute::count(plan, "halo"), 0);
  const auto replayed = distribute::replay(plan, large, small, {{{"rank", 2}}});
  ASSERT_TRUE(replayed.ok()) << replayed.error().message;
  const auto proof = distribute::prove(small, *replayed);
  ASSERT_TRUE(proof.ok()) << proof.error().message;
  EXPECT_TRUE(proof->holds()) << proof->wrong->what;
}

TEST(Halo, RefutesHalosOfAnotherValue) {
  const plan::Graph one = ops::read_plan(R"(plan p
%0 = input {name=x, type=f32[b=1,c=1,y=6,x=3]}
%1 = parameter {name=w, type=f32[o=1,c=1,r=3,q=3]}
%2 = relu %0
%3 = conv2d %0, %1 {padding=1}
return y=%3
)");
  DistributedPlan wrong = spread_text(one, "rank=2: slice y");
  std::string text = plan::print(wrong.graph);
  const std::size_t at = text.find("halo %0");
  ASSERT_NE(at, std::string::npos) << text;
  text.replace(at, 7, "halo %2");
  wrong.graph = ops::read_plan(text);
  const auto proof = distribute::prove(one, wrong);
  ASSERT_TRUE(proof.ok()) << proof.error().message;
  ASSERT_FALSE(proof->holds());
}

TEST(Halo, OperatorsWithoutHaloSupportRejectThem) {
  const plan::Graph graph = ops::read_plan(R"(plan p
%0 = input {name=x, type=f32[y=8], layout="sliced(y) on rank"}
%1 = halo %0 {axis=rank, along=y, before=1, after=1}
%2 = relu %1
return y=%2
)");
  const auto layouts = spmd::infer_layouts(graph, {{{"rank", 2}}});
  ASSERT_FALSE(layouts.ok());
  EXPECT_NE(layouts.error().message.find("relu"), std::string::npos) << layouts.error().message;
}

// A row of two images with two channels and four columns is 64 bytes; the end ranks have one
// neighbour, not two.
TEST(Halo, HalosDetermineTheCost) {
  const DistributedPlan plan = spread_text(convolution({}), "rank=4: slice y");
  std::vector<std::int64_t> bytes;
  for (const program::Program& program : program::programs_of(plan.graph, plan.mesh))
    for (const program::Unit& unit : program.units)
      if (const auto* exchange = std::get_if<program::Exchange>(&unit.kernel);
          exchange != nullptr && exchange->kind == program::Exchange::Kind::halo) {
        bytes.push_back(cost::message_bytes(*exchange));
        EXPECT_EQ(cost::sent_bytes(exchange->kind, 4, 64), 64);
        break;
      }
  EXPECT_EQ(bytes, (std::vector<std::int64_t>{64, 128, 128, 64}));
  EXPECT_EQ(sim::rank_kinds(plan.graph, plan.mesh, plan.layouts), (sim::Numbering{0, 1, 1, 2}));
}

// At their own sizes: which indices are sliced, and that layouts are consistent.
TEST(Halo, SlicesShippedConvnetsByRows) {
  for (const std::string_view model : {"digits_conv", "alexnet", "vgg16", "resnet50"}) {
    SCOPED_TRACE(model);
    const train::TrainingPlan plan = distribute::training_plan(model);
    const DistributedPlan made = distribute::distributed(plan, "rank=2: slice h", {});
    EXPECT_GT(distribute::count(made, "halo", plan::Phase::forward), 0);
    EXPECT_GT(distribute::count(made, "halo", plan::Phase::backward), 0);
    const auto layouts = spmd::infer_layouts(made.graph, made.mesh);
    ASSERT_TRUE(layouts.ok()) << layouts.error().message;
    EXPECT_EQ(*layouts, made.layouts);
    for (const std::int32_t rank : {0, 1}) {
      const auto local = spmd::localize(made.graph, made.mesh, *layouts, rank, spmd::Exchanges::stay);
      ASSERT_TRUE(local.ok()) << local.error().message;
    }
  }
}

session::Learner small_convnet() {
  return session::created_learner(R"(
    CREATE MODEL convnet (b = 4, c = 2, y = 12, x = 6, m = 4, n = 4, r = 3, q = 3, d = n * 3 * 2, classes = 4)
      INPUT     image[b, c, y, x], label[b] OF int32
      PARAMETER k1[m, c, r, q] INIT normal(0, 0.4), k2[n, m, r, q] INIT normal(0, 0.3),
                w3[d, classes] INIT normal(0, 0.3)
    AS WITH
      x1     AS (SELECT relu(conv2d(image, k1, padding => 1)) FROM image, k1),
      x2     AS (SELECT max_pool(x1, size => 3, stride => 2, padding => 1) FROM x1),
      x3     AS (SELECT relu(conv2d(x2, k2, stride => 2, padding => 1)) FROM x2, k2),
      logits AS (SELECT sum(x3 * w3) FROM x3[b, (n, y, x) AS d], w3 GROUP BY b, classes)
    SELECT mean(cross_entropy(logits, label) OVER (PARTITION BY b)) AS loss FROM logits, label;)",
                                  train::Optimizer::momentum);
}

TEST(Halo, AConvnetTrainsOnRanksThatHoldRows) {
  const session::Learner learner = small_convnet();
  const session::OneRank alone = session::train_alone(learner);
  for (const std::string_view text :
       {"rank=2: slice y", "rank=3: slice y", "data=2: slice b; rows=2: slice y"}) {
    SCOPED_TRACE(text);
    const DistributedPlan plan = session::spread(learner, text);
    EXPECT_GT(distribute::count(plan, "halo", plan::Phase::forward), 0);
    EXPECT_GT(distribute::count(plan, "halo", plan::Phase::backward), 0);
    const auto proof = distribute::prove(learner.graph, plan, {.draws = 1});
    ASSERT_TRUE(proof.ok()) << proof.error().message;
    EXPECT_TRUE(proof->holds()) << proof->wrong->what;
    run::LocalRanksOptions options = session::on(static_cast<std::int32_t>(plan.mesh.ranks()));
    const run::DistributedOutcome first = session::train(learner, plan, options);
    EXPECT_NEAR(first.training.last_loss, alone.training.last_loss,
                1e-4 * std::abs(alone.training.last_loss));
    const session::Apart far = session::apart(alone.weights, first.weights);
    EXPECT_LT(far.relative, 1e-4) << far.worst;
    options.overlap = !options.overlap;
    const run::DistributedOutcome again = session::train(learner, plan, options);
    session::expect_same_bits(first.weights, again.weights);
  }
}

TEST(Halo, ProcessesFetchHalosLikeThreads) {
  const session::Learner learner = small_convnet();
  constexpr std::string_view kRows = "rank=2: slice y";
  const auto threads = session::train(learner, kRows, session::on(2), 5);
  const auto processes = session::train(learner, kRows, session::on(2, comm::TransportKind::shm), 5);
  const session::Apart far = session::apart(threads.weights, processes.weights);
  EXPECT_LT(far.relative, 1e-4) << far.worst;
}

TEST(Halo, DoesNotTreatImageRowsAsABatch) {
  const session::Learner learner = small_convnet();
  const distribute::IndexRoles roles = distribute::index_roles(learner.graph);
  EXPECT_EQ(roles.batch, std::vector<std::string>{"b"});
  EXPECT_EQ(roles.sequence, (std::vector<std::string>{"y", "x"}));
}

std::string complaint_of(std::string_view script) {
  session::Session session;
  const session::Reply reply = session.execute(script);
  return reply.exit_code == session::ExitCode::ok ? "" : reply.complaint;
}

std::string strided_model(int rows, std::string_view then) {
  return fmt::format(R"(CREATE MODEL p (b = 2, c = 2, h = {0}, w = {0}, o = 3, r = 3, q = 3)
  INPUT x[b, c, h, w] PARAMETER k[o, c, r, q] AS WITH
  z AS (SELECT relu(x) FROM x),
  y AS (SELECT conv2d(z, k, stride => 2, padding => 1) FROM z, k)
SELECT mean(y * y) AS loss FROM y; {1})",
                     rows, then);
}

// For a window that reaches to only one side, the rank at the end receives nothing but still takes
// part in the call.
TEST(Halo, ARankThatReceivesNothingUsesTheSameType) {
  EXPECT_EQ(complaint_of(strided_model(8,
                                       "EXPLAIN ANALYZE TRAIN p ON LOCAL 2 STEPS 2 WITH (transport = inproc, "
                                       "distribution = 'rank=2: slice h', precision = bf16)")),
            "");
}

// Nine rows in blocks of three: the fourth rank has none.
TEST(Halo, ARankWithoutRowsNeitherSendsNorReceives) {
  EXPECT_EQ(complaint_of(strided_model(9,
                                       "EXPLAIN ANALYZE TRAIN p ON LOCAL 4 STEPS 2 WITH (transport = inproc, "
                                       "distribution = 'rank=4: slice h')")),
            "");
}

// Rows that are already sliced along one axis are not sliced again, although all loops of a pool
// are parallel.
TEST(Halo, DoesNotTreatAPoolAsElementwise) {
  EXPECT_EQ(complaint_of(R"(
CREATE CLUSTER cl AS 2 NODES OF 2 DEVICES h100 LINK gpu WITHIN node (450 GB/s, 1.5 us) LINK ib ACROSS node (50 GB/s, 5 us);
CREATE MODEL p (b = 2, c = 2, h = 16, w = 16) INPUT x[b, c, h, w] PARAMETER g[c] AS WITH
  z AS (SELECT relu(x) * g FROM x, g),
  y AS (SELECT max_pool(z, size => 2, stride => 2) FROM z)
SELECT mean(y * y) AS loss FROM y;
EXPLAIN TRAIN p ON cl WITH (distribution = 'node=2: slice h; gpu=2: slice h'))"),
            "");
}

// The number of windows is stated: slicing rows must not change the columns.
TEST(Halo, ColumnsKeepTheirPaddingIfRowsAreSliced) {
  const plan::Graph graph = ops::read_plan(R"(plan p
%0 = input {name=x, type=f32[b=1,c=1,h=8,w=8]}
%1 = parameter {name=k, type=f32[o=1,c=1,r=3,q=3]}
%2 = conv2d %0, %1 {padding=1, wide=8}
return y=%2
)");
  EXPECT_EQ(wrong_with(graph, "rank=2: slice h"), "");
}

}  // namespace
}  // namespace weft
