#include "weft/synthesis/path_program.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/collective/check_moves.h"
#include "weft/synthesis/all_to_all.h"
#include "weft/synthesis/index.h"

namespace weft::synthesis {
namespace {

using collective::Buffer;

// A threadblock moves a few dozen GB/s, and a device's own block should be copied before the others are there.
constexpr std::int32_t kMostCopyBlocks = 8;

void copy_own(collective::RankProgram& rank, std::int32_t first, std::int32_t chunks) {
  const std::int32_t blocks = std::min(kMostCopyBlocks, chunks);
  for (std::int32_t b = 0; b < blocks; ++b) {
    const std::int32_t begin = first + static_cast<std::int32_t>(std::int64_t{chunks} * b / blocks),
                       end = first + static_cast<std::int32_t>(std::int64_t{chunks} * (b + 1) / blocks);
    collective::Step copy{collective::Op::copy, {Buffer::input, begin}, {Buffer::output, begin}};
    copy.count = end - begin;
    rank.blocks.push_back({-1, -1, 0, {copy}});
  }
}

}  // namespace

Result<collective::Program> path_program(const StepNetwork& network, const ConcurrentFlow& flow,
                                         const PathProgram& request) {
  const std::int32_t devices = network.devices, chunks = request.cut * request.pieces;
  const std::vector<std::size_t> chosen = deal_paths(network, flow, request.cut);
  double moved = 0;
  for (const std::size_t path : chosen)
    if (path < flow.paths.size()) moved += static_cast<double>(flow.paths[path].arcs.size()) * request.pieces;
  if (moved > static_cast<double>(collective::kMostMovedChunks) ||
      2.0 * chunks * devices * devices > static_cast<double>(collective::kMostMemoryChunks))
    return user_error(fmt::format("the program would be too long: {} chunks of a block, {} ranks", chunks, devices),
                      "fewer pieces make a shorter one");

  collective::Program program;
  program.name = "all_to_all_paths";
  program.collective.kind = collective::Kind::all_to_all;
  program.collective.ranks = devices;
  program.collective.chunks = chunks;
  program.placement = collective::Placement::out_of_place;
  program.ranks.resize(at(devices));
  for (collective::RankProgram& rank : program.ranks)
    rank.input_chunks = rank.output_chunks = devices * chunks;

  HopProgram hops(request.pace, request.pieces);
  for (const std::size_t path : chosen)
    if (path < flow.paths.size())
      for (const std::int32_t arc : flow.paths[path].arcs)
        hops.use(network.edges[at(arc)].from, network.edges[at(arc)].to, 1);
  hops.make_connections();
  for (std::size_t part = 0; part < chosen.size(); ++part) {
    if (chosen[part] >= flow.paths.size()) continue;  // for oneself
    const FlowPath& path = flow.paths[chosen[part]];
    const std::int32_t first = static_cast<std::int32_t>(part) % request.cut * request.pieces;
    for (const std::int32_t arc : path.arcs) hops.take_turn(network.edges[at(arc)].from, network.edges[at(arc)].to);
    for (std::int32_t piece = 0; piece < request.pieces; ++piece) {
      collective::Slot slot{Buffer::input, path.to * chunks + first + piece};
      std::int32_t before = -1;
      for (std::size_t a = 0; a < path.arcs.size(); ++a) {
        const StepEdge& edge = network.edges[at(path.arcs[a])];
        const bool last = a + 1 == path.arcs.size();
        const collective::Slot next = last ? collective::Slot{Buffer::output, path.from * chunks + first + piece}
                                           : collective::Slot{Buffer::scratch, program.ranks[at(edge.to)].scratch_chunks++};
        before = hops.add({edge.from, edge.to, slot, next, piece, before, -1, false});
        slot = next;
      }
    }
  }
  hops.write(request.pace.chunk_bytes / request.pace.rate, program);
  for (std::int32_t rank = 0; rank < devices; ++rank) copy_own(program.ranks[at(rank)], rank * chunks, chunks);
  return program;
}

}  // namespace weft::synthesis
