// weft collective synthesize all_to_all: the bound by a concurrent flow, and a program along its paths.
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "weft/collective/compile.h"
#include "weft/session/program_file.h"
#include "weft/session/synthesized.h"
#include "weft/synthesis/all_to_all.h"

namespace weft::session {
namespace {

constexpr std::int64_t kPairMessage = 1'000'000'000;  // bytes that a program is simulated at
constexpr std::int32_t kMostPaired = 64;              // of a program
constexpr double kMostChunks = 20'000;

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
  for (const std::int32_t cut : {1, 2, 4, 8}) {
    const double chunks = static_cast<double>(cut) * network.devices * network.devices;
    if (found.made && (deadline.over() || chunks > kMostChunks || found.made->attained > 0.98 * found.bound))
      break;
    const double chunk_bytes = static_cast<double>(kPairMessage) / (cut * network.devices);
    const synthesis::AllToAllSchedule timed = synthesis::schedule_all_to_all(network, flow, cut, chunk_bytes);
    const synthesis::StepSchedule ordered = synthesis::in_order(timed.schedule);
    WEFT_TRY(made, compile_for(synthesis::step_moves(timed.question, network, nullptr, &ordered), topology,
                               kPairMessage, deadline));
    if (found.made && found.made->attained >= made.attained) continue;
    made.program.name = "all_to_all_flow";
    found.scheduled = static_cast<double>(kPairMessage) / timed.schedule.finish;
    found.made = std::move(made);
  }
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
