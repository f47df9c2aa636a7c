#include "weft/communication/comm/chunk/chunk_classes.h"

#include <algorithm>
#include <array>
#include <deque>
#include <numeric>

#include <fmt/format.h>

#include "weft/collectives/check/fifo_slots.h"
#include "weft/collectives/check/happens_before.h"
#include "weft/collectives/chunks/actions.h"

namespace weft::comm {
namespace {

using namespace collective;

constexpr std::int32_t kUnknown = -1;

// The number of chunks in block `number`; there is a block per rank, or per pair in an all_to_all.
std::int32_t chunks_of_block(const Collective& collective, std::size_t number) {
  return collective.counts.empty() ? collective.chunks : collective.counts[number];
}

std::size_t blocks_of(const Collective& collective) {
  if (!has_block_per_rank(collective.kind)) return 1;
  const auto ranks = static_cast<std::size_t>(collective.ranks);
  return collective.kind == Kind::all_to_all ? ranks * ranks : ranks;
}

class Flow {
 public:
  Flow(const Actions& actions, ClassGrain grain) : actions_(actions), messages_(actions.connections.size()) {
    const auto ranks = static_cast<std::size_t>(actions.collective.ranks);
    cells_.resize(ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      for (const Buffer buffer : {Buffer::input, Buffer::output})
        at(rank, buffer) = home_classes(actions.collective, grain, buffer, static_cast<std::int32_t>(rank));
      at(rank, Buffer::scratch)
          .assign(static_cast<std::size_t>(actions.memory[rank].chunks[static_cast<int>(Buffer::scratch)]),
                  kUnknown);
    }
  }

  // The class that an action moves; kUnknown if several classes mix.
  std::int32_t act(const Action& action) {
    std::int32_t moved = kUnknown;
    bool any = false, alike = true;
    const auto add = [&](std::int32_t one) {
      alike = alike && one != kUnknown && (!any || one == moved);
      moved = one;
      any = true;
    };
    for (const Cell& cell : actions_.sources(action)) add(class_at(cell));
    if (action.take >= 0) {
      add(messages_[static_cast<std::size_t>(action.take)].front());
      messages_[static_cast<std::size_t>(action.take)].pop_front();
    }
    if (!any) return 0;
    for (const Cell& cell : actions_.targets(action)) {
      if (cell.buffer == Buffer::scratch)
        class_at(cell) = moved;
      else
        alike = alike && class_at(cell) == moved;
    }
    if (action.give >= 0) messages_[static_cast<std::size_t>(action.give)].push_back(moved);
    return alike ? moved : kUnknown;
  }

 private:
  std::vector<std::int32_t>& at(std::size_t rank, Buffer buffer) {
    return cells_[rank][static_cast<std::size_t>(buffer)];
  }
  std::int32_t& class_at(const Cell& cell) {
    return at(static_cast<std::size_t>(cell.rank), cell.buffer)[static_cast<std::size_t>(cell.index)];
  }

  const Actions& actions_;
  std::vector<std::array<std::vector<std::int32_t>, 3>> cells_;
  std::vector<std::deque<std::int32_t>> messages_;
};

}  // namespace

std::vector<std::int32_t> home_classes(const Collective& collective, ClassGrain grain, Buffer buffer,
                                       std::int32_t rank) {
  std::vector<std::int32_t> classes(static_cast<std::size_t>(extent(collective, buffer, rank)));
  if (grain == ClassGrain::place || !has_block_per_rank(collective.kind)) {
    for (std::size_t i = 0; i < classes.size(); ++i)
      classes[i] = static_cast<std::int32_t>(i) % collective.chunks;
    return classes;
  }
  if (collective.kind != Kind::all_to_all) {
    const bool all_blocks = buffer == shared_buffer(collective.kind);
    std::iota(classes.begin(), classes.end(), all_blocks ? 0 : first_of_block(collective, rank));
    return classes;
  }
  // Pairs are numbered by sender, then receiver.
  std::int32_t first = 0;
  auto next = classes.begin();
  const auto ranks = static_cast<std::size_t>(collective.ranks);
  for (std::size_t pair = 0; pair < ranks * ranks; ++pair) {
    const std::int32_t chunks = chunks_of_block(collective, pair);
    const std::size_t mine = buffer == Buffer::input ? pair / ranks : pair % ranks;
    if (mine == static_cast<std::size_t>(rank)) {
      std::iota(next, next + chunks, first);
      next += chunks;
    }
    first += chunks;
  }
  return classes;
}

std::optional<std::vector<std::int32_t>> classify(const Program& program, std::int32_t rank,
                                                  ClassGrain grain) {
  const bool in_place = program.placement == Placement::in_place;
  // In place, chunk k holds what this rank sends to a peer and what it receives from it: two
  // classes.
  if (program.collective.kind == Kind::all_to_all && grain == ClassGrain::block && in_place)
    return std::nullopt;
  const Actions actions =
      to_actions(program, in_place ? Placement::in_place : Placement::out_of_place, Grain::chunk);
  HappensBefore graph = happens_before(actions);
  const TrialRun run = trial_run(actions, graph, 0);
  if (!run.finished) return std::nullopt;
  Flow flow(actions, grain);
  std::vector<std::int32_t> moved(actions.actions.size());
  for (const std::int32_t node : run.order) {
    const auto action = static_cast<std::size_t>(node);
    if (action >= actions.actions.size()) continue;
    moved[action] = flow.act(actions.actions[action]);
    if (moved[action] == kUnknown) return std::nullopt;
  }
  std::vector<std::int32_t> own;
  for (std::size_t i = 0; i < actions.actions.size(); ++i)
    if (actions.agents[static_cast<std::size_t>(actions.actions[i].agent)].rank == rank)
      own.push_back(moved[i]);
  return own;
}

Result<std::vector<std::int64_t>> class_sizes(const Collective& collective, ClassGrain grain,
                                              const Call& call) {
  std::vector<std::int64_t> sizes;
  const std::size_t blocks = grain == ClassGrain::place ? 1 : blocks_of(collective);
  for (std::size_t block = 0; block < blocks; ++block) {
    const std::int64_t elements = call.counts.empty() ? call.count : call.counts[block];
    const std::int64_t chunks =
        grain == ClassGrain::place ? collective.chunks : chunks_of_block(collective, block);
    if (chunks == 0 && elements > 0)
      return user_error(
          fmt::format("the program has no chunk for a block of {} elements: block {}", elements, block),
          "use the counts that the program was made for");
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk)
      sizes.push_back(chunk_extent(elements, chunks, chunk).size);
  }
  return sizes;
}

}  // namespace weft::comm
