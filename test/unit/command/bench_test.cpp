// `weft bench`: the protocol between the bench and its ranks, how contenders are compared, and that
// ranks that hang or exit affect no others. No test depends on measured times.
#include "weft/app/command/bench.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "weft/app/explain/bench_plot.h"
#include "weft/app/explain/bench_table.h"
#include "weft/runtime/measure/bench_batch.h"
#include "weft/runtime/measure/bench_group.h"
#include "weft/runtime/measure/bench_line.h"
#include "weft/runtime/measure/bench_machine.h"
#include "weft/runtime/measure/bench_pattern.h"
#include "weft/runtime/measure/bench_peers.h"
#include "weft/runtime/measure/bench_rank.h"
#include "weft/runtime/measure/bench_round.h"
#include "weft/runtime/measure/bench_row.h"
#include "weft/runtime/measure/bench_turn.h"

namespace weft {
namespace {

using collective::Kind;
using device::ElementType;
using measure::BenchRow;
using measure::BenchSample;
using measure::BenchTurn;

std::vector<std::int64_t> sizes(std::string_view text, int step) {
  return measure::bench_sizes(text, step).value();
}

TEST(BenchSizes, StepFromTheFirstToTheLast) {
  EXPECT_EQ(sizes("256B..64KiB", 4), (std::vector<std::int64_t>{256, 1024, 4096, 16384, 65536}));
  EXPECT_EQ(sizes("1KiB..5KiB", 2), (std::vector<std::int64_t>{1024, 2048, 4096, 5120}));
  EXPECT_EQ(sizes("1MiB", 4), (std::vector<std::int64_t>{1 << 20}));
  EXPECT_EQ(sizes("256B..64MiB", 4).size(), 10U);
}

TEST(BenchSizes, RejectsInvalidRanges) {
  for (const char* text : {"64MiB..256B", "0B", "x..y", "1KiB..", "1EiB", "3 s"})
    EXPECT_FALSE(measure::bench_sizes(text, 4).ok()) << text;
  for (const int step : {1, 0, -4, 1 << 20})
    EXPECT_FALSE(measure::bench_sizes("1KiB..1MiB", step).ok()) << step;
}

TEST(BenchTurns, PrintAndParse) {
  BenchTurn turn;
  turn.kind = Kind::all_to_all;
  turn.bytes = 4096;
  turn.limit = 1;
  turn.type = ElementType::bf16;
  turn.in_place = true;
  turn.iterations = 20;
  turn.warmup = 3;
  turn.variant = "ring:sync";
  turn.allocated = true;
  turn.keep = false;
  turn.limit = 7;
  EXPECT_EQ(print(turn),
            "all_to_all 4096 bf16 in_place=1 iterations=20 warmup=3 variant=ring:sync buffers=allocated "
            "keep=0 limit=7");
  EXPECT_EQ(measure::parse_bench_turn(print(turn)).value(), turn);
  EXPECT_EQ(measure::parse_bench_turn("all_reduce 8 f32").value().iterations, 1);
}

TEST(BenchTurns, RejectBadLines) {
  const std::vector<std::string> bad = {"",
                                        " ",
                                        "all_reduce",
                                        "all_reduce 4096",
                                        "all_produce 4096 f32",
                                        "all_reduce 0 f32",
                                        "all_reduce -1 f32",
                                        "all_reduce 1e3 f32",
                                        "all_reduce 99999999999999999999 f32",
                                        "all_reduce 4096 f31",
                                        "all_reduce 4096 f32 iterations",
                                        "all_reduce 4096 f32 iterations=",
                                        "all_reduce 4096 f32 iterations=0",
                                        "all_reduce 4096 f32 iterations=two",
                                        "all_reduce 4096 f32 in_place=2",
                                        "all_reduce 4096 f32 buffers=shared",
                                        "all_reduce 4096 f32 variant=",
                                        "all_reduce 4096 f32 colour=red",
                                        "all_reduce 4096 f32 limit=0",
                                        std::string(100'000, 'a')};
  for (const std::string& line : bad)
    EXPECT_FALSE(measure::parse_bench_turn(line).ok()) << line.substr(0, 60);
}

TEST(BenchAnswers, ParseBackOrAreRejected) {
  const measure::BenchAnswer answer{5.125e-06, 1.01e-05, 3};
  EXPECT_EQ(measure::parse_bench_answer(print(answer)).value(), answer);
  for (const char* line :
       {"", "1", "1 2", "1 2 3 4", "1 2 x", "-1 2 0", "nan 2 0", "inf 1 0", "1 1 -1", "1 1 0.5"})
    EXPECT_FALSE(measure::parse_bench_answer(line).ok()) << line;
  const auto refusal = measure::parse_bench_answer("error MPI has no sums of bf16");
  ASSERT_FALSE(refusal.ok());
  EXPECT_EQ(refusal.error().message, "MPI has no sums of bf16");
  EXPECT_EQ(refusal.error().fault, Fault::world);
}

TEST(BenchHellos, NameARankAndItsGroup) {
  const auto hello = measure::parse_bench_hello("hello 1 4 Open MPI v4.1.4").value();
  EXPECT_EQ(hello.rank, 1);
  EXPECT_EQ(hello.ranks, 4);
  EXPECT_EQ(hello.version, "Open MPI v4.1.4");
  for (const char* line : {"", "hello", "hello 1", "hello 4 4", "hello -1 4", "hello 0 0", "good-bye 0 4"})
    EXPECT_FALSE(measure::parse_bench_hello(line).ok()) << line;
}

TEST(BenchTurns, CountElementsAsNcclTestsDoes) {
  BenchTurn turn;
  turn.bytes = 1000;
  EXPECT_EQ(measure::block_elements(turn, 3), 250);
  turn.kind = Kind::all_gather;
  EXPECT_EQ(measure::block_elements(turn, 3), 83);
  EXPECT_EQ(message_bytes(turn, 3), 996);
  turn.bytes = 1;
  EXPECT_EQ(measure::block_elements(turn, 3), 1);
}

TEST(BenchTurns, ABatchTakesAboutTenMilliseconds) {
  EXPECT_EQ(measure::calls_per_batch(1e-3), 10);
  EXPECT_EQ(measure::calls_per_batch(1), 1);
  EXPECT_EQ(measure::calls_per_batch(1e-12), measure::calls_per_batch(0));
  EXPECT_EQ(measure::calls_per_batch(std::numeric_limits<double>::quiet_NaN()), measure::calls_per_batch(0));
}

// The expected output of every rank, computed by hand from the inputs that the pattern writes.
template <class T>
void expect_pattern_agrees(Kind kind, ElementType type) {
  constexpr int kRanks = 3;
  BenchTurn turn;
  turn.kind = kind;
  turn.type = type;
  turn.bytes = 3 * 200 * static_cast<std::int64_t>(sizeof(T));
  const auto count = static_cast<std::size_t>(measure::block_elements(turn, kRanks));
  std::vector<std::vector<T>> inputs;
  for (int rank = 0; rank < kRanks; ++rank) {
    const measure::BenchPattern pattern(turn, kRanks, rank);
    inputs.emplace_back(static_cast<std::size_t>(pattern.input_bytes()) / sizeof(T));
    pattern.fill(reinterpret_cast<std::byte*>(inputs.back().data()));
  }
  for (int rank = 0; rank < kRanks; ++rank) {
    const measure::BenchPattern pattern(turn, kRanks, rank);
    std::vector<T> output(static_cast<std::size_t>(pattern.output_bytes()) / sizeof(T));
    for (std::size_t i = 0; i < output.size(); ++i) {
      const std::size_t from = i / count, at = i % count, mine = static_cast<std::size_t>(rank) * count;
      T sum = 0;
      for (const auto& input : inputs)
        sum = static_cast<T>(sum + input[kind == Kind::reduce_scatter ? mine + i : i % input.size()]);
      switch (kind) {
        case Kind::all_gather: output[i] = inputs[from][at]; break;
        case Kind::all_to_all: output[i] = inputs[from][mine + at]; break;
        case Kind::broadcast: output[i] = inputs[0][i]; break;
        default: output[i] = sum; break;
      }
    }
    auto* bytes = reinterpret_cast<std::byte*>(output.data());
    EXPECT_EQ(pattern.wrong(bytes), 0) << collective::name(kind) << " rank " << rank;
    output.front() = static_cast<T>(output.front() + 1);
    output.back() = static_cast<T>(output.back() + 1);
    EXPECT_EQ(pattern.wrong(bytes), 2) << collective::name(kind) << " rank " << rank;
  }
}

TEST(BenchPatterns, ComputeTheResultOfEveryCollective) {
  for (const Kind kind :
       {Kind::all_reduce, Kind::reduce_scatter, Kind::all_gather, Kind::all_to_all, Kind::broadcast}) {
    expect_pattern_agrees<float>(kind, ElementType::f32);
    expect_pattern_agrees<double>(kind, ElementType::f64);
    expect_pattern_agrees<std::int8_t>(kind, ElementType::i8);
    expect_pattern_agrees<std::int64_t>(kind, ElementType::i64);
  }
}

TEST(BenchPatterns, DifferByRankAndBlock) {
  BenchTurn turn;
  turn.kind = Kind::all_to_all;
  turn.bytes = 16 * 16 * 4;
  std::vector<std::string> blocks;
  for (int rank = 0; rank < 16; ++rank) {
    const measure::BenchPattern pattern(turn, 16, rank);
    std::string input(static_cast<std::size_t>(pattern.input_bytes()), '\0');
    pattern.fill(reinterpret_cast<std::byte*>(input.data()));
    for (std::size_t block = 0; block < 16; ++block) blocks.push_back(input.substr(block * 64, 64));
  }
  std::ranges::sort(blocks);
  EXPECT_EQ(std::ranges::adjacent_find(blocks), blocks.end());
}

TEST(BenchLimits, CountRequiredBytes) {
  EXPECT_DOUBLE_EQ(measure::least_copied(Kind::all_reduce, 4, 100, false), 400);
  EXPECT_DOUBLE_EQ(measure::least_copied(Kind::reduce_scatter, 4, 100, false), 250);
  EXPECT_DOUBLE_EQ(measure::least_copied(Kind::all_gather, 4, 100, false), 250);
  EXPECT_DOUBLE_EQ(measure::least_copied(Kind::all_gather, 4, 100, true), 200);
  EXPECT_DOUBLE_EQ(measure::least_copied(Kind::all_to_all, 4, 100, false), 400);
  EXPECT_DOUBLE_EQ(measure::least_copied(Kind::all_to_all, 4, 100, true), 300);
  EXPECT_DOUBLE_EQ(measure::least_copied(Kind::broadcast, 4, 100, false), 200);
  EXPECT_DOUBLE_EQ(measure::least_sent(Kind::all_reduce, 4, 100), 600);
  EXPECT_DOUBLE_EQ(measure::least_sent(Kind::broadcast, 4, 100), 300);
}

BenchRow row(std::string peer, std::string setting, std::int64_t bytes, double microseconds) {
  BenchRow made;
  made.ranks = 4;
  made.transport = "shm";
  made.bytes = bytes;
  made.count = bytes / 4;
  made.type = "float";
  made.peer = std::move(peer);
  made.setting = std::move(setting);
  const double seconds = microseconds * 1e-6;
  const std::array samples = {BenchSample{seconds, 2 * seconds, 0}, BenchSample{9 * seconds, seconds, 0},
                              BenchSample{seconds / 2, 3 * seconds, 0}};
  measure::summarize(samples, made);
  made.limit = 1e-6;
  return made;
}

TEST(BenchRows, ReportTheMedianOfRepetitions) {
  const BenchRow one = row("weft", "private", 4096, 4);
  EXPECT_EQ(one.repeats, 3);
  EXPECT_DOUBLE_EQ(one.seconds, 4e-6);
  EXPECT_DOUBLE_EQ(one.fastest, 2e-6);
  EXPECT_DOUBLE_EQ(one.slowest, 36e-6);
  EXPECT_DOUBLE_EQ(one.processor_seconds, 8e-6);
}

std::vector<BenchRow> two_sizes() {
  std::vector<BenchRow> rows = {row("weft", "private", 4096, 2), row("openmpi", "cma", 4096, 10),
                                row("openmpi", "ucx", 4096, 8), row("gloo", "ring:sync", 4096, 200)};
  std::vector<BenchRow> larger = {row("weft", "private", 65536, 20), row("openmpi", "cma", 65536, 50),
                                  row("openmpi", "ucx", 65536, 30), row("gloo", "", 65536, 20)};
  larger[3].seconds = larger[3].fastest = larger[3].slowest = 0;
  larger[3].failure = "no answer within 20 s";
  measure::compare(rows);
  measure::compare(larger);
  rows.insert(rows.end(), larger.begin(), larger.end());
  return rows;
}

TEST(BenchRows, AreComparedWithTheBestPeer) {
  const auto rows = two_sizes();
  EXPECT_DOUBLE_EQ(rows[0].ratio_to_best_peer, 4);
  EXPECT_EQ(rows[0].best_peer, "openmpi ucx");
  EXPECT_DOUBLE_EQ(rows[1].ratio_to_best_peer, 0.8);
  EXPECT_DOUBLE_EQ(rows[2].ratio_to_best_peer, 1);
  EXPECT_DOUBLE_EQ(rows[0].ratio_to_limit, 2);
  EXPECT_DOUBLE_EQ(rows[4].ratio_to_best_peer, 1.5);
  EXPECT_EQ(rows[7].ratio_to_best_peer, 0) << "a contender that failed is not compared";
}

TEST(BenchRows, WrongResultsAreNotCompared) {
  std::vector<BenchRow> rows = {row("weft", "private", 4096, 2), row("mpich", "shm", 4096, 1),
                                row("gloo", "", 4096, 6)};
  rows[1].wrong = 5;
  measure::compare(rows);
  EXPECT_DOUBLE_EQ(rows[0].ratio_to_best_peer, 3);
}

TEST(BenchRows, WithoutPeersHaveNoRatio) {
  std::vector<BenchRow> rows = {row("weft", "private", 4096, 2)};
  measure::compare(rows);
  EXPECT_EQ(rows[0].ratio_to_best_peer, 0);
  EXPECT_DOUBLE_EQ(rows[0].ratio_to_limit, 2);
}

TEST(BenchSummaries, ReportGeometricMeansAndTheWorstRatio) {
  const auto all = measure::summarize(two_sizes());
  ASSERT_EQ(all.size(), 1U);
  EXPECT_NEAR(all[0].mean, 2.449489742783178, 1e-12);  // the root of 4 * 1.5
  EXPECT_DOUBLE_EQ(all[0].worst, 1.5);
  EXPECT_EQ(all[0].worst_bytes, 65536);
  EXPECT_EQ(all[0].worst_peer, "openmpi ucx");
  EXPECT_EQ(all[0].sizes, 2);
}

TEST(BenchTables, HaveTheColumnsOfNcclTests) {
  EXPECT_EQ(explain::bench_table(two_sizes()),
            R"(all_reduce, 4 ranks, shm

 size       count   type  redop  root  side            time   algbw   busbw  #wrong   cpu  ratio  limit
  (B)  (elements)                                      (us)  (GB/s)  (GB/s)          (us)
 4096        1024  float    sum    -1  weft private    2.00    2.05    3.07       0  4.00   4.00   2.00
                                       openmpi cma     10.0    0.41    0.61       0  20.0   0.80   10.0
                                       openmpi ucx     8.00    0.51    0.77       0  16.0   1.00   8.00
                                       gloo ring:sync   200    0.02    0.03       0   400   0.04    200
65536       16384  float    sum    -1  weft private    20.0    3.28    4.92       0  40.0   1.50   20.0
                                       openmpi cma     50.0    1.31    1.97       0   100   0.60   50.0
                                       openmpi ucx     30.0    2.18    3.28       0  60.0   1.00   30.0
                                       gloo               -

gloo at 64 KiB: no answer within 20 s
)");
  EXPECT_EQ(
      explain::bench_summary(two_sizes()),
      "all_reduce, 4 ranks, shm, weft private: 2.45 times the best peer in the geometric mean over 2 sizes, "
      "least 1.50 at 64 KiB (openmpi ucx); 6.32 times the machine's limit\n");
  EXPECT_EQ(explain::bench_table({}), "");
}

TEST(BenchJson, HasOneRowPerContenderAndSize) {
  explain::BenchFacts facts;
  facts.cores = 2;
  facts.left_out = {"mpich: no"};
  const auto json = nlohmann::json::parse(explain::bench_json(two_sizes(), facts));
  ASSERT_EQ(json["rows"].size(), 8U);
  const auto& first = json["rows"][0];
  EXPECT_EQ(first["collective"], "all_reduce");
  EXPECT_EQ(first["ranks"], 4);
  EXPECT_EQ(first["transport"], "shm");
  EXPECT_EQ(first["bytes"], 4096);
  EXPECT_EQ(first["peer"], "weft");
  EXPECT_NEAR(first["microseconds"].get<double>(), 2, 1e-9);
  EXPECT_NEAR(first["ratio_to_best_peer"].get<double>(), 4, 1e-9);
  EXPECT_NEAR(first["cpu_microseconds"].get<double>(), 4, 1e-9);
  EXPECT_TRUE(json["rows"][7]["microseconds"].is_null());
  EXPECT_TRUE(json["rows"][7]["ratio_to_best_peer"].is_null());
  EXPECT_EQ(json["rows"][7]["failure"], "no answer within 20 s");
  EXPECT_NEAR(json["summary"][0]["least"].get<double>(), 1.5, 1e-9);
  EXPECT_EQ(json["machine"]["cores"], 2);
  EXPECT_EQ(json["left_out"][0], "mpich: no");
}

TEST(BenchTables, DescribeTheMachine) {
  explain::BenchFacts facts;
  facts.cores = 2;
  facts.stolen = 0.021;
  facts.shm_latency = 125e-9;
  facts.copies = {{1024, 40e9, 80e9}, {64 << 20, 25.5e9, 46e9}};
  EXPECT_EQ(explain::bench_machine(facts),
            "2 cores; memcpy of 64 MiB 25.5 GB/s by one thread, 46 GB/s by all; core-to-core latency 125 ns; "
            "2.1 % steal time\n");
}

TEST(BenchPlots, DrawOneLinePerContender) {
  const auto drawing = explain::bench_plot(two_sizes());
  ASSERT_TRUE(drawing.ok());
  for (const char* text :
       {"weft private", "openmpi cma", "gloo", "machine limit", "all_reduce, 4 ranks, shm"})
    EXPECT_NE(drawing->find(text), std::string::npos) << text;
  EXPECT_FALSE(explain::bench_plot({}).ok());
}

TEST(BenchRequests, ReportInvalidArguments) {
  const auto complaint = [](const auto& change) {
    command::Bench bench;
    bench.collectives = {"all-reduce"};
    change(bench);
    const session::Reply reply = command::run(bench);
    EXPECT_EQ(reply.exit_code, session::ExitCode::user_error);
    return reply.complaint;
  };
  using B = command::Bench;
  EXPECT_NE(complaint([](B& b) { b.collectives.clear(); }).find("found none"), std::string::npos);
  EXPECT_NE(complaint([](B& b) { b.collectives = {"all-reduct"}; }).find("all_reduce"), std::string::npos);
  EXPECT_NE(complaint([](B& b) { b.collectives = {"barrier"}; }).find("cannot measure barrier"),
            std::string::npos);
  EXPECT_NE(complaint([](B& b) { b.ranks = {1}; }).find("2 to 256 ranks"), std::string::npos);
  EXPECT_NE(complaint([](B& b) { b.transports = {"smh"}; }).find("shm"), std::string::npos);
  EXPECT_NE(complaint([](B& b) { b.against = {"openmp"}; }).find("openmpi"), std::string::npos);
  EXPECT_NE(complaint([](B& b) { b.buffers = "public"; }).find("private"), std::string::npos);
  EXPECT_NE(complaint([](B& b) { b.type = "f33"; }).find("unknown type"), std::string::npos);
  EXPECT_NE(complaint([](B& b) { b.to = "plot.png"; }).find(".svg"), std::string::npos);
  EXPECT_NE(complaint([](B& b) { b.sizes = "2..1"; }).find("ascend"), std::string::npos);
}

TEST(BenchLineUps, NameMissingPeers) {
  measure::BenchSelection who;
  who.transport = "shm";
  who.peers = {"gloo"};
  who.buffers = measure::BenchBuffers::both;
  who.programs = "/nonexistent";
  const auto all = measure::select_contenders(who, 4);
  ASSERT_EQ(all.left_out.size(), 1U);
  EXPECT_NE(all.left_out[0].find("libgloo-dev"), std::string::npos);
  ASSERT_EQ(all.contenders.size(), 2U);
  EXPECT_EQ(all.contenders[0].setting, "private");
  EXPECT_EQ(all.contenders[1].setting, "allocated");
  EXPECT_TRUE(all.contenders[1].allocated);
  EXPECT_EQ(all.groups.size(), 1U) << "both are the same ranks";
}

// Ranks of one process: an all-reduce of one rank is a copy.
class Alone : public measure::BenchLibrary {
 public:
  std::string version() const override { return "alone"; }
  std::int32_t rank() const override { return 0; }
  std::int32_t ranks() const override { return 1; }
  Status barrier() override { return {}; }
  Status prepare(const BenchTurn& turn, const Buffers& buffers) override {
    if (turn.variant == "refuse") return user_error("not\nthis");
    buffers_ = buffers;
    wrong_ = turn.variant == "wrong";
    return {};
  }
  Status call() override {
    std::memmove(buffers_.output, buffers_.input, static_cast<std::size_t>(buffers_.count) * sizeof(float));
    if (wrong_) buffers_.output[0] = std::byte{99};
    ++calls;
    return {};
  }

  int calls = 0;

 private:
  Buffers buffers_;
  bool wrong_ = false;
};

TEST(BenchRanks, AnswerTurnsUntilDisconnected) {
  auto listener = measure::BenchListener::open().value();
  setenv(measure::kBenchSocket, listener.name().c_str(), 1);
  Alone library;
  std::jthread rank([&] { EXPECT_TRUE(measure::serve_bench(library).ok()); });
  std::optional<measure::BenchListener::Client> caller;
  while (!caller) caller = listener.accept();
  EXPECT_EQ(caller->process, getpid());
  EXPECT_EQ(caller->line.read(), "hello 0 1 alone");
  const auto ask = [&](std::string_view line) {
    EXPECT_TRUE(caller->line.write(line));
    return caller->line.read().value_or("");
  };
  EXPECT_EQ(ask("variants all_reduce"), "plain");
  const auto answer = measure::parse_bench_answer(ask("all_reduce 4096 f32 iterations=5 warmup=2"));
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->wrong, 0);
  EXPECT_EQ(library.calls, 7);
  EXPECT_EQ(measure::parse_bench_answer(ask("all_reduce 4096 f32 variant=wrong keep=0"))->wrong, 1);
  EXPECT_EQ(ask("all_reduce 4096 f32 variant=refuse"), "error not this");
  EXPECT_TRUE(ask("nonsense").starts_with("error ")) << "and continues";
  EXPECT_TRUE(ask("all_reduce 4096 f32 buffers=allocated").starts_with("error ")) << "it has no allocator";
  EXPECT_EQ(measure::parse_bench_answer(ask("broadcast 64 f32 in_place=1"))->wrong, 0);
  caller.reset();
  rank.join();
  unsetenv(measure::kBenchSocket);
}

// A group of one "rank" that is a shell: enough to exit, to hang and to print nonsense.
measure::BenchRecipe shell(std::string script) { return {{"/bin/sh", "-c", std::move(script)}, true, {}}; }

TEST(BenchGroups, ReportsTheOutputOfAProcessThatExits) {
  const auto group =
      measure::BenchGroup::start(shell("echo ------; echo 'no such device' >&2; exit 3"), 2, 20);
  ASSERT_FALSE(group.ok());
  EXPECT_EQ(group.error().message, "a process ended before its rank connected: no such device");
}

TEST(BenchGroups, KillsAProcessThatNeverConnects) {
  const std::string mark = testing::TempDir() + fmt::format("weft_bench_group_{}", getpid());
  const auto group =
      measure::BenchGroup::start(shell(fmt::format("echo $$ > {}; exec sleep 60", mark)), 1, 1);
  ASSERT_FALSE(group.ok());
  EXPECT_EQ(group.error().message, "0 of 1 ranks connected within 1 s");
  int process = 0;
  std::ifstream(mark) >> process;
  std::remove(mark.c_str());
  ASSERT_GT(process, 0);
  EXPECT_NE(kill(process, 0), 0) << "it still runs";
}

TEST(BenchGroups, NamesAMissingProgram) {
  const auto group = measure::BenchGroup::start({{"/nonexistent/weft-peer"}, false, {}}, 2, 5);
  ASSERT_FALSE(group.ok());
  EXPECT_NE(group.error().message.find("/nonexistent/weft-peer"), std::string::npos);
}

// The rank for the round below: this program, started again.
class Hanging : public Alone {
 public:
  std::vector<std::string> variants(collective::Kind) const override {
    return {"plain", "hangs", "hangs_too", "ends", "ends_too"};
  }
  Status prepare(const BenchTurn& turn, const Buffers& buffers) override {
    if (turn.variant.starts_with("hangs")) pause();
    if (turn.variant.starts_with("ends")) _exit(1);
    return Alone::prepare(turn, buffers);
  }
};

TEST(BenchRoundRank, DISABLED_Serves) {
  Hanging library;
  EXPECT_TRUE(measure::serve_bench(library).ok());
}

TEST(BenchRounds, SurviveVariantsThatHangOrExit) {
  measure::BenchContenders who;
  who.groups.push_back(
      {{"/proc/self/exe", "--gtest_filter=BenchRoundRank.*", "--gtest_also_run_disabled_tests"}, true, {}});
  who.contenders.push_back({"hanging", "", 0, false});
  measure::BenchRound round(std::move(who), 1);
  ASSERT_FALSE(round.empty());
  BenchTurn turn;
  turn.kind = collective::Kind::all_reduce;
  turn.bytes = 4096;
  turn.limit = 1;
  for (int size = 0; size < 2; ++size) {
    const auto rows = round.measure(turn, 2);
    ASSERT_EQ(rows.size(), 1u);
    EXPECT_EQ(rows[0].failure, "");
    EXPECT_GT(rows[0].seconds, 0);
  }
}

}  // namespace
}  // namespace weft
