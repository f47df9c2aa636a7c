#include "weft/predict/sim/trace/chunk_gates.h"

namespace weft::sim {

using Collective = TraceNode::Collective;

std::string_view name(TraceAlgorithm algorithm) {
  switch (algorithm) {
    case TraceAlgorithm::ring: return "ring";
    case TraceAlgorithm::direct: return "direct";
    case TraceAlgorithm::halving_doubling: return "halvingDoubling";
    case TraceAlgorithm::double_binary_tree: return "doubleBinaryTree";
  }
  return {};
}

std::string_view name(TraceNode::Collective collective) {
  switch (collective) {
    case Collective::all_reduce: return "all-reduce";
    case Collective::all_gather: return "all-gather";
    case Collective::reduce_scatter: return "reduce-scatter";
    case Collective::all_to_all: return "all-to-all";
    case Collective::other: return "collective";
  }
  return {};
}

std::int32_t ChunkPhase::gates() const {
  const std::int32_t twice = collective == Collective::all_reduce ? 2 : 1;
  switch (algorithm) {
    case TraceAlgorithm::ring:
      // The chunk for the k-th rank to the right passes through k ranks.
      if (collective == Collective::all_to_all) return ranks * (ranks - 1) / 2 + 1;
      return twice * (ranks - 1) + 1;
    case TraceAlgorithm::direct: return twice + 1;
    case TraceAlgorithm::halving_doubling: return twice * levels() + 1;
    case TraceAlgorithm::double_binary_tree: return 2;
  }
  return 1;
}

double ChunkPhase::bytes_after() const {
  if (collective == Collective::all_gather) return bytes * ranks;
  return collective == Collective::reduce_scatter ? bytes / ranks : bytes;
}

std::int32_t ChunkPhase::needs(std::int32_t rank, std::int32_t gate) const {
  if (algorithm == TraceAlgorithm::double_binary_tree) {
    const TreePlace place = tree_place(rank);
    if (gate == 0) return place.degree();
    return place.parent >= 0 ? 1 : 0;
  }
  if (gate == 0) return 0;
  return algorithm == TraceAlgorithm::direct ? ranks - 1 : 1;
}

bool ChunkPhase::reduces(std::int32_t gate) const {
  if (collective != Collective::all_reduce && collective != Collective::reduce_scatter) return false;
  if (algorithm == TraceAlgorithm::double_binary_tree) return gate == 0;
  const std::int32_t steps = gates() - 1;
  return gate <= (collective == Collective::all_reduce ? steps / 2 : steps);
}

double ChunkPhase::received_bytes(std::int32_t gate) const {
  if (algorithm == TraceAlgorithm::double_binary_tree) return bytes;
  return algorithm == TraceAlgorithm::halving_doubling ? halving_bytes(gate - 1) : ring_bytes();
}

// Distances go 1, 2, 4, ... while the exchanged size halves; gathering runs the same steps in
// reverse.
std::int32_t ChunkPhase::halving_distance(std::int32_t step) const {
  const std::int32_t n = levels();
  if (collective == Collective::all_gather) return 1 << (n - 1 - step);
  return step < n ? 1 << step : 1 << (2 * n - 1 - step);
}

double ChunkPhase::halving_bytes(std::int32_t step) const {
  if (collective == Collective::all_gather) return bytes * static_cast<double>(1 << step);
  return bytes / (2.0 * halving_distance(step));
}

// Ranks are numbered in order of a tree walk: the root first and all others below it to its right,
// so that rank r = odd * 2^k is k levels above the leaves. The second tree is the mirror image.
ChunkPhase::TreePlace ChunkPhase::tree_place(std::int32_t rank) const {
  const auto turned = [this](std::int32_t r) { return r < 0 || !mirrored ? r : ranks - 1 - r; };
  const std::int32_t r = turned(rank);
  TreePlace place;
  if (r == 0) {
    place.children[0] = turned(ranks / 2);
    return place;
  }
  const std::int32_t reach = r & -r;
  place.parent = turned(2 * reach >= ranks ? 0 : (r | 2 * reach) - reach);
  if (reach > 1) {
    place.children[0] = turned(r - reach / 2);
    place.children[1] = turned(r + reach / 2);
  }
  return place;
}

}  // namespace weft::sim
