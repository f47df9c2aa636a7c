// SYNTHESIZE collective ON cluster: the optimum of its wires and a program that was checked.
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "weft/base/letters.h"
#include "weft/price/collective_cluster.h"
#include "weft/session/state.h"
#include "weft/session/synthesized.h"

namespace weft::session {

Answer run_synthesize(const Session::State& state, const language::syntax::Synthesize& synthesize) {
  const language::syntax::Name& cluster = synthesize.cluster;
  const auto found = state.catalog.clusters.find(cluster.text);
  if (found == state.catalog.clusters.end())
    return language::unknown("cluster", cluster, language::names_of(state.catalog.clusters));
  Result<collective::Kind> kind = collective::parse_kind(lower(synthesize.collective.text));
  if (!kind.ok()) return user_error(kind.error().message, kind.error().hint, synthesize.collective.span);
  if (!synthesize.settings.empty())
    return user_error(
        fmt::format("SYNTHESIZE has no setting of this name: {}", synthesize.settings.front().name.text),
        "without WITH it makes a program of the most bandwidth", synthesize.settings.front().name.span);
  WEFT_TRY(wires, price::wires_of(found->second));
  WEFT_TRY(forest, synthesis::grow_forest(wires.topology, *kind, 0));
  std::optional<Synthesized> made;
  if (forest.trees > 0) {
    WEFT_TRY(best, synthesize_program(wires.topology, forest, {}));
    made = std::move(best);
  }
  return print(forest, wires.topology, made, std::nullopt);
}

}  // namespace weft::session
