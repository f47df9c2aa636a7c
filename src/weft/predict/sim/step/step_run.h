// weft/predict/sim/step/step_run.h -- the events of a step: tasks end, collectives gather, start and end.
//
//   a stream   [t0 ][t1    ]   . . . [t4 ]     in order: t4 waits for the stream, then for what it needs
//   meeting    rank 0 ---arrived......|=======|    a collective starts when the last of its ranks arrives;
//              rank 1 ----------------|=======|    it has its latency, then its bytes flow (link_sharing.h)
//
// Events wait in a heap by time and, among equals, by the order in which they were foreseen, so a run repeats
// to the last bit. Each task is looked at once for every task that it waits for.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/predict/sim/link_sharing.h"
#include "weft/predict/sim/step/program_tasks.h"
#include "weft/predict/sim/step/rank_classes.h"
#include "weft/program/tasks/timeline.h"

namespace weft::sim {

struct StepRunOptions {
  bool overlap = true;
  int workers = 1;
};

class StepRun {
 public:
  static constexpr std::uint32_t kNone = 0xffff'ffff;

  // `ranks` are classes, or every rank by itself; `wires` as in cost::StepCosts. All must outlive this.
  StepRun(std::span<const ProgramTasks* const> ranks, const Meetings& meetings,
          std::span<const std::int32_t> wires, const StepRunOptions& options);

  // Fails when the ranks do not agree about their collectives.
  Status run();

  double seconds() const { return now_; }
  std::int64_t events() const { return events_; }
  // A worker computes; workers + s - 1 is the program's stream s.
  const std::vector<program::TaskTime>& times(std::size_t rank) const { return ranks_[rank].times; }
  std::vector<program::TaskTime> take_times(std::size_t rank) { return std::move(ranks_[rank].times); }
  // What ran before the task on its stream, or kNone.
  std::uint32_t before(std::size_t rank, std::uint32_t task) const { return ranks_[rank].before[task]; }

 private:
  struct RankState {
    const ProgramTasks* tasks = nullptr;
    std::vector<std::uint32_t> waits;  // by task: how many are not done yet
    std::vector<program::TaskTime> times;
    std::vector<std::uint32_t> before;
    std::vector<std::uint32_t> next;   // by stream: the first that has not begun
    std::vector<bool> busy;            // by stream
    std::vector<std::uint32_t> last;   // by worker, then by stream that moves: the latest task
    std::vector<int> idle;             // workers
    std::vector<std::uint32_t> ready;  // a heap, where several workers take what there is
    std::size_t done = 0;
  };
  struct MeetingState {
    std::vector<std::uint32_t> tasks;  // by member: what it came for
    std::size_t arrived = 0;
    bool shared = false;      // another axis, or lane, passes the same wires, ...
    std::int32_t route = -1;  // ... and the ports by which they are shared
  };
  enum class Happening : std::uint8_t { task, latency, collective };
  struct Event {
    double time;
    std::uint64_t order;
    Happening what;
    std::uint32_t index, detail;  // rank and task, or meeting

    friend bool operator<(const Event& a, const Event& b) {
      return a.time != b.time ? a.time > b.time : a.order > b.order;
    }
  };

  Status check_agreement() const;
  void foresee(double time, Happening what, std::uint32_t index, std::uint32_t detail = 0);
  void happen(const Event& event);
  void became_ready(std::uint32_t rank, std::uint32_t task);
  void advance(std::uint32_t rank, std::uint32_t stream);
  void start_compute(std::uint32_t rank, std::uint32_t task);
  void arrive(std::uint32_t rank, std::uint32_t task);
  // A meeting has a state for each of its two lanes (program_tasks.h): numbers past all meetings are the second.
  const Meeting& meeting(std::uint32_t number) const { return meetings_.all[number % meetings_.all.size()]; }
  const cost::ExchangePrice& price_of(std::uint32_t meeting) const;
  void start_collective(std::uint32_t meeting);
  void end_collective(std::uint32_t meeting);
  void start_transfer(std::uint32_t meeting);
  void complete(std::uint32_t rank, std::uint32_t task);

  std::vector<RankState> ranks_;
  const Meetings& meetings_;
  const StepRunOptions options_;
  std::vector<MeetingState> states_;
  LinkSharing sharing_;
  std::vector<std::uint32_t> meeting_of_transfer_;  // of those under way
  std::vector<Event> queue_;
  std::uint64_t order_ = 0;
  std::int64_t events_ = 0;
  double now_ = 0;
};

}  // namespace weft::sim
