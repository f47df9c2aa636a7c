// Time to trace, compile, check, convert and simulate collective algorithms, by number of ranks.
//
//   build/release/bench_collectives [check|trace|convert|simulate]
//
// Medians of alternating repetitions in one run; processor time.
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "support/measure.h"
#include "weft/app/session/find_cluster.h"
#include "weft/collectives/algorithm/library.h"
#include "weft/collectives/check/check.h"
#include "weft/collectives/compile/compile.h"
#include "weft/collectives/one_sided/lower_one_sided.h"
#include "weft/formats/msccl_xml.h"
#include "weft/formats/mscclpp_json.h"
#include "weft/predict/sim/collective/collective_cluster.h"
#include "weft/predict/sim/collective/run_parameters.h"
#include "weft/predict/sim/collective/simulate_collective.h"

namespace {

using namespace weft;

struct Row {
  std::string name, unit;
  double amount;  // units per repetition
  std::function<void()> work;
  std::vector<double> times = {};
};

void measure(std::vector<Row> rows, int repetitions) {
  for (int i = 0; i < repetitions; ++i)
    for (Row& row : rows) row.times.push_back(bench::processor_seconds_of(row.work));
  for (const Row& row : rows) {
    const double seconds = median(row.times);
    fmt::print("{:58} {:10.2f} ms {:14.0f} {}/s\n", row.name, seconds * 1e3, row.amount / seconds, row.unit);
  }
}

collective::Moves traced(const std::string& text) {
  const collective::AlgorithmReference reference = *collective::parse_reference(text);
  const collective::AlgorithmLibrary& library = collective::shipped_algorithms();
  return *collective::trace(*library.find(reference.name), reference.arguments, library);
}

double steps(const collective::Program& program) {
  return static_cast<double>(collective::count(program).steps);
}

void trace() {
  const std::string hierarchical = "all_reduce_hierarchical(ranks=512, local=8)";
  const collective::Moves moves = traced(hierarchical);
  measure({{"trace " + hierarchical, "move", static_cast<double>(moves.moves.size()),
            [&] { traced(hierarchical); }}},
          5);
  const collective::Moves ring = traced("all_reduce_ring(ranks=64)");
  measure({{"compile and check all_reduce_ring(ranks=64)", "move", static_cast<double>(ring.moves.size()),
            [&] { WEFT_CHECK(collective::compile(ring).ok()); }}},
          3);
}

void check() {
  std::vector<Row> rows;
  std::vector<collective::Program> programs;
  const std::vector<std::string> names = {
      "all_reduce_ring(ranks=64)",    "all_reduce_hierarchical(ranks=64, local=8)",
      "all_to_all_direct(ranks=64)",  "all_reduce_ring(ranks=256)",
      "all_to_all_direct(ranks=256)", "all_reduce_halving_doubling(ranks=1024)",
      "all_reduce_ring(ranks=1024)",
  };
  programs.reserve(names.size());
  for (const std::string& name : names) {
    collective::CompileOptions options;
    options.protocol = collective::Protocol::ll;
    programs.push_back(*collective::compile(traced(name), options));
    const collective::Program& program = programs.back();
    rows.push_back({"check " + name, "step", steps(program),
                    [&program] { WEFT_CHECK(!collective::check(program).finding); }});
  }
  measure(std::move(rows), 3);
}

void convert() {
  const collective::Program program = *collective::compile(traced("all_reduce_ring(ranks=16, channels=4)"));
  const std::string xml = *formats::write_msccl_xml(program);
  const std::string json = *formats::write_mscclpp_json(
      *collective::lower_one_sided(*collective::compile(traced("all_reduce_ring(ranks=4)"))));
  measure({{fmt::format("read MSCCL XML, {:.0f} steps", steps(program)), "file", 1,
            [&] { WEFT_CHECK(formats::read_msccl_xml(xml).ok()); }},
           {fmt::format("write MSCCL XML, {:.0f} steps", steps(program)), "file", 1,
            [&] { WEFT_CHECK(formats::write_msccl_xml(program).ok()); }},
           {"read, check and write MSCCL XML", "file", 1,
            [&] {
              const auto read = formats::read_msccl_xml(xml);
              WEFT_CHECK(!collective::check(read->program).finding);
              WEFT_CHECK(formats::write_msccl_xml(read->program).ok());
            }},
           {"read MSCCL++ JSON, ring of 4", "file", 1,
            [&] { WEFT_CHECK(formats::read_mscclpp_json(json).ok()); }}},
          9);
}

void simulate() {
  const auto pod = *session::find_collective_cluster("pod");
  std::vector<Row> rows;
  std::vector<collective::Actions> all;
  const std::vector<std::string> names = {"all_reduce_ring(ranks=32)", "all_to_all_direct(ranks=32)"};
  all.reserve(names.size());
  for (const std::string& name : names) {
    const collective::Program program = *collective::compile(traced(name));
    all.push_back(collective::to_actions(program, program.placement, collective::Grain::step));
    const collective::Actions& actions = all.back();
    const auto run = [&actions, &pod] {
      return *sim::simulate(actions, pod.topology, 16 << 20,
                            sim::run_parameters(collective::Protocol::simple));
    };
    rows.push_back({"simulate " + name + ", 16 MiB on pod", "event", static_cast<double>(run().events),
                    [run] { run(); }});
  }
  measure(std::move(rows), 5);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string only = argc > 1 ? argv[1] : "";
  const std::pair<std::string_view, void (*)()> parts[] = {
      {"trace", trace}, {"check", check}, {"convert", convert}, {"simulate", simulate}};
  for (const auto& [name, part] : parts)
    if (only.empty() || only == name) part();
}
