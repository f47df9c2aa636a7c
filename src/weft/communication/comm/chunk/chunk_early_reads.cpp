#include "weft/communication/comm/chunk/chunk_early_reads.h"

#include <algorithm>

#include "weft/collectives/check/fifo_slots.h"
#include "weft/collectives/check/happens_before.h"
#include "weft/collectives/chunks/actions.h"

namespace weft::comm {
namespace {

using namespace collective;

constexpr std::int64_t kMostSteps = 1 << 18;  // over all ranks; about 50 ms

// The chunks of one rank's input, wherever in its memory they are.
class Window {
 public:
  Window(const Collective& collective, Placement placement, std::int32_t rank)
      : rank_(rank),
        first_(resolve(collective, placement, rank, {Buffer::input, 0})),
        chunks_(extent(collective, Buffer::input, rank)) {}

  std::int32_t chunks() const { return chunks_; }
  std::optional<std::size_t> find(const Cell& cell) const {
    const std::int32_t index = cell.index - first_.index;
    if (cell.rank != rank_ || cell.buffer != first_.buffer || index < 0 || index >= chunks_)
      return std::nullopt;
    return static_cast<std::size_t>(index);
  }

 private:
  const std::int32_t rank_;
  const Slot first_;
  const std::int32_t chunks_;
};

}  // namespace

std::optional<EarlyReads> find_early_reads(const Program& program, std::int32_t rank, Placement placement) {
  if (program.collective.kind == Kind::custom || count(program).steps > kMostSteps) return std::nullopt;
  const Actions actions = to_actions(program, placement, Grain::chunk);
  HappensBefore graph = happens_before(actions);
  const TrialRun run = trial_run(actions, graph, 0);
  if (!run.finished) return std::nullopt;

  // The rank's own actions are contiguous, agent by agent: one per chunk that its steps move.
  const auto is_own = [&](const Action& action) {
    return actions.agents[static_cast<std::size_t>(action.agent)].rank == rank;
  };
  const auto first = std::ranges::find_if(actions.actions, is_own) - actions.actions.begin();
  const auto own = static_cast<std::size_t>(std::ranges::count_if(actions.actions, is_own));
  const Window input(program.collective, placement, rank);
  EarlyReads reads{.sources = std::vector<bool>(own),
                   .targets = std::vector<bool>(own),
                   .written = std::vector<bool>(static_cast<std::size_t>(input.chunks()))};
  for (const std::int32_t node : run.order) {
    if (node < first || node - first >= static_cast<std::int64_t>(own)) continue;
    const Action& action = actions.actions[static_cast<std::size_t>(node)];
    const auto number = static_cast<std::size_t>(node - first);
    const auto sources = actions.sources(action);
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const auto chunk = input.find(sources[i]);
      if (!chunk || reads.written[*chunk]) continue;
      const bool is_target = i + 1 < sources.size();  // a step with two sources lists its target first
      (is_target ? reads.targets : reads.sources)[number] = true;
    }
    for (const Cell& cell : actions.targets(action))
      if (const auto chunk = input.find(cell)) reads.written[*chunk] = true;
  }
  return reads;
}

}  // namespace weft::comm
