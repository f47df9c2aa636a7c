// weft_golden [--rewrite] FILE... -- runs golden tests and prints the differences.

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "commands.h"
#include "diff.h"
#include "temporary_folder.h"
#include "weft/base/nearest.h"
#include "weft/runtime/run/rank_program.h"

namespace weft::golden {
namespace {

Result<std::string> run_case(const Case& test) {
  std::vector<std::string_view> names;
  for (const Command& command : commands()) {
    names.push_back(command.name);
    if (command.name != test.command) continue;
    try {
      std::string output = command.run(test);
      if (!output.empty() && output.back() != '\n') output += '\n';
      return output;
    } catch (const std::exception& error) {
      // An internal error must never become an expected output.
      return user_error(fmt::format("{} threw an exception: {}", test.command, error.what()));
    }
  }
  return user_error(fmt::format("unknown command: {}", test.command), did_you_mean(test.command, names));
}

struct Tally {
  std::size_t cases = 0, failed = 0;
};

void report(Tally& tally, const std::string& file, std::size_t line, std::string_view what) {
  ++tally.failed;
  fmt::print("{}:{}: {}\n", file, line, what);
}

void run(const std::string& file, bool rewrite, Tally& tally) {
  std::ifstream in(file, std::ios::binary);
  std::stringstream content;
  content << in.rdbuf();
  if (!in) return report(tally, file, 1, "cannot be read");
  const Result<GoldenFile> golden = read_golden(content.view());
  if (!golden.ok()) return report(tally, file, 1, golden.error().message);
  if (golden->cases.empty()) return report(tally, file, 1, "has no case");

  std::vector<std::string> outputs;
  for (const Case& test : golden->cases) {
    ++tally.cases;
    const Result<std::string> output = run_case(test);
    outputs.push_back(output.ok() ? *output : test.expected);
    if (!output.ok()) {
      report(tally, file, test.line,
             output.error().message + (output.error().hint.empty() ? "" : "; " + output.error().hint));
    } else if (*output != test.expected && !rewrite) {
      report(tally, file, test.line,
             fmt::format("{}: the output differs (- expected, + found)", test.command));
      fmt::print("{}", diff(test.expected, *output));
    }
  }
  if (!rewrite) return;
  const std::string text = write_golden(*golden, outputs);
  if (text == content.view()) return;
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << text;
  fmt::print("{}: rewritten\n", file);
}

}  // namespace
}  // namespace weft::golden

int main(int argc, char** argv) {
  if (const auto code = weft::run::rank_main()) return *code;
  // Statistics measured on this machine would change the predicted costs.
  const weft::TemporaryFolder measured;
  setenv("XDG_DATA_HOME", measured.path().c_str(), 1);
  bool rewrite = false;
  std::vector<std::string> files;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--rewrite")
      rewrite = true;
    else
      files.emplace_back(argv[i]);
  }
  if (files.empty()) {
    std::fputs("usage: weft_golden [--rewrite] FILE...\n", stderr);
    return 1;
  }
  weft::golden::Tally tally;
  for (const std::string& file : files) weft::golden::run(file, rewrite, tally);
  fmt::print("{} cases, {} failed\n", tally.cases, tally.failed);
  return tally.failed == 0 ? 0 : 1;
}
