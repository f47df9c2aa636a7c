// Time to synthesize for C chunks, S steps and R rounds: SCCL's tables, and whole Pareto frontiers.
//
//   build/release/bench_synthesis_steps [FOLDER]
//
// FOLDER holds the topologies, and anchors.json with SCCL's tables. "paper" is the published time;
// "z3" was measured with msccl-tools and z3 on one machine, in processor seconds including the
// start of Python. "here" is our processor time, without compiling and checking the program, which
// is done for every row.
#include <time.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/base/file.h"
#include "weft/collectives/compile/compile.h"
#include "weft/collectives/synthesis/step_pareto.h"
#include "weft/formats/topology_json.h"

namespace {

using namespace weft;
using collective::Kind;
using synthesis::StepVerdict;

#ifdef WEFT_SOURCE_DIR
constexpr const char* kRoot = WEFT_SOURCE_DIR;
#else
constexpr const char* kRoot = ".";
#endif

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

synthesis::StepClock within(double seconds) {
  synthesis::StepClock clock;
  clock.end =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1e3));
  return clock;
}

struct Totals {
  double here = 0, z3 = 0, here_of_z3 = 0;
};

std::string_view in_words(StepVerdict verdict) {
  return verdict == StepVerdict::satisfiable     ? "sat"
         : verdict == StepVerdict::unsatisfiable ? "unsat"
                                                 : "open";
}

void row(const synthesis::StepNetwork& network, std::string_view topology,
         const synthesis::StepQuestion& question, double paper, double z3, Totals& totals) {
  const double start = processor_seconds();
  const auto answer = synthesis::answer_steps(network, question, within(120));
  const double here = processor_seconds() - start;
  if (!answer.ok()) return;
  bool checked = true;
  if (answer->verdict == StepVerdict::satisfiable)
    checked = collective::compile(synthesis::step_moves(question, network, *answer)).ok();
  totals.here += here;
  if (z3 > 0) totals.z3 += z3, totals.here_of_z3 += here;
  const auto seconds = [](double value) { return value > 0 ? fmt::format("{:.1f}", value) : "-"; };
  fmt::print("{:6} {:15} ({},{},{}){:{}} {:6} {:>8} {:>8} {:9.3f}  {}{}\n", topology, name(question.kind),
             question.chunks, question.steps, question.rounds, "",
             12 - static_cast<int>(
                      fmt::formatted_size("{},{},{}", question.chunks, question.steps, question.rounds)),
             in_words(answer->verdict), seconds(paper), seconds(z3), here, answer->why,
             checked ? "" : "  NOT A RIGHT PROGRAM");
  std::fflush(stdout);
}

// z3's rows are named "DGX1_Allgather_C6_S3_R7". For all_to_all and all_reduce, chunks are per
// block.
std::map<std::string, double> z3_times(const nlohmann::json& anchors) {
  std::map<std::string, double> times;
  for (const auto& result : anchors["sccl_z3_here"]["results"])
    if (result["result"] != "timeout") times[result["name"]] = result["cpu_s"];
  return times;
}

void frontier(const synthesis::StepNetwork& network, std::string_view topology, Kind kind) {
  const double start = processor_seconds();
  const auto found = synthesis::step_frontier(network, kind, 0, {}, within(30));
  if (!found.ok()) return;
  std::string points;
  for (const synthesis::StepPoint& point : found->points) {
    const std::string best = best_in(*found, point);
    points += fmt::format(" ({},{},{}){}{}", point.question.chunks, point.question.steps,
                          point.question.rounds, best.empty() ? "" : " ", best);
  }
  std::size_t open = 0;
  for (const synthesis::StepPoint& point : found->refuted)
    open += static_cast<std::size_t>(point.answer.verdict == StepVerdict::unknown);
  fmt::print("{:6} {:15}{}; {} refuted, {} open, {:.3f} s\n", topology, name(kind), points,
             found->refuted.size() - open, open, processor_seconds() - start);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : std::string(kRoot) + "/../shared/corpus/ccl-topologies";
  const auto text = read_file(folder + "/anchors.json", 1 << 24);
  if (!text.ok() || !synthesis::can_decide_steps()) {
    fmt::print("(no tables of SCCL in {}, or no solver in this build)\n", folder);
    return 0;
  }
  const auto anchors = nlohmann::json::parse(*text);
  const auto z3 = z3_times(anchors);
  const struct {
    const char* key;
    Kind kind;
    const char* z3_name;
  } tables[] = {{"allgather_reducescatter", Kind::all_gather, "Allgather"},
                {"allgather_reducescatter", Kind::reduce_scatter, "ReduceScatter"},
                {"allreduce", Kind::all_reduce, "-"},
                {"broadcast_reduce", Kind::broadcast, "Broadcast"},
                {"broadcast_reduce", Kind::reduce, "-"},
                {"gather_scatter", Kind::gather, "Gather"},
                {"gather_scatter", Kind::scatter, "-"},
                {"alltoall", Kind::all_to_all, "Alltoall"}};
  const struct {
    const char *key, *file, *name, *z3_name;
  } machines[] = {{"sccl_paper_DGX1", "sccl_DGX1", "DGX-1", "DGX1"},
                  {"sccl_paper_Z52_ring8", "sccl_Ring8_Z52_model", "ring 8", "Ring_8"}};

  fmt::print("{:6} {:15} {:14} {:6} {:>8} {:>8} {:>9}  how\n", "", "collective", "(C,S,R)", "answer",
             "paper s", "z3 s", "here s");
  Totals totals;
  std::vector<std::pair<const char*, synthesis::StepNetwork>> networks;
  for (const auto& machine : machines) {
    const auto file = read_file(fmt::format("{}/{}.json", folder, machine.file), 1 << 24);
    if (!file.ok()) continue;
    const auto topology = formats::read_topology_json(*file, machine.file);
    const auto network = synthesis::step_network(*topology);
    networks.emplace_back(machine.name, *network);
    const auto ask = [&](Kind kind, const char* z3_name, std::int32_t c, std::int32_t s, std::int32_t r,
                         double paper) {
      const std::int32_t block = kind == Kind::all_to_all ? c / network->devices : c;
      const auto known = z3.find(fmt::format("{}_{}_C{}_S{}_R{}", machine.z3_name, z3_name, block, s, r));
      row(*network, machine.name, {kind, 0, c, s, r}, paper, known == z3.end() ? 0 : known->second, totals);
    };
    for (const auto& table : tables)
      for (const auto& each : anchors[machine.key][table.key])
        ask(table.kind, table.z3_name, each["C"], each["S"], each["R"], each["paper_s"]);
    if (machine.z3_name != std::string("DGX1")) continue;
    // Instances solved by z3 beyond the paper's rows, including infeasible ones.
    ask(Kind::all_gather, "Allgather", 3, 2, 4, 0);
    ask(Kind::all_gather, "Allgather", 3, 3, 4, 0);
    ask(Kind::all_gather, "Allgather", 4, 3, 5, 0);
    ask(Kind::all_gather, "Allgather", 5, 3, 6, 0);
    ask(Kind::all_to_all, "Alltoall", 8, 2, 2, 0);
    ask(Kind::broadcast, "Broadcast", 6, 2, 3, 0);
  }
  fmt::print("\nin all {:.2f} s; of the rows that z3 answered {:.2f} s, z3 {:.1f} s: {:.0f} times\n\n",
             totals.here, totals.here_of_z3, totals.z3,
             totals.here_of_z3 > 0 ? totals.z3 / totals.here_of_z3 : 0);
  for (const auto& [machine, network] : networks)
    for (const Kind kind :
         {Kind::all_gather, Kind::all_reduce, Kind::all_to_all, Kind::gather, Kind::broadcast})
      frontier(network, machine, kind);
  return 0;
}
