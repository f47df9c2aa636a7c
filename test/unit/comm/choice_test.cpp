// Which algorithm runs a call: interpolation between measured sizes, defaults without measurements,
// and the table as text.
#include "weft/communication/comm/choice/choice.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "temporary_folder.h"
#include "weft/predict/cost/statistics.h"

namespace weft::comm {
namespace {

const Setting kFourRanks{Kind::all_reduce, 4, 1, "shm", false};

Candidate measured(std::string name, std::vector<TimePoint> times) {
  return {.name = std::move(name), .times = std::move(times), .source = "measured 2026-11-15"};
}

TEST(Candidate, InterpolatesBetweenMeasurements) {
  const Candidate candidate = measured("x", {{100, 1e-6}, {10'000, 1e-4}, {1'000'000, 1e-3}});
  EXPECT_DOUBLE_EQ(candidate.seconds(100), 1e-6);
  EXPECT_DOUBLE_EQ(candidate.seconds(10'000), 1e-4);
  EXPECT_NEAR(candidate.seconds(1000), 1e-5, 1e-12);
  EXPECT_NEAR(candidate.seconds(100'000), std::sqrt(1e-4 * 1e-3), 1e-9);
}

TEST(Candidate, ExtrapolatesByLatencyAndBandwidth) {
  const Candidate candidate = measured("x", {{100, 1e-6}, {10'000, 1e-5}});
  EXPECT_DOUBLE_EQ(candidate.seconds(0), 1e-6);
  EXPECT_DOUBLE_EQ(candidate.seconds(8), 1e-6);
  EXPECT_DOUBLE_EQ(candidate.seconds(1'000'000), 1e-3);
}

TEST(Candidate, UsesTheFormulaWithoutMeasurements) {
  const Candidate candidate{.name = "x", .formula = {1e-6, 1e-9}};
  EXPECT_DOUBLE_EQ(candidate.seconds(1000), 2e-6);
}

TEST(Choice, PicksTheFastestAndExplainsWhy) {
  ChoiceTable table = ChoiceTable::defaults();
  table.set(kFourRanks, {measured("slow small", {{256, 4e-6}, {1 << 20, 1e-4}}),
                         measured("slow large", {{256, 1e-6}, {1 << 20, 4e-4}}),
                         measured("slow", {{256, 9e-6}, {1 << 20, 9e-4}})});
  const std::vector<std::string> all = {"slow", "slow large", "slow small"};
  EXPECT_EQ(table.choose(kFourRanks, 256, all).algorithm, "slow large");
  EXPECT_EQ(table.choose(kFourRanks, 256, all).why, "measured 2026-11-15: 1 us; next slow small 4 us");
  EXPECT_EQ(table.choose(kFourRanks, 64 << 20, all).algorithm, "slow small");
  const std::vector<std::string> one = {"slow"};
  EXPECT_EQ(table.choose(kFourRanks, 256, one).algorithm, "slow");
  EXPECT_EQ(table.choose(kFourRanks, 256, {}).algorithm, "");
}

TEST(Choice, SkipsCandidatesNotMeasuredAtLargerSizes) {
  ChoiceTable table = ChoiceTable::defaults();
  table.set(kFourRanks,
            {measured("all", {{256, 2e-6}, {1 << 20, 1e-3}}), measured("small", {{256, 1e-6}, {512, 1e-6}})});
  const std::vector<std::string> both = {"all", "small"};
  EXPECT_EQ(table.choose(kFourRanks, 512, both).algorithm, "small");
  EXPECT_EQ(table.choose(kFourRanks, 4096, both).algorithm, "all");
  EXPECT_EQ(table.choose(kFourRanks, 1 << 30, both).algorithm, "all");
}

const Setting kWithAllocated{Kind::all_reduce, 4, 1, "shm", true};

TEST(GroupChoice, ChoosesAmongMeasuredAlgorithms) {
  ChoiceTable table = ChoiceTable::defaults();
  EXPECT_EQ(table.choose_for_group(kFourRanks, 65536).algorithm, "direct");  // by size
  EXPECT_EQ(table.choose_for_group(kFourRanks, 65536).in_place, std::nullopt);
  table.set(kFourRanks, {measured("direct", {{65536, 3e-6}, {1 << 20, 2e-4}}),
                         measured("direct one-shot", {{65536, 3e-6}, {1 << 20, 4e-4}}),
                         measured("direct two-shot", {{65536, 5e-6}, {1 << 20, 2e-4}})});
  EXPECT_EQ(table.choose_for_group(kFourRanks, 65536).algorithm, "direct one-shot");
  EXPECT_EQ(table.choose_for_group(kFourRanks, 1 << 20).algorithm, "direct two-shot");
  EXPECT_EQ(table.choose_for_group(kFourRanks, 1 << 20).why,
            "measured 2026-11-15: 200 us; next direct 200 us");
  // The order of algorithms changes with the number of ranks, so scaled times cannot rank them.
  Setting eight = kFourRanks;
  eight.ranks = 8;
  EXPECT_EQ(table.choose_for_group(eight, 65536).algorithm, "direct");
}

TEST(GroupChoice, IsTheSameForPrivateAndAllocatedBuffers) {
  ChoiceTable table = ChoiceTable::defaults();
  table.set(
      kFourRanks,
      {measured("all_reduce_ring", {{1 << 20, 1.0e-4}}), measured("direct", {{1 << 20, 1.1e-4}}),
       measured("direct one-shot", {{1 << 20, 1.2e-4}}), measured("direct two-shot", {{1 << 20, 1.1e-4}})});
  EXPECT_EQ(table.choose_for_group(kFourRanks, 1 << 20).algorithm, "all_reduce_ring");
  table.set(
      kWithAllocated,
      {measured("all_reduce_ring", {{1 << 20, 1.0e-4}}), measured("direct", {{1 << 20, 0.5e-4}}),
       measured("direct in-place", {{1 << 20, 0.5e-4}}), measured("direct one-shot", {{1 << 20, 1.2e-4}}),
       measured("direct two-shot", {{1 << 20, 1.1e-4}})});
  for (const Setting& setting : {kFourRanks, kWithAllocated}) {
    const Choice choice = table.choose_for_group(setting, 1 << 20);
    EXPECT_EQ(choice.algorithm, "direct two-shot");
    EXPECT_EQ(choice.in_place, true);
    EXPECT_EQ(choice.why,
              "measured 2026-11-15: 110 us, allocated 50 us; next direct 110 us, allocated 50 us");
  }
}

TEST(GroupChoice, UsesInPlaceOnlyIfFaster) {
  ChoiceTable table = ChoiceTable::defaults();
  table.set(kFourRanks, {measured("direct", {{65536, 1e-5}}), measured("direct one-shot", {{65536, 3e-5}}),
                         measured("direct two-shot", {{65536, 1e-5}})});
  table.set(kWithAllocated,
            {measured("direct", {{65536, 1e-5}}), measured("direct in-place", {{65536, 2e-5}}),
             measured("direct one-shot", {{65536, 3e-5}}), measured("direct two-shot", {{65536, 1e-5}})});
  EXPECT_EQ(table.choose_for_group(kFourRanks, 65536).in_place, false);
}

TEST(GroupChoice, DirectMustBeClearlyFasterThanItsAlgorithms) {
  ChoiceTable table = ChoiceTable::defaults();
  const auto chosen = [&](double direct_seconds) {
    table.set(kFourRanks,
              {measured("direct", {{65536, direct_seconds}}), measured("direct one-shot", {{65536, 3e-5}}),
               measured("direct two-shot", {{65536, 1e-5}})});
    return table.choose_for_group(kFourRanks, 65536).algorithm;
  };
  EXPECT_EQ(chosen(0.99e-5), "direct two-shot");
  EXPECT_EQ(chosen(0.9e-5), "direct");
}

TEST(GroupChoice, UsesSingleCopyIfMeasuredFaster) {
  const Setting from_private{Kind::all_to_all, 4, 1, "shm", false},
      from_allocated{Kind::all_to_all, 4, 1, "shm", true};
  const auto has = [](const Setting& setting, std::int64_t bytes) {
    return std::ranges::binary_search(candidates_for(setting, bytes), "direct single-copy");
  };
  EXPECT_TRUE(has(from_private, 64 << 10));
  EXPECT_FALSE(has(from_private, 32 << 10));
  EXPECT_TRUE(has({Kind::reduce_scatter, 4, 1, "shm", false}, 64 << 10));
  EXPECT_FALSE(has(from_allocated, 64 << 20));
  EXPECT_FALSE(has(kFourRanks, 64 << 20));
  EXPECT_FALSE(has({Kind::all_to_all, 4, 1, "inproc", false}, 64 << 20));

  ChoiceTable table = ChoiceTable::defaults();
  EXPECT_EQ(table.choose_for_group(from_private, 64 << 20).algorithm, "direct");
  const auto chosen = [&](double single_copy_seconds) {
    table.set(from_private,
              {measured("direct", {{64 << 20, 2e-2}}), measured("direct one-shot", {{64 << 20, 2e-2}}),
               measured("direct single-copy", {{64 << 20, single_copy_seconds}})});
    return table.choose_for_group(from_private, 64 << 20);
  };
  EXPECT_EQ(chosen(3e-2).algorithm, "direct one-shot");
  EXPECT_EQ(chosen(1e-2).algorithm, "direct single-copy");
  // Allocated buffers are not read through the kernel.
  table.set(from_allocated,
            {measured("direct", {{64 << 20, 5e-3}}), measured("direct in-place", {{64 << 20, 5e-3}}),
             measured("direct one-shot", {{64 << 20, 2e-2}})});
  EXPECT_EQ(chosen(1e-2).algorithm, "direct single-copy");
  EXPECT_EQ(chosen(1e-2).in_place, true);
}

TEST(GroupChoice, AProgramMustBeClearlyFaster) {
  ChoiceTable table = ChoiceTable::defaults();
  const auto chosen = [&](double program_seconds) {
    table.set(kFourRanks,
              {measured("all_reduce_ring", {{65536, program_seconds}}), measured("direct", {{65536, 1e-5}}),
               measured("direct one-shot", {{65536, 3e-5}}), measured("direct two-shot", {{65536, 1e-5}})});
    return table.choose_for_group(kFourRanks, 65536).algorithm;
  };
  EXPECT_EQ(chosen(0.99e-5), "direct two-shot");
  EXPECT_EQ(chosen(0.9e-5), "all_reduce_ring");
}

TEST(Choice, PrefersMeasurementsToFormulas) {
  ChoiceTable table = ChoiceTable::defaults();
  table.set(kFourRanks, {measured("all_reduce_ring", {{256, 1.0}, {1 << 20, 2.0}})});
  const std::vector<std::string> both = {"all_reduce_ring", "direct two-shot"};
  EXPECT_EQ(table.choose(kFourRanks, 256, both).algorithm, "all_reduce_ring");
}

TEST(Choice, IgnoresTheOrderOfNames) {
  ChoiceTable table = ChoiceTable::defaults();
  table.set(kFourRanks, {measured("b", {{256, 1e-6}}), measured("a", {{256, 1e-6}})});
  const std::vector<std::string> forth = {"a", "b"}, back = {"b", "a"};
  EXPECT_EQ(table.choose(kFourRanks, 256, forth).algorithm, "a");
  EXPECT_EQ(table.choose(kFourRanks, 256, back).algorithm, "a");
}

TEST(Choice, ScalesFromTheNearestNumberOfRanks) {
  ChoiceTable table = ChoiceTable::defaults();
  table.set_figures("tcp",
                    {.cores = 64, .step = 1e-5, .oversubscribed_step = 1e-5, .wire = 1e-9, .source = "test"});
  const Setting four{Kind::all_reduce, 4, 1, "tcp", false}, eight{Kind::all_reduce, 8, 1, "tcp", false};
  table.set(four, {measured("all_reduce_ring", {{256, 100e-6}, {64 << 20, 0.2}})});
  const Candidate scaled = table.expect(eight, "all_reduce_ring");
  EXPECT_EQ(scaled.source, "scaled from 4 ranks, measured 2026-11-15");
  // 14 steps instead of 6 for small calls, apart from the start-up time; 2 * 7/8 of the bytes
  // instead of 2 * 3/4 for large ones.
  EXPECT_NEAR(scaled.seconds(256) / 100e-6, 14.0 / 6, 0.02);
  EXPECT_NEAR(scaled.seconds(64 << 20) / 0.2, 7.0 / 6, 0.01);
}

TEST(Choice, APrunedTableChoosesTheSame) {
  ChoiceTable table = ChoiceTable::defaults();
  for (const std::int32_t ranks : {2, 4, 8, 16})
    for (const char* transport : {"shm", "tcp"})
      table.set({Kind::all_reduce, ranks, 1, transport, false},
                {measured("all_reduce_ring", {{256, ranks * 1e-6}})});
  const std::vector<std::string> allowed = {"all_reduce_ring"};
  for (const std::int32_t ranks : {2, 3, 6, 8, 99}) {
    const Setting setting{Kind::all_reduce, ranks, 1, "tcp", false};
    ChoiceTable kept = table;
    kept.keep_only("tcp", ranks);
    EXPECT_LE(kept.settings().size(), 2u);
    EXPECT_EQ(kept.choose(setting, 1024, allowed).why, table.choose(setting, 1024, allowed).why);
  }
}

TEST(Defaults, ChooseSomethingForEveryCall) {
  const ChoiceTable table = ChoiceTable::defaults();
  for (const Kind kind :
       {Kind::all_reduce, Kind::reduce_scatter, Kind::all_gather, Kind::all_to_all, Kind::broadcast,
        Kind::reduce, Kind::gather, Kind::scatter, Kind::send, Kind::barrier})
    for (const std::int32_t ranks : {1, 2, 3, 8, 17})
      for (const char* transport : {"shm", "tcp"})
        for (const bool allocated : {false, true})
          for (const std::int64_t bytes : {0, 4096, 64 << 20}) {
            const Setting setting{kind, ranks, 1, transport, allocated};
            const auto allowed = candidates_for(setting, bytes);
            ASSERT_TRUE(std::ranges::is_sorted(allowed));
            const Choice choice = table.choose(setting, bytes, allowed);
            ASSERT_FALSE(choice.algorithm.empty()) << name(kind) << ' ' << ranks << ' ' << transport;
            ASSERT_TRUE(std::isfinite(choice.seconds) && choice.seconds >= 0);
            ASSERT_TRUE(choice.why.starts_with("default figures: ")) << choice.why;
          }
}

// Within a factor of two of the times of a 200-line reference on the machine from which the figures
// are.
TEST(Defaults, AreNearMeasuredTimes) {
  Figures figures = ChoiceTable::defaults().figures_of("shm");
  figures.cores = 2;
  const auto ratio = [&](Kind kind, int ranks, const char* way, std::int64_t bytes, double microseconds) {
    const Setting setting{kind, ranks, 1, "shm", std::string_view(way) == "direct in-place"};
    return formula_of(setting, way, figures).seconds(bytes) / (microseconds * 1e-6);
  };
  const double ratios[] = {ratio(Kind::all_reduce, 2, "direct two-shot", 1 << 20, 102),
                           ratio(Kind::all_reduce, 4, "direct two-shot", 1 << 20, 222),
                           ratio(Kind::all_reduce, 8, "direct two-shot", 1 << 20, 648),
                           ratio(Kind::all_reduce, 2, "direct in-place", 64 << 20, 3951),
                           ratio(Kind::all_reduce, 8, "direct in-place", 64 << 20, 26600),
                           ratio(Kind::all_gather, 2, "direct one-shot", 1 << 20, 61),
                           ratio(Kind::all_gather, 8, "direct one-shot", 64 << 20, 13800),
                           ratio(Kind::all_to_all, 4, "direct one-shot", 1 << 20, 172),
                           ratio(Kind::broadcast, 2, "direct one-shot", 1 << 20, 48.7)};
  for (const double each : ratios) EXPECT_TRUE(each > 0.5 && each < 2) << each;
}

// Ranks that share cores, over sockets: 4 ranks on 2 cores took 5.3 us of a core per message,
// whichever rank waited.
TEST(Defaults, OversubscribedRanksCountEveryMessage) {
  Figures figures = ChoiceTable::defaults().figures_of("tcp");
  figures.cores = 2;
  const auto ratio = [&](Kind kind, const char* program, double microseconds) {
    return formula_of({kind, 4, 1, "tcp", false}, program, figures).seconds(256) / (microseconds * 1e-6);
  };
  const double ratios[] = {ratio(Kind::all_reduce, "all_reduce_all_pairs_one_shot", 31.8),
                           ratio(Kind::all_reduce, "all_reduce_all_pairs_two_shot", 61.1),
                           ratio(Kind::all_reduce, "all_reduce_binomial_tree", 25.5),
                           ratio(Kind::all_reduce, "all_reduce_recursive_doubling", 21.5),
                           ratio(Kind::all_reduce, "all_reduce_ring", 68.9),
                           ratio(Kind::reduce_scatter, "reduce_scatter_recursive_halving", 23.6),
                           ratio(Kind::all_to_all, "all_to_all_direct", 31.7),
                           ratio(Kind::all_to_all, "all_to_all_bruck", 23.4)};
  for (const double each : ratios) EXPECT_NEAR(each, 1, 0.25);
}

TEST(Defaults, CountTheExtraCopyThroughScratch) {
  const Figures figures = ChoiceTable::defaults().figures_of("tcp");
  const auto slope = [&](Kind kind, const char* program) {
    return formula_of({kind, 2, 1, "tcp", false}, program, figures).slope;
  };
  EXPECT_GT(slope(Kind::all_to_all, "all_to_all_bruck"), slope(Kind::all_to_all, "all_to_all_pairwise"));
  EXPECT_GT(slope(Kind::reduce_scatter, "reduce_scatter_all_pairs"),
            slope(Kind::reduce_scatter, "reduce_scatter_ring"));
}

TEST(Defaults, PreferTheRingAmongEqualPrograms) {
  const ChoiceTable table = ChoiceTable::defaults();
  const Setting two{Kind::all_reduce, 2, 1, "tcp", false};
  EXPECT_EQ(table.choose(two, 64 << 20, candidates_for(two, 64 << 20)).algorithm, "all_reduce_ring");
}

TEST(Defaults, UseDirectCollectivesInSharedMemoryAndProgramsOverSockets) {
  const ChoiceTable table = ChoiceTable::defaults();
  for (const std::int64_t bytes : {256, 1 << 20}) {
    const Setting far{Kind::all_reduce, 4, 2, "tcp", false};
    EXPECT_TRUE(
        table.choose(kFourRanks, bytes, candidates_for(kFourRanks, bytes)).algorithm.starts_with("direct"));
    EXPECT_TRUE(table.choose(far, bytes, candidates_for(far, bytes)).algorithm.starts_with("all_reduce_"));
  }
  const auto names = candidates_for({Kind::all_reduce, 4, 2, "tcp", false}, 1 << 20);
  EXPECT_TRUE(std::ranges::count(names, "all_reduce_ring(channels=2)") == 1);
  EXPECT_TRUE(
      std::ranges::any_of(names, [](const auto& each) { return each.find("local=2") != std::string::npos; }));
}

TEST(ChoiceText, ReadsBackWhatWasPrinted) {
  ChoiceTable table = ChoiceTable::defaults();
  table.set(kFourRanks,
            {measured("b", {{256, 1.0 / 3}, {512, 1e-6}}), {.name = "a", .formula = {0.1, 1e-300}}});
  table.set({Kind::broadcast, 3, 2, "tcp", true}, {});
  const auto read = ChoiceTable::parse(table.print());
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->print(), table.print());
  EXPECT_EQ(read->settings().at(kFourRanks)[1].times[0].seconds, 1.0 / 3);
}

TEST(ChoiceText, RejectsMalformedText) {
  const std::string head = "weft-choices 1\n";
  const std::string setting = head + "setting\tall_reduce\t4\t1\tshm\tprivate\n";
  for (const std::string& wrong :
       {std::string(), std::string("choices\n"), head + "time\t1\t1\n", head + "candidate\ta\tb\t0\t0\n",
        head + "setting\tdance\t4\t1\tshm\tprivate\n", head + "setting\tall_reduce\t0\t1\tshm\tprivate\n",
        head + "setting\tall_reduce\t99999999999\t1\tshm\tprivate\n", setting + "time\t1\t1\n",
        setting + "setting\tall_reduce\t4\t1\tshm\tprivate\n", setting + "candidate\ta\tb\tnan\t0\n",
        setting + "candidate\ta\tb\t0\t0\ntime\t1\tinf\n",
        setting + "candidate\ta\tb\t0\t0\ntime\t2\t1\ntime\t2\t1\n",
        setting + "candidate\tb\tb\t0\t0\ncandidate\ta\tb\t0\t0\n",
        head + "figures\tshm\t2\t-1\t0\t0\t0\t0\tx\n"})
    EXPECT_FALSE(ChoiceTable::parse(wrong).ok()) << wrong;
}

RC_GTEST_PROP(ChoiceText, NeverCrashes, (std::string noise, std::size_t at)) {
  ChoiceTable table = ChoiceTable::defaults();
  table.set(kFourRanks, {measured("a", {{256, 1e-6}})});
  std::string text = table.print();
  text.insert(at % text.size(), noise);
  if (const auto read = ChoiceTable::parse(text); read.ok()) {
    const std::vector<std::string> allowed = {"a", noise};
    (void)read->choose(kFourRanks, 1, allowed);
    RC_ASSERT(ChoiceTable::parse(read->print()).ok());
  }
}

TEST(LoadChoices, LoadsTheDatabaseAndReportsUnreadableEntries) {
  const TemporaryFolder folder;
  const std::string file = folder / "statistics.sqlite";
  auto statistics = cost::Statistics::open(file, cost::Access::write);
  if (!statistics.ok()) GTEST_SKIP() << statistics.error().message;
  ASSERT_TRUE(statistics
                  ->add(std::vector{cost::CollectiveTime{Kind::all_reduce, 4, 1, "shm", false,
                                                         "direct one-shot", 1024, 5e-6, 1'794'700'800}})
                  .ok());
  ASSERT_TRUE(
      statistics->add(std::vector{cost::LinkTime{"tcp", 2, 0, 1, false, 5e-6, 2e9, 1'794'700'800}}).ok());
  ASSERT_TRUE(statistics->add(std::vector{cost::Rate{"copy", 1, 1 << 20, 9e9, 0}}).ok());
  const LoadedChoices loaded = load_choices(file);
  EXPECT_EQ(loaded.trouble, "");
  const std::vector<std::string> allowed = {"direct one-shot", "direct two-shot"};
  EXPECT_EQ(loaded.table.choose(kFourRanks, 1024, allowed).why, "measured 2026-11-15: 5 us");
  const Figures& figures = loaded.table.figures_of("tcp");
  EXPECT_EQ(figures.source, "profile of 2026-11-15");
  EXPECT_DOUBLE_EQ(figures.step, 5e-6);
  EXPECT_DOUBLE_EQ(figures.wire, 1 / 2e9);
  EXPECT_DOUBLE_EQ(figures.copy, 1 / 9e9);

  EXPECT_NE(load_choices(folder.path()).trouble, "");
  EXPECT_EQ(load_choices("none").table.print(), ChoiceTable::defaults().print());
}

}  // namespace
}  // namespace weft::comm
