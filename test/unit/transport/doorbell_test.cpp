// Doorbells: a sleeping rank is always woken, and a rank that waits in vain times out.
#include "weft/communication/transport/doorbell.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <thread>
#include <vector>

#include "weft/base/machine.h"
#include "weft/communication/transport/scheduler_group.h"
#include "weft/communication/transport/segment.h"

namespace weft::transport {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr Patience kSleepAtOnce{.spins = 0, .yields = 0ns};
constexpr auto kDeadline = 10s;  // a lost wake-up shows as a wait this long

struct Table {
  Doorbells bells;
  alignas(64) std::atomic<int> ball;
};

// Two threads or processes wake each other in turn; false if one timed out.
bool play(Table& table, int self, int throws, const Patience& patience) {
  for (int turn = self; turn < throws; turn += 2) {
    if (!wait_until(table.bells, self, patience, kDeadline,
                    [&] { return table.ball.load(std::memory_order_acquire) == turn; }))
      return false;
    table.ball.store(turn + 1, std::memory_order_release);
    table.bells.ring(1 - self);
  }
  return true;
}

TEST(Doorbells, NoWakeUpIsLostAmongThreads) {
  for (const Patience& patience :
       {kSleepAtOnce, Patience{.spins = 3, .yields = 0ns}, Patience{.spins = 0, .yields = 2us}}) {
    const auto table = std::make_unique<Table>();
    bool other = false;
    std::thread thread([&] { other = play(*table, 1, 10'000, patience); });
    EXPECT_TRUE(play(*table, 0, 10'000, patience));
    thread.join();
    EXPECT_TRUE(other);
    EXPECT_EQ(table->ball.load(), 10'000);
  }
}

TEST(Doorbells, NoWakeUpIsLostAmongProcesses) {
  Result<Segment> memory = Segment::create(sizeof(Table), Backing::full);
  ASSERT_TRUE(memory.ok());
  auto& table = *reinterpret_cast<Table*>(memory->data());  // all zeros is a valid initial state
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(play(table, 1, 5'000, kSleepAtOnce) ? 0 : 1);
  }
  EXPECT_TRUE(play(table, 0, 5'000, kSleepAtOnce));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Doorbells, RingingOthersWakesAllTheirThreads) {
  constexpr std::int32_t kRanks = 3, kThreads = 2;
  const auto table = std::make_unique<Table>();
  std::atomic<int> woken = 0;
  std::vector<std::thread> threads;
  for (std::int32_t rank = 1; rank < kRanks; ++rank)
    for (int i = 0; i < kThreads; ++i)
      threads.emplace_back([&, rank] {
        woken +=
            wait_until(table->bells, rank, kSleepAtOnce, kDeadline, [&] { return table->ball.load() == 1; });
      });
  std::this_thread::sleep_for(20ms);
  table->ball = 1;
  table->bells.ring_others(kRanks, 0);
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(woken.load(), (kRanks - 1) * kThreads);
  EXPECT_EQ(table->bells.read(0), 0u) << "no thread slept there";
}

TEST(Doorbells, OnlyTheFirstRingWakes) {
  const auto table = std::make_unique<Table>();
  Doorbells& bells = table->bells;
  EXPECT_FALSE(bells.ring(1)) << "no thread sleeps";
  const std::uint32_t seen = bells.prepare(1);
  EXPECT_TRUE(bells.ring(1));
  EXPECT_FALSE(bells.ring(1)) << "woken already";
  bells.sleep(1, seen, kDeadline);  // returns at once
  // Another thread that goes to sleep before the first has woken up is woken again.
  const std::uint32_t later = bells.prepare(1);
  EXPECT_EQ(later, seen + 1);
  EXPECT_TRUE(bells.ring(1));
  bells.finish(1);
  bells.finish(1);
  EXPECT_FALSE(bells.ring(1));
  EXPECT_EQ(bells.read(1), seen + 2);
}

TEST(Doorbells, NoWakeUpIsLostAmongMany) {
  constexpr std::int32_t kRanks = 6, kTurns = 400;  // enough to use fences instead of membarrier calls
  const auto table = std::make_unique<Table>();
  std::atomic<int> arrived = 0, lost = 0;
  std::vector<std::thread> threads;
  for (std::int32_t rank = 0; rank < kRanks; ++rank)
    threads.emplace_back([&, rank] {
      table->bells.enter(kRanks);
      for (int turn = 1; turn <= kTurns; ++turn) {
        arrived.fetch_add(1);
        table->bells.ring_others(kRanks, rank);
        lost += !wait_until(table->bells, rank, kSleepAtOnce, kDeadline,
                            [&] { return arrived.load() >= turn * kRanks; });
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(lost.load(), 0);
}

TEST(Doorbells, WaitingInVainSleepsUntilTheTimeout) {
  const auto table = std::make_unique<Table>();
  rusage before{}, after{};
  getrusage(RUSAGE_THREAD, &before);
  const auto begin = Clock::now();
  EXPECT_FALSE(
      wait_until(table->bells, 5, Patience{.spins = 100, .yields = 50us}, 100ms, [] { return false; }));
  const auto took = Clock::now() - begin;
  getrusage(RUSAGE_THREAD, &after);
  EXPECT_GE(took, 100ms);
  EXPECT_GT(after.ru_nvcsw, before.ru_nvcsw) << "it did not sleep";
  // An unlimited timeout does not overflow.
  std::thread ringer([&] {
    std::this_thread::sleep_for(5ms);
    table->ball = 1;
    table->bells.ring_all(6);
  });
  EXPECT_TRUE(wait_until(table->bells, 5, kSleepAtOnce, std::chrono::nanoseconds::max(),
                         [&] { return table->ball == 1; }));
  ringer.join();
}

// A child with its own session uses the same doorbells; whether that is another scheduler group
// depends on the system.
TEST(Doorbells, DetectsRanksInOtherSchedulerGroups) {
  const std::string_view version2 = "0::/job\n", version1 = "4:cpu,cpuacct:/a\n3:memory:/b\n0::/c\n";
  EXPECT_EQ(scheduler_group(version2, true, 1), scheduler_group("0::/job\n", true, 2));
  EXPECT_NE(scheduler_group(version2, true, 1), scheduler_group("0::/other\n", true, 1));
  EXPECT_EQ(scheduler_group(version1, true, 1), scheduler_group("9:cpu:/a\n", true, 2));
  EXPECT_NE(scheduler_group("0::/\n", true, 1), scheduler_group("0::/\n", true, 2));
  EXPECT_EQ(scheduler_group("0::/\n", false, 1), scheduler_group("", false, 2));
  EXPECT_NE(scheduler_group("nonsense\n:\n::", true, 1), 0u);

  Result<Segment> memory = Segment::create(sizeof(Table), Backing::full);
  ASSERT_TRUE(memory.ok());
  Doorbells& bells = reinterpret_cast<Table*>(memory->data())->bells;
  bells.enter();
  bells.enter();
  EXPECT_FALSE(bells.is_split());
  const std::uint64_t mine = scheduler_group();
  const pid_t child = fork();
  if (child == 0) {
    setsid();
    bells.enter();
    _exit(bells.is_split() == (scheduler_group() != mine) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Doorbells, NoRankSpinsIfRanksOutnumberCores) {
  EXPECT_GT(patience_for(1).spins, 0);
  EXPECT_GT(patience_for(available_processors()).spins, 0);
  EXPECT_EQ(patience_for(available_processors() + 1).spins, 0);
}

// In a separate process and at future times, so that this process's measurements do not matter.
TEST(Doorbells, AfterALongYieldRanksSleepForAWhile) {
  const Clock::time_point later = Clock::now() + 1h;
  const pid_t child = fork();
  if (child == 0) {
    note_yield(999us, later);
    if (!yields_return(later)) _exit(1);
    note_yield(1ms, later);
    if (yields_return(later)) _exit(2);
    note_yield(1us, later + 50ms);  // of another thread
    if (yields_return(later + 99ms)) _exit(3);
    _exit(yields_return(later + 100ms) ? 0 : 4);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace weft::transport
