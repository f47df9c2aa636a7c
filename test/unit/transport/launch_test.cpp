#include "weft/communication/transport/launch.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "rank_processes.h"
#include "temporary_folder.h"

namespace weft::transport {
namespace {

using namespace std::chrono_literals;
constexpr auto kHung = 60s;  // far longer than anything takes on a busy machine
using Clock = std::chrono::steady_clock;

struct RankLines {
  std::map<std::int32_t, std::vector<std::string>> output, error;
};

LaunchOptions shell(std::int32_t ranks, const std::string& script, RankLines& lines) {
  LaunchOptions options{ranks, {"/bin/sh", "-c", script}};
  options.timeout = 10s;
  options.on_line = [&lines](std::int32_t rank, Stream stream, std::string_view line) {
    (stream == Stream::output ? lines.output : lines.error)[rank].emplace_back(line);
  };
  return options;
}

bool lives(pid_t process) {
  std::ifstream status(fmt::format("/proc/{}/stat", process));
  std::string number, name, state;
  status >> number >> name >> state;
  return status && state != "Z";
}

TEST(Launch, GivesEachRankItsNumber) {
  RankLines lines;
  auto options = shell(
      3,
      "echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $MASTER_ADDR $EXTRA; echo $WEFT_JOB_SECRET >&2",
      lines);
  options.environment = {{"EXTRA", "more"}};
  const auto end = launch(options);
  ASSERT_TRUE(end.ok());
  EXPECT_EQ(end->code(), 0);
  EXPECT_EQ(end->what(), "");
  for (std::int32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(lines.output[rank], std::vector{fmt::format("{0} {0} 3 3 127.0.0.1 more", rank)});
    ASSERT_EQ(lines.error[rank].size(), 1U);
    EXPECT_EQ(lines.error[rank][0].size(), 64U);
    EXPECT_EQ(lines.error[rank], lines.error[0]);
  }
}

TEST(Launch, GivesEachRankAPipeTiedToTheLauncher) {
  RankLines lines;
  auto options = shell(2, "sh -c 'test -p /proc/self/fd/$WEFT_LAUNCHER_FD && echo pipe'", lines);
  const auto end = launch(options);
  ASSERT_TRUE(end.ok());
  for (std::int32_t rank = 0; rank < 2; ++rank)
    EXPECT_EQ(lines.output[rank], std::vector<std::string>{"pipe"}) << rank;
}

TEST(Launch, ReturnsEveryExitCode) {
  RankLines lines;
  auto options = shell(4, "exit $RANK", lines);
  const auto end = launch(options);
  ASSERT_TRUE(end.ok());
  ASSERT_TRUE(end->first_failure);
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(end->ranks[static_cast<std::size_t>(rank)].exit_code, rank);
  EXPECT_EQ(end->code(), *end->first_failure);
  EXPECT_EQ(end->what(), fmt::format("rank {0} (pid {1}) exited with code {0}", *end->first_failure,
                                     end->ranks[static_cast<std::size_t>(*end->first_failure)].process));
}

TEST(Launch, OtherRanksMayReportBeforeTheyAreKilled) {
  RankLines lines;
  auto options = shell(
      3, "case $RANK in 0) sleep 0.1; echo rank 1 is lost; exit 7;; 1) kill -9 $$;; 2) sleep 600;; esac",
      lines);
  options.grace = 300ms;
  const auto begun = Clock::now();
  const auto end = launch(options);
  ASSERT_TRUE(end.ok());
  EXPECT_GE(Clock::now() - begun, 300ms);
  EXPECT_LT(Clock::now() - begun, kHung) << "hung: waited for rank 2";
  EXPECT_EQ(end->what(), fmt::format("rank 1 (pid {}) was killed by signal 9", end->ranks[1].process));
  EXPECT_EQ(end->code(), 137);
  EXPECT_EQ(lines.output[0], std::vector<std::string>{"rank 1 is lost"});
  EXPECT_EQ(end->ranks[0].exit_code, 7);
  EXPECT_FALSE(end->ranks[0].stopped);
  EXPECT_EQ(end->ranks[2].signal, SIGTERM);
  EXPECT_TRUE(end->ranks[2].stopped);
}

TEST(Launch, LeavesNothingBehind) {
  RankLines lines;
  // One rank starts a process and forgets it, another ignores SIGTERM.
  auto options = shell(2, "sleep 60 & echo $!; trap '' TERM; if [ $RANK = 1 ]; then sleep 60; fi", lines);
  options.timeout = 200ms;
  const auto end = launch(options);
  ASSERT_TRUE(end.ok());
  EXPECT_TRUE(end->timed_out);
  EXPECT_EQ(end->what(), "the ranks did not exit within the timeout");
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a zombie is left";
  for (std::int32_t rank = 0; rank < 2; ++rank) {
    ASSERT_EQ(lines.output[rank].size(), 1U);
    const pid_t child = std::atoi(lines.output[rank][0].c_str());
    const auto until = Clock::now() + 2s;
    while (lives(child) && Clock::now() < until) std::this_thread::sleep_for(1ms);
    EXPECT_FALSE(lives(child));
  }
}

// The ranks' child processes end too, in the foreground and background, although no process waits
// for them.
TEST(Launch, RanksEndWithTheLauncher) {
  for (const int signal : {SIGKILL, SIGHUP}) {
    const TemporaryFolder folder;
    RankProcesses launcher;
    launcher.start(0, [&](std::int32_t) {
      const std::string line = "sleep 60 & echo $$ $! > " + folder.path() + "/$RANK; sh -c 'echo $$ > " +
                               folder.path() + "/in$RANK; sleep 60; :'; :";
      const LaunchOptions options{2, {"/bin/sh", "-c", line}};
      return launch(options).ok() ? 0 : 1;
    });
    std::vector<pid_t> processes;
    const auto until = Clock::now() + 20s;
    for (const auto& [name, count] : {std::pair{"0", 2}, {"1", 2}, {"in0", 1}, {"in1", 1}}) {
      std::vector<pid_t> found;
      while (static_cast<int>(found.size()) < count && Clock::now() < until) {
        found.clear();
        std::ifstream file(folder / name);
        for (pid_t process = 0; file >> process;) found.push_back(process);
      }
      ASSERT_EQ(static_cast<int>(found.size()), count) << name;
      processes.insert(processes.end(), found.begin(), found.end());
    }
    ::kill(launcher.process(0), signal);
    launcher.wait_all();
    for (const pid_t process : processes) {
      while (lives(process) && Clock::now() < until) std::this_thread::sleep_for(1ms);
      EXPECT_FALSE(lives(process)) << "signal " << signal;
    }
  }
}

TEST(Launch, ForwardsSignals) {
  RankProcesses launcher;
  launcher.start(0, [&](std::int32_t) {
    LaunchOptions options{2,
                          {"/bin/sh", "-c", "trap 'exit 9' INT; echo ready; while :; do sleep 0.01; done"}};
    options.forward_signals = true;
    int ready = 0;
    options.on_line = [&](std::int32_t, Stream, std::string_view) {
      if (++ready == 2) ::kill(::getpid(), SIGINT);
    };
    const auto end = launch(options);
    if (!end.ok()) return 1;
    return check(end->code() == 9 && end->ranks[1].exit_code == 9, "exit code 9 of both", 0, end->what());
  });
  EXPECT_EQ(launcher.wait_all(), std::vector<int>{0});
}

TEST(Launch, ReportsWhatCannotBeStarted) {
  const auto missing = launch({2, {"/no/such/program"}});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().message, "cannot start /no/such/program: no such file or directory");
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_FALSE(launch({0, {"true"}}).ok());
  EXPECT_FALSE(launch({1 << 20, {"true"}}).ok());
  EXPECT_FALSE(launch({2, {}}).ok());
}

TEST(Launch, ForwardsLongAndUnfinishedLines) {
  RankLines lines;
  auto options = shell(1, "printf 'one\\n\\nhalf'; head -c 3000000 /dev/zero | tr '\\0' x >&2", lines);
  ASSERT_TRUE(launch(options).ok());
  EXPECT_EQ(lines.output[0], (std::vector<std::string>{"one", "", "half"}));
  std::size_t bytes = 0;
  for (const std::string& piece : lines.error[0]) bytes += piece.size();
  EXPECT_EQ(bytes, 3'000'000U);
}

}  // namespace
}  // namespace weft::transport
