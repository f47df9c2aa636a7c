#include "weft/predict/sim/step/step_run.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

namespace weft::sim {
namespace {

std::size_t wire_count(std::span<const std::int32_t> wires, std::size_t axes) {
  std::size_t count = axes;
  for (const std::int32_t wire : wires) count = std::max(count, static_cast<std::size_t>(wire) + 1);
  return count;
}

}  // namespace

StepRun::StepRun(std::span<const ProgramTasks* const> ranks, const Meetings& meetings,
                 std::span<const std::int32_t> wires, const StepRunOptions& options)
    : meetings_(meetings),
      options_(options),
      sharing_(ranks.size(), wire_count(wires, meetings.of_axis.size())) {
  const std::size_t axes = meetings.of_axis.size();
  for (const ProgramTasks* tasks : ranks) {
    RankState state;
    state.tasks = tasks;
    state.waits = tasks->waits;
    state.times.resize(tasks->count());
    state.before.assign(tasks->count(), kNone);
    state.next.resize(tasks->streams.size());
    state.busy.resize(tasks->streams.size());
    state.last.assign(static_cast<std::size_t>(options.workers) + tasks->streams.size() - 1, kNone);
    for (int worker = options.workers; worker-- > 0;) state.idle.push_back(worker);
    ranks_.push_back(std::move(state));
  }
  const auto wire_of = [&](std::size_t axis) {
    return wires.empty() ? axis : static_cast<std::size_t>(wires[axis]);
  };
  const auto is_used = [&](std::size_t lane) {
    return std::ranges::any_of(ranks,
                               [&](const ProgramTasks* tasks) { return !tasks->lane_orders[lane].empty(); });
  };
  for (std::size_t number = 0; number < 2 * meetings.all.size(); ++number) {
    const Meeting& meeting = meetings.all[number % meetings.all.size()];
    MeetingState state;
    state.tasks.resize(meeting.classes.size());
    const std::size_t wire = wire_of(meeting.axis);
    for (std::size_t axis = 0; axis < axes; ++axis)
      state.shared = state.shared || (axis != meeting.axis && wire_of(axis) == wire);
    state.shared = state.shared || (is_used(meeting.axis) && is_used(axes + meeting.axis));
    if (state.shared) state.route = sharing_.add_route(wire, meeting.classes);
    states_.push_back(std::move(state));
  }
}

Status StepRun::check_agreement() const {
  for (const Meeting& meeting : meetings_.all) {
    const ProgramTasks& first = *ranks_[meeting.classes[0]].tasks;
    for (const std::uint32_t rank : meeting.classes) {
      const ProgramTasks& other = *ranks_[rank].tasks;
      if (&other == &first) continue;
      for (const std::size_t lane : {meeting.axis, meetings_.of_axis.size() + meeting.axis}) {
        const auto &ours = first.lane_orders[lane], &theirs = other.lane_orders[lane];
        if (ours.size() != theirs.size())
          return user_error(fmt::format("ranks of a group do not run the same collectives: {} against {}",
                                        ours.size(), theirs.size()));
        for (std::size_t i = 0; i < ours.size(); ++i)
          if (first.exchanges[ours[i]].kind != other.exchanges[theirs[i]].kind)
            return user_error(
                fmt::format("ranks of a group do not run the same collectives: number {} differs", i));
      }
    }
  }
  return {};
}

Status StepRun::run() {
  WEFT_TRY_STATUS(check_agreement());
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    RankState& state = ranks_[rank];
    if (options_.workers > 1)
      for (const std::uint32_t task : state.tasks->streams[0])
        if (state.waits[task] == 0) state.ready.push_back(task);  // ascending, so already a heap
    for (std::uint32_t stream = 0; stream < state.next.size(); ++stream) advance(rank, stream);
  }
  while (true) {
    const auto transfer = sharing_.next();
    if (transfer && (queue_.empty() || transfer->first < queue_.front().time)) {
      const auto [time, number] = *transfer;
      now_ = time;
      ++events_;
      sharing_.finish(now_, number);
      end_collective(meeting_of_transfer_[static_cast<std::size_t>(number)]);
      continue;
    }
    if (queue_.empty()) break;
    std::ranges::pop_heap(queue_, std::less<>());
    const Event event = queue_.back();
    queue_.pop_back();
    happen(event);
  }
  for (const RankState& state : ranks_)
    if (state.done != state.tasks->count())
      return user_error("the ranks wait for each other: they issue collectives in different orders");
  return {};
}

void StepRun::foresee(double time, Happening what, std::uint32_t index, std::uint32_t detail) {
  queue_.push_back({time, order_++, what, index, detail});
  std::ranges::push_heap(queue_, std::less<>());
}

void StepRun::happen(const Event& event) {
  now_ = event.time;
  ++events_;
  switch (event.what) {
    case Happening::task: return complete(event.index, event.detail);
    case Happening::latency: return start_transfer(event.index);
    case Happening::collective: return end_collective(event.index);
  }
}

void StepRun::start_transfer(std::uint32_t meeting) {
  const std::int32_t transfer =
      sharing_.start(now_, states_[meeting].route, price_of(meeting).transfer_seconds);
  const auto number = static_cast<std::size_t>(transfer);
  if (number >= meeting_of_transfer_.size()) meeting_of_transfer_.resize(number + 1);
  meeting_of_transfer_[number] = meeting;
}

void StepRun::became_ready(std::uint32_t rank, std::uint32_t task) {
  RankState& state = ranks_[rank];
  const std::uint32_t stream = state.tasks->stream_of(task, options_.overlap);
  if (stream > 0) return advance(rank, stream);
  if (options_.workers == 1) return;  // the stream only checks its next task
  state.ready.push_back(task);
  std::ranges::push_heap(state.ready, std::greater<>());
}

// Starts the tasks that the stream can start.
void StepRun::advance(std::uint32_t rank, std::uint32_t stream) {
  RankState& state = ranks_[rank];
  const std::vector<std::uint32_t>& tasks = state.tasks->streams[stream];
  if (stream > 0) {
    if (state.busy[stream] || state.next[stream] == tasks.size()) return;
    const std::uint32_t task = tasks[state.next[stream]];
    if (state.waits[task] > 0) return;
    state.busy[stream] = true;
    ++state.next[stream];
    return arrive(rank, task);
  }
  while (!state.idle.empty()) {
    std::uint32_t task = 0;
    if (options_.workers > 1) {
      if (state.ready.empty()) return;
      std::ranges::pop_heap(state.ready, std::greater<>());
      task = state.ready.back();
      state.ready.pop_back();
    } else {
      if (state.next[0] == tasks.size() || state.waits[tasks[state.next[0]]] > 0) return;
      task = tasks[state.next[0]++];
    }
    start_compute(rank, task);
  }
}

void StepRun::start_compute(std::uint32_t rank, std::uint32_t task) {
  RankState& state = ranks_[rank];
  const int worker = state.idle.back();
  state.idle.pop_back();
  state.times[task].worker = worker;
  if (state.tasks->exchange[task] != ProgramTasks::kComputes) return arrive(rank, task);
  state.times[task].begin = now_;
  foresee(now_ + state.tasks->seconds[task], Happening::task, rank, task);
}

void StepRun::arrive(std::uint32_t rank, std::uint32_t task) {
  const ProgramTasks& tasks = *ranks_[rank].tasks;
  const ExchangeTask& exchange = tasks.exchanges[tasks.exchange[task]];
  if (const std::uint32_t stream = tasks.stream_of(task, options_.overlap); stream > 0)
    ranks_[rank].times[task].worker = options_.workers + static_cast<int>(stream) - 1;
  std::uint32_t number = meetings_.of_axis[exchange.axis][rank];
  const std::vector<std::uint32_t>& members = meetings_.all[number].classes;
  if (exchange.lane != exchange.axis) number += static_cast<std::uint32_t>(meetings_.all.size());
  MeetingState& meeting = states_[number];
  meeting.tasks[static_cast<std::size_t>(std::ranges::lower_bound(members, rank) - members.begin())] = task;
  if (++meeting.arrived == members.size()) start_collective(number);
}

// The cost of the member that moves the most: in a halo exchange, blocks at the ends have one
// neighbour less.
const cost::ExchangeCost& StepRun::price_of(std::uint32_t number) const {
  const Meeting& who = meeting(number);
  const MeetingState& meeting = states_[number];
  const auto price = [&](std::size_t i) -> const cost::ExchangeCost& {
    const ProgramTasks& tasks = *ranks_[who.classes[i]].tasks;
    return tasks.exchanges[tasks.exchange[meeting.tasks[i]]].price;
  };
  std::size_t most = 0;
  for (std::size_t i = 1; i < who.classes.size(); ++i)
    if (price(i).seconds() > price(most).seconds()) most = i;
  return price(most);
}

void StepRun::start_collective(std::uint32_t number) {
  const Meeting& who = meeting(number);
  MeetingState& meeting = states_[number];
  for (std::size_t i = 0; i < who.classes.size(); ++i)
    ranks_[who.classes[i]].times[meeting.tasks[i]].begin = now_;
  const cost::ExchangeCost& price = price_of(number);
  if (meeting.shared && price.transfer_seconds > 0)
    foresee(now_ + price.latency_seconds, Happening::latency, number);
  else
    foresee(now_ + price.seconds(), Happening::collective, number);
}

void StepRun::end_collective(std::uint32_t number) {
  const Meeting& who = meeting(number);
  MeetingState& meeting = states_[number];
  meeting.arrived = 0;
  // A copy, because completing a member can let it arrive for the next collective.
  const std::vector<std::uint32_t> tasks = meeting.tasks;
  for (std::size_t i = 0; i < who.classes.size(); ++i) complete(who.classes[i], tasks[i]);
}

void StepRun::complete(std::uint32_t rank, std::uint32_t task) {
  RankState& state = ranks_[rank];
  state.times[task].end = now_;
  ++state.done;
  const auto lane = static_cast<std::size_t>(state.times[task].worker);
  state.before[task] = state.last[lane];
  state.last[lane] = task;
  const std::uint32_t stream = state.tasks->stream_of(task, options_.overlap);
  if (stream == 0)
    state.idle.push_back(state.times[task].worker);
  else
    state.busy[stream] = false;
  for (const std::uint32_t next : state.tasks->waiting_for(task))
    if (--state.waits[next] == 0) became_ready(rank, next);
  advance(rank, 0);
  if (stream > 0) advance(rank, stream);
}

}  // namespace weft::sim
