#include "weft/pipeline/cut_parts.h"

#include <algorithm>
#include <limits>

#include "weft/ops/operators.h"
#include "weft/train/chain.h"

namespace weft::pipeline {
namespace {

// The runs up to some part: the heaviest, and how unequal they are.
struct PartCut {
  double longest = std::numeric_limits<double>::infinity(), squares = 0;
  std::size_t from = 0;
  bool operator<(const PartCut& other) const {
    return longest != other.longest ? longest < other.longest : squares < other.squares;
  }
};

}  // namespace

std::vector<std::size_t> cut_parts(std::span<const double> work, std::size_t places) {
  const std::size_t parts = work.size();
  std::vector<double> before(parts + 1);
  for (std::size_t p = 0; p < parts; ++p) before[p + 1] = before[p] + work[p];
  std::vector<std::vector<PartCut>> best(places + 1, std::vector<PartCut>(parts + 1));
  best[0][0].longest = 0;
  for (std::size_t k = 1; k <= places; ++k)
    for (std::size_t end = k; end + (places - k) <= parts; ++end)
      for (std::size_t from = end; from-- > k - 1;) {
        const PartCut& so_far = best[k - 1][from];
        const double run = before[end] - before[from];
        if (run > best[k][end].longest) break;  // and longer from here on
        const PartCut cut{std::max(so_far.longest, run), so_far.squares + run * run, from};
        if (cut < best[k][end]) best[k][end] = cut;
      }
  std::vector<std::size_t> ends(places);
  for (std::size_t k = places, end = parts; k > 0; --k) {
    ends[k - 1] = end;
    end = best[k][end].from;
  }
  return ends;
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
