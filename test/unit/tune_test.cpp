// weft tune: what ranks tell each other, what rank 0 makes of it, and how predictions are judged.
#include "weft/session/tune.h"

#include <thread>

#include <gtest/gtest.h>

#include "weft/session/tune_check.h"
#include "weft/session/tune_group.h"
#include "weft/session/tune_rank.h"

namespace weft::session {
namespace {

using comm::Kind;
using comm::Setting;

const Setting kSetting{Kind::all_reduce, 4, 1, "shm", false};

comm::ChoiceTable table_of(std::vector<comm::Candidate> candidates) {
  comm::ChoiceTable table;
  table.set(kSetting, std::move(candidates));
  return table;
}

TEST(TuneCheck, ComparesPredictionsAndChoicesWithWhatWasMeasured) {
  const auto table = table_of({{.name = "a", .times = {{100, 1e-6}, {10'000, 1e-6}}},
                               {.name = "b", .times = {{100, 2e-6}, {10'000, 2e-6}}}});
  // a was to take 1 us and be chosen; it takes 2 us and b, as foretold, 2 us; then b is the better one by
  // half.
  const auto measured = table_of({{.name = "a", .times = {{1000, 2e-6}, {2000, 3e-6}}},
                                  {.name = "b", .times = {{1000, 2e-6}, {2000, 2e-6}}}});
  const TuneCheck check = check_predictions(table, measured);
  EXPECT_EQ(check.predictions, 4);
  EXPECT_EQ(check.choices, 2);
  EXPECT_NEAR(check.median_error, 0.5, 1e-9);
  EXPECT_NEAR(check.worst_cost, 0.5, 1e-9);
  EXPECT_NEAR(check.mean_cost, 0.25, 1e-9);
}

TEST(TuneCheck, OfNothingIsNothing) {
  const TuneCheck check = check_predictions({}, table_of({{.name = "a", .times = {{1, 1.0}}}}));
  EXPECT_EQ(check.predictions, 0);
  EXPECT_EQ(check.choices, 0);
}

TEST(TuneWords, AreReadBack) {
  const TuneOrder order{.kind = Kind::broadcast,
                        .bytes = 4096,
                        .allocated = true,
                        .batches = 3,
                        .turns = {{"direct", 7}, {"broadcast_chain", 1}}};
  const auto read = parse_tune_order(print(order));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(print(*read), print(order));
  const TuneTimes times{{{1e-6, 2e-6}, {}}, {"", "it broke"}};
  const auto answered = parse_tune_times(print(times));
  ASSERT_TRUE(answered.ok());
  EXPECT_EQ(print(*answered), print(times));
  for (const std::string_view wrong : {"", "{}", "[1, 2]", "[[], [\"x\"]]", "null", "{\"end\": 3}"}) {
    EXPECT_FALSE(parse_tune_order(wrong).ok()) << wrong;
    EXPECT_FALSE(parse_tune_times(wrong).ok()) << wrong;
  }
}

TEST(Tuned, IsReadBack) {
  Tuned tuned{.table = table_of({{.name = "a", .times = {{100, 1e-6}}, .source = "measured"}}),
              .between = table_of({}),
              .times = 40,
              .disturbed = 5,
              .measured = 12,
              .skipped = 3,
              .dropped = {"x: it\nbroke", "y"}};
  const auto read = parse_tuned(print(tuned));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->measured, 12);
  EXPECT_EQ(read->skipped, 3);
  EXPECT_EQ(read->disturbed, 5);
  EXPECT_EQ(read->dropped, (std::vector<std::string>{"x: it broke", "y"}));
  EXPECT_EQ(print(*read), print(*parse_tuned(print(*read))));
  const std::string text = print(tuned);
  for (std::size_t length = 0; length < text.size(); ++length)
    EXPECT_FALSE(parse_tuned(text.substr(0, length)).ok()) << length;
}

TEST(Tune, TwoThreadsMeasureTogether) {
  constexpr std::int32_t kRanks = 2;
  auto jobs = transport::make_thread_jobs(kRanks, std::chrono::seconds(20));
  std::vector<Result<Tuned>> results(kRanks, Result<Tuned>(Tuned()));
  {
    std::vector<std::jthread> ranks;
    for (std::int32_t rank = 0; rank < kRanks; ++rank)
      ranks.emplace_back([&, rank] {
        TunePlan plan;
        plan.transport = comm::TransportKind::inproc;
        plan.kinds = {Kind::broadcast};
        plan.sizes = {256, 65536};
        plan.between = {4096};
        plan.batches = 1;
        plan.time = std::chrono::milliseconds(100);
        results[rank] = tune_group(std::move(jobs[rank]), plan);
      });
  }
  for (const auto& result : results) ASSERT_TRUE(result.ok()) << result.error().message;
  const Tuned& tuned = *results[0];
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

TEST(Tune, SaysWhatIsWrongBeforeItStartsAnything) {
  const auto complaint = [](Tune tune) { return run(tune).complaint; };
  EXPECT_NE(complaint({.ranks = {0}}).find("expected 2 to"), std::string::npos);
  EXPECT_NE(complaint({.ranks = {2}, .transports = {"pigeon"}}).find("unknown transport: pigeon"),
            std::string::npos);
  EXPECT_NE(complaint({.ranks = {2}, .collectives = {"all_redux"}}).find("all_reduce"), std::string::npos);
  EXPECT_NE(complaint({.ranks = {2}, .sizes = "64MiB..1KiB"}).find("ascend"), std::string::npos);
  EXPECT_NE(complaint({.ranks = {2}, .sizes = "1KiB..1TiB"}).find("sizes go up to"), std::string::npos);
}

}  // namespace
}  // namespace weft::session
