#include "weft/parallel/pipeline/cut_parts.h"

#include <algorithm>
#include <limits>

#include "weft/parallel/train/chain.h"
#include "weft/plan/ops/operators.h"

namespace weft::pipeline {
namespace {

// A split of the parts up to some point: its heaviest run, and how uneven the runs are.
struct PartCut {
  double longest = std::numeric_limits<double>::infinity(), squares = 0;
  std::size_t from = 0;
  bool operator<(const PartCut& other) const {
    return longest != other.longest ? longest < other.longest : squares < other.squares;
  }
};

// Prefix sums.
std::vector<double> summed(std::span<const double> of_parts) {
  std::vector<double> before(of_parts.size() + 1);
  for (std::size_t p = 0; p < of_parts.size(); ++p) before[p + 1] = before[p] + of_parts[p];
  return before;
}

}  // namespace

std::optional<std::vector<std::size_t>> cut_parts(std::span<const CutPlace> places) {
  const std::size_t parts = places.front().work.size(), count = places.size();
  std::vector<std::vector<PartCut>> best(count + 1, std::vector<PartCut>(parts + 1));
  best[0][0].longest = 0;
  for (std::size_t k = 1; k <= count; ++k) {
    const CutPlace& place = places[k - 1];
    const std::vector<double> work = summed(place.work), bytes = summed(place.bytes);
    for (std::size_t end = k; end + (count - k) <= parts; ++end) {
      double working = 0;
      for (std::size_t from = end; from-- > k - 1;) {
        const double run = work[end] - work[from];
        // Both grow monotonically from here on.
        if (run > best[k][end].longest) break;
        if (!place.working.empty()) working = std::max(working, place.working[from]);
        const double held = place.bytes.empty() ? 0 : bytes[end] - bytes[from] + working;
        if (!place.bytes.empty() && held > place.room) break;
        if (!place.entering.empty() && held + place.entering[from] > place.room) continue;
        const PartCut& so_far = best[k - 1][from];
        const PartCut cut{std::max(so_far.longest, run), so_far.squares + run * run, from};
        if (cut < best[k][end]) best[k][end] = cut;
      }
    }
  }
  if (best[count][parts].longest == std::numeric_limits<double>::infinity()) return std::nullopt;
  std::vector<std::size_t> ends(count);
  for (std::size_t k = count, end = parts; k > 0; --k) {
    ends[k - 1] = end;
    end = best[k][end].from;
  }
  return ends;
}

std::vector<std::size_t> cut_parts(std::span<const double> work, std::size_t places) {
  return *cut_parts(std::vector<CutPlace>(places, {work, {}, 0}));
}

std::vector<double> flops_of_parts(const plan::Graph& graph) {
  std::vector<double> work;
  for (const train::Part& part : train::chain_of(graph, train::Skips::allowed).parts) {
    double flops = 1;
    for (const plan::NodeId node : part.nodes) flops += graph.node(node).op->work(graph.view(node)).flops;
    work.push_back(flops);
  }
  return work;
}

}  // namespace weft::pipeline
