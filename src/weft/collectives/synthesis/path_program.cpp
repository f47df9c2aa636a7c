#include "weft/collectives/synthesis/path_program.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "weft/collectives/chunks/check_moves.h"
#include "weft/collectives/synthesis/index.h"
#include "weft/collectives/synthesis/interleave_shares.h"

namespace weft::synthesis {
namespace {

using collective::Buffer;

// A threadblock copies a few dozen GB/s; a device's own block should be copied before the others
// arrive.
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

Result<collective::Program> path_program(const PathProgram& request, const std::vector<RoutedPath>& paths,
                                         const Routes& routes) {
  const std::int32_t devices = request.ranks, chunks = request.chunks;
  double moved = 0;
  for (const RoutedPath& path : paths) moved += path.share * static_cast<double>(path.edges.size()) * chunks;
  if (moved > static_cast<double>(collective::kMostMovedChunks) ||
      2.0 * chunks * devices * devices > static_cast<double>(collective::kMostMemoryChunks))
    return user_error(
        fmt::format("the program would be too long: {} chunks per block, {} ranks", chunks, devices),
        "fewer chunks make a shorter one");

  collective::Program program;
  program.name = "all_to_all_paths";
  program.collective.kind = collective::Kind::all_to_all;
  program.collective.ranks = devices;
  program.collective.chunks = chunks;
  program.placement = collective::Placement::out_of_place;
  program.ranks.resize(at(devices));
  for (collective::RankProgram& rank : program.ranks)
    rank.input_chunks = rank.output_chunks = devices * chunks;

  // Messages and their paths, pair by pair.
  std::vector<std::pair<const RoutedPath*, StreamMessage>> dealt;
  for (std::size_t first = 0, end = 0; first < paths.size(); first = end) {
    std::vector<double> shares;
    for (; end < paths.size() && paths[end].from == paths[first].from && paths[end].to == paths[first].to;
         ++end)
      shares.push_back(paths[end].share);
    for (const StreamMessage& message : interleave_shares(shares, chunks))
      dealt.emplace_back(&paths[first + at(message.stream)], message);
  }
  HopProgram hops(request.pace, routes);
  for (const auto& [path, message] : dealt)
    for (const TreeEdge& edge : path->edges) hops.use(edge.from, edge.to, edge.route, message.count);
  hops.make_connections();
  for (const auto& [path, message] : dealt) {
    const auto chunk = static_cast<std::int32_t>(message.first),
               count = static_cast<std::int32_t>(message.count);
    collective::Slot slot{Buffer::input, path->to * chunks + chunk};
    std::int32_t before = -1;
    for (const TreeEdge& edge : path->edges) {
      collective::Slot next{Buffer::output, path->from * chunks + chunk};
      if (edge.to != path->to) {
        next = {Buffer::scratch, program.ranks[at(edge.to)].scratch_chunks};
        program.ranks[at(edge.to)].scratch_chunks += count;
      }
      const double when = static_cast<double>(chunk) / chunks;
      before = hops.add({edge.from, edge.to, edge.route, slot, next, count, when, before, -1, false});
      slot = next;
    }
  }
  hops.write(program);
  for (std::int32_t rank = 0; rank < devices; ++rank)
    copy_own(program.ranks[at(rank)], rank * chunks, chunks);
  return program;
}

}  // namespace weft::synthesis
