#include "weft/app/session/synthesized.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/collectives/check/check.h"
#include "weft/formats/collective_source.h"
#include "weft/predict/sim/collective/run_parameters.h"
#include "weft/predict/sim/collective/tuned_program.h"

namespace weft::session {

Result<Synthesized> synthesize_program(const cluster::Topology& topology, const synthesis::Forest& forest,
                                       const synthesis::Deadline& deadline, std::int64_t bytes) {
  WEFT_TRY(best, sim::tune_trees(topology, forest, deadline, bytes));
  // Checking is slower than simulating, so only the chosen program is checked.
  const std::int32_t slots = sim::run_parameters(best.program.protocol).slots;
  WEFT_TRY_STATUS(formats::expect_correct(collective::check(best.program, {.slots = slots}),
                                          "the synthesized program is"));
  return Synthesized{std::move(best.program), best.attained};
}

std::int64_t trees_of_root(const synthesis::Forest& forest) {
  if (forest.whole) return forest.trees;
  std::map<std::pair<const void*, std::int32_t>, std::int64_t> counts;
  for (const auto* trees : {&forest.down, &forest.up})
    for (const synthesis::Tree& tree : *trees) ++counts[{trees, tree.root}];
  return std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; })->second;
}

std::vector<std::string> bottleneck_names(const synthesis::Forest& forest,
                                          const cluster::Topology& topology) {
  std::vector<std::string> names;
  for (const std::int32_t node : forest.bottleneck)
    names.push_back(topology.nodes[static_cast<std::size_t>(node)].name);
  return names;
}

std::string print(const synthesis::Forest& forest, const cluster::Topology& topology,
                  const std::optional<Synthesized>& made, std::optional<double> before) {
  const std::int64_t trees = trees_of_root(forest);
  std::string text =
      fmt::format("{} on {}, {} ranks, {}{} tree{} of each root\n", collective::name(forest.kind),
                  topology.name, forest.ranks, forest.whole ? "" : "at most ", trees, trees == 1 ? "" : "s");
  const bool is_two = forest.kind == collective::Kind::all_reduce && forest.switch_root < 0;
  text += fmt::format("optimum   {:9.3f} GB/s{}\n", forest.optimum / 1e9,
                      is_two ? ", of a reduce_scatter and then an all_gather" : "");
  if (made)
    text += fmt::format("attained  {:9.3f} GB/s, {:.1f} % of it, simulated at 1 GB\n", made->attained / 1e9,
                        100 * made->attained / forest.optimum);
  if (before)
    text += fmt::format("before    {:9.3f} GB/s, {:.1f} % lost\n", *before / 1e9,
                        100 * (1 - forest.optimum / *before));
  if (forest.switch_root >= 0)
    return text +
           fmt::format(
               "without   {:9.3f} GB/s, if {} did not add and copy, which no program format can express\n",
               forest.without_switches / 1e9,
               topology.nodes[static_cast<std::size_t>(forest.switch_root)].name);
  const std::vector<std::string> names = bottleneck_names(forest, topology);
  constexpr std::size_t kMostShown = 8;
  const std::span<const std::string> shown(names.data(), std::min(kMostShown, names.size()));
  text +=
      fmt::format("limited by the outgoing bandwidth of {}{}\n", fmt::join(shown, ", "),
                  names.size() > kMostShown ? fmt::format(" and {} more", names.size() - kMostShown) : "");
  return text;
}

}  // namespace weft::session
