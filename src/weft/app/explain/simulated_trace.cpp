#include "weft/app/explain/simulated_trace.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/app/explain/table.h"
#include "weft/base/units.h"

namespace weft::explain {
namespace {

// Ranks with equal times share one line, ordered by their first rank.
struct AlikeRanks {
  sim::RankTotals totals;
  std::vector<std::size_t> ranks;
};

std::vector<AlikeRanks> group_alike(const sim::TraceRun& run) {
  std::vector<AlikeRanks> groups;
  std::map<std::tuple<double, double, double>, std::size_t> known;
  for (std::size_t r = 0; r < run.ranks.size(); ++r) {
    const sim::RankTotals& totals = run.ranks[r];
    const auto [found, added] = known.emplace(
        std::tuple(totals.seconds, totals.compute_seconds, totals.communication_seconds), groups.size());
    if (added) groups.push_back({totals, {}});
    groups[found->second].ranks.push_back(r);
  }
  return groups;
}

std::string ranks_text(const std::vector<std::size_t>& ranks) {
  if (ranks.size() == 1) return fmt::format("{}", ranks[0]);
  if (ranks.back() - ranks.front() + 1 == ranks.size())
    return fmt::format("{} to {}", ranks.front(), ranks.back());
  return fmt::format("{} and {} alike", ranks[0], ranks.size() - 1);
}

}  // namespace

std::string print_text(const sim::TraceRun& run, std::span<const std::string> notes, double wall_seconds) {
  std::string text = fmt::format("{} on {} rank{}\n", print_seconds(run.seconds), run.ranks.size(),
                                 run.ranks.size() == 1 ? "" : "s");
  Table table({{"rank", Align::left},
               {"time", Align::right},
               {"computes", Align::right},
               {"communicates", Align::right},
               {"exposed", Align::right}});
  for (const auto& [totals, ranks] : group_alike(run))
    table.add({ranks_text(ranks), print_seconds(totals.seconds), print_seconds(totals.compute_seconds),
               print_seconds(totals.communication_seconds), print_seconds(totals.exposed_seconds)});
  text += table.print();
  text += fmt::format("{} nodes, {} collectives of {} shapes; {} events in {}: {} per second\n",
                      print_exact(run.nodes), print_exact(run.collectives), print_exact(run.shapes),
                      print_exact(run.events), print_seconds(wall_seconds),
                      print_count(static_cast<double>(run.events) / std::max(wall_seconds, 1e-9)));
  if (run.stands_for > run.events)
    text += fmt::format("they stand for {}: work that is the same on all ranks is simulated once\n",
                        print_exact(run.stands_for));
  for (const std::string& note : notes) text += note + "\n";
  return text;
}

std::string print_json(const sim::TraceRun& run, std::span<const std::string> notes, double wall_seconds) {
  nlohmann::ordered_json ranks = nlohmann::ordered_json::array();
  for (const sim::RankTotals& totals : run.ranks)
    ranks.push_back({{"seconds", totals.seconds},
                     {"compute_seconds", totals.compute_seconds},
                     {"communication_seconds", totals.communication_seconds},
                     {"exposed_communication_seconds", totals.exposed_seconds}});
  const nlohmann::ordered_json json = {
      {"seconds", run.seconds},
      {"ranks", std::move(ranks)},
      {"nodes", run.nodes},
      {"collectives", run.collectives},
      {"shapes", run.shapes},
      {"events", run.events},
      {"stands_for_events", run.stands_for},
      {"wall_seconds", wall_seconds},
      {"events_per_second", static_cast<double>(run.events) / std::max(wall_seconds, 1e-9)},
      {"notes", std::vector<std::string>(notes.begin(), notes.end())}};
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace weft::explain
