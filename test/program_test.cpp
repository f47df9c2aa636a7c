// The weft program from outside: its arguments, its exit codes, its outputs, its prompt.

#include <gtest/gtest.h>

#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <poll.h>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "own_data.h"
#include "shell.h"
#include "temporary_folder.h"
#include "thorough.h"

namespace {

[[maybe_unused]] const auto* const own_data = testing::AddGlobalTestEnvironment(new weft::OwnData);

using namespace std::chrono_literals;
using weft::Outcome;
using weft::TemporaryFolder;

// Runs a shell line in which $weft is the program.
Outcome shell(const std::string& line) {
  return weft::run_shell(fmt::format("weft='{}'; {{ {}\n}} 2>&1", WEFT_PROGRAM, line));
}

TEST(Program, PrintsItsVersionAndUsage) {
  const Outcome version = shell("$weft --version");
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_EQ(version.text.rfind("weft ", 0), 0u) << version.text;
  const Outcome usage = shell("$weft --help");
  EXPECT_EQ(usage.exit_code, 0);
  EXPECT_NE(usage.text.find("weft run FILE"), std::string::npos) << usage.text;
}

TEST(Program, AnswersWrongArgumentsWithAHint) {
  const auto expect = [](const std::string& arguments, const std::string& text) {
    const Outcome outcome = shell("$weft " + arguments);
    EXPECT_EQ(outcome.exit_code, 1) << arguments;
    EXPECT_EQ(outcome.text, text) << arguments;
  };
  expect("rnu", "error: unknown command: rnu\n  did you mean 'run'?\n");
  expect("--fromat json", "error: unknown option: --fromat\n  did you mean '--format'?\n");
  expect("--format xml -c 'SHOW MODELS'", "error: unknown format: xml\n  text or json\n");
  expect("--format jsn", "error: unknown format: jsn\n  did you mean 'json'?\n");
  expect("run", "error: run needs a file\n  weft run FILE; - is the standard input\n");
  expect("-c 'SHOW MODELS' help", "error: -c does not go with help\n  give one of the two\n");
  expect("help -i x.weft", "error: -i does not go with help\n  give one of the two\n");
  expect("-z", "error: unknown option: -z\n  weft --help lists what there is\n");
}

TEST(Program, RunsStatementsFilesAndTheStandardInputAlike) {
  const TemporaryFolder folder;
  std::ofstream(folder / "show.weft") << "SHOW MODELS;\n";
  const Outcome statement = shell("$weft -c 'SHOW MODELS'");
  EXPECT_EQ(statement.exit_code, 0) << statement.text;
  EXPECT_NE(statement.text, "");
  const std::string file = folder / "show.weft";
  EXPECT_EQ(shell("$weft run " + file).text, statement.text);
  EXPECT_EQ(shell("$weft run - <" + file).text, statement.text);
  EXPECT_EQ(shell("$weft <" + file).text, statement.text);
  EXPECT_EQ(shell("$weft -c 'SHOW MODELS' -c 'SHOW MODELS;'").text, statement.text + statement.text);
  EXPECT_EQ(shell("$weft run " + file + " " + file).text, statement.text + statement.text);
}

TEST(Program, RunsStatementsAfterFilesInOneSession) {
  const TemporaryFolder folder;
  std::ofstream(folder / "seed.weft") << "SET seed = 7;\n";
  const std::string file = folder / "seed.weft";
  EXPECT_EQ(shell("$weft run " + file + " -c 'SET threads = 2' -c \"RUN '" + file + "'\"").text,
            "seed = 7\nthreads = 2\nseed = 7\n");
  // Without a terminal the rest comes from the standard input.
  EXPECT_EQ(shell("echo 'SET threads = 3' | $weft -i " + file + " -c 'SET threads = 2'").text,
            "seed = 7\nthreads = 2\nthreads = 3\n");
  const Outcome missing = shell("echo 'SET threads = 3' | $weft -i nosuch.weft");
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_EQ(missing.text, "error: cannot read 'nosuch.weft': no such file or directory\n");
}

// Whatever goes wrong is one JSON object among the answers, with a code that says so.
TEST(Program, AnswersErrorsInJson) {
  const TemporaryFolder folder;
  std::ofstream(folder / "wrong.weft") << "SET seed = 3;\nDESCRIBE gpt22;\n";
  const auto expect = [](const std::string& arguments, int code, const std::string& text) {
    const Outcome outcome = shell("$weft " + arguments + " 2>/dev/null");
    EXPECT_EQ(outcome.exit_code, code) << arguments;
    EXPECT_EQ(outcome.text, text) << arguments;
  };
  expect("--format json -c 'SET seed = 3; DESCRIBE gpt22'", 1,
         "{\"set\":\"seed\",\"value\":\"3\"}\n"
         "{\"error\":{\"message\":\"no model, layer, cluster or device is named gpt22\",\"line\":1,"
         "\"column\":24,\"hint\":\"did you mean 'gpt2'?\"}}\n");
  const std::string file = folder / "wrong.weft";
  expect("run --format json " + file, 1,
         "{\"set\":\"seed\",\"value\":\"3\"}\n"
         "{\"error\":{\"message\":\"no model, layer, cluster or device is named gpt22\",\"line\":2,"
         "\"column\":10,\"hint\":\"did you mean 'gpt2'?\",\"file\":\"" +
             file + "\"}}\n");
  const auto nowhere = [](const std::string& message, const std::string& hint) {
    return fmt::format("{{\"error\":{{\"message\":\"{}\",\"line\":null,\"column\":null,\"hint\":\"{}\"}}}}\n",
                       message, hint);
  };
  expect("rnu --format json", 1, nowhere("unknown command: rnu", "did you mean 'run'?"));
  expect("run nosuch.weft --format=json", 2,
         nowhere("cannot read 'nosuch.weft': no such file or directory", ""));
  expect("help modles --format json", 1, nowhere("no help on 'modles'", "did you mean 'models'?"));
  expect("collective cost all_reduce_ring --on dgx_h10 --format json", 1,
         nowhere("unknown cluster: dgx_h10", "did you mean 'dgx_h100'?"));
  expect("collective shwo --format json", 1,
         nowhere("weft collective cannot do: shwo", "did you mean 'show'?"));
  expect("--format json launch -n 2", 1, nowhere("launch needs a program", "weft launch -n 4 PROGRAM"));
  expect("--format=json collective shwo", 1,
         nowhere("weft collective cannot do: shwo", "did you mean 'show'?"));
  expect("launch --format json -n 2", 1, nowhere("launch needs a program", "weft launch -n 4 PROGRAM"));
  for (const std::string command : {"rules show no_such_rule",
                                    "plan show nosuch.plan",
                                    "plan prove nosuch.plan",
                                    "plan reshard nosuch.json",
                                    "simulate nosuch --network nosuch.yml",
                                    "profile --name 1",
                                    "tune --ranks 0",
                                    "bench no-such-collective",
                                    "collective convert nosuch.xml out.json",
                                    "collective compile nosuch",
                                    "collective show nosuch.xml",
                                    "collective run nosuch.xml",
                                    "collective fit nosuch.txt",
                                    "collective choose nonsense --on pod",
                                    "collective list nonsense",
                                    "rules apply nosuch.json",
                                    "rules prove nosuch.rules",
                                    "rules why nosuch.json rule",
                                    "doctor 1",
                                    "memory recompute nosuch.json --budget 1",
                                    "memory pack nosuch.csv",
                                    "memory tile nosuch.json"}) {
    const Outcome outcome = shell("$weft " + command + " --format json 2>/dev/null");
    EXPECT_NE(outcome.exit_code, 0) << command;
    const std::size_t last = outcome.text.rfind("{\"error\":{\"message\":");
    EXPECT_NE(last, std::string::npos) << command << "\n" << outcome.text;
  }
}

TEST(Program, HelpNamesEveryCommand) {
  const std::string usage = shell("$weft --help").text, page = shell("$weft help").text;
  for (const std::string command :
       {"run", "rules", "plan", "import", "partition", "schedule", "memory", "collective", "launch",
        "simulate", "profile", "tune", "bench", "doctor", "top", "help"}) {
    EXPECT_NE(usage.find("\n  weft " + command), std::string::npos) << command;
    EXPECT_NE(page.find("\n  weft " + command), std::string::npos) << command;
  }
  EXPECT_NE(page.find("\n  weft -i"), std::string::npos);
}

TEST(Program, NamesTheScriptThatIsWrong) {
  const TemporaryFolder folder;
  std::ofstream(folder / "wrong.weft") << "SHOW MODELS;\nSHWO MODELS;\n";
  const Outcome outcome = shell("$weft run " + (folder / "wrong.weft") + " >/dev/null");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.text.find("wrong.weft: error 2:1: "), std::string::npos) << outcome.text;
}

TEST(Program, SaysWhyAFileCannotBeRead) {
  const Outcome missing = shell("$weft run nosuch.weft");
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_EQ(missing.text, "error: cannot read 'nosuch.weft': no such file or directory\n");
  const Outcome folder = shell("$weft run /");
  EXPECT_EQ(folder.exit_code, 2);
  EXPECT_EQ(folder.text, "error: cannot read '/': is a directory\n");
}

TEST(Program, SaysWhenItsOutputIsNotWritten) {
  const Outcome full = shell("$weft -c 'SHOW MODELS' >/dev/full");
  EXPECT_EQ(full.exit_code, 2);
  EXPECT_EQ(full.text, "error: cannot write the output: no space left on device\n");
}

TEST(Program, LeavesQuietlyWhenItsReaderDoes) {
  // The reader is gone before the first byte: the program must neither die of it nor complain.
  const Outcome gone = shell("{ sleep 0.2; $weft -c 'SHOW MODELS'; echo exit $? >&2; } | true; wait");
  EXPECT_EQ(gone.text, "exit 0\n");
}

// Every process that a launcher started is a rank, and the first answers for all.
TEST(Program, RanksOfALauncherGiveOneAnswer) {
  const std::string train = fmt::format(
      "$weft -c \"TRAIN digits_mlp ON LOCAL 2 FROM '{}/examples/digits.csv.gz' STEPS 5 "
      "WITH (rules = false, threads = 1, distribution = 'rank=2: slice b')\" -c 'SHOW MODELS' 2>/dev/null",
      WEFT_SOURCE_DIR);
  const auto times = [](const std::string& text, std::string_view what) {
    int found = 0;
    for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
    return found;
  };
  std::vector<std::string> launchers = {"$weft launch -n 2 --"};
  if (shell("command -v mpirun").exit_code == 0)
    launchers.push_back(
        "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 "
        "timeout 30 mpirun -n 2");
  for (const std::string& launcher : launchers) {
    const Outcome outcome = shell(launcher + " " + train);
    EXPECT_EQ(outcome.exit_code, 0) << launcher << "\n" << outcome.text;
    EXPECT_EQ(times(outcome.text, "trained digits_mlp from step 0 to 5"), 1) << outcome.text;
    EXPECT_EQ(times(outcome.text, "on 2 ranks of "), 1) << outcome.text;
    EXPECT_EQ(times(outcome.text, "\ndigits_mlp "), 1) << outcome.text;
  }
  const Outcome wrong = shell("$weft launch -n 3 -- " + train.substr(0, train.rfind(" 2>")) + " 2>&1");
  EXPECT_NE(wrong.exit_code, 0);
  EXPECT_GE(times(wrong.text, "the launcher started 3 ranks, LOCAL says 2"), 1) << wrong.text;
}

// Ranks on two hosts, which names make of one: in whatever order they lie, the plan, its cost and what goes between
// the hosts are the same, and so is what is learned.
TEST(Program, PlansOfAJobKnowItsHosts) {
  const auto launch = [](const std::string& host, const std::string& statement) {
    Outcome outcome = shell("$weft launch -n 4 -- sh -c 'WEFT_LISTEN=127.0.0.1 WEFT_HOST=h$((" + host +
                            ")) exec \"$0\" -c \"$1\"' \"$weft\" \"" + statement + "\" 2>&1");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
    return outcome.text;
  };
  // What is the same on every run: neither the ranks' numbers nor the seconds of the search.
  const auto lines_with = [](const std::string& text, std::string_view what) {
    std::string found;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
      if (const std::string line = text.substr(at, end - at); line.find(what) != std::string::npos)
        found += line;
      at = end;
    }
    return found;
  };
  const std::string settings =
      "WITH (network = '100 MB/s, 100 us', threads = 4, holdout = 100, rules = false, prove = false)";
  const std::string explain = "EXPLAIN TRAIN digits_mlp ON JOB " + settings;
  const std::string given =
      "EXPLAIN TRAIN digits_mlp ON JOB WITH (rules = false, prove = false, network = '100 MB/s, 100 us', "
      "distribution = 'host=2: slice b; rank=2: slice f')";
  EXPECT_NE(lines_with(launch("RANK % 2", given), "chosen  ").find("host 18.8 KiB, rank 1.25 KiB"),
            std::string::npos);
  const std::string mixed = launch("RANK % 2", explain), sorted = launch("RANK / 2", explain);
  EXPECT_NE(mixed.find("hosts     2: ranks 0 2, ranks 1 3; network 100 MB/s a rank, 100 us, as given"),
            std::string::npos)
      << mixed;
  EXPECT_NE(sorted.find("hosts     2: ranks 0 1, ranks 2 3; network"), std::string::npos) << sorted;
  for (const std::string_view what : {"step  ", "chosen  ", "all-reduce", "network 100 MB/s  "})
    EXPECT_EQ(lines_with(mixed, what), lines_with(sorted, what));

  const std::string train = fmt::format(
      "TRAIN digits_mlp ON JOB FROM '{}/examples/digits.csv.gz' STEPS 10 {}", WEFT_SOURCE_DIR, settings);
  const std::string learned = lines_with(launch("RANK % 2", train), "loss");
  EXPECT_NE(learned.find("trained digits_mlp from step 0 to 10"), std::string::npos) << learned;
  EXPECT_EQ(lines_with(launch("RANK / 2", train), "tested"), lines_with(learned, "tested"));
  EXPECT_NE(launch("RANK / 3", train).find("rank=4"), std::string::npos) << "hosts of 3 ranks and 1";

  // Without a word about the network it is measured.
  const std::string measured =
      launch("RANK % 2", "EXPLAIN (SUMMARY) TRAIN digits_mlp ON JOB WITH (rules = false, prove = false)");
  EXPECT_NE(lines_with(measured, "hosts  ").find("measured"), std::string::npos) << measured;

  const Outcome alone = shell("$weft -c 'EXPLAIN TRAIN digits_mlp ON JOB'");
  EXPECT_EQ(alone.exit_code, 1);
  EXPECT_NE(alone.text.find("ON JOB is for the ranks of a launcher"), std::string::npos) << alone.text;
}

constexpr auto kPatience = 300s;  // far above what a busy machine takes

// weft at a terminal, as a person would use it.
class Prompt {
 public:
  explicit Prompt(const std::string& state_home, const std::string& loaded = {}) {
    child_ = forkpty(&terminal_, nullptr, nullptr, nullptr);
    if (child_ != 0) return;
    setenv("XDG_STATE_HOME", state_home.c_str(), 1);
    setenv("TERM", "xterm", 1);
    setenv("LC_ALL", "C.UTF-8", 1);
    if (!loaded.empty()) execl(WEFT_PROGRAM, "weft", "-i", loaded.c_str(), static_cast<char*>(nullptr));
    execl(WEFT_PROGRAM, "weft", static_cast<char*>(nullptr));
    _exit(127);
  }
  ~Prompt() {
    if (child_ > 0) {
      kill(child_, SIGKILL);
      waitpid(child_, nullptr, 0);
    }
    close(terminal_);
  }

  void type(std::string_view keys) {
    std::this_thread::sleep_for(50ms);  // nobody is quicker than the terminal is set up for the line
    EXPECT_EQ(write(terminal_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }

  // Reads on until `text` appears; what was read up to there, or all there was.
  std::string until(std::string_view text) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    for (;;) {
      const std::size_t found = screen_.find(text);
      if (found != std::string::npos) {
        std::string before = screen_.substr(0, found);
        screen_.erase(0, found + text.size());
        return before;
      }
      if (!read_more(deadline)) {
        ADD_FAILURE() << "never saw " << text << "; the screen has\n" << screen_;
        return screen_;
      }
    }
  }

  int exit_code() {
    while (read_more(std::chrono::steady_clock::now() + kPatience)) {
    }
    int status = 0;
    waitpid(child_, &status, 0);
    child_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  bool read_more(std::chrono::steady_clock::time_point deadline) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd ready = {terminal_, POLLIN, 0};
    if (left.count() <= 0 || poll(&ready, 1, static_cast<int>(left.count())) <= 0) return false;
    char chunk[1024];
    const ssize_t got = read(terminal_, chunk, sizeof chunk);
    if (got > 0) screen_.append(chunk, static_cast<std::size_t>(got));
    return got > 0;
  }

  int terminal_ = -1;
  pid_t child_ = -1;
  std::string screen_;
};

constexpr const char* kCtrlC = "\x03";
constexpr const char* kCtrlD = "\x04";

TEST(Prompt, AnswersAndLeavesOnCtrlD) {
  const TemporaryFolder folder;
  Prompt prompt(folder.path());
  prompt.until("weft> ");
  prompt.type("SHOW\rMODELS;\r");
  prompt.until("   -> ");
  prompt.until("gpt2");
  prompt.until("weft> ");
  prompt.type(kCtrlD);
  EXPECT_EQ(prompt.exit_code(), 0);
}

TEST(Prompt, HasWhatWasLoaded) {
  const TemporaryFolder folder;
  std::ofstream(folder / "mine.weft") << "CREATE MODEL mine (b = 2) INPUT x[b] AS SELECT sum(x) FROM x;\n";
  Prompt prompt(folder.path(), folder / "mine.weft");
  prompt.until("created model mine");
  prompt.until("weft> ");
  prompt.type("DESCRIBE mine;\r");
  prompt.until("model mine (b = 2)");
  prompt.type("\\q\r");
  EXPECT_EQ(prompt.exit_code(), 0);
}

// A search shows how far it is on a terminal; Ctrl-C ends it, and however often it is pressed the session stays.
TEST(Prompt, CtrlCEndsASearch) {
  const TemporaryFolder folder;
  Prompt prompt(folder.path());
  prompt.until("weft> ");
  prompt.type("SET prove = false; EXPLAIN (SUMMARY) TRAIN resnet50 ON superpod WITH (b = 8192);\r");
  prompt.until("looked at ");
  prompt.type(kCtrlC);
  prompt.type(kCtrlC);
  prompt.type(kCtrlC);
  prompt.until("interrupted");  // with the best it had found, or with none on a slow machine
  prompt.until("weft> ");
  prompt.type("SHOW MODELS;\r");
  prompt.until("gpt2");
  prompt.until("weft> ");
  prompt.type(kCtrlD);
  EXPECT_EQ(prompt.exit_code(), 0);
}

TEST(Program, SaysNothingOfASearchInAPipe) {
  const Outcome outcome = shell(
      "$weft -c \"SET prove = false; EXPLAIN (SUMMARY) TRAIN gpt2 ON pod WITH (layers = 1, seconds = "
      "0.01)\"");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  EXPECT_EQ(outcome.text.find("looked at"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("more seconds: when they were up"), std::string::npos) << outcome.text;
}

// A search of more turns than anybody waits for, stopped as Ctrl-C stops it: the best so far is the answer, and a
// program that was checked.
TEST(Program, AnInterruptedSynthesisGivesTheBestFound) {
  const TemporaryFolder folder;
  // Asked to stop once, and not before it listens for that: SigCgt, whose second bit is SIGINT's.
  const Outcome outcome = shell(fmt::format(
      "$weft collective synthesize all_gather --on dgx1 --optimal time --size 1MB --turns 100000000 "
      "-o '{0}' & pid=$!; "
      "while kill -0 $pid && ! grep -q 'SigCgt:.*[2367abef]$' /proc/$pid/status; do sleep 0.05; done; "
      "sleep 1; kill -INT $pid; wait $pid && $weft collective check '{0}'",
      folder / "best.program"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  EXPECT_NE(outcome.text.find(", stopped"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("ok (allgather, 8 ranks"), std::string::npos) << outcome.text;
}

// Trees take long: they are made twice where all tests run in full.
TEST(Program, TheSameSeedGivesTheSameProgram) {
  const TemporaryFolder folder;
  const Outcome outcome = shell(fmt::format(
      "cd '{0}' && for file in one.program two.program; do "
      "$weft collective synthesize all_gather --on dgx1 --optimal time --size 1MB --turns 6 --seed 5 "
      "-o $file > $file.said; "
      "if {1}; then $weft collective synthesize all_reduce --on dgx1 -o trees.$file > trees.$file.said; "
      "else echo > trees.$file; fi; done; "
      "cmp one.program two.program && cmp trees.one.program trees.two.program && wc -c < one.program",
      folder.path(), weft::is_thorough()));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
}

TEST(Prompt, CtrlCGivesUpTheStatementAndKeepsThePrompt) {
  const TemporaryFolder folder;
  Prompt prompt(folder.path());
  prompt.until("weft> ");
  prompt.type("CREATE MODEL half\r");
  prompt.until("   -> ");
  prompt.type(kCtrlC);
  prompt.until("weft> ");
  prompt.type("SHOW MODELS;\r");
  prompt.until("gpt2");
  prompt.type("\\q\r");
  EXPECT_EQ(prompt.exit_code(), 0);
}

TEST(Prompt, AnErrorKeepsThePromptAndTheCodeIsStillGood) {
  const TemporaryFolder folder;
  Prompt prompt(folder.path());
  prompt.until("weft> ");
  prompt.type("DESCRIBE gpt22;\r");
  prompt.until("error");
  prompt.until("weft> ");
  prompt.type("\\x\r");
  prompt.until("unknown command: \\x");
  prompt.type("\\q\r");
  EXPECT_EQ(prompt.exit_code(), 0);
}

}  // namespace
