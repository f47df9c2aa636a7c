// What the weft program prints, as a reader sees it: it fits the screen, it is UTF-8, it has no colour in a file.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "own_data.h"
#include "shell.h"
#include "temporary_folder.h"
#include "thorough.h"
#include "weft/base/utf8.h"

namespace {

[[maybe_unused]] const auto* const own_data = testing::AddGlobalTestEnvironment(new weft::OwnData);

using weft::Outcome;
using weft::TemporaryFolder;

// Runs a shell line in which $weft is the program, in the folder of the sources.
Outcome shell(const std::string& line) {
  return weft::run_shell(
      fmt::format("cd '{}'; weft='{}'; {{ {}\n}} 2>&1", WEFT_SOURCE_DIR, WEFT_PROGRAM, line));
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::size_t columns(std::string_view line) {
  return static_cast<std::size_t>(std::ranges::count_if(line, weft::starts_character));
}

bool is_utf8(std::string_view text) { return weft::valid_utf8(text) == text; }

std::string without(std::string text, std::string_view prefix) {
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

std::vector<std::string> help_topics() {
  const std::string page = shell("$weft help").text;
  std::string names = page.substr(std::min(page.find("Topics: "), page.size()));
  names = without(names, "Topics: ");
  std::vector<std::string> topics;
  std::string word;
  for (const char c : names) {
    if (c >= 'a' && c <= 'z') {
      word += c;
    } else if (!word.empty()) {
      topics.push_back(std::exchange(word, {}));
    }
  }
  return topics;
}

constexpr std::string_view kCommandNames[] = {
    "bench",   "collective", "doctor",   "import",   "improve",  "launch", "memory", "partition", "plan",
    "profile", "rules",      "schedule", "simulate", "tokenize", "top",    "tune",   "validate"};

// A line that is one word, such as a path, is copied as one.
bool is_one_word(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  return line.find(' ') == line.npos;
}

void expect_to_fit(const std::string& command) {
  for (const std::size_t width : {80u, 100u}) {
    const Outcome outcome = shell(fmt::format("COLUMNS={} {}", width, command));
    EXPECT_NE(outcome.text, "") << command;
    EXPECT_EQ(outcome.text.find("please report"), std::string::npos) << outcome.text;
    EXPECT_EQ(outcome.text.find('\x1b'), std::string::npos) << command;
    EXPECT_TRUE(is_utf8(outcome.text)) << command;
    for (const std::string& line : lines_of(outcome.text)) {
      EXPECT_TRUE(columns(line) <= width || is_one_word(line))
          << command << ": " << columns(line) << " of " << width << " columns\n"
          << line;
    }
  }
}

void expect_statement_to_fit(const std::string& statement) {
  expect_to_fit(fmt::format("$weft -c \"{}\"", statement));
}

TEST(OutputFits, Help) {
  const std::vector<std::string> topics = help_topics();
  EXPECT_GE(topics.size(), 24u);
  for (const std::string& topic : topics) expect_to_fit("$weft help " + topic);
  for (const std::string_view command : kCommandNames) expect_to_fit(fmt::format("$weft {} --help", command));
  expect_to_fit("$weft help");
  expect_to_fit("$weft --help");
  expect_to_fit("$weft --version");
}

TEST(OutputFits, Listings) {
  for (const std::string object : {"MODELS", "LAYERS", "CLUSTERS", "DEVICES", "FUNCTIONS", "OPERATORS",
                                   "SETTINGS", "RULES", "HINTS", "STATISTICS"})
    expect_statement_to_fit("SHOW " + object);
  for (const std::string name : {"gpt2", "mixtral_8x7b", "clip_b32", "resnet50", "pod", "superpod", "h100"})
    expect_statement_to_fit("DESCRIBE " + name);
}

TEST(OutputFits, Explain) {
  const std::string sections =
      "EXPLAIN (OPERATORS, PIPELINE, MESH, COLLECTIVES, ALTERNATIVES, STAGES, TRAIL)";
  expect_statement_to_fit("EXPLAIN TRAIN digits_mlp");
  expect_statement_to_fit("EXPLAIN VERBOSE TRAIN digits_mlp");
  expect_statement_to_fit("EXPLAIN INFER digits_conv");
  expect_statement_to_fit("EXPLAIN (MEMORY) TRAIN gpt2 ON h100 WITH (b = 8)");
  expect_statement_to_fit(sections +
                          " TRAIN gpt2 ON h100 WITH (b = 8, precision = bf16, layers = 2, rules = false)");
  expect_statement_to_fit(sections + " TRAIN digits_mlp ON LOCAL 4");
  expect_statement_to_fit(
      sections +
      " TRAIN gpt2 ON pod WITH (b = 64, layers = 4, precision = bf16, prove = false, distribution = "
      "'node=4: stage; gpu=8: slice b, shard optimizer; micro=8; schedule 1f1b')");
  expect_statement_to_fit("EXPLAIN ANALYZE TRAIN digits_mlp STEPS 2 WITH (threads = 1)");
  if (weft::is_thorough()) {
    expect_statement_to_fit("EXPLAIN VERBOSE TRAIN alexnet ON ethernet WITH (b = 512)");
    expect_statement_to_fit("EXPLAIN TRAIN gpt2 ON dgx_h100 WITH (b = 64, precision = bf16)");
    expect_to_fit("$weft rules list");
  }
}

TEST(OutputFits, Training) {
  const std::string data = "FROM 'examples/digits.csv.gz'";
  expect_statement_to_fit("TRAIN digits_mlp " + data +
                          " STEPS 20 WITH (holdout = 360, threads = 1, rules = false); INFER digits_mlp " +
                          data);
  expect_statement_to_fit(
      "SET distribution = 'node=4: slice b; gpu=8: slice h'; SET memory = '40 GiB'; HINT TP 8, PP 2");
}

TEST(OutputFits, Commands) {
  for (const std::string command :
       {"collective list",
        "collective check examples/collectives/ring.xml",
        "collective check examples/collectives/broken_ring.xml",
        "collective show examples/collectives/ring.xml",
        "collective show 'all_reduce_ring(ranks=8, chunks=4)'",
        "collective cost all_reduce_ring --on dgx_h100",
        "collective choose all_gather --on dgx_h100 --sizes 1KiB..1MiB",
        "collective run 'all_reduce_ring(ranks=2,chunks=1)' --repeat 1 --bytes 64KiB",
        "schedule list",
        "schedule show zb_h1 --stages 4 --micro-batches 8",
        "schedule show 1f1b --stages 16 --micro-batches 64",
        "schedule check schedules/zb_h1.schedule --stages 4 --micro-batches 8",
        "schedule price 1F1B --stages 32 --micro-batches 64",
        "rules list --rules examples/rules/range.rules",
        "rules show relu_twice",
        "rules prove examples/rules/range.rules",
        "rules apply mlp",
        "rules why mlp relu_twice",
        "plan prove 'TRAIN digits_mlp ON LOCAL 2 WITH (b = 64)'",
        "top --once"})
    expect_to_fit("$weft " + command);
}

TEST(OutputFits, Errors) {
  for (const std::string statement :
       {"DESCRIBE gpt22", "SHWO MODELS",
        "EXPLAIN TRAIN gpt3_175b ON h100 WITH (b = 64, precision = bf16, rules = false)",
        "SET memory_limit = 400 Gbps", "SET optimzer = adam", "TRAIN digits_mlp FROM 'nosuch.csv' STEPS 1",
        "CREATE MODEL a_model_with_a_long_name (b = 8, d = 4) INPUT x[b, d] PARAMETER w[d] INIT zeros AS "
        "SELECT "
        "relu(sum(x * w)) AS h FROM x, wrong GROUP BY b"})
    expect_statement_to_fit(statement);
  for (const std::string arguments :
       {"rnu", "--fromat json", "collective shwo", "collective cost nosuch --on pod",
        "collective cost all_reduce_ring --on nosuch", "rules show no_such_rule", "help nosuch",
        "improve --megatron '--tensor-model-parallel-size 3' --model gpt2 --on pod", "run nosuch.weft",
        "bench no-such-collective"})
    expect_to_fit("$weft " + arguments);
}

// The first screen of help has at most eight lines of tasks, and one example first.
TEST(OutputFits, HelpOnOneScreen) {
  const std::vector<std::string> lines = lines_of(shell("COLUMNS=80 $weft help").text);
  EXPECT_LE(lines.size(), 24u);
  std::size_t tasks = 0;
  for (const std::string& line : lines)
    tasks += line.starts_with("  ") && !line.starts_with("   ") && line.find("   ") != line.npos;
  EXPECT_LE(tasks, 8u);
  EXPECT_EQ(shell("$weft --help").text, shell("$weft help").text);
}

// Bytes that are no UTF-8, wherever they come from.
TEST(OutputIsUtf8, WhateverBytesCome) {
  const TemporaryFolder folder;
  std::string bytes;
  for (int byte = 0x80; byte <= 0xff; ++byte) bytes += static_cast<char>(byte);
  std::string name = "a\x80\xff";
  std::ofstream(folder / "text.txt") << bytes << bytes << bytes << bytes;
  std::ofstream(folder / "script.weft") << "SHOW " << bytes << ";\n";
  std::ofstream(folder / "model.weft")
      << "CREATE MODEL \"" << bytes << "\" (b = 2) INPUT x[b] AS SELECT sum(x) FROM x;\n";
  std::ofstream(folder / ("data" + name + ".csv")) << bytes << "\n1,2\n";
  std::ofstream(folder / "ring.xml") << "<algo name=\"" << bytes << "\">";
  const std::string small = "WITH (b = 1, s = 16, d = 16, h = 2, layers = 1, threads = 1, rules = false)";
  for (const std::string& arguments :
       {fmt::format("-c 'DESCRIBE {}'", name), fmt::format("-c \"DESCRIBE '{}'\"", bytes),
        fmt::format("-c 'EXPLAIN TRAIN \"{}\" ON pod'", bytes), fmt::format("-c 'SET {} = 3'", bytes),
        fmt::format("run '{}'", folder / "script.weft"), fmt::format("run '{}'", folder / "model.weft"),
        fmt::format("run '{}{}'", folder / "nosuch", name), fmt::format("'{}'", bytes),
        fmt::format("--'{}'", bytes), fmt::format("help '{}'", bytes), fmt::format("collective '{}'", bytes),
        fmt::format("collective check '{}' '{}'", folder / "ring.xml", bytes),
        fmt::format("collective cost '{}' --on '{}'", bytes, name), fmt::format("rules show '{}'", bytes),
        fmt::format("-c \"INFER digits_mlp FROM '{}'\"", folder / ("data" + name + ".csv")),
        fmt::format(
            "-c \"TRAIN char_gpt FROM '{}' STEPS 1 {}\" -c \"GENERATE char_gpt PROMPT '{}' STEPS 40 {}\"",
            folder / "text.txt", small, bytes, small)})
    for (const std::string format : {"", "--format json "}) {
      const Outcome outcome = shell("COLUMNS=80 $weft " + format + arguments);
      EXPECT_TRUE(is_utf8(outcome.text)) << format << arguments;
      EXPECT_NE(outcome.text, "") << format << arguments;
      EXPECT_EQ(outcome.text.find("bug in weft"), std::string::npos) << format << arguments << "\n"
                                                                     << outcome.text;
    }
}

// An invalid byte is printed as one character, so that the carets stand below what they mark.
TEST(OutputIsUtf8, CaretsStandBelowTheMistake) {
  const Outcome outcome =
      shell("$weft -c \"/* \xc3\xa9\xe2\x82\xac */ SHOW MODELS; /* \x80\x80\xff */ DESCRIBE gpt22\"");
  const std::vector<std::string> lines = lines_of(outcome.text);
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
    if (lines[i].find("DESCRIBE gpt22") == std::string::npos) continue;
    EXPECT_EQ(columns(lines[i].substr(0, lines[i].find('?'))), lines[i + 1].find('^')) << outcome.text;
    return;
  }
  ADD_FAILURE() << outcome.text;
}

TEST(OutputHasNoColour, WhereNoColorIsSet) {
  for (const std::string command :
       {"-c 'SHOW MODELS'", "-c 'EXPLAIN TRAIN digits_mlp'", "-c 'DESCRIBE gpt22'", "help"})
    EXPECT_EQ(shell("NO_COLOR=1 $weft " + command).text, shell("$weft " + command).text) << command;
}

struct Renaming {
  std::string_view before, now, value;
};

// Former names of settings, stages and words work, and each is told once, with the name of today.
TEST(FormerNames, EachWorksWithANoteOnOneLine) {
  constexpr Renaming kSettings[] = {{"check_every", "replica_check_every", "3"},
                                    {"copy_every", "in_memory_checkpoint_every", "3"},
                                    {"credit", "all_reduce_window", "'4 MiB'"},
                                    {"decompose", "tile_collectives", "4"},
                                    {"delay", "gradient_delay", "1"},
                                    {"follow_plan", "keep_plan", "true"},
                                    {"gives_way", "yield", "true"},
                                    {"gradients", "gradient_precision", "bf16"},
                                    {"loss_scale_steps", "loss_scale_window", "100"},
                                    {"optimizer_off", "disabled_stages", "'bucket'"},
                                    {"outer_rate", "outer_learning_rate", "0.5"},
                                    {"remember", "keep_measurements", "false"},
                                    {"restart", "from_scratch", "true"},
                                    {"restarts", "max_restarts", "2"},
                                    {"seconds", "planning_seconds", "9"},
                                    {"servers", "parameter_servers", "2"},
                                    {"slice_sends", "scatter_gather_sends", "true"},
                                    {"synthesize", "synthesize_collectives", "true"},
                                    {"unit_by_unit", "serialize_kernels", "true"}};
  for (const Renaming& each : kSettings) {
    const Outcome outcome =
        shell(fmt::format("$weft -c \"SET {0} = {1}; SET {0} = {1}\"", each.before, each.value));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
    const std::vector<std::string> lines = lines_of(outcome.text);
    const std::string note =
        fmt::format("note: {} is now called {}; the old name still works", each.before, each.now);
    EXPECT_EQ(std::ranges::count(lines, note), 1) << outcome.text;
    EXPECT_EQ(lines.size(), 3u) << outcome.text;
    EXPECT_NE(outcome.text.find(fmt::format("{} = ", each.now)), std::string::npos) << outcome.text;
    // One wrong letter is answered with the name of today.
    std::string wrong(each.now);
    wrong += "x";
    EXPECT_NE(shell(fmt::format("$weft -c \"SET {} = {}\"", wrong, each.value))
                  .text.find(fmt::format("did you mean '{}'?", each.now)),
              std::string::npos)
        << wrong;
  }
  constexpr Renaming kStages[] = {{"sync", "local sgd", ""},
                                  {"delay", "delay gradients", ""},
                                  {"decompose", "tile collectives", ""},
                                  {"credit", "partition all-reduces", ""}};
  for (const Renaming& each : kStages) {
    const Outcome outcome =
        shell(fmt::format("$weft -c \"SET disabled_stages = 'bucket, {}'\"", each.before));
    EXPECT_NE(outcome.text.find(fmt::format("note: {} is now called {};", each.before, each.now)),
              std::string::npos)
        << outcome.text;
    EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  }
  const Outcome takes = shell(
      "$weft -c \"SET distribution = 'data=2: slice b, takes 5:3; micro=4'; SET distribution = 'data=2: "
      "slice b'\"");
  EXPECT_EQ(takes.exit_code, 0) << takes.text;
  EXPECT_NE(takes.text.find("note: takes is now called micro-batches;"), std::string::npos) << takes.text;
  EXPECT_NE(shell("$weft -c \"SET disabled_stages = 'buckets'\"").text.find("did you mean 'bucket'?"),
            std::string::npos);
  EXPECT_EQ(shell("$weft -c \"EXPLAIN (SUMMARY) TRAIN digits_mlp\"").exit_code, 0);
}

// Commands keep their names, and a wrong letter is answered with the nearest.
TEST(FormerNames, EveryCommandKeepsItsName) {
  const std::string all = shell("$weft help commands").text;
  for (const std::string_view command : kCommandNames) {
    EXPECT_EQ(shell(fmt::format("$weft {} --help", command)).exit_code, 0) << command;
    EXPECT_NE(all.find(fmt::format("\n  weft {}", command)), std::string::npos) << command;
    EXPECT_NE(shell(fmt::format("$weft {}x", command)).text.find(fmt::format("did you mean '{}'?", command)),
              std::string::npos)
        << command;
  }
}

}  // namespace
