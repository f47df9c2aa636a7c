// More freedom never makes a plan slower: what a search may do with fewer settings it may also do
// with more, and no standard plan written by hand is faster than the chosen one. A listed
// alternative takes the listed time when it is given.
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "session_case.h"
#include "thorough.h"
#include "weft/parallel/distribute/distribution.h"

namespace weft::session {
namespace {

using Json = nlohmann::json;

constexpr double kNoticed = 1.01;

struct Planned {
  std::string model, cluster, sizes;
  std::vector<std::string> by_hand;  // families
};

std::vector<Planned> planned() {
  std::vector<Planned> cases = {
      {"digits_mlp", "ethernet", "b = 512, f = 512", {"node=8: slice b", "node=8: slice f, b"}},
  };
  if (!is_thorough()) return cases;
  const std::string tiny = "b = 16, layers = 2, s = 32, d = 32, h = 2";
  cases.push_back({"char_gpt", "ethernet", tiny, {"node=8: slice b", "node=8: slice b, shard optimizer"}});
  cases.push_back({"char_gpt", "dgx1", tiny, {"gpu=8: slice b", "gpu_a=4: slice b; gpu_b=2: slice h, f, v"}});
  const std::vector<std::string> on_ethernet = {
      "node=8: slice b", "node=8: slice b, shard optimizer", "node=8: slice b, shard parameters",
      "node_a=2: stage; node_b=4: slice b; micro=8; schedule one_f_one_b", "node=8: slice b; micro=2"};
  const std::vector<std::string> on_pod = {
      "node=4: slice b; gpu=8: slice b", "node=4: slice b, shard optimizer; gpu=8: slice b, shard optimizer",
      "node=4: slice b; gpu=8: slice h, f, v",
      "node=4: slice b, shard parameters; gpu=8: slice b, shard parameters",
      "node=4: stage; gpu=8: slice b; micro=8; schedule one_f_one_b"};
  for (const std::string model : {"gpt2", "t5_small", "bert_large"}) {
    cases.push_back({model, "ethernet", "b = 64, precision = bf16", on_ethernet});
    cases.push_back({model, "pod", "b = 64, precision = bf16", on_pod});
  }
  cases.push_back({"resnet50", "ethernet", "b = 256", {"node=8: slice b"}});
  cases.push_back({"alexnet", "dgx1", "b = 512", {"gpu=8: slice b"}});
  cases.push_back({"llama2_7b", "pod", "b = 32, precision = bf16", on_pod});
  return cases;
}

Json explained(const Planned& one, const std::string& with) {
  Session session;
  return answer(session, fmt::format("EXPLAIN (FORMAT json) TRAIN {} ON {} WITH (prove = false, {}{}{})",
                                     one.model, one.cluster, one.sizes, with.empty() ? "" : ", ", with));
}

double seconds_of(const Json& plan) { return plan.at("step_seconds").get<double>(); }

std::string said_of(const Planned& one, const Json& plan) {
  return fmt::format("{} ON {} ({}): {} takes {} s", one.model, one.cluster, one.sizes,
                     plan.at("plan").get<std::string>(), seconds_of(plan));
}

TEST(MoreFreedom, NeverMakesAPlanSlower) {
  // The first of each pair allows everything that the second does, and more.
  const std::vector<std::pair<std::string, std::string>> settings = {
      {"codecs = 'gradients: int8'", ""},
      {"codecs = 'gradients: int8 or int4, weights: int8'", "codecs = 'gradients: int8'"},
      {"", "tile_collectives = off"},
      {"", "buckets = off"},
      {"rules = true", "rules = false"},
      {"", "all_reduce_window = off"},
      {"", "rules = false"},
      {"", "micro_batches = 2"},
      {"", "memory_limit = '2 GiB'"},
      {"search_limit = 1000", "search_limit = 100"},
  };
  for (const Planned& one : every(3, planned()))
    for (const auto& [more, less] : every(4, settings)) {
      const Json free = explained(one, more), bound = explained(one, less);
      EXPECT_LE(seconds_of(free), kNoticed * seconds_of(bound))
          << "with '" << more << "' " << said_of(one, free) << "\nwith '" << less << "' "
          << said_of(one, bound);
    }
}

TEST(MoreFreedom, NoPlanByHandIsFasterThanTheChosenOne) {
  for (const Planned& one : planned())
    for (const std::string codecs : {"", "codecs = 'gradients: int8'"}) {
      const Json chosen = explained(one, codecs);
      for (const std::string& hand : one.by_hand) {
        const Json given =
            explained(one, fmt::format("distribution = '{}'{}{}", hand, codecs.empty() ? "" : ", ", codecs));
        EXPECT_LE(seconds_of(chosen), kNoticed * seconds_of(given))
            << said_of(one, chosen) << "\nby hand " << said_of(one, given);
      }
    }
}

// Each listed alternative takes the listed time when it is given.
TEST(MoreFreedom, AlternativesAreEstimatedAsTheyWouldRun) {
  for (const Planned& one : every(2, planned())) {
    const Json chosen = explained(one, "");
    ASSERT_FALSE(chosen.at("alternatives").empty());
    for (const Json& other : chosen.at("alternatives")) {
      const std::string distribution = other.at("plan");
      const auto read = distribute::read_distribution(distribution);
      ASSERT_TRUE(read.ok()) << distribution;
      const Json given = explained(one, fmt::format("distribution = '{}'", distribution));
      EXPECT_NEAR(seconds_of(other), seconds_of(given), 1e-3 * seconds_of(given))
          << said_of(one, given) << "; listed among the alternatives with " << seconds_of(other) << " s";
    }
  }
}

// A setting states what the plan must support; the search finds a plan that does.
TEST(MoreFreedom, SettingsConstrainTheSearch) {
  for (const std::string setting : {"sync_every = 8", "gradient_delay = 1"})
    for (const Planned& one : every(3, planned())) {
      SCOPED_TRACE(setting + " " + one.model);
      const Json found = explained(one, setting);
      const auto read = distribute::read_distribution(found.at("plan").get<std::string>());
      ASSERT_TRUE(read.ok());
      EXPECT_FALSE(distribute::is_pipelined(*read));
    }
}

}  // namespace
}  // namespace weft::session
