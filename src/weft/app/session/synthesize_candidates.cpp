// Synthesized programs that are compared with the shipped algorithms.
#include <array>
#include <utility>

#include <fmt/format.h>

#include "weft/app/session/synthesized.h"
#include "weft/base/units.h"
#include "weft/collectives/synthesis/time_search.h"

namespace weft::session {
namespace {

constexpr std::int32_t kMostTimed = 64;   // devices
constexpr double kSynthesisSeconds = 30;  // approximate total

struct Timed {
  std::int64_t bytes;
  collective::Protocol protocol;
};
constexpr std::array kTimed = {Timed{16'000, collective::Protocol::ll},
                               Timed{1'000'000, collective::Protocol::ll128},
                               Timed{16'000'000, collective::Protocol::simple}};

}  // namespace

Result<std::vector<collective::Program>> synthesize_candidates(const cluster::Topology& topology,
                                                               collective::Kind kind) {
  std::vector<collective::Program> made;
  const auto deadline = synthesis::Deadline::after(kSynthesisSeconds);
  if (kind == collective::Kind::all_to_all) {
    WEFT_TRY(found, synthesize_all_to_all(topology, deadline));
    if (found.made) made.push_back(std::move(found.made->program));
  } else if (const auto forest = synthesis::grow_forest(topology, kind, 0, deadline);
             forest.ok() && forest->trees > 0) {
    WEFT_TRY(found, synthesize_program(topology, *forest, deadline));
    made.push_back(std::move(found.program));
  }
  if (topology.devices > kMostTimed) return made;
  WEFT_TRY(network, synthesis::step_network(topology));
  synthesis::StepClock clock;
  clock.end = deadline.end;
  for (const Timed& timed : kTimed) {
    synthesis::TimeEffort effort;
    effort.most_turns = 8;
    const auto bytes = static_cast<double>(timed.bytes);
    const auto found = synthesis::search_in_time(network, {kind, 0, bytes, 0}, effort, clock);
    if (!found.ok()) continue;
    auto program =
        compile_for(synthesis::time_moves(network, *found), topology, timed.bytes, deadline, timed.protocol);
    if (!program.ok()) continue;
    program->program.name = fmt::format("{}_timed({})", collective::name(kind), print_bytes(bytes));
    made.push_back(std::move(program->program));
  }
  return made;
}

}  // namespace weft::session
