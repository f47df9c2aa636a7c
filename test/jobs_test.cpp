// Training jobs as a user runs them: mismatched ranks, failures, signals, restarts and unwritable
// files.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "own_data.h"
#include "shell.h"
#include "temporary_folder.h"
#include "weft/formats/safetensors.h"

namespace {

[[maybe_unused]] const auto* const own_data = testing::AddGlobalTestEnvironment(new weft::OwnData);

using weft::Outcome;
using weft::TemporaryFolder;

// Folders stand for hosts: rank 0 runs in h0, rank 1 in h1. Shared files are in the folder above.
class Job {
 public:
  Job() {
    for (const std::string_view host : {"h0", "h1", "h2"})
      std::filesystem::create_directory(folder_ / std::string(host));
    std::ofstream(folder_ / "rank.sh") << "cd h$RANK; exec $weft run ../job.weft\n";
  }

  std::string path(const std::string& file) const { return folder_ / file; }

  void write(const std::string& file, const std::string& text) const { std::ofstream(path(file)) << text; }

  // Runs a shell command; $weft is the program.
  Outcome shell(const std::string& line) const {
    const std::string full = fmt::format("cd '{}'; export weft='{}' WEFT_TIMEOUT='20 s'; {{ {}\n}} 2>&1",
                                         folder_.path(), WEFT_PROGRAM, line);
    return weft::run_shell(full);
  }

  // Makes rank 1 kill itself once `steps` steps are logged, but not after a restart.
  void kill_rank_one_after(int steps) const {
    write(
        "rank.sh",
        fmt::format("cd h$RANK\n"
                    "if [ $RANK = 1 ] && [ -z \"$WEFT_RESTARTS\" ]; then\n"
                    "  ( while [ ! -f ../log.csv ] || [ $(wc -l < ../log.csv) -lt {} ]; do sleep 0.01; done\n"
                    "    kill -9 $$ ) &\n"
                    "fi\n"
                    "exec $weft run ../job.weft\n",
                    steps));
  }

  // Runs the script on the ranks of `weft launch`.
  Outcome launch(const std::string& script, const std::string& options = "-n 2") const {
    write("job.weft", script);
    return shell(fmt::format("$weft launch {} sh rank.sh", options));
  }

  // Runs the script in one weft process, which starts its own ranks.
  Outcome run(const std::string& script) const {
    write("job.weft", script);
    return shell("exec $weft run job.weft");
  }

  // The tensor data of a checkpoint without the header, whose metadata may differ.
  std::string tensors(const std::string& file) const {
    std::ifstream in(path(file), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    std::uint64_t header = 0;
    if (bytes.size() < sizeof header) return "no file";
    std::memcpy(&header, bytes.data(), sizeof header);
    return bytes.substr(std::min<std::size_t>(bytes.size(), sizeof header + header));
  }

 private:
  TemporaryFolder folder_;
};

int count(std::string_view text, std::string_view what) {
  int found = 0;
  for (auto at = text.find(what); at != std::string_view::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

const std::string kDigits = WEFT_SOURCE_DIR "/examples/digits.csv.gz";

std::string train(int steps, const std::string& with = {}, const std::string& data = kDigits) {
  return fmt::format(
      "TRAIN digits_mlp ON LOCAL 2 FROM '{}' STEPS {} WITH (distribution = 'rank=2: slice b', threads = "
      "2, rules = false, prove = false{}{});\n",
      data, steps, with.empty() ? "" : ", ", with);
}

std::string rows(int count) {
  std::string text;
  for (int row = 0; row < count; ++row) {
    for (int pixel = 0; pixel < 64; ++pixel) text += fmt::format("{},", (row * 7 + pixel) % 17);
    text += fmt::format("{}\n", row % 10);
  }
  return text;
}

TEST(Jobs, NamesRanksWithDifferentData) {
  const Job job;
  job.write("h0/data.csv", rows(64));
  job.write("h1/data.csv", rows(65));
  const Outcome outcome = job.launch(train(5, {}, "data.csv"));
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_EQ(count(outcome.text, "rank 1 has other data than rank 0"), 2) << outcome.text;
  EXPECT_EQ(count(outcome.text, "trained"), 0) << outcome.text;
}

TEST(Jobs, NamesRanksWithDifferentSettingsOrWeights) {
  const Job job;
  job.write("h0/own.weft", "SET learning_rate = 0.01;");
  job.write("h1/own.weft", "SET learning_rate = 0.02;");
  const Outcome settings = job.launch("RUN 'own.weft';\n" + train(5));
  EXPECT_NE(settings.exit_code, 0);
  EXPECT_EQ(count(settings.text, "rank 1 has other settings than rank 0: "), 2) << settings.text;
  EXPECT_EQ(count(settings.text, "learning_rate = 0.02"), 2) << settings.text;

  for (const std::string host : {"h0", "h1"})
    ASSERT_EQ(
        job.run(fmt::format("TRAIN digits_mlp FROM '{}' STEPS 1 WITH (seed = {}); SAVE digits_mlp TO '{}/w';",
                            kDigits, host[1], host))
            .exit_code,
        0);
  const Outcome weights = job.launch("LOAD digits_mlp FROM 'w';\n" + train(5));
  EXPECT_NE(weights.exit_code, 0);
  EXPECT_EQ(count(weights.text, "rank 1 has other weights than rank 0"), 2) << weights.text;
}

// No rank waits for the timeout: each fails with the error of the rank that lacks the file.
TEST(Jobs, AllRanksReportAMissingFile) {
  const Job job;
  job.write("h0/data.csv", rows(64));
  job.write("h0/own.weft", "SET seed = 1;");
  const Outcome data = job.launch(train(5, {}, "data.csv"));
  EXPECT_NE(data.exit_code, 0);
  EXPECT_EQ(count(data.text, "rank 1: cannot read data.csv: No such file or directory"), 1) << data.text;
  EXPECT_EQ(count(data.text, "cannot read data.csv"), 2) << data.text;
  const Outcome script = job.launch("RUN 'own.weft';\n" + train(5));
  EXPECT_NE(script.exit_code, 0);
  EXPECT_EQ(count(script.text, "rank 1: cannot read own.weft: No such file or directory"), 1) << script.text;
}

TEST(Jobs, OnlyOneRankSaves) {
  const Job job;
  const Outcome saved =
      job.launch(train(3) + "SAVE digits_mlp TO '../kept'; LOAD digits_mlp FROM '../kept';\n" + train(2));
  EXPECT_EQ(saved.exit_code, 0) << saved.text;
  EXPECT_EQ(count(saved.text, "saved digits_mlp at step 3"), 1) << saved.text;
  EXPECT_EQ(count(saved.text, "trained digits_mlp from step 3 to 5"), 1) << saved.text;
  EXPECT_EQ(count(saved.text, "another plan"), 0) << saved.text;
  EXPECT_TRUE(std::filesystem::exists(job.path("kept")));
  // Only the first rank writes. All ranks report why it failed.
  std::filesystem::create_directory(job.path("folder"));
  const Outcome failed = job.launch(train(1) + "SAVE digits_mlp TO '../folder';");
  EXPECT_EQ(failed.exit_code, 2) << failed.text;
  EXPECT_EQ(count(failed.text, "rank 0: cannot write"), 1) << failed.text;
  EXPECT_EQ(count(failed.text, "cannot write"), 2) << failed.text;
}

// A failed checkpoint does not stop training.
TEST(Jobs, TrainingContinuesWhenACheckpointFails) {
  const Job job;
  std::filesystem::create_directory(job.path("kept"));  // where the file should be
  const std::string statement = fmt::format(
      "TRAIN digits_mlp FROM '{}' STEPS 30 WITH (checkpoint = 'kept', checkpoint_every = 10);", kDigits);
  const Outcome outcome = job.run(statement);
  EXPECT_EQ(count(outcome.text, "warning: the checkpoint of step 10 is not saved; training continues"), 1)
      << outcome.text;
  EXPECT_EQ(count(outcome.text, "step 20 is not saved"), 0) << "warned once\n" << outcome.text;
  // Failing to write the last checkpoint is an error.
  EXPECT_EQ(outcome.exit_code, 2) << outcome.text;
  EXPECT_EQ(count(outcome.text, "error 1:1: cannot"), 1) << outcome.text;
}

// Waits until a checkpoint exists, then runs a command.
std::string when_saved(const std::string& file, const std::string& then) {
  return fmt::format("( for i in $(seq 600); do test -s {} && break; sleep 0.05; done; {} ) & ", file, then);
}

TEST(Jobs, ResumingAfterSigtermIsBitExact) {
  const Job job;
  const std::string with = "checkpoint = '../kept', checkpoint_every = 20, resume = true";
  job.write("job.weft", train(1'000'000, with));
  // Only rank 1 gets SIGTERM. All ranks stop after the same step.
  const Outcome stopped = job.shell(
      when_saved("kept", "kill -TERM $(cat h1/pid)") +
      "echo 'cd h$RANK; echo $$ > pid; exec $weft run ../job.weft' > rank.sh; $weft launch -n 2 sh rank.sh; "
      "code=$?; wait; exit $code");
  EXPECT_EQ(stopped.exit_code, 4) << stopped.text;
  EXPECT_EQ(count(stopped.text, ": rank 1 received SIGTERM"), 2) << stopped.text;
  const std::size_t at = stopped.text.find("stopped after step ");
  ASSERT_NE(at, std::string::npos) << stopped.text;
  std::string number = stopped.text.substr(at + 19, stopped.text.find(':', at) - at - 19);
  std::erase(number, ',');
  const int step = std::atoi(number.c_str());
  ASSERT_GE(step, 20);
  const Outcome rest = job.launch(train(step + 5, with));
  EXPECT_EQ(rest.exit_code, 0) << rest.text;
  EXPECT_EQ(count(rest.text, fmt::format(" to {}", step + 5)), step + 5 < 1000 ? 1 : 0) << rest.text;
  EXPECT_EQ(job.launch(train(step + 5, "checkpoint = '../whole'")).exit_code, 0);
  EXPECT_EQ(job.tensors("kept"), job.tensors("whole"));
  // Steps that are done are not repeated.
  const Outcome done = job.launch(train(step + 5, with));
  EXPECT_EQ(done.exit_code, 0) << done.text;
  EXPECT_EQ(count(done.text, "already"), 1) << done.text;
}

TEST(Jobs, WallTimeSavesAndStops) {
  const Job job;
  const Outcome ranks = job.run(train(100'000'000, "checkpoint = 'kept', wall_time = '0h0m0.2s'"));
  EXPECT_EQ(ranks.exit_code, 4) << ranks.text;
  EXPECT_EQ(count(ranks.text, "wall_time is over"), 1) << ranks.text;
  EXPECT_EQ(count(ranks.text, "saved to kept: resume = true continues from there"), 1) << ranks.text;
  EXPECT_TRUE(std::filesystem::exists(job.path("kept")));
}

TEST(Jobs, RestartsFailedRanksFromTheCheckpoint) {
  const Job job;
  // A checkpoint left by an earlier job must not be used.
  ASSERT_EQ(job.run(fmt::format("TRAIN digits_mlp FROM '{}' STEPS 900 WITH (checkpoint = 'kept')", kDigits))
                .exit_code,
            0);
  job.write("job.weft", train(800, "checkpoint = '../kept', checkpoint_every = 20, log = '../log.csv'"));
  job.kill_rank_one_after(50);
  const Outcome again = job.shell("$weft launch -n 2 --restarts 2 sh rank.sh");
  EXPECT_EQ(again.exit_code, 0) << again.text;
  EXPECT_EQ(count(again.text, "restarting with 2 ranks, restart 1 of 2"), 1) << again.text;
  EXPECT_EQ(count(again.text, "trained digits_mlp from step 0 "), 0) << again.text;
  EXPECT_EQ(count(again.text, " to 800: loss"), 1) << again.text;
  job.write("rank.sh", "cd h$RANK; exec $weft run ../job.weft\n");
  EXPECT_EQ(job.launch(train(800, "checkpoint = '../whole'")).exit_code, 0);
  EXPECT_EQ(job.tensors("kept"), job.tensors("whole"));
}

// Losing the output is not a reason to restart.
TEST(Jobs, DoesNotRestartWhenOutputIsLost) {
  const Job job;
  const Outcome lost = job.shell("$weft launch -n 2 --restarts 2 $weft -c 'SHOW MODELS' >/dev/full");
  EXPECT_EQ(lost.exit_code, 2) << lost.text;
  EXPECT_EQ(count(lost.text, "warning: cannot write the output: no space left on device"), 1) << lost.text;
  EXPECT_EQ(count(lost.text, "restarting"), 0) << lost.text;
  EXPECT_EQ(count(lost.text, "error:"), 0) << lost.text;
}

// The remaining ranks continue from the checkpoint, with the same data in the same order.
TEST(Jobs, SurvivingRanksContinue) {
  const Job job;
  job.write("job.weft", train(800, "checkpoint = '../kept', checkpoint_every = 20, log = '../log.csv'"));
  job.kill_rank_one_after(25);
  const Outcome left = job.shell("$weft launch -n 2 --restarts 5 --least 1 sh rank.sh");
  EXPECT_EQ(left.exit_code, 0) << left.text;
  EXPECT_EQ(count(left.text, "restarting with 1 rank, restart 1 of 5"), 1) << left.text;
  EXPECT_EQ(count(left.text, "trained digits_mlp from step 0 "), 0) << left.text;
  EXPECT_EQ(count(left.text, " to 800: loss"), 1) << left.text;
  const Outcome alone = job.shell("cd h0; $weft launch -n 2 --restarts 1 --least 3 true");
  EXPECT_EQ(alone.exit_code, 1) << alone.text;
}

TEST(Jobs, RestartsLocalRanks) {
  const Job job;
  job.write("job.weft", train(800, "checkpoint = 'kept', checkpoint_every = 20, max_restarts = 3"));
  const Outcome again = job.shell(
      "$weft run job.weft & weft=$!; for i in $(seq 600); do test -s kept && break; sleep 0.02; done; "
      "kill -9 $(cat /proc/$weft/task/$weft/children); wait $weft");
  EXPECT_EQ(again.exit_code, 0) << again.text;
  EXPECT_EQ(count(again.text, "warning: ranks restart from step "), 1) << again.text;
  EXPECT_EQ(count(again.text, " to 800: loss"), 1) << again.text;
  EXPECT_EQ(job.run(train(800, "checkpoint = 'whole'")).exit_code, 0);
  EXPECT_EQ(job.tensors("kept"), job.tensors("whole"));
}

// Kills the child ranks once log.csv has more than 40 lines.
constexpr const char* kKillRanksDuringTraining =
    "$weft run job.weft & weft=$!; for i in $(seq 600); do "
    "test -f log.csv && test $(wc -l < log.csv) -gt 40 && break; sleep 0.02; done; "
    "kill -9 $(cat /proc/$weft/task/$weft/children); wait $weft";

// No file is read: the surviving ranks hold the whole state.
TEST(Jobs, RestartsLocalRanksFromInMemoryCheckpoints) {
  const Job job;
  job.write("job.weft", train(800, "in_memory_checkpoint_every = 5, max_restarts = 3, log = 'log.csv'") +
                            "SAVE digits_mlp TO 'kept';");
  const Outcome again = job.shell(kKillRanksDuringTraining);
  EXPECT_EQ(again.exit_code, 0) << again.text;
  EXPECT_EQ(count(again.text, "warning: ranks restart from step "), 1) << again.text;
  EXPECT_EQ(count(again.text, ", which the surviving ranks had in memory, restart 1 of 3"), 1) << again.text;
  EXPECT_EQ(count(again.text, "warning: ranks restart from step 0,"), 0) << again.text;
  EXPECT_EQ(count(again.text, " to 800: loss"), 1) << again.text;
  EXPECT_EQ(job.run(train(800, "checkpoint = 'whole'")).exit_code, 0);
  EXPECT_EQ(job.tensors("kept"), job.tensors("whole"));
}

// Per-rank optimizer moments are synchronized before they are copied, so a failed rank loses none.
TEST(Jobs, RestartsAveragingRanksFromInMemoryCheckpoints) {
  const Job job;
  // Neither interval divides the other, so a restart usually falls between two averages.
  const std::string alone = "sync_every = 7, in_memory_checkpoint_every = 10, max_restarts = 3";
  job.write("job.weft", train(800, alone + ", log = 'log.csv'") + "SAVE digits_mlp TO 'kept';");
  const Outcome again = job.shell(kKillRanksDuringTraining);
  EXPECT_EQ(again.exit_code, 0) << again.text;
  EXPECT_EQ(count(again.text, ", which the surviving ranks had in memory, restart 1 of 3"), 1) << again.text;
  EXPECT_EQ(job.run(train(800, alone + ", checkpoint = 'whole'")).exit_code, 0);
  EXPECT_EQ(job.tensors("kept"), job.tensors("whole"));
}

// Replicas are compared after each step over two epochs: thread ranks share one data loader.
TEST(Jobs, ThreadRanksReadTheSameData) {
  const Job job;
  const Outcome threads =
      job.run(fmt::format("TRAIN digits_mlp ON LOCAL 4 FROM '{}' STEPS 60 WITH (distribution = 'rank=4: "
                          "slice f', transport = inproc, "
                          "threads = 4, replica_check_every = 1, prove = false);",
                          kDigits));
  EXPECT_EQ(threads.exit_code, 0) << threads.text;
}

// A resumed training keeps the checkpoint's plan, even if the planner would now choose another. The
// result must equal an uninterrupted training bit for bit.
TEST(Jobs, ResumesWithTheCheckpointsPlan) {
  const Job job;
  const std::string plain =
      fmt::format("TRAIN digits_mlp ON LOCAL 2 FROM '{}' STEPS {{}} WITH (threads = 2{{}});", kDigits);
  const std::string sliced = ", distribution = 'rank=2: slice b'";
  ASSERT_EQ(job.run(fmt::format(fmt::runtime(plain), 3, sliced) + "SAVE digits_mlp TO 'kept';").exit_code, 0);
  const Outcome asked = job.run("LOAD digits_mlp FROM 'kept';" + fmt::format(fmt::runtime(plain), 3, ""));
  EXPECT_EQ(asked.exit_code, 0);
  EXPECT_EQ(count(asked.text, "training continues with a different plan than the weights were trained with"),
            1)
      << asked.text;

  // Removes the hint from the saved plan, as if the search had chosen this distribution.
  auto kept = weft::formats::load(job.path("kept"));
  ASSERT_TRUE(kept.ok());
  std::string& plan = kept->metadata.at("plan");
  const std::size_t at = plan.find("distribution = 'rank=2: slice b'");
  ASSERT_NE(at, std::string::npos) << plan;
  plan.erase(at, std::strlen("distribution = 'rank=2: slice b'"));
  ASSERT_TRUE(weft::formats::save(job.path("kept"), *kept).ok());
  const Outcome followed = job.run("LOAD digits_mlp FROM 'kept';" + fmt::format(fmt::runtime(plain), 3, "") +
                                   "SAVE digits_mlp TO 'resumed'");
  EXPECT_EQ(followed.exit_code, 0) << followed.text;
  EXPECT_EQ(count(followed.text, "another plan"), 0) << followed.text;
  EXPECT_EQ(count(followed.text, "\nrank=2: slice b\n"), 1) << followed.text;
  ASSERT_EQ(job.run(fmt::format(fmt::runtime(plain), 6, sliced) + "SAVE digits_mlp TO 'whole'").exit_code, 0);
  EXPECT_EQ(job.tensors("resumed"), job.tensors("whole"));
  const Outcome anew =
      job.run("LOAD digits_mlp FROM 'kept';" + fmt::format(fmt::runtime(plain), 3, ", keep_plan = false"));
  EXPECT_EQ(count(anew.text, "\nrank=2: slice b\n"), 0) << anew.text;
  const Outcome other =
      job.run("LOAD digits_mlp FROM 'kept';" + fmt::format(fmt::runtime(plain), 3, ", b = 32"));
  EXPECT_EQ(count(other.text, "the model, its sizes or its optimizer changed"), 1) << other.text;
}

}  // namespace
