// weft tune: the messages between ranks, how rank 0 evaluates them, and how predictions are
// checked.
#include "weft/app/command/tune.h"

#include <algorithm>
#include <map>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "weft/runtime/measure/tune_check.h"
#include "weft/runtime/measure/tune_group.h"
#include "weft/runtime/measure/tune_rank.h"
#include "weft/runtime/measure/tune_rounds.h"

namespace weft::command {

using namespace session;
namespace {

using comm::Kind;
using comm::Setting;

const Setting kSetting{Kind::all_reduce, 4, 1, "shm", false};

comm::ChoiceTable table_of(std::vector<comm::Candidate> candidates) {
  comm::ChoiceTable table;
  table.set(kSetting, std::move(candidates));
  return table;
}

TEST(TuneCheck, ComparesPredictionsAndChoicesWithMeasurements) {
  const auto table = table_of({{.name = "direct mailbox", .times = {{100, 1e-6}, {10'000, 1e-6}}},
                               {.name = "direct", .times = {{100, 2e-6}, {10'000, 2e-6}}}});
  // The mailbox was predicted at 1 us and takes 2, then 3; "direct" takes the predicted 2 us, up to
  // a third less.
  const auto measured = table_of({{.name = "direct mailbox", .times = {{1000, 2e-6}, {2000, 3e-6}}},
                                  {.name = "direct", .times = {{1000, 2e-6}, {2000, 2e-6}}},
                                  {.name = "chosen", .times = {{1000, 2.2e-6}, {2000, 3.6e-6}}}});
  const measure::TuneChecks checks = measure::check_predictions(table, measured);
  ASSERT_EQ(checks.rows.size(), 1u);
  EXPECT_EQ(checks.rows[0].transport, "shm");
  EXPECT_EQ(checks.rows[0].ranks, 4);
  const measure::TuneCheck& check = checks.rows[0].check;
  EXPECT_EQ(check.predictions, 4);
  EXPECT_EQ(check.choices, 2);
  EXPECT_NEAR(check.median_error, 0.25, 1e-9);
  EXPECT_NEAR(check.worst_cost, 0.5, 1e-9);
  EXPECT_NEAR(check.mean_cost, 0.25, 1e-9);
  EXPECT_NEAR(check.as_run, 0.15, 1e-9);
  EXPECT_EQ(check.worst, "all_reduce of 1.95 KiB: direct mailbox 3 us, direct 2 us");
  EXPECT_EQ(checks.all.worst, check.worst);
}

TEST(TuneCheck, HasARowPerTransportAndNumberOfRanks) {
  comm::ChoiceTable table, measured;
  for (const std::int32_t ranks : {2, 4}) {
    const Setting setting{Kind::all_gather, ranks, 1, "tcp", false};
    table.set(setting, {{.name = "a", .times = {{100, 1e-6}}}});
    measured.set(setting, {{.name = "a", .times = {{100, ranks * 1e-6}}}});
  }
  const measure::TuneChecks checks = measure::check_predictions(table, measured);
  ASSERT_EQ(checks.rows.size(), 2u);
  EXPECT_NEAR(checks.rows[0].check.median_error, 0.5, 1e-9);
  EXPECT_NEAR(checks.rows[1].check.median_error, 0.75, 1e-9);
  EXPECT_EQ(checks.all.predictions, 2);
  EXPECT_EQ(checks.all.choices, 0);
}

TEST(TuneCheck, ChecksFormulasWhereNothingWasTuned) {
  const comm::ChoiceTable defaults = comm::ChoiceTable::defaults();
  const double expected = defaults.expect(kSetting, "direct two-shot").seconds(1 << 20);
  const measure::TuneChecks checks = measure::check_predictions(
      defaults, table_of({{.name = "direct two-shot", .times = {{1 << 20, 2 * expected}}}}));
  EXPECT_EQ(checks.all.predictions, 1);
  EXPECT_NEAR(checks.all.median_error, 0.5, 1e-9);
}

TEST(TuneCheck, IsEmptyWithoutMeasurements) {
  EXPECT_TRUE(measure::check_predictions(comm::ChoiceTable::defaults(), {}).rows.empty());
  EXPECT_EQ(measure::check_predictions({}, {}).all.choices, 0);
}

// The answers of two ranks that both take the given time in every batch.
std::vector<measure::TuneTimes> answers(const measure::TuneOrder& order,
                                        const std::map<std::string, double>& seconds) {
  measure::TuneTimes times;
  for (const measure::TuneOrder::Turn& turn : order.turns) {
    const auto found = seconds.find(turn.algorithm);
    times.batches.emplace_back(static_cast<std::size_t>(order.batches),
                               found != seconds.end() ? found->second : 100e-6);
    times.troubles.emplace_back();
  }
  return {times, times};
}

std::vector<std::string> names_of(const measure::TuneOrder& order) {
  std::vector<std::string> names;
  for (const measure::TuneOrder::Turn& turn : order.turns) names.push_back(turn.algorithm);
  std::ranges::sort(names);
  return names;
}

TEST(TuneRounds, DropSlowAlgorithmsExceptDirect) {
  measure::TuneRounds rounds(kSetting, measure::TuneRounds::Purpose::predict);
  const measure::TuneOrder first = rounds.order(4096, 0);
  EXPECT_EQ(names_of(first), comm::candidates_for(kSetting, 4096));
  rounds.add(first, 0, answers(first, {{"direct mailbox", 1e-6}, {"all_reduce_ring", 5e-6}}));
  const measure::TuneOrder second = rounds.order(4096, 1);
  EXPECT_EQ(names_of(second), (std::vector<std::string>{"all_reduce_ring", "direct", "direct mailbox"}));
  for (const measure::TuneOrder::Turn& turn : second.turns)
    EXPECT_EQ(turn.iterations, turn.algorithm == "direct"           ? 20
                               : turn.algorithm == "direct mailbox" ? 1000
                                                                    : 400);
  EXPECT_TRUE(rounds.order(8192, 1).turns.empty());  // never started
}

TEST(TuneRounds, SpendFewCallsOnLargeSizes) {
  measure::TuneRounds rounds(kSetting, measure::TuneRounds::Purpose::predict);
  constexpr std::int64_t kBytes = 64 << 20;
  const measure::TuneOrder first = rounds.order(kBytes, 0);
  EXPECT_TRUE(first.warm_up);
  rounds.add(first, 0, answers(first, {{"direct two-shot", 40e-6}, {"all_reduce_ring", 70e-6}}));
  const measure::TuneOrder second = rounds.order(kBytes, 1);
  EXPECT_FALSE(second.warm_up);
  EXPECT_EQ(names_of(second), (std::vector<std::string>{"all_reduce_ring", "direct", "direct two-shot"}));
}

TEST(TuneRounds, ShuffleTheOrder) {
  measure::TuneRounds rounds(kSetting, measure::TuneRounds::Purpose::check);
  const measure::TuneOrder first = rounds.order(4096, 0);
  EXPECT_TRUE(std::ranges::count(names_of(first), "chosen") == 1);
  rounds.add(first, 0, answers(first, {}));
  std::set<std::string> leaders;
  for (std::int32_t round = 1; round < 12; ++round)
    leaders.insert(rounds.order(4096, round).turns.front().algorithm);
  EXPECT_GT(leaders.size(), 3u);
}

TEST(TuneRounds, PredictByTheLowerQuartileAndCheckByTheMedian) {
  for (const auto purpose : {measure::TuneRounds::Purpose::predict, measure::TuneRounds::Purpose::check}) {
    measure::TuneRounds rounds(kSetting, purpose);
    const measure::TuneOrder first = rounds.order(4096, 0);
    rounds.add(first, 0, answers(first, {}));
    for (std::int32_t round = 1; round <= 4; ++round) {
      measure::TuneOrder order = rounds.order(4096, round);
      order.batches = 2;
      rounds.add(order, round, answers(order, {{"direct", round * 1e-6}}));
    }
    const auto candidates = rounds.candidates("now");
    const auto direct = std::ranges::find(candidates, "direct", &comm::Candidate::name);
    ASSERT_NE(direct, candidates.end());
    EXPECT_NEAR(direct->times.at(0).seconds, purpose == measure::TuneRounds::Purpose::predict ? 2e-6 : 2.5e-6,
                1e-12);
    EXPECT_EQ(direct->source, "now");
    EXPECT_EQ(rounds.disturbed(), 1);
  }
}

TEST(TuneRounds, DropAFailedAlgorithmAndRepeatTheRest) {
  measure::TuneRounds rounds(kSetting, measure::TuneRounds::Purpose::predict);
  const measure::TuneOrder first = rounds.order(4096, 0);
  std::vector<measure::TuneTimes> broken = answers(first, {});
  broken[1].troubles[1] = "it broke";
  for (measure::TuneTimes& rank : broken)
    for (std::size_t turn = 1; turn < rank.batches.size(); ++turn) rank.batches[turn].clear();
  rounds.add(first, 0, broken);
  ASSERT_EQ(rounds.dropped().size(), 1u);
  EXPECT_EQ(rounds.dropped()[0], first.turns[1].algorithm + " of all_reduce: it broke");
  EXPECT_EQ(names_of(rounds.order(4096, 1)), std::vector{first.turns[0].algorithm});
  EXPECT_EQ(rounds.order(65536, 0).turns.size(), comm::candidates_for(kSetting, 65536).size() - 1);
}

TEST(TuneWords, ParseBack) {
  const measure::TuneOrder order{.kind = Kind::broadcast,
                                 .bytes = 4096,
                                 .allocated = true,
                                 .batches = 3,
                                 .warm_up = false,
                                 .turns = {{"direct", 7}, {"broadcast_chain", 1}}};
  const auto read = measure::parse_tune_order(print(order));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(print(*read), print(order));
  const measure::TuneTimes times{{{1e-6, 2e-6}, {}}, {"", "it broke"}};
  const auto answered = measure::parse_tune_times(print(times));
  ASSERT_TRUE(answered.ok());
  EXPECT_EQ(print(*answered), print(times));
  for (const std::string_view wrong : {"", "{}", "[1, 2]", "[[], [\"x\"]]", "null", "{\"end\": 3}"}) {
    EXPECT_FALSE(measure::parse_tune_order(wrong).ok()) << wrong;
    EXPECT_FALSE(measure::parse_tune_times(wrong).ok()) << wrong;
  }
}

TEST(Tuned, ParsesBack) {
  measure::Tuned tuned{.table = table_of({{.name = "a", .times = {{100, 1e-6}}, .source = "measured"}}),
                       .times = 40,
                       .disturbed = 5,
                       .measured = 12,
                       .skipped = 3,
                       .dropped = {"x: it\nbroke", "y"}};
  const auto read = measure::parse_tuned(print(tuned));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->measured, 12);
  EXPECT_EQ(read->skipped, 3);
  EXPECT_EQ(read->disturbed, 5);
  EXPECT_EQ(read->dropped, (std::vector<std::string>{"x: it broke", "y"}));
  EXPECT_EQ(print(*read), print(*measure::parse_tuned(print(*read))));
  const std::string text = print(tuned);
  for (std::size_t length = 0; length < text.size(); ++length)
    EXPECT_FALSE(measure::parse_tuned(text.substr(0, length)).ok()) << length;
}

TEST(Tune, TwoThreadsMeasureTogether) {
  constexpr std::int32_t kRanks = 2;
  auto jobs = transport::make_thread_jobs(kRanks, std::chrono::seconds(20));
  std::vector<Result<measure::Tuned>> results(kRanks, Result<measure::Tuned>(measure::Tuned()));
  {
    std::vector<std::jthread> ranks;
    for (std::int32_t rank = 0; rank < kRanks; ++rank)
      ranks.emplace_back([&, rank] {
        measure::TunePlan plan;
        plan.transport = comm::TransportKind::inproc;
        plan.kinds = {Kind::broadcast};
        plan.sizes = {256, 65536};
        plan.rounds = 1;
        plan.time = std::chrono::milliseconds(100);
        results[rank] = measure::tune_group(std::move(jobs[rank]), plan);
      });
  }
  for (const auto& result : results) ASSERT_TRUE(result.ok()) << result.error().message;
  const measure::Tuned& tuned = *results[0];
  EXPECT_EQ(tuned.measured, 2);
  EXPECT_TRUE(tuned.dropped.empty()) << tuned.dropped.front();
  const Setting setting{Kind::broadcast, kRanks, 1, "inproc", false};
  ASSERT_TRUE(tuned.table.settings().contains(setting));
  bool has_direct = false, has_program = false;
  for (const comm::Candidate& candidate : tuned.table.settings().at(setting)) {
    has_direct |= candidate.name == "direct" && candidate.times.size() == 2;
    has_program |= candidate.name == "broadcast_binomial";
  }
  EXPECT_TRUE(has_direct && has_program);
  EXPECT_TRUE(results[1]->table.settings().empty());
}

TEST(Tune, MeasuresTheChosenAlgorithmForTheCheck) {
  constexpr std::int32_t kRanks = 2;
  auto jobs = transport::make_thread_jobs(kRanks, std::chrono::seconds(20));
  std::vector<Result<measure::Tuned>> results(kRanks, Result<measure::Tuned>(measure::Tuned()));
  {
    std::vector<std::jthread> ranks;
    for (std::int32_t rank = 0; rank < kRanks; ++rank)
      ranks.emplace_back([&, rank] {
        measure::TunePlan plan;
        plan.transport = comm::TransportKind::inproc;
        plan.kinds = {Kind::all_gather};
        plan.sizes = {4096};
        plan.chosen_from = "none";
        plan.rounds = 1;
        plan.time = std::chrono::milliseconds(50);
        results[rank] = measure::tune_group(std::move(jobs[rank]), plan);
      });
  }
  for (const auto& result : results) ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(measure::check_predictions(comm::ChoiceTable::defaults(), results[0]->table).all.choices, 1);
}

TEST(Tune, ReportsInvalidOptionsBeforeStarting) {
  const auto complaint = [](Tune tune) { return run(tune).complaint; };
  EXPECT_NE(complaint({.ranks = {0}}).find("expected 2 to"), std::string::npos);
  EXPECT_NE(complaint({.ranks = {2}, .transports = {"pigeon"}}).find("unknown transport: pigeon"),
            std::string::npos);
  EXPECT_NE(complaint({.ranks = {2}, .collectives = {"all_redux"}}).find("all_reduce"), std::string::npos);
  EXPECT_NE(complaint({.ranks = {2}, .sizes = "64MiB..1KiB"}).find("ascend"), std::string::npos);
  EXPECT_NE(complaint({.ranks = {2}, .sizes = "1KiB..1TiB"}).find("expected sizes up to"), std::string::npos);
  EXPECT_NE(complaint({.ranks = {2}, .sizes = "1KiB", .check = true}).find("there is no size between"),
            std::string::npos);
}

}  // namespace
}  // namespace weft::command
