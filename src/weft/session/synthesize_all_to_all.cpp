// weft collective synthesize all_to_all: the bound by a concurrent flow, and a program along its paths.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "weft/collective/check.h"
#include "weft/collective/compile.h"
#include "weft/formats/collective_source.h"
#include "weft/session/grain_search.h"
#include "weft/session/program_file.h"
#include "weft/session/synthesized.h"
#include "weft/sim/collective/run_parameters.h"
#include "weft/synthesis/all_to_all.h"
#include "weft/synthesis/path_program.h"

namespace weft::session {
namespace {

constexpr std::int32_t kMostPaired = 64;              // of a program
constexpr double kMostChunks = 1 << 18;  // of a program: more take long to check

constexpr double kMostTriedHops = 3e6;   // of all programs that are simulated
constexpr std::int32_t kPathParts = 8;   // of a block, with paths of their own
constexpr Grain kPathGrains[] = {{1e6, 2e9}, {2.5e5, 1e9}};

// More instances than the first that does not gain are not tried.
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
    if (!program.ok() && best) break;  // no room for more of them
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
  WEFT_TRY(bound, synthesis::bound_all_to_all(topology, deadline));
  found.bound = bound.bound;
  found.flow = bound.flow;
  if (topology.devices > kMostPaired) return found;
  WEFT_TRY(network, synthesis::step_network(topology));
  const synthesis::ConcurrentFlow flow =
      synthesis::find_concurrent_flow(synthesis::flow_network(network), 0.01, deadline);
  if (flow.paths.empty()) return found;
  const double pairs = static_cast<double>(network.devices) * network.devices;
  const auto attempt = [&](const Grain& grain) -> Result<GrainTrial> {
    synthesis::PathProgram request;
    request.cut = kPathParts;
    const double part = static_cast<double>(kSimulatedBytes) / network.devices / request.cut;
    const double most = std::max(1.0, kMostChunks / (pairs * request.cut));
    request.pieces = static_cast<std::int32_t>(std::clamp(std::round(part / grain.chunk_bytes), 1.0, most));
    request.pace.chunk_bytes = part / request.pieces;
    request.pace.rate = flow.rate / request.cut;
    request.pace.connection_rate = grain.connection_rate;
    WEFT_TRY(program, synthesis::path_program(network, flow, request));
    WEFT_TRY(seconds, simulated_seconds(program, topology, kSimulatedBytes));
    const double attained = static_cast<double>(kSimulatedBytes) / seconds;
    if (!found.made || attained > found.made->attained) found.made = Synthesized{std::move(program), attained};
    return GrainTrial{attained, 2 * pairs * request.cut * request.pieces,
                      attained > 0.98 * found.bound || deadline.over()};
  };
  WEFT_TRY_STATUS(search_grains(kPathGrains, kMostTriedHops, attempt));
  const collective::Report report = collective::check(
      found.made->program, {.slots = sim::run_parameters(collective::Protocol::simple).slots});
  WEFT_TRY_STATUS(formats::expect_right(report, "the synthesized program is"));
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
