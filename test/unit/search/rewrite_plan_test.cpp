// Cost-directed rewriting: what it finds, why it stops, what it preserves, and what cannot fool it.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>

#include <fmt/format.h>

#include "rewriting_case.h"
#include "temporary_folder.h"
#include "weft/base/file.h"
#include "weft/base/random.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/graph/verify.h"
#include "weft/planner/search/rewrite/backtracking.h"
#include "weft/planner/search/rewrite/ledger.h"
#include "weft/planner/search/rewrite/plan_cache.h"
#include "weft/planner/search/rewrite/region.h"
#include "weft/planner/search/rewrite/region_plan.h"
#include "weft/planner/search/rewrite/rewrite_plan.h"

namespace weft::search {
namespace {

using rule::plan_of;
using rule::rules_of;

cluster::Device some_device() {
  cluster::Device device;
  device.name = "some";
  device.flops_per_second.fill(1e12);
  device.memory_bytes_per_second = 1e12;
  device.launch_seconds = 1e-6;
  return device;
}

// A given time per node for each operator; 0 for others. For tests of the search, not of the cost.
Pricing by_operator(std::map<std::string, double> seconds) {
  Hasher hasher;
  for (const auto& [name, price] : seconds) hasher.text(name).real(price);
  return {[seconds](const plan::NodeView& node) {
            const auto known = seconds.find(std::string(node.op().name()));
            return known == seconds.end() ? 0 : known->second;
          },
          hasher.digest()};
}

const std::vector<rule::Rule>& merging() {
  static const std::vector<rule::Rule> rules = rules_of(R"(
rule merge_products explore
  why   one wide product instead of two narrow ones
  given x[B, K], v[K, n], w[K, m]
  left  p = contract(x, v, to=[B, n])
        q = contract(x, w, to=[B, m])
  right c = contract(x, concat(v, rename(w, from=[m], to=[n]), along=n), to=[B, n])
        p = slice(c, along=n, begin=0, end=size(v, n))
        q = rename(slice(c, along=n, begin=size(v, n), end=size(v, n) + size(w, m)), from=[n], to=[m])
  when  size(v, n) + size(w, m) <= 64

rule slice_twice normalize
  why   one slice does
  given x[n, I]
  left  y = slice(slice(x, along=n, begin=a, end=b), along=n, begin=c, end=d)
  right y = slice(x, along=n, begin=a + c, end=a + d)

rule slice_past_unary explore both ways
  why   one pass over all instead of one over each part
  any   unary f
  given x[n, I]
  left  y = f(slice(x, along=n, begin=a, end=b))
  right y = slice(f(x), along=n, begin=a, end=b)
)");
  return rules;
}

// A layer: products of one operand, each through tanh, added up.
std::string layer(int number, const std::string& in, int products, int& next, int size = 4) {
  std::string text, sum;
  for (int i = 0; i < products; ++i) {
    text +=
        fmt::format("%{} = parameter {{name=w_{}_{}, type=f32[d={},e={}]}}\n", next, number, i, size, size);
    text += fmt::format("%{} = contract {}, %{} {{to=[b,e]}} @p_{}_{}\n", next + 1, in, next, number, i);
    text += fmt::format("%{} = tanh %{}\n", next + 2, next + 1);
    const int term = next + 2;
    next += 3;
    if (!sum.empty()) {
      text += fmt::format("%{} = add {}, %{}\n", next, sum, term);
      sum = fmt::format("%{}", next++);
    } else {
      sum = fmt::format("%{}", term);
    }
  }
  // softmax: no rule matches across it.
  text += fmt::format("%{} = softmax {} {{over=[e]}}\n%{} = rename %{} {{from=[e], to=[d]}}\n", next, sum,
                      next + 1, next);
  text += fmt::format("%{} = layer-norm %{} {{over=[d]}}\n", fmt::format("{}, %{}", next + 2, next + 3),
                      next + 1);
  next += 4;
  return text;
}

std::string layers(std::span<const int> products) {
  std::string text = "plan layers\n%0 = input {name=x, type=f32[b=2,d=4]}\n";
  int next = 1;
  std::string in = "%0";
  for (std::size_t l = 0; l < products.size(); ++l) {
    text += layer(static_cast<int>(l), in, products[l], next);
    in = fmt::format("%{}", next - 2);
  }
  return text + "return y=" + in + "\n";
}

std::int64_t count(const plan::Graph& graph, std::string_view op) {
  std::int64_t found = 0;
  for (std::size_t n = 0; n < graph.node_count(); ++n)
    found += graph.node(plan::NodeId(n)).op->name() == op ? 1 : 0;
  return found;
}

void expect_same_numbers(const plan::Graph& a, const plan::Graph& b) {
  ASSERT_TRUE(plan::verify(b).ok()) << plan::print(b);
  EXPECT_TRUE(rule::agree(rule::outputs_of(a), rule::outputs_of(b))) << plan::print(a) << plan::print(b);
}

TEST(Optimize, MergesDownToOneProduct) {
  const plan::Graph graph = plan_of(layers(std::vector{6}));
  const Pricing pricing = price_on(some_device());
  const Rewritten found = rewrite_plan(graph, merging(), pricing).value();
  EXPECT_EQ(count(found.plan, "contract"), 1);
  EXPECT_EQ(count(found.plan, "tanh"), 1);  // pays off only if all are merged: the steps before cost more
  EXPECT_LT(found.seconds_after, found.seconds_before);
  EXPECT_EQ(found.stopped, Stopped::saturated);
  expect_same_numbers(graph, found.plan);

  double changes = 0;
  for (const Step& step : found.trail) changes += step.change;
  EXPECT_NEAR(found.seconds_before + changes, found.seconds_after, 1e-12);
  EXPECT_EQ(found.trail.front().rule, "merge_products");
  EXPECT_EQ(found.trail.front().replaced.at(0).substr(0, 1), "%");
}

TEST(Optimize, ComparesExclusiveRewritesByTheirResults) {
  const std::vector<rule::Rule> rules = rules_of(R"(
rule small_gain explore
  why   gains one at once and nothing more
  given x[I]
  left  y = relu(tanh(x))
  right y = abs(x)
rule large_gain explore
  why   loses one at first
  given x[I]
  left  y = tanh(exp(x))
  right y = sin(cos(x))
rule reward explore
  why   and gains nine then
  given x[I]
  left  y = relu(sin(cos(x)))
  right y = neg(x)
)");
  const plan::Graph graph = plan_of(
      "plan test\n%0 = input {name=x, type=f32[a=2]}\n%1 = exp %0\n%2 = tanh %1\n%3 = relu %2\nreturn "
      "y=%3\n");
  const Pricing pricing =
      by_operator({{"exp", 5}, {"tanh", 3}, {"relu", 3}, {"abs", 5}, {"sin", 4}, {"cos", 5}, {"neg", 1}});
  const Rewritten found = rewrite_plan(graph, rules, pricing).value();
  EXPECT_EQ(found.seconds_before, 11);
  EXPECT_EQ(found.seconds_after, 1);
  ASSERT_EQ(found.trail.size(), 2u);
  EXPECT_EQ(found.trail[0].rule, "large_gain");
  EXPECT_EQ(found.trail[0].change, 1);
  EXPECT_EQ(found.trail[1].change, -11);
}

TEST(Optimize, WorkOnParametersIsFree) {
  const plan::Graph graph = plan_of(
      "plan test\n%0 = input {name=x, type=f32[a=2]}\n%1 = parameter {name=w, type=f32[a=2]}\n%2 = exp "
      "%1\n%3 = mul %0, "
      "%2\n%4 = exp %3\nreturn y=%4\n");
  const Rewritten found = rewrite_plan(graph, {}, by_operator({{"exp", 2}, {"mul", 1}})).value();
  EXPECT_EQ(found.seconds_before, 3);
  EXPECT_EQ(found.seconds_after, 3);
}

TEST(Optimize, ComputesEqualNodesOnce) {
  const plan::Graph graph = plan_of(
      "plan test\n%0 = input {name=x, type=f32[a=2]}\n%1 = exp %0\n%2 = exp %0\n%3 = mul %1, %2\nreturn "
      "y=%3\n");
  const Rewritten found = rewrite_plan(graph, {}, by_operator({{"exp", 2}, {"mul", 1}})).value();
  EXPECT_EQ(found.seconds_before, 5);
  EXPECT_EQ(found.seconds_after, 3);
  ASSERT_EQ(found.trail.size(), 1u);
  EXPECT_EQ(found.trail[0].rule, "(merge equal nodes)");
  expect_same_numbers(graph, found.plan);
}

TEST(Optimize, InverseRulesTerminate) {
  const std::vector<rule::Rule> rules = rules_of(R"(
rule there normalize
  why   round
  given x[I]
  left  y = sin(x)
  right y = cos(x)
rule back normalize
  why   and round
  given x[I]
  left  y = cos(x)
  right y = sin(x)
)");
  const plan::Graph graph =
      plan_of("plan test\n%0 = input {name=x, type=f32[a=2]}\n%1 = sin %0\nreturn y=%1\n");
  const Rewritten found = rewrite_plan(graph, rules, by_operator({})).value();
  EXPECT_LT(found.counts.rewrites, 1000);
}

TEST(Optimize, ReportsWhyItStopped) {
  const plan::Graph graph = plan_of(layers(std::vector{4, 2}));
  const Pricing pricing = price_on(some_device());
  RewriteOptions options;
  EXPECT_EQ(rewrite_plan(graph, merging(), pricing, options)->stopped, Stopped::saturated);
  options.budget.rewrites = 3;
  EXPECT_EQ(rewrite_plan(graph, merging(), pricing, options)->stopped, Stopped::rewrite_limit);
  options.budget = {};
  options.budget.nodes = 1;
  EXPECT_EQ(rewrite_plan(graph, merging(), pricing, options)->stopped, Stopped::node_limit);
  options.budget = {};
  options.budget.seconds = 0;
  const Rewritten hurried = rewrite_plan(graph, merging(), pricing, options).value();
  EXPECT_EQ(hurried.stopped, Stopped::time_limit);
  expect_same_numbers(graph, hurried.plan);
  EXPECT_EQ(name(Stopped::rewrite_limit), "rewrite limit");
}

TEST(Optimize, ReportsWhyARuleWasDeclined) {
  // Merged, they would be too wide.
  const plan::Graph graph = plan_of(R"(plan test
%0 = input {name=x, type=f32[b=2,d=4]}
%1 = parameter {name=v, type=f32[d=4,e=4]}
%2 = parameter {name=w, type=f32[d=4,e=80]}
%3 = contract %0, %1 {to=[b,e]} @p
%4 = contract %0, %2 {to=[b,e]} @q
return p=%3, q=%4
)");
  RewriteOptions options;
  options.keep_refusals = true;
  const Rewritten found = rewrite_plan(graph, merging(), price_on(some_device()), options).value();
  ASSERT_FALSE(found.refusals.empty());
  EXPECT_TRUE(std::ranges::any_of(found.refusals, [](const Refusal& refusal) {
    return refusal.rule == "merge_products" && refusal.because.find("64") != std::string::npos;
  }));

  const plan::Graph dear = plan_of(layers(std::vector{2}));
  const Rewritten kept =
      rewrite_plan(dear, merging(), by_operator({{"contract", 0}, {"slice", 1}, {"tanh", 1e-9}}), options)
          .value();
  EXPECT_TRUE(std::ranges::any_of(kept.refusals, [](const Refusal& refusal) {
    return refusal.because.starts_with("the cost would rise by");
  }));
  EXPECT_TRUE(kept.trail.empty());
}

TEST(Optimize, SearchesEqualLayersOnce) {
  const Pricing pricing = price_on(some_device());
  const Rewritten one = rewrite_plan(plan_of(layers(std::vector{3})), merging(), pricing).value();
  const plan::Graph graph = plan_of(layers(std::vector{3, 3, 3, 3, 3, 3}));
  const Rewritten six = rewrite_plan(graph, merging(), pricing).value();
  EXPECT_EQ(six.counts.searched, one.counts.searched);
  EXPECT_EQ(count(six.plan, "contract"), 6);
  expect_same_numbers(graph, six.plan);
  EXPECT_TRUE(std::ranges::any_of(six.trail, [](const Step& step) {
    return step.replaced.at(0).find("p_5_") != std::string::npos;  // by its own name, wherever it was planned
  }));
}

std::string everything(const Rewritten& found) {
  std::string text = plan::print(found.plan);
  for (const Step& step : found.trail)
    text += fmt::format("{} {} {:a}\n", step.rule, fmt::join(step.replaced, ", "), step.change);
  return text + fmt::format("{:a} {:a} {}", found.seconds_before, found.seconds_after, name(found.stopped));
}

TEST(Optimize, CachedPlansEqualColdRuns) {
  const TemporaryFolder folder;
  const Pricing pricing = price_on(some_device());
  const std::vector<int> model = {2, 3, 4};
  const std::vector<int> changed = {2, 1, 4};
  RewriteOptions options;
  options.budget.rewrites = 250;
  const auto run = [&](const std::vector<int>& products, PlanCache* cache) {
    options.cache = cache;
    return rewrite_plan(plan_of(layers(products)), merging(), pricing, options).value();
  };
  const Rewritten cold = run(model, nullptr), cold_changed = run(changed, nullptr);
  PlanCache cache(folder.path());
  const Rewritten filling = run(model, &cache);
  EXPECT_EQ(everything(filling), everything(cold));
  const Rewritten warm = run(model, &cache);
  EXPECT_EQ(everything(warm), everything(cold));
  EXPECT_EQ(warm.counts.searched, 0);
  EXPECT_EQ(warm.counts.priced, 0);

  // One layer changed: only that one is searched.
  const Rewritten again = run(changed, &cache);
  EXPECT_EQ(everything(again), everything(cold_changed));
  EXPECT_LE(again.counts.searched, 3);  // the original, and as the rounds left it
  EXPECT_LT(again.counts.priced, cold_changed.counts.priced / 2);

  // Another device, other rules or another budget give other plans.
  options.budget.rewrites -= 1;
  EXPECT_GT(run(model, &cache).counts.searched, 0);
}

// A process that can write to the cache can also compute the checksum.
TEST(Optimize, RejectsACachedPlanThatComputesSomethingElse) {
  const TemporaryFolder folder;
  const Pricing pricing = price_on(some_device());
  RewriteOptions options;
  const auto run = [&](PlanCache* cache) {
    options.cache = cache;
    return rewrite_plan(plan_of(layers(std::vector{2, 3})), merging(), pricing, options).value();
  };
  const Rewritten cold = run(nullptr);
  const std::string place = folder / "plans";
  {
    PlanCache cache(place);
    static_cast<void>(run(&cache));
  }
  int forged = 0;
  for (const auto& entry : std::filesystem::directory_iterator(place)) {
    const std::string path = entry.path().string();
    std::string text = *read_file(path, 1 << 20);
    text.erase(0, text.find('\n') + 1);
    const std::size_t at = text.find("= tanh ");
    if (at == std::string::npos) continue;
    text.replace(at, 7, "= exp ");
    const std::string header = fmt::format("weft-plan-cache 1 {} {} {}\n", entry.path().stem().string(),
                                           text.size(), Hasher().text(text).digest().hex());
    ASSERT_TRUE(write_file_atomically(path, header + text).ok());
    ++forged;
  }
  ASSERT_GT(forged, 0);
  PlanCache cache(place);
  const Rewritten found = run(&cache);
  EXPECT_EQ(everything(found), everything(cold));
  EXPECT_EQ(found.counts.searched, forged);
}

TEST(Optimize, KeepsResultsAndIsNeverWorseThanBacktracking) {
  Random random(7);
  const Pricing pricing = price_on(some_device());
  for (int i = 0; i < 6; ++i) {
    const plan::Graph graph = rule::random_plan(random, 14);
    RewriteOptions options;
    options.budget.rewrites = 300;
    const Rewritten found = rewrite_plan(graph, rule::some_rules(), pricing, options).value();
    const Rewritten again = rewrite_plan(graph, rule::some_rules(), pricing, options).value();
    EXPECT_EQ(everything(found), everything(again));
    expect_same_numbers(graph, found.plan);
    const Rewritten peer = optimize_by_backtracking(graph, rule::some_rules(), pricing, {1.05, 10}).value();
    EXPECT_LE(found.seconds_after, peer.seconds_after * (1 + 1e-9)) << plan::print(graph);
    EXPECT_LE(found.seconds_after, found.seconds_before * (1 + 1e-9));
    expect_same_numbers(graph, peer.plan);
  }
}

TEST(Ledger, FollowsADraftThroughUndo) {
  Random random(3);
  const Pricing pricing = price_on(some_device());
  const std::vector<rule::Rule>& rules = rule::some_rules();
  const rule::Automaton automaton(rules);
  for (int i = 0; i < 10; ++i) {
    rule::Draft draft(rule::random_plan(random, 20));
    std::int64_t priced = 0;
    Ledger ledger(draft, pricing, priced);
    std::vector<Price> prices = {ledger.price()};
    std::vector<std::uint64_t> prints = {ledger.fingerprint()};
    for (int step = 0; step < 6; ++step) {
      const std::vector<rule::Match> matches = automaton.all(draft);
      if (matches.empty()) break;
      const rule::Match& match = matches[random.below(matches.size())];
      const Result<rule::Change> change = draft.apply(rules[match.rule], match);
      if (!change.ok()) continue;
      ledger.follow(*change);
      // Equal to the result from scratch.
      const plan::Graph plan = draft.finish();
      const rule::Draft fresh(plan);
      const Ledger anew(fresh, pricing, priced);
      EXPECT_NEAR(ledger.price().seconds, anew.price().seconds, 1e-12) << plan::print(plan);
      EXPECT_EQ(ledger.price().nodes, anew.price().nodes);
      prices.push_back(ledger.price());
      prints.push_back(ledger.fingerprint());
    }
    for (; prices.size() > 1; prices.pop_back(), prints.pop_back()) {
      EXPECT_EQ(ledger.price().seconds, prices.back().seconds);
      EXPECT_EQ(ledger.fingerprint(), prints.back());
      draft.undo();
      ledger.back();
    }
    EXPECT_EQ(ledger.price().seconds, prices.back().seconds);
    EXPECT_EQ(ledger.fingerprint(), prints.back());
  }
}

TEST(Region, SplittingAndJoiningIsLossless) {
  const RuleBook book(merging());
  const plan::Graph graph = plan_of(layers(std::vector{3, 1, 3, 2}));
  const std::vector<Region> regions = cut(graph, book);
  EXPECT_GE(regions.size(), 4u);
  std::vector<const plan::Graph*> own;
  for (const Region& region : regions) {
    EXPECT_TRUE(plan::verify(region.plan).ok());
    EXPECT_TRUE(fits(region.plan, region));
    own.push_back(&region.plan);
  }
  const Joined joined = join(graph, regions, own);
  EXPECT_EQ(rule::Draft(joined.plan).hash(), rule::Draft(graph).hash());
  expect_same_numbers(graph, joined.plan);
}

TEST(Region, PlansParseBackExactly) {
  const RuleBook book(merging());
  const plan::Graph graph = plan_of(layers(std::vector{4}));
  const std::vector<Region> regions = cut(graph, book);
  const auto busy =
      std::ranges::max_element(regions, {}, [](const Region& region) { return region.plan.node_count(); });
  Counts counts;
  const Pricing pricing = price_on(some_device());
  const RegionPlan plan = plan_region(busy->plan, book, pricing, {}, 1.05, false, counts);
  const std::string text = print(plan);
  const std::optional<RegionPlan> read = parse_region_plan(text);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(print(*read), text);
  EXPECT_EQ(read->trail, plan.trail);
  EXPECT_TRUE(fits(read->plan, *busy));
  for (std::size_t length = 0; length < text.size(); length += 7) {
    if (const auto part = parse_region_plan(text.substr(0, length))) {
      EXPECT_FALSE(fits(part->plan, *busy));
    }
  }
}

}  // namespace
}  // namespace weft::search
