#include "weft/collectives/check/recover_moves.h"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "weft/collectives/check/cell_numbers.h"
#include "weft/collectives/check/fifo_slots.h"
#include "weft/collectives/check/happens_before.h"
#include "weft/collectives/chunks/check_moves.h"

namespace weft::collective {
namespace {

class Recovery {
 public:
  explicit Recovery(const Actions& actions)
      : actions_(actions), numbers_(actions), messages_(actions.connections.size()) {
    moves_.collective = actions.collective;
    moves_.in_place = actions.placement == Placement::in_place;
    for (const RankMemory& memory : actions.memory)
      moves_.scratch.push_back(memory.chunks[static_cast<std::size_t>(Buffer::scratch)]);
  }

  void act(const Action& action) {
    for (std::int32_t chunk = 0; chunk < action.count; ++chunk) {
      const std::int32_t rank = actions_.agents[action.agent].rank;
      agent_ = action.agent;
      std::vector<Place> sources = places(actions_.sources(action), chunk);
      if (action.take >= 0) sources.push_back(take(action.take));
      if (sources.empty()) return;
      const Place value = combine(rank, sources, places(actions_.targets(action), chunk), action.give >= 0);
      if (action.give >= 0) give(action.give, value);
    }
  }

  std::size_t size() const { return moves_.moves.size(); }
  Moves finish() { return std::move(moves_); }

 private:
  static std::vector<Place> places(std::span<const Cell> cells, std::int32_t chunk) {
    std::vector<Place> found;
    for (const Cell& cell : cells) found.push_back({cell.rank, cell.buffer, cell.index + chunk});
    return found;
  }

  Place fresh_scratch(std::int32_t rank) { return {rank, Buffer::scratch, moves_.scratch[rank]++}; }

  Place take(std::int32_t connection) {
    Queue& queue = messages_[connection];
    const Place place = queue.waiting.front();
    queue.waiting.pop_front();
    ++queue.taken;
    return place;
  }

  void give(std::int32_t connection, const Place& place) {
    Queue& queue = messages_[connection];
    if (const auto number = number_of(place); number >= 0)
      read_later_[number].push_back(
          {connection, queue.taken + static_cast<std::int64_t>(queue.waiting.size())});
    queue.waiting.push_back(place);
  }

  // -1: scratch added here, which is never overwritten.
  std::int32_t number_of(const Place& place) const {
    const std::int32_t chunks = actions_.memory[place.rank].chunks[static_cast<std::size_t>(place.buffer)];
    return place.index < chunks ? numbers_.first(place.rank, place.buffer) + place.index : -1;
  }

  // Copies messages that still refer to `place` to scratch of their receivers.
  void copy_pending_messages(const Place& place) {
    const auto at = read_later_.find(number_of(place));
    if (at == read_later_.end()) return;
    const std::vector<Reader> readers = std::move(at->second);
    read_later_.erase(at);
    for (const Reader& reader : readers) {
      Queue& queue = messages_[reader.connection];
      if (reader.message < queue.taken) continue;
      const Place kept = fresh_scratch(actions_.connections[reader.connection].to);
      queue.waiting[static_cast<std::size_t>(reader.message - queue.taken)] = kept;
      add(Move::Verb::copy, place, kept);
    }
  }

  void write(Move::Verb verb, const Place& from, const Place& to) {
    copy_pending_messages(to);
    add(verb, from, to);
  }

  // A move that continues where one of the same agent ended is merged into it, unless a move in
  // between writes what it reads, or touches what it writes.
  void add(Move::Verb verb, const Place& from, const Place& to) {
    Touch& source = touched_[key(from)];
    Touch& target = touched_[key(to)];
    auto at = static_cast<std::int64_t>(moves_.moves.size());
    if (const auto found = goes_on_.find({agent_, verb, from, to}); found != goes_on_.end()) {
      Move& earlier = moves_.moves[static_cast<std::size_t>(found->second)];
      const bool apart =
          from.rank != to.rank || from.buffer != to.buffer || std::abs(from.index - to.index) > earlier.count;
      if (apart && source.written <= found->second && target.touched <= found->second) {
        at = found->second;
        ++earlier.count;
      }
      goes_on_.erase(found);
    }
    if (at == static_cast<std::int64_t>(moves_.moves.size())) moves_.moves.push_back({verb, from, to});
    goes_on_[{agent_, verb, next(from), next(to)}] = at;
    source.touched = std::max(source.touched, at);
    target.touched = target.written = std::max(target.touched, at);
  }

  static Place next(Place place) {
    ++place.index;
    return place;
  }
  static std::uint64_t key(const Place& place) {
    return (static_cast<std::uint64_t>(place.rank) * 3 + static_cast<std::uint64_t>(place.buffer)) << 32 |
           static_cast<std::uint32_t>(place.index);
  }

  // The place to accumulate the sum in: a target, preferably of `rank` and already holding a term.
  Place accumulator(std::int32_t rank, const std::vector<Place>& sources, const std::vector<Place>& targets) {
    const Place* best = nullptr;
    int best_score = -1;
    for (const Place& target : targets) {
      const int score = (target.rank == rank ? 4 : 0) + (target == sources.front() ? 2 : 0) +
                        (std::ranges::count(sources, target) > 0 ? 1 : 0);
      if (score > best_score) best = &target, best_score = score;
    }
    // A chunk that counts twice cannot be the accumulator: adding to it would change the second
    // term.
    if (best == nullptr || std::ranges::count(sources, *best) > 1) return fresh_scratch(rank);
    return *best;
  }

  // Writes the sum of the sources to the targets. Returns a place where it can be read.
  Place combine(std::int32_t rank, const std::vector<Place>& sources, const std::vector<Place>& targets,
                bool kept) {
    if (targets.empty() && (!kept || sources.size() == 1)) return sources.front();
    Place sum = sources.front();
    if (sources.size() > 1) {
      sum = accumulator(rank, sources, targets);
      const auto held = std::ranges::find(sources, sum);
      const std::size_t base = held == sources.end() ? 0 : static_cast<std::size_t>(held - sources.begin());
      if (held == sources.end()) write(Move::Verb::copy, sources[base], sum);
      for (std::size_t i = 0; i < sources.size(); ++i)
        if (i != base) write(Move::Verb::reduce, sources[i], sum);
    }
    for (const Place& target : targets)
      if (target != sum) write(Move::Verb::copy, sum, target);
    const auto own = std::ranges::find(targets, rank, &Place::rank);
    return own == targets.end() ? sum : *own;
  }

  struct Queue {
    std::deque<Place> waiting;  // where each message can be read
    std::int64_t taken = 0;
  };
  struct Reader {
    std::int32_t connection = 0;
    std::int64_t message = 0;  // its index on the connection
  };

  // The last moves that wrote a chunk, and that read or wrote it.
  struct Touch {
    std::int64_t written = -1, touched = -1;
  };

  const Actions& actions_;
  CellNumbers numbers_;
  std::vector<Queue> messages_;
  std::unordered_map<std::int32_t, std::vector<Reader>> read_later_;  // by cell
  std::unordered_map<std::uint64_t, Touch> touched_;                  // by key()
  // The move that one with these operands would extend.
  std::map<std::tuple<std::int32_t, Move::Verb, Place, Place>, std::int64_t> goes_on_;
  std::int32_t agent_ = 0;
  Moves moves_;
};

}  // namespace

Result<Moves> recover_moves(const Actions& actions, std::string name) {
  HappensBefore graph = happens_before(actions);
  const TrialRun one_run = trial_run(actions, graph, 0);
  if (!one_run.finished) return user_error("expected a plan that terminates, found a deadlock");
  Recovery recovery(actions);
  for (const std::int32_t node : one_run.order) {
    if (node >= static_cast<std::int32_t>(actions.actions.size()))
      continue;  // not an action: see HappensBefore
    recovery.act(actions.actions[node]);
    if (static_cast<std::int64_t>(recovery.size()) > kMostMoves)
      return user_error(fmt::format("expected a plan of at most {} moves, found more", kMostMoves));
  }
  Moves moves = recovery.finish();
  moves.name = std::move(name);
  return moves;
}

}  // namespace weft::collective
