// weft collective synthesize all_to_all: a bound from concurrent flow, and a program along its paths.
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "weft/app/session/program_file.h"
#include "weft/app/session/synthesized.h"
#include "weft/collectives/check/check.h"
#include "weft/collectives/compile/compile.h"
#include "weft/collectives/synthesis/all_to_all.h"
#include "weft/formats/collective_source.h"
#include "weft/predict/sim/collective/run_parameters.h"
#include "weft/predict/sim/collective/tuned_program.h"

namespace weft::session {
namespace {

constexpr std::int32_t kMostPaired = 64;  // devices that a program is made for
// Numbers of instances to try, until one brings no gain.
constexpr std::int32_t kInstances[] = {1, 2, 4, 8, 16, 24};

}  // namespace

Result<Synthesized> compile_for(const collective::Moves& moves, const cluster::Topology& topology,
                                std::int64_t bytes, const synthesis::Deadline& deadline,
                                collective::Protocol protocol) {
  std::optional<Synthesized> best;
  for (const std::int32_t instances : kInstances) {
    collective::CompileOptions options;
    options.instances = instances;
    options.protocol = protocol;
    Result<collective::Program> program = collective::compile(moves, options);
    if (!program.ok() && best) break;  // too many instances to compile
    if (!program.ok()) return std::move(program).error();
    WEFT_TRY(seconds, simulated_seconds(*program, topology, bytes));
    const double attained = static_cast<double>(bytes) / seconds;
    if (best && attained <= best->attained * 1.002) break;
    best = Synthesized{std::move(program).value(), attained};
    if (deadline.over()) break;
  }
  return std::move(*best);
}

Result<SynthesizedAllToAll> synthesize_all_to_all(const cluster::Topology& topology,
                                                  const synthesis::Deadline& deadline) {
  SynthesizedAllToAll found;
  const bool programmed = topology.devices <= kMostPaired;
  WEFT_TRY(ways, programmed ? synthesis::route_all_to_all(topology, deadline)
                            : synthesis::bound_all_to_all(topology, deadline));
  found.bound = ways.bound;
  found.flow = ways.flow;
  if (!programmed) return found;
  WEFT_TRY(best, sim::tune_paths(topology, ways, deadline, kSimulatedBytes));
  found.made = Synthesized{std::move(best.program), best.attained};
  const collective::Report report = collective::check(
      found.made->program, {.slots = sim::run_parameters(collective::Protocol::simple).slots});
  WEFT_TRY_STATUS(formats::expect_correct(report, "the synthesized program is"));
  return found;
}

std::string print(const SynthesizedAllToAll& found, const cluster::Topology& topology) {
  std::string text = fmt::format("all_to_all on {}, {} ranks\n", topology.name, topology.devices);
  text += fmt::format("optimum   {:9.3f} GB/s at most, {:.3f} GB/s or more, by a concurrent flow\n",
                      found.bound / 1e9, found.flow / 1e9);
  if (found.made)
    text += fmt::format("attained  {:9.3f} GB/s, {:.1f} % of it, simulated at 1 GB\n",
                        found.made->attained / 1e9, 100 * found.made->attained / found.bound);
  return text;
}

}  // namespace weft::session
