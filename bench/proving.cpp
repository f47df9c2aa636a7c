// Time to prove and to generate rules, compared with published tools.
//
//   build/release/bench_proving [OPERATORS]     4: also runs the generator with 4 operators
//
// Processor time of one thread. The generator runs in a separate process, whose peak memory is
// printed. Published rules are read from ../shared/corpus/taso-rules. Peers, on two Arm cores: Z3
// 4.8.12 with TASO's 44 axioms proves 796 of 820 rules in 23 s; TASO's generator finds 820 rules at
// depth 3 in 161 s with 9.1 GB.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "support/measure.h"
#include "weft/base/check.h"
#include "weft/base/file.h"
#include "weft/formats/rules_jsonl.h"
#include "weft/rules/equation/generate.h"
#include "weft/rules/equation/prove_equation.h"
#include "weft/rules/rule/library.h"
#include "weft/rules/rule/prove_rule.h"

namespace {

using namespace weft;

const std::string kCorpus = WEFT_SOURCE_DIR "/../shared/corpus/taso-rules/";

void row(const std::string& what, std::size_t rules, double seconds) {
  fmt::print("{:34} {:>6} rules {:>8.2f} s {:>8.0f} rules/s\n", what, rules, seconds,
             static_cast<double>(rules) / seconds);
}

void prove_shipped() {
  const std::vector<rule::Rule>& rules = rule::shipped_rules();
  std::vector<double> turns;
  for (int i = 0; i < 3; ++i)
    turns.push_back(bench::processor_seconds_of([&] {
      for (const rule::Rule& rule : rules) rule::prove(rule);
    }));
  row("prove the shipped rules", rules.size(), median(turns));
}

void prove_file(const std::string& name) {
  const auto text = read_file(kCorpus + name, std::int64_t{64} << 20);
  if (!text.ok()) return;
  std::vector<equation::Equation> equations;
  formats::RuleLines lines(*text);
  while (auto line = lines.next())
    if (line->equation.ok()) equations.push_back(std::move(*line->equation));
  std::vector<double> turns;
  for (int i = 0; i < 3; ++i)
    turns.push_back(bench::processor_seconds_of([&] {
      for (const equation::Equation& equation : equations) equation::prove(equation);
    }));
  row("prove " + name, equations.size(), median(turns));
}

// In a separate process, to measure its memory.
void generate(const std::string& operators, int most_operators) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    equation::GenerateOptions options;
    options.operators = equation::preset(operators).value();
    options.most_operators = most_operators;
    if (most_operators > 3) options.most_bytes = std::int64_t{6} << 30;
    const auto found = equation::generate(options).value();
    fmt::print("generate {:12} {} operators {:>7} rules {:>12} graphs {:>10} run {:>8} judged", operators,
               most_operators, found.rules.size(), found.counts.graphs, found.counts.evaluated,
               found.counts.candidates);
    std::fflush(stdout);
    _exit(0);
  }
  int status = 0;
  rusage used{};
  WEFT_CHECK(wait4(child, &status, 0, &used) == child, "the generator process has exited");
  const double seconds = static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                         1e-6 * static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
  fmt::print(" {:>8.1f} s {:>8.0f} MB\n", seconds, static_cast<double>(used.ru_maxrss) / 1024);
}

}  // namespace

int main(int argc, char** argv) {
  prove_shipped();
  if (std::filesystem::exists(kCorpus)) {
    for (const char* name :
         {"rules_taso.jsonl", "rules_tensat.jsonl", "rules_unity.jsonl", "rules_comm.jsonl", "wrong.jsonl"})
      prove_file(name);
  } else {
    fmt::print("published rules not found: {}\n", kCorpus);
  }
  for (const char* operators : {"taso", "unity", "collectives"}) generate(operators, 3);
  if (argc > 1 && std::atoi(argv[1]) >= 4) generate("taso", 4);
  return 0;
}
