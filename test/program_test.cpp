// The weft program as a user runs it: arguments, exit codes, output and the interactive prompt.

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
#include <utility>
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

// Runs a shell command; $weft is the program.
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

TEST(Program, RejectsWrongArgumentsWithAHint) {
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
  expect("-c 'SHOW MODELS' help", "error: -c cannot be combined with help\n  give only one of them\n");
  expect("help -i x.weft", "error: -i cannot be combined with help\n  give only one of them\n");
  expect("-z", "error: unknown option: -z\n  run weft --help\n");
}

TEST(Program, RunsStatementsFilesAndStandardInput) {
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
  // Without a terminal, -i reads further statements from standard input.
  EXPECT_EQ(shell("echo 'SET threads = 3' | $weft -i " + file + " -c 'SET threads = 2'").text,
            "seed = 7\nthreads = 2\nthreads = 3\n");
  const Outcome missing = shell("echo 'SET threads = 3' | $weft -i nosuch.weft");
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_EQ(missing.text, "error: cannot read 'nosuch.weft': no such file or directory\n");
}

// Every error is one JSON object in the output, and the exit code tells its kind.
TEST(Program, PrintsErrorsAsJson) {
  const TemporaryFolder folder;
  std::ofstream(folder / "wrong.weft") << "SET seed = 3;\nDESCRIBE gpt22;\n";
  const auto expect = [](const std::string& arguments, int code, const std::string& text) {
    const Outcome outcome = shell("$weft " + arguments + " 2>/dev/null");
    EXPECT_EQ(outcome.exit_code, code) << arguments;
    EXPECT_EQ(outcome.text, text) << arguments;
  };
  expect("--format json -c 'SET seed = 3; DESCRIBE gpt22'", 1,
         "{\"set\":\"seed\",\"value\":\"3\"}\n"
         "{\"error\":{\"message\":\"no model, layer, function, cluster or device is named gpt22\",\"line\":1,"
         "\"column\":24,\"hint\":\"did you mean 'gpt2'?\"}}\n");
  const std::string file = folder / "wrong.weft";
  expect("run --format json " + file, 1,
         "{\"set\":\"seed\",\"value\":\"3\"}\n"
         "{\"error\":{\"message\":\"no model, layer, function, cluster or device is named gpt22\",\"line\":2,"
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
         nowhere("weft collective has no subcommand shwo", "did you mean 'show'?"));
  expect("--format json launch -n 2", 1, nowhere("launch needs a program", "weft launch -n 4 PROGRAM"));
  expect("--format=json collective shwo", 1,
         nowhere("weft collective has no subcommand shwo", "did you mean 'show'?"));
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

// Each command with each option before it: the option takes effect, or an error says that the two
// do not combine.
TEST(Program, AcceptsOptionsBeforeCommands) {
  const TemporaryFolder folder;
  const std::string script = folder / "my.weft", wrong = folder / "wrong.weft";
  std::ofstream(script)
      << "CREATE CLUSTER mine AS 2 NODES OF 4 DEVICES h100 LINK nvlink WITHIN node (450 GB/s, 1.5 us) "
         "LINK wire ACROSS node (25 GB/s, 5 us);\n"
         "CREATE MODEL own (b = 8, d = 4) INPUT x[b, d] AS SELECT relu(x) FROM x;\n";
  std::ofstream(wrong) << "CREATE CLUSTER other AS 1 NODES OF 1 DEVICES h100;\nSET seed = 3;\n";
  for (const std::string command :
       {"bench", "collective", "doctor", "import", "improve", "launch", "memory", "partition", "plan",
        "profile", "rules", "schedule", "simulate", "tokenize", "top", "tune"}) {
    const std::string usage = shell("$weft " + command + " --help").text;
    EXPECT_NE(usage.find("weft " + command), std::string::npos) << usage;
    EXPECT_EQ(shell("$weft --help " + command).text, usage) << command;
    EXPECT_EQ(shell("$weft -h " + command).text, usage) << command;
    EXPECT_EQ(shell("$weft --format text --help " + command).text, usage) << command;
    EXPECT_EQ(shell("$weft --version " + command).text, shell("$weft --version").text) << command;
    const Outcome statement = shell("$weft -c 'SHOW MODELS' " + command);
    EXPECT_EQ(statement.exit_code, 1) << statement.text;
    EXPECT_NE(statement.text.find("-c cannot be combined with " + command), std::string::npos)
        << statement.text;
    const bool takes =
        command == "collective" || command == "improve" || command == "plan" || command == "rules";
    const Outcome loaded = shell(fmt::format("$weft -i {} {} --help", script, command));
    if (takes)
      EXPECT_EQ(loaded.text, usage) << command;
    else
      EXPECT_NE(loaded.text.find("-i cannot be combined with " + command), std::string::npos) << loaded.text;
  }
  for (const std::string command : {"run", "help", "collective", "doctor"})
    for (const std::string before : {"help plan", "-c 'SHOW DEVICES' run x.weft help", "help"}) {
      const std::string text = shell(fmt::format("$weft {} {}", before, command)).text;
      EXPECT_EQ(text.find(fmt::format("did you mean '{}'", command)), std::string::npos) << text;
    }

  const std::string choose = " collective choose allreduce --on mine --sizes 1MiB..1MiB";
  const Outcome chosen = shell("$weft -i " + script + choose);
  EXPECT_EQ(chosen.exit_code, 0) << chosen.text;
  EXPECT_EQ(shell("$weft" + choose + " -i " + script).text, chosen.text);
  EXPECT_EQ(shell("$weft -i" + script + choose).text, chosen.text);
  const Outcome json = shell("$weft --format json -i " + script + choose);
  EXPECT_EQ(json.exit_code, 0) << json.text;
  EXPECT_EQ(json.text.front(), '{') << json.text;
  EXPECT_EQ(shell("$weft" + choose).exit_code, 1);
  const Outcome why = shell("$weft -i " + script + " rules apply own");
  EXPECT_EQ(why.text.find("no such"), std::string::npos) << why.text;
  const Outcome refused = shell("$weft -i " + wrong + choose);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.text.find("only CREATE and DROP are allowed here"), std::string::npos) << refused.text;
  EXPECT_EQ(shell("$weft -i nosuch.weft" + choose).exit_code, 2);
  // A script that --on names may contain other statements.
  EXPECT_EQ(
      shell("$weft collective choose allreduce --on " + wrong + " --sizes 1MiB..1MiB").text.find("internal"),
      std::string::npos);
}

TEST(Program, HelpFitsTheScreen) {
  const Outcome topics = shell(
      "for topic in weft doctor collective explain; do COLUMNS=70 $weft help $topic; done; COLUMNS=70 $weft "
      "--help");
  EXPECT_EQ(topics.exit_code, 0);
  std::size_t longest = 0, at = 0;
  for (std::size_t i = 0; i < topics.text.size(); ++i)
    if (topics.text[i] == '\n') longest = std::max(longest, i - std::exchange(at, i + 1));
  EXPECT_LE(longest, 70u) << topics.text;
}

TEST(Program, HelpListsEveryCommand) {
  const std::string first = shell("$weft help").text, page = shell("$weft help commands").text;
  for (const std::string command :
       {"run", "rules", "plan", "import", "partition", "schedule", "memory", "collective", "launch",
        "simulate", "profile", "tokenize", "tune", "bench", "doctor", "top", "help", "improve"}) {
    EXPECT_NE(first.find(" " + command), std::string::npos) << command;
    EXPECT_NE(page.find("\n  weft " + command), std::string::npos) << command;
  }
  EXPECT_NE(page.find("\n  weft -i"), std::string::npos);
  EXPECT_EQ(shell("$weft --help").text, first);
}

TEST(Program, NamesTheScriptWithAnError) {
  const TemporaryFolder folder;
  std::ofstream(folder / "wrong.weft") << "SHOW MODELS;\nSHWO MODELS;\n";
  const Outcome outcome = shell("$weft run " + (folder / "wrong.weft") + " >/dev/null");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.text.find("wrong.weft: error 2:1: "), std::string::npos) << outcome.text;
}

TEST(Program, ExplainsWhyAFileCannotBeRead) {
  const Outcome missing = shell("$weft run nosuch.weft");
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_EQ(missing.text, "error: cannot read 'nosuch.weft': no such file or directory\n");
  const Outcome folder = shell("$weft run /");
  EXPECT_EQ(folder.exit_code, 2);
  EXPECT_EQ(folder.text, "error: cannot read '/': is a directory\n");
}

// A full disk, a closed stdout, a reader that exits early: weft warns once, finishes and saves its
// work, and exits with 2.
TEST(Program, ContinuesWhenOutputFails) {
  const std::string train = fmt::format(
      "$weft {{}} -c 'SHOW MODELS' -c \"TRAIN digits_mlp FROM '{}/examples/digits.csv.gz' STEPS 3 WITH "
      "(rules = false, "
      "threads = 1)\" -c \"SAVE digits_mlp TO '$out'\"",
      WEFT_SOURCE_DIR);
  struct Case {
    std::string line, reason;
  };
  const Case cases[] = {{"{} >/dev/full; echo exit $? >&2", "no space left on device"},
                        {"{} >&-; echo exit $? >&2", "bad file descriptor"},
                        {"{{ sleep 0.2; {}; echo exit $? >&2; }} | true; wait", "broken pipe"}};
  for (const std::string format : {"", "--format json"}) {
    for (const Case& each : cases) {
      const TemporaryFolder folder;
      const std::string command = fmt::format(fmt::runtime(train), format);
      const Outcome outcome = shell("out=" + (folder / "saved.safetensors") + "; " +
                                    fmt::format(fmt::runtime(each.line), command));
      const std::string warning = "warning: cannot write the output: " + each.reason + "\n";
      const std::size_t at = outcome.text.find(warning);
      EXPECT_NE(at, std::string::npos) << each.line << "\n" << outcome.text;
      EXPECT_EQ(outcome.text.find("warning:", at + 1), std::string::npos) << outcome.text;
      EXPECT_TRUE(outcome.text.ends_with("exit 2\n")) << outcome.text;
      EXPECT_EQ(
          shell("$weft -c \"LOAD digits_mlp FROM '" + (folder / "saved.safetensors") + "'\" 2>&1").exit_code,
          0)
          << each.line;
    }
  }
}

TEST(Program, ReportsErrorsWhenOutputFails) {
  for (const std::string format : {"", "--format json"}) {
    const Outcome outcome = shell("$weft " + format + " -c 'SHOW MODELS' -c 'SHWO MODELS' >/dev/full");
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_NE(outcome.text.find("error 1:1: "), std::string::npos) << outcome.text;
  }
  // With stdout closed, a file that weft opens must not become descriptor 1.
  const TemporaryFolder folder;
  const std::string csv = folder / "some.csv";
  std::ofstream(csv) << "a,b\n1,2\n";
  (void)shell("$weft run " + csv + " >&-");
  std::ifstream kept(csv);
  std::string text((std::istreambuf_iterator<char>(kept)), std::istreambuf_iterator<char>());
  EXPECT_EQ(text, "a,b\n1,2\n");
}

// Every process that a launcher starts is a rank. Only the first one prints.
TEST(Program, OnlyOneLaunchedRankPrints) {
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
  EXPECT_GE(times(wrong.text, "the launcher started 3 ranks, LOCAL has 2"), 1) << wrong.text;
}

// WEFT_HOST makes one machine stand for two hosts. The order of ranks on hosts must change neither
// the plan, its cost, the traffic between hosts, nor the result of training.
TEST(Program, PlansJobsByHost) {
  const auto launch = [](const std::string& host, const std::string& statement) {
    Outcome outcome = shell("$weft launch -n 4 -- sh -c 'WEFT_LISTEN=127.0.0.1 WEFT_HOST=h$((" + host +
                            ")) exec \"$0\" -c \"$1\"' \"$weft\" \"" + statement + "\" 2>&1");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
    return outcome.text;
  };
  // The lines that contain `what`. Callers choose lines without rank numbers or search times.
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
  const std::string explain = "EXPLAIN (MESH, COLLECTIVES) TRAIN digits_mlp ON JOB " + settings;
  const std::string given =
      "EXPLAIN (ALTERNATIVES) TRAIN digits_mlp ON JOB WITH (rules = false, prove = false, network = '100 "
      "MB/s, 100 us', "
      "distribution = 'host=2: slice b; rank=2: slice f')";
  EXPECT_NE(lines_with(launch("RANK % 2", given), "chosen  ").find("host 18.8 KiB, rank 1.25 KiB"),
            std::string::npos);
  const std::string mixed = launch("RANK % 2", explain), sorted = launch("RANK / 2", explain);
  EXPECT_NE(mixed.find("Hosts     2: ranks 0 2, ranks 1 3 · network 100 MB/s per rank, 100 us, as given"),
            std::string::npos)
      << mixed;
  EXPECT_NE(sorted.find("Hosts     2: ranks 0 1, ranks 2 3 · network"), std::string::npos) << sorted;
  for (const std::string_view what : {"Step  ", "Use  ", "all-reduce", "network 100 MB/s  "})
    EXPECT_EQ(lines_with(mixed, what), lines_with(sorted, what));

  const std::string train = fmt::format(
      "TRAIN digits_mlp ON JOB FROM '{}/examples/digits.csv.gz' STEPS 10 {}", WEFT_SOURCE_DIR, settings);
  const std::string learned = lines_with(launch("RANK % 2", train), "loss");
  EXPECT_NE(learned.find("trained digits_mlp from step 0 to 10"), std::string::npos) << learned;
  EXPECT_EQ(lines_with(launch("RANK / 2", train), "tested"), lines_with(learned, "tested"));
  EXPECT_NE(launch("RANK / 3", train).find("rank=4"), std::string::npos) << "hosts of 3 ranks and 1";

  // Without the network setting, the network is measured.
  const std::string measured =
      launch("RANK % 2", "EXPLAIN (SUMMARY) TRAIN digits_mlp ON JOB WITH (rules = false, prove = false)");
  EXPECT_NE(lines_with(measured, "Hosts  ").find("measured"), std::string::npos) << measured;

  const Outcome alone = shell("$weft -c 'EXPLAIN TRAIN digits_mlp ON JOB'");
  EXPECT_EQ(alone.exit_code, 1);
  EXPECT_NE(alone.text.find("ON JOB needs a launcher"), std::string::npos) << alone.text;
}

constexpr auto kPatience = 300s;  // far longer than a busy machine needs

// An interactive weft on a pseudo-terminal.
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
    std::this_thread::sleep_for(50ms);  // lets the program set up the terminal for line editing
    EXPECT_EQ(write(terminal_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }

  // Reads until `text` appears. Returns the output before it, or all output if it never appears.
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

TEST(Prompt, RunsStatementsAndExitsOnCtrlD) {
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

TEST(Prompt, KeepsLoadedDefinitions) {
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

// A search shows progress on a terminal. Ctrl-C stops it, and pressing it repeatedly does not end
// the session.
TEST(Prompt, CtrlCStopsASearch) {
  const TemporaryFolder folder;
  Prompt prompt(folder.path());
  prompt.until("weft> ");
  prompt.type("SET prove = false; EXPLAIN (SUMMARY) TRAIN resnet50 ON superpod WITH (b = 8192);\r");
  prompt.until("tried ");
  prompt.type(kCtrlC);
  prompt.type(kCtrlC);
  prompt.type(kCtrlC);
  prompt.until("interrupted");  // with the best plan so far, or with none on a slow machine
  prompt.until("weft> ");
  prompt.type("SHOW MODELS;\r");
  prompt.until("gpt2");
  prompt.until("weft> ");
  prompt.type(kCtrlD);
  EXPECT_EQ(prompt.exit_code(), 0);
}

// Ctrl-C ends a TRAIN with exit code 130, and the message states correctly what was saved.
TEST(Program, CtrlCReportsWhatWasSaved) {
  const TemporaryFolder folder;
  const auto interrupted = [&](const std::string& settings) {
    std::filesystem::remove(folder / "log.csv");
    return shell(
        fmt::format("cd '{}'; $weft -c \"TRAIN digits_mlp FROM '{}' STEPS 100000000 WITH (threads = 1, log = "
                    "'log.csv'{})\" & "
                    "pid=$!; for i in $(seq 600); do [ $(cat log.csv 2>/dev/null | wc -l) -gt 3 ] && break; "
                    "sleep 0.1; done; "
                    "kill -INT $pid; wait $pid",
                    folder.path(), WEFT_SOURCE_DIR "/examples/digits.csv.gz", settings));
  };
  const Outcome lost = interrupted("");
  EXPECT_EQ(lost.exit_code, 130) << lost.text;
  EXPECT_NE(lost.text.find("interrupted after step "), std::string::npos) << lost.text;
  EXPECT_NE(lost.text.find("nothing is saved"), std::string::npos) << lost.text;
  EXPECT_EQ(lost.text.find("SAVE"), std::string::npos) << lost.text;
  const Outcome saved = interrupted(", checkpoint = 'kept.safetensors'");
  EXPECT_EQ(saved.exit_code, 130) << saved.text;
  EXPECT_NE(saved.text.find("saved to kept.safetensors"), std::string::npos) << saved.text;
  EXPECT_TRUE(std::filesystem::exists(folder / "kept.safetensors"));
}

TEST(Program, PrintsNoSearchProgressToAPipe) {
  const Outcome outcome = shell(
      "$weft -c \"SET prove = false; EXPLAIN (SUMMARY) TRAIN gpt2 ON pod WITH (layers = 1, planning_seconds "
      "= "
      "0.01)\"");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  EXPECT_EQ(outcome.text.find("tried "), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("more planning_seconds: the search ran out of time"), std::string::npos)
      << outcome.text;
}

// A search that would run for hours is interrupted as by Ctrl-C. It must return the best program so
// far, and that program must pass the checker.
TEST(Program, InterruptedSynthesisReturnsTheBestFound) {
  const TemporaryFolder folder;
  // Sends SIGINT once, and only after weft has installed its handler (bit 2 of SigCgt).
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

// Synthesizing trees takes long, so this part runs only in thorough runs.
TEST(Program, SynthesisIsDeterministic) {
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

TEST(Prompt, CtrlCDiscardsTheStatement) {
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

TEST(Prompt, ErrorsDoNotEndTheSession) {
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

// One rank that LOCAL started receives SIGTERM: all ranks stop after the same step, the checkpoint
// is saved, and the message names the rank.
TEST(Program, StopsTheJobWhenOneRankGetsSigterm) {
  const TemporaryFolder folder;
  const std::string saved = folder / "saved.safetensors";
  const Outcome outcome = shell(fmt::format(
      "$weft -c \"TRAIN digits_mlp ON LOCAL 2 FROM '{}/examples/digits.csv.gz' STEPS 1000000 WITH (rules = "
      "false, threads "
      "= 2, distribution = 'rank=2: slice b', checkpoint = '{}', log = '{}')\" & job=$!; "
      "while [ $(cat {} 2>/dev/null | wc -l) -lt 5 ]; do sleep 0.05; done; kill -TERM $(pgrep -P $job); wait "
      "$job; echo exit $?",
      WEFT_SOURCE_DIR, saved, folder / "log.csv", folder / "log.csv"));
  EXPECT_NE(outcome.text.find(": rank 1 received SIGTERM"), std::string::npos) << outcome.text;
  EXPECT_TRUE(outcome.text.ends_with("exit 4\n")) << outcome.text;
  EXPECT_TRUE(std::filesystem::exists(saved));
}

// The planner runs on its own large stack, so a small `ulimit -s` does not matter.
TEST(Program, PlansOnASmallStack) {
  for (const std::string statement :
       {"EXPLAIN TRAIN digits_mlp", "EXPLAIN TRAIN gpt2 ON h100 WITH (rules = false)"}) {
    const Outcome outcome = shell("(ulimit -s 256; $weft -c '" + statement + "' >/dev/null)");
    EXPECT_EQ(outcome.exit_code, 0) << statement << "\n" << outcome.text;
  }
}

TEST(Program, RejectsEndlessInput) {
  const Outcome script = shell("$weft run /dev/zero");
  EXPECT_EQ(script.text, "error: /dev/zero is too large: expected at most 64 MiB of statements\n");
  for (const std::string data : {"/dev/zero", "/"}) {
    const Outcome outcome = shell("$weft -c \"TRAIN digits_mlp FROM '" + data + "' STEPS 1\"");
    EXPECT_NE(outcome.exit_code, 0) << data;
    EXPECT_LT(outcome.text.size(), 1000u) << outcome.text;
  }
}

}  // namespace
