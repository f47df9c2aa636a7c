#include "weft/collectives/synthesis/time_search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "weft/base/check.h"
#include "weft/base/random.h"
#include "weft/collectives/synthesis/tree_schedule.h"

namespace weft::synthesis {
namespace {

using collective::Kind;

constexpr std::array<std::int32_t, 6> kCuts = {1, 2, 3, 4, 6, 8};
// Chunks times devices times edges beyond which finer cuts are not tried: an iteration would take
// seconds.
constexpr double kMostTurnWork = 4e6;
// Numbers of segments tried for trees, and a limit on the hops of one try.
constexpr std::array<std::int32_t, 7> kTreePieces = {1, 2, 4, 8, 16, 32, 64};
constexpr double kMostTimedHops = 4e5;
constexpr double kCloseEnough = 1.005;  // relative to the bound: no search needed
constexpr double kGrace = 2;            // seconds for the first iteration, whatever the clock says

bool message_is_whole(Kind kind) { return kind == Kind::all_reduce || kind == Kind::all_to_all; }

// The number of chunks in a message, over all blocks.
double chunks_of_message(Kind kind, std::int32_t cut, std::int32_t devices) {
  return kind == Kind::broadcast || kind == Kind::reduce ? cut : static_cast<double>(cut) * devices;
}

// One direction of a collective with one chunk count, and the best keys for it so far.
class TimeCut {
 public:
  TimeCut(const StepNetwork& network, Kind kind, std::int32_t root, std::int32_t cut, double bytes)
      : network_(network),
        question_{kind, root, message_is_whole(kind) ? cut * network.devices : cut, 1, 1},
        problem_(step_problem(question_, network.devices)),
        chunk_bytes_(bytes / chunks_of_message(kind, cut, network.devices)),
        times_(network, chunk_bytes_) {}

  // Makes another schedule; returns whether it is the best so far.
  bool turn(Random& random, const StepClock& clock) {
    GreedyKeys keys = next_keys(random);
    std::optional<TimeSchedule> made = build_greedy_schedule(network_, problem_, times_, keys, clock);
    if (!made) return false;
    ++turns_;
    if (best_ && made->finish > best_->finish) return false;
    const bool better = !best_ || made->finish < best_->finish;
    best_ = std::move(made);
    keys_ = std::move(keys);
    return better;
  }

  const std::optional<TimeSchedule>& best() const { return best_; }
  const StepQuestion& question() const { return question_; }
  double chunk_bytes() const { return chunk_bytes_; }
  double finish() const { return best_ ? best_->finish : 1e300; }
  double bound() const { return time_bound(network_, problem_, chunk_bytes_, chunk_bytes_); }
  std::optional<std::string> fault() const { return first_fault(network_, problem_, chunk_bytes_, *best_); }

 private:
  // The first iterations try every policy; later ones change some of the best keys.
  GreedyKeys next_keys(Random& random) const {
    GreedyKeys keys;
    const bool fresh = turns_ < 8 || random.below(8) == 0;
    if (fresh) {
      keys.chunk.resize(problem_.chunks.size());
      keys.edge.resize(network_.edges.size());
      for (float& key : keys.chunk) key = static_cast<float>(random.uniform());
      for (float& key : keys.edge) key = static_cast<float>(random.uniform());
      const std::uint64_t policy = turns_ < 8 ? static_cast<std::uint64_t>(turns_) : random.below(8);
      keys.far_first = policy % 2 == 0;
      keys.patience = policy / 2 % 2 == 0 ? 0 : 4;
      keys.rare_first = policy / 4 == 0;
      return keys;
    }
    keys = keys_;
    const auto change = [&](std::vector<float>& list) {
      const std::size_t count = 1 + random.below(1 + list.size() / 8);
      for (std::size_t i = 0; i < count; ++i)
        list[random.below(list.size())] = static_cast<float>(random.uniform());
    };
    change(keys.chunk);
    change(keys.edge);
    return keys;
  }

  const StepNetwork& network_;
  StepQuestion question_;
  StepProblem problem_;
  double chunk_bytes_;
  EdgeTimes times_;
  std::optional<TimeSchedule> best_;
  GreedyKeys keys_;
  std::int32_t turns_ = 0;
};

struct OneDirection {
  std::optional<TimeSchedule> schedule;
  StepQuestion question;
  double chunk_bytes = 0, bound = 0;
  std::int32_t turns = 0, tree_pieces = 0;
  bool stopped = false;
};

// Times the trees in more and more segments, as long as that helps. No schedule if none could be
// timed. `only`: only this number of segments; 0: any.
OneDirection time_trees(const StepNetwork& network, const TimeQuestion& question, Kind kind,
                        const std::vector<Tree>& trees, Amount each, std::int32_t only,
                        const StepClock& clock) {
  const bool rooted = kind == Kind::broadcast || kind == Kind::reduce;
  const double streams = static_cast<double>(each) * (rooted ? 1 : network.devices);
  OneDirection way;
  for (const std::int32_t pieces : kTreePieces) {
    if (only > 0 && pieces != only) continue;
    if (only == 0 && streams * pieces * (network.devices - 1.0) > kMostTimedHops) break;
    const double chunk_bytes = question.bytes / (streams * pieces);
    auto timed = tree_schedule(network, trees, pieces, chunk_bytes, clock);
    if (!timed || (way.schedule && timed->finish >= way.schedule->finish)) break;
    way.schedule = std::move(timed);
    way.question = {kind, question.root, static_cast<std::int32_t>(each) * pieces, 1, 1};
    way.chunk_bytes = chunk_bytes;
    way.tree_pieces = pieces;
  }
  if (!way.schedule) return way;
  const auto fault =
      first_fault(network, step_problem(way.question, network.devices), way.chunk_bytes, *way.schedule);
  WEFT_CHECK(!fault, fault ? *fault : "");
  // Finer chunks may finish earlier over several edges, so the bound is for whole blocks cut this
  // finely.
  const StepProblem whole = step_problem({kind, question.root, 1, 1, 1}, network.devices);
  way.bound = time_bound(network, whole, question.bytes / (rooted ? 1 : network.devices), way.chunk_bytes);
  return way;
}

// Searches one direction. Each cut gets an iteration, then the better ones get more.
OneDirection search_direction(const StepNetwork& network, const TimeQuestion& question, Kind kind,
                              double finished_before, const TimeEffort& effort, const StepClock& clock) {
  Random random(effort.seed);
  std::vector<TimeCut> cuts;
  for (const std::int32_t cut : kCuts) {
    if (question.chunks > 0 && cut != kCuts.front()) break;
    const std::int32_t chunks = question.chunks > 0 ? question.chunks : cut;
    const double blocks =
        chunks_of_message(kind, chunks, network.devices) * (kind == Kind::all_to_all ? network.devices : 1);
    if (!cuts.empty() && blocks * network.devices * static_cast<double>(network.edges.size()) > kMostTurnWork)
      break;
    cuts.emplace_back(network, kind, question.root, chunks, question.bytes);
  }
  OneDirection way;
  // Finer chunks have the same cut bound and a lower path bound, so the bound of the finest holds
  // for all.
  way.bound = cuts.back().bound();
  StepClock first = clock;
  first.stop = {};
  first.end = std::max(
      clock.end, std::chrono::steady_clock::now() + std::chrono::milliseconds(std::llround(kGrace * 1e3)));
  double best = 1e300;
  for (std::int32_t turn = 0; turn < std::max(1, effort.most_turns); ++turn) {
    if (turn > 0 && clock.over()) {
      way.stopped = true;
      break;
    }
    if (best <= way.bound * (1 + 1e-6)) break;
    std::size_t which = static_cast<std::size_t>(turn) % cuts.size();
    if (static_cast<std::size_t>(turn) >= 2 * cuts.size()) {
      // Two of three iterations for the best cut, the third for any.
      for (std::size_t i = 0; i < cuts.size(); ++i)
        if (cuts[i].finish() < cuts[which].finish() && turn % 3 != 0) which = i;
    }
    cuts[which].turn(random, turn == 0 ? first : clock);
    way.turns = turn + 1;
    if (cuts[which].finish() < best) best = cuts[which].finish();
    if (effort.progress && best < 1e300) effort.progress(way.turns, finished_before + best, way.bound);
  }
  const auto winner = std::ranges::min_element(cuts, {}, &TimeCut::finish);
  if (!winner->best()) return way;
  const auto fault = winner->fault();
  WEFT_CHECK(!fault, fault ? *fault : "");
  way.schedule = winner->best();
  way.question = winner->question();
  way.chunk_bytes = winner->chunk_bytes();
  return way;
}

// The better of trees, if any, and search. No search if the trees are close enough to the bound.
OneDirection best_direction(const StepNetwork& network, const TimeQuestion& question, Kind kind,
                            double finished_before, const std::vector<Tree>* trees, const TimeEffort& effort,
                            const StepClock& clock) {
  OneDirection by_trees;
  if (trees != nullptr)
    by_trees = time_trees(network, question, kind, *trees, effort.forest->trees, 0, clock);
  if (by_trees.schedule && by_trees.schedule->finish <= by_trees.bound * kCloseEnough) return by_trees;
  OneDirection way = search_direction(network, question, kind, finished_before, effort, clock);
  if (!by_trees.schedule || (way.schedule && way.schedule->finish <= by_trees.schedule->finish)) return way;
  by_trees.turns = way.turns;
  by_trees.stopped = way.stopped;
  return by_trees;
}

}  // namespace

Result<TimeAnswer> search_in_time(const StepNetwork& network, const TimeQuestion& question,
                                  const TimeEffort& effort, const StepClock& clock) {
  if (!(question.bytes > 0)) return user_error("the size must be greater than 0", "for example 1MB");
  WEFT_TRY_STATUS(check_question(
      {question.kind, question.root, message_is_whole(question.kind) ? network.devices : 1, 1, 1},
      network.devices));
  const bool both = question.kind == Kind::all_reduce;
  // If the user sets the number of chunks, trees are not considered.
  const Forest* const forest =
      question.chunks == 0 && effort.forest != nullptr && effort.forest->trees > 0 ? effort.forest : nullptr;
  TimeAnswer answer;
  TimeQuestion asked = question;
  if (both || runs_backwards(question.kind)) {
    const StepNetwork back = reversed(network);
    const Kind kind = both ? Kind::reduce_scatter : question.kind;
    OneDirection way =
        best_direction(back, asked, kind, 0, forest != nullptr ? &forest->up : nullptr, effort, clock);
    answer.tree_pieces = way.tree_pieces;
    answer.combine = std::move(way.schedule);
    answer.question = way.question;
    answer.chunk_bytes = way.chunk_bytes;
    answer.bound += way.bound;
    answer.turns += way.turns;
    answer.stopped = way.stopped;
    // Both halves are cut into the same chunks.
    if (answer.combine) asked.chunks = way.question.chunks;
  }
  if (both || !runs_backwards(question.kind)) {
    const Kind kind = both ? Kind::all_gather : question.kind;
    // If trees combine, trees also distribute, cut the same way.
    const std::vector<Tree>* const trees = forest != nullptr && !answer.combine ? &forest->down : nullptr;
    OneDirection way =
        answer.tree_pieces > 0
            ? time_trees(network, asked, kind, forest->down, forest->trees, answer.tree_pieces, {})
            : best_direction(network, asked, kind, answer.combine ? answer.combine->finish : 0, trees, effort,
                             clock);
    answer.tree_pieces = way.tree_pieces;
    answer.spread = std::move(way.schedule);
    answer.question = way.question;
    answer.chunk_bytes = way.chunk_bytes;
    answer.bound += way.bound;
    answer.turns += way.turns;
    answer.stopped = answer.stopped || way.stopped;
  }
  const bool needs_combine = both || runs_backwards(question.kind),
             needs_spread = both || !runs_backwards(question.kind);
  if ((needs_combine && !answer.combine) || (needs_spread && !answer.spread))
    return user_error("no schedule was found in this time", "raise --time-limit");
  answer.finish = (answer.combine ? answer.combine->finish : 0) + (answer.spread ? answer.spread->finish : 0);
  answer.question.kind = question.kind;
  if (both) answer.question.chunks *= network.devices;
  return answer;
}

collective::Moves time_moves(const StepNetwork& network, const TimeAnswer& answer) {
  std::optional<StepSchedule> combine, spread;
  if (answer.combine) combine = in_order(*answer.combine);
  if (answer.spread) spread = in_order(*answer.spread);
  return step_moves(answer.question, network, combine ? &*combine : nullptr, spread ? &*spread : nullptr);
}

}  // namespace weft::synthesis
