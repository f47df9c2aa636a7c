// The checker compared with brute force: small programs, valid and randomly broken, executed in
// every possible order.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "chunk_programs.h"
#include "weft/base/random.h"
#include "weft/collectives/check/check.h"

namespace weft::collective {
namespace {

// Executes a program one chunk at a time, written from the description in program.h. Shares nothing
// with the checker.
class Machine {
 public:
  Machine(const Program& program, Placement placement) : program_(program), placement_(placement) {
    for (std::int32_t rank = 0; rank < program.collective.ranks; ++rank) {
      for (std::size_t block = 0; block < program.ranks[rank].blocks.size(); ++block) {
        number_[{rank, static_cast<std::int32_t>(block)}] = static_cast<int>(tasks_.size());
        std::vector<Task>& tasks = tasks_.emplace_back();
        const Threadblock& own = program.ranks[rank].blocks[block];
        for (std::size_t i = 0; i < own.steps.size(); ++i) {
          const std::int32_t chunks = own.steps[i].op == Op::nop ? 1 : own.steps[i].count;
          for (std::int32_t chunk = 0; chunk < chunks; ++chunk)
            tasks.push_back(
                {&own, &own.steps[i], rank, static_cast<std::int32_t>(i), chunk, chunk + 1 == chunks});
        }
      }
    }
  }

  // The verdict over all executions with unbounded connections.
  Verdict judge() const {
    bool deadlock = false, race = false;
    visit(1 << 20, [&](const State& state, const std::vector<int>& enabled) {
      if (enabled.empty()) deadlock = deadlock || !finished(state) || !state.messages.empty();
      for (const int one : enabled)
        for (const int other : enabled)
          race =
              race || (one < other && conflict(tasks_[one][state.at[one]], tasks_[other][state.at[other]]));
    });
    if (deadlock) return Verdict::deadlock;
    if (race || overlaps()) return Verdict::race;
    return wrong() ? Verdict::wrong_result : Verdict::ok;
  }

  // The fewest slots with which no execution deadlocks.
  std::int32_t slots() const {
    for (std::int32_t slots = 1;; ++slots) {
      bool stuck = false;
      visit(slots, [&](const State& state, const std::vector<int>& enabled) {
        stuck = stuck || (enabled.empty() && !finished(state));
      });
      if (!stuck) return slots;
    }
  }

 private:
  struct Task {
    const Threadblock* block;
    const Step* step;
    std::int32_t rank, place, chunk;
    bool last;
  };
  using Channel = std::array<std::int32_t, 3>;
  struct State {
    std::vector<int> at;              // per threadblock: its next task
    std::map<Channel, int> messages;  // in flight
    auto operator<=>(const State&) const = default;
  };

  bool finished(const State& state) const {
    for (std::size_t i = 0; i < tasks_.size(); ++i)
      if (state.at[i] < static_cast<int>(tasks_[i].size())) return false;
    return true;
  }

  static Channel outward(const Task& task) { return {task.rank, task.block->send_to, task.block->channel}; }
  static Channel inward(const Task& task) {
    return {task.block->receive_from, task.rank, task.block->channel};
  }

  bool can(const State& state, const Task& task, int slots) const {
    if (task.step->wait_block >= 0 && task.chunk == 0) {
      const int other = number_.at({task.rank, task.step->wait_block});
      bool seen = false;
      for (int i = 0; i < state.at[other]; ++i)
        seen = seen || (tasks_[other][i].last && tasks_[other][i].step->publishes &&
                        tasks_[other][i].place >= task.step->wait_step);
      if (!seen) return false;
    }
    const auto waiting = [&](const Channel& channel) {
      const auto at = state.messages.find(channel);
      return at == state.messages.end() ? 0 : at->second;
    };
    if (receives(task.step->op) && waiting(inward(task)) == 0) return false;
    return !sends(task.step->op) || waiting(outward(task)) < slots;
  }

  template <class See>
  void visit(int slots, See see) const {
    State first{std::vector<int>(tasks_.size()), {}};
    std::set<State> known = {first};
    std::vector<State> open = {first};
    while (!open.empty()) {
      const State state = open.back();
      open.pop_back();
      std::vector<int> enabled;
      for (std::size_t i = 0; i < tasks_.size(); ++i)
        if (state.at[i] < static_cast<int>(tasks_[i].size()) && can(state, tasks_[i][state.at[i]], slots))
          enabled.push_back(static_cast<int>(i));
      see(state, enabled);
      for (const int i : enabled) {
        State next = state;
        const Task& task = tasks_[i][next.at[i]++];
        if (receives(task.step->op) && --next.messages[inward(task)] == 0) next.messages.erase(inward(task));
        if (sends(task.step->op)) ++next.messages[outward(task)];
        if (known.insert(next).second) open.push_back(next);
      }
    }
  }

  Slot slot(const Task& task, Slot slot) const {
    slot.index += task.chunk;
    return resolve(program_.collective, placement_, task.rank, slot);
  }
  bool idle(const Task& task) const {
    return task.step->op == Op::copy && slot(task, task.step->source) == slot(task, task.step->target);
  }
  std::set<Slot> reads(const Task& task) const {
    std::set<Slot> all;
    if (reads_source(task.step->op) && !idle(task)) all.insert(slot(task, task.step->source));
    if (reads_target(task.step->op)) all.insert(slot(task, task.step->target));
    return all;
  }
  std::set<Slot> writes(const Task& task) const {
    if (!writes_target(task.step->op) || idle(task)) return {};
    return {slot(task, task.step->target)};
  }
  bool conflict(const Task& one, const Task& other) const {
    if (one.rank != other.rank) return false;
    const auto meet = [](const std::set<Slot>& a, const std::set<Slot>& b) {
      return std::ranges::any_of(a, [&](const Slot& some) { return b.contains(some); });
    };
    return meet(writes(one), writes(other)) || meet(writes(one), reads(other)) ||
           meet(reads(one), writes(other));
  }

  // A step that moves several chunks at once and reads one that it also writes.
  bool overlaps() const {
    for (const std::vector<Task>& tasks : tasks_)
      for (const Task& one : tasks)
        for (const Task& other : tasks)
          if (one.step == other.step && one.chunk != other.chunk)
            for (const Slot& some : writes(one))
              if (reads(other).contains(some)) return true;
    return false;
  }

  // Executes once, in any order: there is no race. A cell counts how often it contains each input.
  using Value = std::map<std::pair<std::int32_t, std::int32_t>, int>;  // rank -1: not written
  struct Message {
    Value value;
    std::int32_t chunk, count;
  };
  bool wrong() const {
    std::map<std::pair<std::int32_t, Slot>, Value> memory;
    for (std::int32_t rank = 0; rank < program_.collective.ranks; ++rank)
      for (std::int32_t i = 0; i < extent(program_.collective, Buffer::input, rank); ++i)
        memory[{rank, resolve(program_.collective, placement_, rank, {Buffer::input, i})}] = {{{rank, i}, 1}};
    const auto load = [&](std::int32_t rank, const Slot& from) {
      const auto at = memory.find({rank, from});
      return at == memory.end() ? Value{{{-1, 0}, 1}} : at->second;
    };
    std::map<Channel, std::deque<Message>> connections;
    State state{std::vector<int>(tasks_.size()), {}};
    bool uneven = false;
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t i = 0; i < tasks_.size(); ++i) {
        while (state.at[i] < static_cast<int>(tasks_[i].size()) &&
               can(state, tasks_[i][state.at[i]], 1 << 20)) {
          const Task& task = tasks_[i][state.at[i]++];
          moved = true;
          Value value;
          const auto add = [&](const Value& more) {
            for (const auto& [input, times] : more) value[input] += times;
          };
          for (const bool of_target : {true, false})
            if (of_target ? reads_target(task.step->op) : reads_source(task.step->op))
              add(load(task.rank, slot(task, of_target ? task.step->target : task.step->source)));
          if (receives(task.step->op)) {
            const Message message = connections[inward(task)].front();
            connections[inward(task)].pop_front();
            --state.messages[inward(task)];
            uneven = uneven || message.chunk != task.chunk || message.count != task.step->count;
            add(message.value);
          }
          if (writes_target(task.step->op) && !idle(task))
            memory[{task.rank, slot(task, task.step->target)}] = value;
          if (sends(task.step->op)) {
            connections[outward(task)].push_back({value, task.chunk, task.step->count});
            ++state.messages[outward(task)];
          }
        }
      }
    }
    if (uneven) return true;
    for (std::int32_t rank = 0; rank < program_.collective.ranks; ++rank) {
      for (std::int32_t i = 0; i < extent(program_.collective, Buffer::output, rank); ++i) {
        const Want wanted = want(program_.collective, rank, i);
        Value right;
        if (wanted.what == Want::What::chunk) right[{wanted.rank, wanted.index}] = 1;
        for (std::int32_t from = 0; wanted.what == Want::What::sum && from < program_.collective.ranks;
             ++from)
          right[{from, wanted.index}] = 1;
        const Slot at = resolve(program_.collective, placement_, rank, {Buffer::output, i});
        if (wanted.what != Want::What::anything && load(rank, at) != right) return true;
      }
    }
    return false;
  }

  const Program& program_;
  const Placement placement_;
  std::vector<std::vector<Task>> tasks_;  // per threadblock
  std::map<std::pair<std::int32_t, std::int32_t>, int> number_;
};

Program random_program(Random& random) {
  switch (random.below(9)) {
    case 0: return ring(2);
    case 1: return ring(3);
    case 2: return ring(2, 2);
    case 3: return ring_of_pairs(2);
    case 4: return all_pairs(Kind::all_to_all, 2, 1, Placement::out_of_place);
    case 5: return all_pairs(Kind::all_gather, 2, 2, Placement::in_place);
    case 6: return all_pairs(Kind::all_to_all, 2, 2, Placement::in_place);
    case 7: return chain(3, 2);
    default: return there_and_back(2);
  }
}

std::int32_t pick(Random& random, std::size_t size) { return static_cast<std::int32_t>(random.below(size)); }

void spoil(Program& program, Random& random) {
  std::vector<Threadblock>& blocks = program.ranks[pick(random, program.ranks.size())].blocks;
  const std::int32_t which = pick(random, blocks.size());
  std::vector<Step>& steps = blocks[which].steps;
  if (steps.empty()) return;
  const std::int32_t at = pick(random, steps.size());
  Step& step = steps[at];
  switch (random.below(11)) {
    case 0: steps.erase(steps.begin() + at); break;
    case 1: std::swap(step, steps[pick(random, steps.size())]); break;
    case 2: step.source.index = pick(random, 4); break;
    case 3: step.target.index = pick(random, 4); break;
    case 4: step.op = static_cast<Op>(random.below(kOps)); break;
    case 5: step.wait_block = -1; break;
    case 6:
      step.wait_block = pick(random, blocks.size());
      step.wait_step = pick(random, std::max<std::size_t>(blocks[step.wait_block].steps.size(), 1));
      break;
    case 7: step.publishes = !step.publishes; break;
    case 8: step.count = 1 + pick(random, 2); break;
    case 9: step.source.buffer = static_cast<Buffer>(random.below(3)); break;
    default: {
      // Splits a threadblock in two, without the dependency between the halves.
      const Threadblock whole = blocks[which];
      blocks[which].steps.resize(at);
      blocks.push_back({whole.send_to, whole.receive_from, 1, {whole.steps.begin() + at, whole.steps.end()}});
      program.channels = 2;
    }
  }
}

// Weakens or removes the dependency of a waiting step.
void loosen(Program& program, Random& random) {
  std::vector<Step*> waiting;
  for (RankProgram& rank : program.ranks)
    for (Threadblock& block : rank.blocks)
      for (Step& step : block.steps)
        if (step.wait_block >= 0) waiting.push_back(&step);
  if (waiting.empty()) return;
  Step& step = *waiting[pick(random, waiting.size())];
  if (random.below(3) == 0 || step.wait_step == 0) {
    step.wait_block = -1;
  } else {
    --step.wait_step;
  }
}

// Moves the local steps of a threadblock, or all of its receiving steps, to a new threadblock.
void split_ends(Program& program, Random& random) {
  std::vector<Threadblock>& blocks = program.ranks[pick(random, program.ranks.size())].blocks;
  Threadblock& block = blocks[pick(random, blocks.size())];
  Threadblock moved{-1, block.receive_from, block.channel, {}}, kept{block.send_to, -1, block.channel, {}};
  for (const Step& step : block.steps) {
    if (receives(step.op) && sends(step.op)) return;
    (receives(step.op) ? moved : kept).steps.push_back(step);
  }
  block = kept;
  blocks.push_back(moved);
}

RC_GTEST_PROP(CheckAgainstBruteForce, AgreesOnEveryProgram, (std::uint64_t seed)) {
  Random random(seed);
  Program program = random_program(random);
  if (random.below(4) == 0) split_ends(program, random);
  if (random.below(2) == 0) loosen(program, random);
  for (std::uint64_t i = random.below(3); i > 0; --i) spoil(program, random);
  const Report report = check(program);
  if (report.verdict() == Verdict::malformed) return;
  const Machine machine(program, program.placement);
  const Verdict verdict = machine.judge();
  RC_LOG() << name(report.verdict()) << " "
           << (report.finding ? print(report.finding->where) + ": " + report.finding->text : "");
  RC_ASSERT(report.verdict() == verdict);
  if (verdict != Verdict::deadlock) RC_ASSERT(report.slots == machine.slots());
}

}  // namespace
}  // namespace weft::collective
