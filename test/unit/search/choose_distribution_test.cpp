// The search for a distribution: deterministic, within memory and hints, and no worse than known
// families.
#include "weft/planner/search/distribution/choose_distribution.h"

#include <gtest/gtest.h>

#include <thread>

#include "distribute_case.h"
#include "search_case.h"
#include "weft/planner/search/distribution/known_plans.h"

namespace weft::search {
namespace {

using distribute::training_plan;

cluster::Cluster cluster(std::int64_t nodes, std::int64_t devices, double inside, double across,
                         double flops = 100e12) {
  cluster::Cluster made{"pod", some_gpu(flops), {}};
  const auto add = [&](std::string name, std::int64_t size, std::string wire, double rate, double latency) {
    cluster::Link link;
    link.name = std::move(wire);
    link.bytes_per_second = rate;
    link.latency_seconds = latency;
    made.axes.push_back({std::move(name), size, std::move(link)});
  };
  add("node", nodes, "ib", across, 5e-6);
  add("gpu", devices, "nvlink", inside, 2e-6);
  return made;
}

std::vector<language::SizeOverride> small_gpt(std::int64_t layers) {
  return {{"b", 16, {}},  {"s", 64, {}}, {"d", 64, {}},         {"h", 4, {}},
          {"v", 128, {}}, {"p", 64, {}}, {"layers", layers, {}}};
}

TEST(Meshes, FactorTheClusterInOrder) {
  const cluster::Cluster pod = cluster(2, 4, 1e11, 1e10);
  std::vector<std::string> texts;
  for (const MeshOption& option : meshes_of(pod)) texts.push_back(print(option.mesh));
  EXPECT_EQ(texts, (std::vector<std::string>{"node=2, gpu=4", "node=2, gpu_a=2, gpu_b=2"}));
  const std::vector<std::string> whole = {"gpu"};
  EXPECT_EQ(meshes_of(pod, whole).size(), 1u);
}

// Two key heads and four ranks: slicing continues along the queries of a key, and these slices go
// where the heads go.
TEST(DistributionSpace, SlicesQueryGroupsIfHeadsAreTooFew) {
  const train::TrainingPlan plan = training_plan("llama3_8b", {{"b", 1, {}},
                                                               {"s", 8, {}},
                                                               {"d", 16, {}},
                                                               {"h", 2, {}},
                                                               {"g", 4, {}},
                                                               {"e", 4, {}},
                                                               {"f", 8, {}},
                                                               {"v", 8, {}},
                                                               {"layers", 1, {}}});
  const distribute::IndexRoles roles = distribute::index_roles(plan.graph);
  ASSERT_EQ(roles.further.size(), 1u);
  EXPECT_EQ(roles.further.front().index, "g");
  EXPECT_EQ(roles.further.front().beside, "h");
  EXPECT_EQ(roles.further.front().beside_size, 2);
  const auto lists_with_g = [&](std::int64_t devices) {
    const auto space = DistributionSpace::make(cluster(1, devices, 1e11, 1e10), roles, {});
    return std::ranges::count_if(space.value().lists_for("gpu"), [](const DistributionSpace::List& list) {
      return std::ranges::find(list, "g") != list.end();
    });
  };
  EXPECT_EQ(lists_with_g(2), 0);
  EXPECT_EQ(lists_with_g(4), 2);
}

// Where queries are sliced, keys may circulate in a ring, or attention alone is sliced by heads;
// where heads are sliced, neither applies.
TEST(DistributionSpace, TriesRingsAndHeadsForAttention) {
  distribute::IndexRoles roles{.batch = {"b"}, .sequence = {"s"}, .model = {"f", "h"}, .expert = {}};
  roles.attended = {{"s", "ctx", "h"}};
  cluster::Cluster one = cluster(1, 4, 1e11, 1e10);
  one.axes.erase(one.axes.begin());
  const auto around = [&](std::string_view from) {
    const auto space = DistributionSpace::make(one, roles, {}).value();
    std::vector<std::string> texts;
    for (const auto& next : space.neighbours(distribute::read_distribution(from).value()))
      texts.push_back(print(next));
    return texts;
  };
  const auto has = [](const std::vector<std::string>& texts, std::string_view text) {
    return std::ranges::count(texts, text) == 1;
  };
  const std::vector<std::string> near_batches = around("gpu=4: slice b");
  EXPECT_TRUE(has(near_batches, "gpu=4: slice s"));
  EXPECT_TRUE(has(near_batches, "gpu=4: slice s, ring attention"));
  EXPECT_TRUE(has(near_batches, "gpu=4: slice s; slice h of ctx on gpu"));
  EXPECT_FALSE(has(near_batches, "gpu=4: slice f, h, s, ring attention"));
  const std::vector<std::string> near_heads = around("gpu=4: slice s; slice h of ctx on gpu");
  EXPECT_TRUE(has(near_heads, "gpu=4: slice b"));
  EXPECT_TRUE(has(near_heads, "gpu=4: slice s, shard parameters; slice h of ctx on gpu"));
  EXPECT_TRUE(
      has(around("gpu=4: slice s, ring attention"), "gpu=4: slice s, ring attention, shard optimizer"));
}

TEST(Search, StopsAtOnceWithTheBestPlanWhenInterrupted) {
  const train::TrainingPlan plan = training_plan("gpt2", small_gpt(2));
  const cluster::Cluster pod = cluster(2, 4, 1e11, 1e10);
  const Machine machine = machine_with_peak(pod);
  const auto whole = choose_distribution(plan.graph, pod, machine);
  ASSERT_TRUE(whole.ok()) << whole.error().message;
  ChooseOptions options;
  bool seen = false;
  int asked_after = 0;
  // Interruption is polled before each plan: no plan is tried after the tenth poll.
  options.watching.interrupted = [&, asked = 0]() mutable {
    return ++asked > 10 ? ++asked_after, true : false;
  };
  const auto ended = choose_distribution(plan.graph, pod, machine, options);
  ASSERT_TRUE(ended.ok()) << ended.error().message;
  EXPECT_EQ(ended->outcome.ended, Ended::interrupted);
  EXPECT_EQ(asked_after, 1);
  EXPECT_LT(ended->outcome.estimates, whole->outcome.estimates);
  EXPECT_FALSE(ended->chosen.prediction.classes.empty());
  EXPECT_GE(ended->chosen.prediction.seconds, whole->chosen.prediction.seconds);
  options.watching.interrupted = [&] { return seen = true; };
  const auto nothing = choose_distribution(plan.graph, pod, machine, options);
  ASSERT_FALSE(nothing.ok());
  EXPECT_EQ(nothing.error().message, "interrupted");
}

// The result of an interrupted search is not cached for the same statement.
TEST(Search, DoesNotCacheAnInterruptedChoice) {
  const train::TrainingPlan plan = training_plan("gpt2", small_gpt(2));
  const cluster::Cluster pod = cluster(2, 4, 1e11, 1e10);
  Machine machine = machine_with_peak(pod);
  machine.digest = Hasher().text("pod").digest();
  KnownPlans known;
  ChooseOptions options;
  options.known = &known;
  options.watching.interrupted = [asked = 0]() mutable { return ++asked > 10; };
  const auto ended = choose_distribution(plan.graph, pod, machine, options);
  ASSERT_TRUE(ended.ok()) << ended.error().message;
  ASSERT_EQ(ended->outcome.ended, Ended::interrupted);
  options.watching = {};
  const auto again = choose_distribution(plan.graph, pod, machine, options);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_FALSE(again->from_plan_cache);
  EXPECT_EQ(again->outcome.ended, Ended::settled);
}

TEST(Search, AnswersWithinTheTimeLimit) {
  const train::TrainingPlan plan = training_plan("gpt2", small_gpt(2));
  const cluster::Cluster pod = cluster(2, 4, 1e11, 1e10);
  const Machine machine = machine_with_peak(pod);
  ChooseOptions options;
  options.budget.seconds = 0;
  const auto hurried = choose_distribution(plan.graph, pod, machine, options);
  ASSERT_TRUE(hurried.ok()) << hurried.error().message;
  EXPECT_EQ(hurried->outcome.ended, Ended::time_limit);
  EXPECT_GT(hurried->outcome.estimates, 0);
  EXPECT_LE(hurried->outcome.estimates, 8);
}

TEST(SearchWatch, PollsOnlyOnItsOwnThread) {
  int asked = 0;
  SearchWatch watch({.interrupted = [&] { return ++asked > 1; }});
  EXPECT_FALSE(watch.over());
  std::thread([&] { EXPECT_FALSE(watch.over()); }).join();
  EXPECT_EQ(asked, 1);
  EXPECT_TRUE(watch.over());
  std::thread([&] { EXPECT_TRUE(watch.over()); }).join();
  EXPECT_TRUE(watch.was_interrupted());
}

// Fewer rows than nodes: replicating the work on most nodes would be pointless, so Megatron slices
// the model there.
TEST(Search, AlternativesAreReasonablePlans) {
  std::vector<language::SizeOverride> sizes = small_gpt(2);
  std::erase_if(sizes, [](const auto& size) { return size.name == "b"; });
  sizes.push_back({"b", 2, {}});
  const train::TrainingPlan plan = training_plan("gpt2", sizes);
  const cluster::Cluster pod = cluster(8, 2, 1e11, 1e10, /*flops=*/1e9);
  const Machine machine = machine_with_peak(pod);
  const auto choice = choose_distribution(plan.graph, pod, machine);
  ASSERT_TRUE(choice.ok()) << choice.error().message;
  const auto family = std::ranges::find(choice->alternatives, "Megatron", &Alternative::name);
  ASSERT_NE(family, choice->alternatives.end());
  Evaluator evaluator(plan.graph, machine);
  const auto plain =
      evaluator.estimate(distribute::read_distribution("node=8: slice b; gpu=2: slice f, h, v").value());
  ASSERT_TRUE(plain.ok()) << plain.error().message;
  EXPECT_LT(family->evaluation.seconds, 0.8 * plain->seconds);
}

TEST(Evaluator, AFoldedEstimateIsNearTheFullOne) {
  const train::TrainingPlan plan = training_plan("gpt2", small_gpt(10));
  const cluster::Cluster pod = cluster(2, 4, 1e11, 1e10);
  Evaluator evaluator(plan.graph, machine_with_peak(pod));
  EXPECT_EQ(evaluator.layers(), 10);
  for (const std::string_view text :
       {"node=2: slice b; gpu=4: slice b", "node=2: slice b; gpu=4: slice h, f, s"}) {
    SCOPED_TRACE(text);
    const distribute::Distribution distribution = distribute::read_distribution(text).value();
    const auto estimate = evaluator.estimate(distribution);
    const auto whole = evaluator.predict(distribution, {.quick = true});
    ASSERT_TRUE(estimate.ok()) << estimate.error().message;
    ASSERT_TRUE(whole.ok()) << whole.error().message;
    EXPECT_NEAR(estimate->seconds / whole->prediction.seconds, 1, 0.05);
    EXPECT_NEAR(estimate->peak_bytes / whole->prediction.peak_bytes, 1, 0.05);
  }
}

TEST(ChooseDistribution, IsDeterministicAndNoWorseThanTheFamilies) {
  const train::TrainingPlan plan = training_plan("digits_mlp", {{"b", 4096, {}}, {"f", 2048, {}}});
  const cluster::Cluster pod = cluster(2, 4, 1e11, 1e10);
  const auto first = choose_distribution(plan.graph, pod, machine_with_peak(pod));
  const auto second = choose_distribution(plan.graph, pod, machine_with_peak(pod));
  ASSERT_TRUE(first.ok()) << first.error().message;
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(first->distribution, second->distribution);
  EXPECT_EQ(first->outcome.estimates, second->outcome.estimates);
  EXPECT_EQ(first->outcome.ended, Ended::settled);
  ASSERT_EQ(first->alternatives.size(), 3u);
  for (const Alternative& other : first->alternatives) {
    EXPECT_GE(other.evaluation.seconds, first->chosen.prediction.seconds * 0.999) << other.name;
    EXPECT_FALSE(other.why_not.empty());
  }
  EXPECT_GT(first->lower_bound_seconds, 0);
  EXPECT_LT(first->lower_bound_seconds, first->chosen.prediction.seconds);
  ASSERT_FALSE(first->outcome.trail.empty());
  for (std::size_t k = 1; k < first->outcome.trail.size(); ++k)
    EXPECT_TRUE(first->outcome.trail[k].after < first->outcome.trail[k - 1].after);
}

// Krizhevsky 2014: on a slow network, dense layers are sliced along their features and the rest
// along the batch. The search finds this by itself.
void expect_one_weird_trick(std::string_view model, std::int64_t batch) {
  const train::TrainingPlan plan = training_plan(model, {{"b", batch, {}}});
  const cluster::Cluster slow = cluster(1, 8, 1.25e9, 1.25e9, 15e12);
  const auto choice =
      choose_distribution(plan.graph, slow, machine_with_peak(slow), {.budget = {.estimates = 120}});
  ASSERT_TRUE(choice.ok()) << choice.error().message;
  const Alternative& data = choice->alternatives.front();
  ASSERT_EQ(data.name, "data parallel");
  EXPECT_GT(data.evaluation.seconds, choice->chosen.prediction.seconds * 1.5) << print(choice->distribution);
  // On some axis, the batch for convolutions and something else for dense layers.
  EXPECT_TRUE(std::ranges::any_of(choice->distribution.axes, [](const distribute::AxisUse& use) {
    return use.slice.size() >= 2 && use.slice.front() != "b" && std::ranges::count(use.slice, "b") == 1;
  })) << print(choice->distribution);
}

TEST(ChooseDistribution, FindsOneWeirdTrickForAlexNetOnASlowNetwork) {
  expect_one_weird_trick("alexnet", 1024);
}
TEST(ChooseDistribution, FindsOneWeirdTrickForVggOnASlowNetwork) { expect_one_weird_trick("vgg16", 256); }

TEST(ChooseDistribution, StaysWithinMemory) {
  const train::TrainingPlan plan = training_plan("gpt2", small_gpt(1));
  const cluster::Cluster pod = cluster(2, 4, 1e11, 1e10);
  const auto free =
      choose_distribution(plan.graph, pod, machine_with_peak(pod),
                          {.budget = {.estimates = 40}, .strategy = &descend(), .alternatives = false});
  ASSERT_TRUE(free.ok()) << free.error().message;
  const double all = free->chosen.prediction.peak_bytes;
  const auto tight = choose_distribution(plan.graph, pod, machine_with_peak(pod),
                                         {.memory_bytes = all * 0.8,
                                          .budget = {.estimates = 40},
                                          .strategy = &descend(),
                                          .alternatives = false});
  ASSERT_TRUE(tight.ok()) << tight.error().message;
  EXPECT_LE(tight->chosen.prediction.peak_bytes, all * 0.8);
  const auto none = choose_distribution(
      plan.graph, pod, machine_with_peak(pod),
      {.memory_bytes = 1000, .budget = {.estimates = 8}, .strategy = &descend(), .alternatives = false});
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().message.find("no plan fits in 1000 B per rank; the smallest found needs"),
            std::string::npos)
      << none.error().message;
  EXPECT_TRUE(none.error().hint.empty());  // hints come from callers that have tried them
}

TEST(ChooseDistribution, CompletesHints) {
  const train::TrainingPlan plan = training_plan("digits_mlp", {{"b", 4096, {}}, {"f", 2048, {}}});
  const cluster::Cluster pod = cluster(2, 4, 1e11, 1e10);
  ChooseOptions options;
  options.fixed.slices = {{"f", "node"}};
  const auto choice = choose_distribution(plan.graph, pod, machine_with_peak(pod), options);
  ASSERT_TRUE(choice.ok()) << choice.error().message;
  const int node = choice->distribution.mesh.find("node");
  ASSERT_GE(node, 0);
  EXPECT_EQ(choice->distribution.axes[static_cast<std::size_t>(node)].slice.front(), "f");

  options.fixed.slices = {{"f", "rack"}};
  const auto unknown = choose_distribution(plan.graph, pod, machine_with_peak(pod), options);
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().message.find("axis rack, which pod does not have"), std::string::npos);
}

TEST(ChooseDistribution, EvaluatesAGivenDistribution) {
  const train::TrainingPlan plan = training_plan("digits_mlp", {{"b", 4096, {}}});
  const cluster::Cluster pod = cluster(2, 4, 1e11, 1e10);
  ChooseOptions options;
  options.given = distribute::read_distribution("node=2: slice b; gpu=4: slice b, shard parameters").value();
  const auto choice = choose_distribution(plan.graph, pod, machine_with_peak(pod), options);
  ASSERT_TRUE(choice.ok()) << choice.error().message;
  EXPECT_EQ(choice->distribution, *options.given);
  EXPECT_EQ(choice->outcome.estimates, 0);
}

}  // namespace
}  // namespace weft::search
