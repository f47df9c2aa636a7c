// SYNTHESIZE collective ON cluster: the optimum on its links, and a checked program.
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "weft/app/session/sketched.h"
#include "weft/app/session/state.h"
#include "weft/app/session/synthesized.h"
#include "weft/base/letters.h"
#include "weft/base/units.h"
#include "weft/collectives/synthesis/time_search.h"
#include "weft/predict/sim/collective/collective_cluster.h"

namespace weft::session {

namespace {

Answer synthesize_for_size(const cluster::Topology& topology, collective::Kind kind, std::int64_t bytes,
                           std::int32_t chunks) {
  WEFT_TRY(network, synthesis::step_network(topology));
  const auto size = static_cast<double>(bytes);
  WEFT_TRY(found, synthesis::search_in_time(network, {kind, 0, size, chunks}, {}, {}));
  return fmt::format("{} of {} on {}, {} ranks\nfinish    {} ({:.3f} GB/s)\nbound     {}\n",
                     collective::name(kind), print_bytes(size), topology.name, network.devices,
                     print_seconds(found.finish), size / found.finish / 1e9, print_seconds(found.bound));
}

}  // namespace

Answer run_synthesize(const Session::State& state, const language::syntax::Synthesize& synthesize) {
  const language::syntax::Name& cluster = synthesize.cluster;
  const auto found = state.catalog.clusters.find(cluster.text);
  if (found == state.catalog.clusters.end())
    return language::unknown("cluster", cluster, language::names_of(state.catalog.clusters));
  Result<collective::Kind> kind = collective::parse_kind(lower(synthesize.collective.text));
  if (!kind.ok()) return user_error(kind.error().message, kind.error().hint, synthesize.collective.span);
  std::string sketch;
  std::optional<std::int64_t> bytes;
  for (const language::syntax::Setting& setting : synthesize.settings) {
    const language::syntax::Value& value = setting.value;
    const bool is_bytes = value.kind == language::syntax::ValueKind::quantity &&
                          value.quantity.dimension == Dimension::bytes && value.quantity.value >= 1;
    if (same_word(setting.name.text, "sketch")) {
      if (value.kind != language::syntax::ValueKind::text)
        return user_error("sketch is a file name in quotes", "USING SKETCH 'sketch.json'", value.span);
      sketch = value.text;
    } else if (same_word(setting.name.text, "size")) {
      if (!is_bytes) return user_error("size is a number of bytes", "size = 1 MB", value.span);
      bytes = static_cast<std::int64_t>(value.quantity.value);
    } else {
      return user_error(fmt::format("SYNTHESIZE has no setting of this name: {}", setting.name.text),
                        "size gives the program that finishes first, sketch restricts the search; without "
                        "WITH, SYNTHESIZE maximizes bandwidth",
                        setting.name.span);
    }
  }
  WEFT_TRY(wires, sim::wires_of(found->second));
  std::int32_t chunks = 0;
  if (!sketch.empty()) {
    WEFT_TRY(drawn, read_sketch(sketch));
    chunks = drawn.chunks;
    WEFT_TRY(left, synthesis::apply(drawn, wires.topology));
    wires.topology = std::move(left);
  }
  if (bytes) return synthesize_for_size(wires.topology, *kind, *bytes, chunks);
  if (*kind == collective::Kind::all_to_all) {
    WEFT_TRY(flow, synthesize_all_to_all(wires.topology, {}));
    return print(flow, wires.topology);
  }
  WEFT_TRY(forest, synthesis::grow_forest(wires.topology, *kind, 0));
  std::optional<Synthesized> made;
  if (forest.trees > 0) {
    WEFT_TRY(best, synthesize_program(wires.topology, forest, {}));
    made = std::move(best);
  }
  return print(forest, wires.topology, made, std::nullopt);
}

}  // namespace weft::session
