// weft/predict/sim/step/step_run.h -- the event loop of a simulated step.
//
//   a stream   [t0 ][t1    ]   . . . [t4 ]     in order: t4 waits for the stream, then for its dependencies
//   meeting    rank 0 ---arrived......|=======|    a collective starts when the last of its ranks arrives;
//              rank 1 ----------------|=======|    its latency passes, then its bytes flow (link_sharing.h)
//
// Events are kept in a heap, ordered by time and then by the order in which they were scheduled, so
// a run is deterministic. Each task is checked once per dependency.
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

  // `ranks` are classes or individual ranks; `wires` as in cost::StepCosts. All must outlive this.
  StepRun(std::span<const ProgramTasks* const> ranks, const Meetings& meetings,
          std::span<const std::int32_t> wires, const StepRunOptions& options);

  // Fails if the ranks do not run the same collectives.
  Status run();

  double seconds() const { return now_; }
  std::int64_t events() const { return events_; }
  // Workers below `workers` compute; workers + s - 1 is the program's stream s.
  const std::vector<program::TaskTime>& times(std::size_t rank) const { return ranks_[rank].times; }
  std::vector<program::TaskTime> take_times(std::size_t rank) { return std::move(ranks_[rank].times); }
  // The task that ran before this one on its stream, or kNone.
  std::uint32_t before(std::size_t rank, std::uint32_t task) const { return ranks_[rank].before[task]; }

 private:
  struct RankState {
    const ProgramTasks* tasks = nullptr;
    std::vector<std::uint32_t> waits;  // by task: dependencies not done yet
    std::vector<program::TaskTime> times;
    std::vector<std::uint32_t> before;
    std::vector<std::uint32_t> next;   // by stream: its first task that has not started
    std::vector<bool> busy;            // by stream
    std::vector<std::uint32_t> last;   // by worker, then by communication stream: the latest task
    std::vector<int> idle;             // idle workers
    std::vector<std::uint32_t> ready;  // a heap, used with several workers
    std::size_t done = 0;
  };
  struct MeetingState {
    std::vector<std::uint32_t> tasks;  // by member: the task with which it arrived
    std::size_t arrived = 0;
    bool shared = false;      // another axis or lane uses the same wires
    std::int32_t route = -1;  // the ports by which they are shared
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
  // A meeting has one state per lane (program_tasks.h). Numbers past all meetings are for the
  // second lane.
  const Meeting& meeting(std::uint32_t number) const { return meetings_.all[number % meetings_.all.size()]; }
  const cost::ExchangeCost& price_of(std::uint32_t meeting) const;
  void start_collective(std::uint32_t meeting);
  void end_collective(std::uint32_t meeting);
  void start_transfer(std::uint32_t meeting);
  void complete(std::uint32_t rank, std::uint32_t task);

  std::vector<RankState> ranks_;
  const Meetings& meetings_;
  const StepRunOptions options_;
  std::vector<MeetingState> states_;
  LinkSharing sharing_;
  std::vector<std::uint32_t> meeting_of_transfer_;  // of transfers in flight
  std::vector<Event> queue_;
  std::uint64_t order_ = 0;
  std::int64_t events_ = 0;
  double now_ = 0;
};

}  // namespace weft::sim
