// weft/runtime/exec/worker_pool.h -- a rank's worker threads and the scheduling of its tasks.
//
//   waiting --(all dependencies done)--> ready --(taken by a worker)--> running --> done
//
// Workers take the ready task that comes first in program order. They spin briefly before they
// sleep, so that steps with many small tasks pay no wake-up latency. A single worker runs the tasks
// in order without locks.
//
// Tasks that exchange data between ranks belong to movers, one thread per exchange stream
// (program/tasks/stream.h). A mover runs the tasks of its stream strictly in program order, while
// workers compute.
//
//   worker 0     [product 1][product 2][product 3].........[update 3][update 2]
//   mover gpu    ..........[reduce 1 ....][reduce 2 ....][reduce 3]
//   mover node   ..............[gather ........]
//
// This cannot deadlock. All ranks have the same exchanges in the same order, and the exchanges of a
// group are all on one stream, so all ranks of the group start them in that order. Take the first
// exchange in program order that some rank has not finished. Its dependencies precede it: finished
// exchanges, and worker tasks, which wait for no other rank. Its mover is idle on every rank,
// because all earlier exchanges of the stream are finished. So all ranks of the group reach it and
// it completes; the argument then applies to the next exchange.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "weft/program/tasks/program.h"

namespace weft::exec {

struct WorkerPoolOptions {
  int workers = 1;              // includes the thread that calls run()
  bool overlap = true;          // exchanges overlap compute; false: they run exclusively
  bool oversubscribed = false;  // more threads than processors: sleep without spinning
};

class WorkerPool {
 public:
  // `streams`: the tasks of each exchange stream, ascending. Throws std::system_error if a thread
  // cannot start.
  WorkerPool(const WorkerPoolOptions& options, std::span<const program::Task> tasks,
             std::vector<std::vector<std::uint32_t>> streams = {});
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Returns whether to continue. `worker` is at least workers() for movers, in the order of their
  // streams. Must not throw.
  using Work = std::function<bool(std::uint32_t task, int worker)>;

  // Calls work(task, worker) once per task, in an order that respects dependencies, and returns
  // when all are done. If a call returns false, the remaining tasks are skipped and run() returns
  // false.
  bool run(const Work& work);

  int workers() const;
  std::size_t movers() const;  // exchange threads; 0 if exchanges do not overlap

 private:
  void dismiss();

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft::exec
