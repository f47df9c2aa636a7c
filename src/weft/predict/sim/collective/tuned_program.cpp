#include "weft/predict/sim/collective/tuned_program.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "weft/collectives/one_sided/check_work.h"
#include "weft/collectives/synthesis/interleave_shares.h"
#include "weft/collectives/synthesis/path_program.h"
#include "weft/collectives/synthesis/tree_program.h"
#include "weft/predict/sim/collective/grain_search.h"
#include "weft/predict/sim/collective/simulate_collective.h"

namespace weft::sim {
namespace {

using synthesis::Forest;

constexpr double kNear = 0.985;     // fraction of the optimum at which the search stops
constexpr double kMostTried = 5e6;  // chunks times links, summed over all simulated programs
constexpr Grain kTreeGrains[] = {{5e5, 3e9}, {2.5e5, 5e9}, {1.2e5, 4e9}, {1e5, 8e9}, {1.5e5, 5e9}};

constexpr double kMostTriedPaths = 3e6;
constexpr Grain kPathGrains[] = {{1e6, 2e9}, {2.5e5, 3e9}, {1e5, 6e9}};

bool is_rooted(const Forest& forest) {
  return forest.kind == collective::Kind::broadcast || forest.kind == collective::Kind::reduce;
}

// How many chunks a block may have so that `weft collective check` accepts the program unchanged.
// Each chunk makes `hops` hops, with a step at either end, and needs this much memory.
double most_chunks(double hops, double memory) {
  const collective::CheckLimits limits;
  return std::floor(std::min(static_cast<double>(limits.actions) / (2 * hops),
                             static_cast<double>(limits.chunks) / memory));
}

Result<double> attained_by(const collective::Program& program, const cluster::Topology& topology,
                           std::int64_t bytes) {
  const collective::Actions actions =
      collective::to_actions(program, single_placement(program.placement), collective::Grain::step);
  WEFT_TRY(time, simulate(actions, topology, bytes, run_parameters(program.protocol)));
  return static_cast<double>(bytes) / time.seconds;
}

}  // namespace

double hops_of(const Forest& forest, double chunks) {
  const bool both = !forest.up.empty() && !forest.down.empty();
  return chunks * (forest.ranks - 1.0) * (is_rooted(forest) ? 1 : forest.ranks) * (both ? 2 : 1);
}

Result<TunedProgram> tune_trees(const cluster::Topology& topology, const Forest& forest,
                                const synthesis::Deadline& deadline, std::int64_t bytes) {
  TunedProgram best;
  const double block = static_cast<double>(bytes) / (is_rooted(forest) ? 1 : forest.ranks);
  const double unit = forest.whole ? static_cast<double>(forest.trees) : 1;
  const double ranks = forest.ranks, blocks = is_rooted(forest) ? 1 : ranks;
  const double most = std::max(1.0, std::floor(most_chunks(hops_of(forest, 1), (ranks + 1) * blocks) / unit));
  const auto attempt = [&](const Grain& grain) -> Result<GrainTrial> {
    synthesis::TreeProgram request;
    const double units =
        std::clamp(std::round(block / grain.chunk_bytes * synthesis::kMeanMessage / unit), 1.0, most);
    request.chunks = static_cast<std::int64_t>(unit * units);
    request.pace.seconds = static_cast<double>(bytes) / forest.planned;
    request.pace.connection_rate = grain.connection_rate;
    request.pace.chunk_bytes = block / static_cast<double>(request.chunks);
    WEFT_TRY(program, synthesis::tree_program(request, forest));
    WEFT_TRY(attained, attained_by(program, topology, bytes));
    if (attained > best.attained) best = {std::move(program), attained};
    return GrainTrial{attained, hops_of(forest, static_cast<double>(request.chunks)),
                      best.attained >= kNear * forest.without_switches || deadline.over()};
  };
  WEFT_TRY_STATUS(search_grains(kTreeGrains, kMostTried, attempt));
  return best;
}

Result<TunedProgram> tune_paths(const cluster::Topology& topology, const synthesis::AllToAll& ways,
                                const synthesis::Deadline& deadline, std::int64_t bytes) {
  TunedProgram best;
  const double pairs = static_cast<double>(topology.devices) * topology.devices;
  const double block = static_cast<double>(bytes) / topology.devices;
  constexpr double kUnit = synthesis::kPathParts;
  // A device copies its own block; chunks in transit are in scratch memory.
  double hops = topology.devices;
  for (const synthesis::RoutedPath& path : ways.paths)
    hops += path.share * static_cast<double>(path.edges.size());
  const double most = std::max(1.0, std::floor(most_chunks(hops, pairs + hops) / kUnit));
  const auto attempt = [&](const Grain& grain) -> Result<GrainTrial> {
    synthesis::PathProgram request;
    request.ranks = topology.devices;
    request.chunks = static_cast<std::int32_t>(
        kUnit *
        std::clamp(std::round(block / grain.chunk_bytes * synthesis::kMeanMessage / kUnit), 1.0, most));
    request.pace.seconds = static_cast<double>(bytes) / ways.flow;
    request.pace.chunk_bytes = block / request.chunks;
    request.pace.connection_rate = grain.connection_rate;
    WEFT_TRY(program, synthesis::path_program(request, ways.paths, ways.routes));
    WEFT_TRY(attained, attained_by(program, topology, bytes));
    if (attained > best.attained) best = {std::move(program), attained};
    return GrainTrial{attained, hops * request.chunks, attained > kNear * ways.bound || deadline.over()};
  };
  WEFT_TRY_STATUS(search_grains(kPathGrains, kMostTriedPaths, attempt));
  return best;
}

}  // namespace weft::sim
