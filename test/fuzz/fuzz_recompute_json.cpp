// Any text is a list of graphs or a user error. For a small graph, the computed steps pass the
// checker.

#include "promise.h"
#include "weft/formats/recompute_json.h"
#include "weft/program/memory/recompute_replay.h"

using weft::fuzz::promise;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto graphs = weft::formats::read_recompute_graphs(text);
  if (!graphs.ok()) {
    promise(graphs.error().fault == weft::Fault::user, "a bad file is a user error");
    return 0;
  }
  constexpr std::size_t kMostSolved = 8;  // nodes: larger graphs take too long per input
  for (const auto& graph : *graphs) {
    if (graph.nodes.size() > kMostSolved) continue;
    const auto least = weft::memory::recompute(graph, 0);
    if (!least.ok()) continue;
    const auto found = weft::memory::recompute(graph, least->least_budget);
    promise(found.ok() && found->feasible, "the least budget is enough", text);
    const auto replayed = weft::memory::replay(graph, found->steps);
    promise(replayed.ok(), "the steps pass the checker", text);
    promise(replayed->peak <= least->least_budget, "the steps stay within the budget", text);
    if (least->least_budget > graph.input_size)
      promise(!weft::memory::recompute(graph, least->least_budget - 1)->feasible,
              "less than the least budget is infeasible", text);
  }
  return 0;
}
