// weft/runtime/exec/crew.h -- the workers of a rank, and how they share its tasks.
//
//   waiting --(all it waits for are done)--> ready --(a worker takes it)--> running --> done
//
// Workers take the ready task that comes first in the program. They look for work for a moment
// before they sleep, so that a step of many small tasks pays for no waking. One worker alone runs
// the tasks in order and touches no lock.
//
// Tasks that move bytes between ranks belong to movers, a thread for each stream that moves
// (program/tasks/stream.h), which takes those of its stream strictly in the order of the program. Meanwhile workers
// compute.
//
//   worker 0     [product 1][product 2][product 3].........[update 3][update 2]
//   mover gpu    ..........[reduce 1 ....][reduce 2 ....][reduce 3]
//   mover node   ..............[gather ........]
//
// Ranks never wait for each other in a circle. All have the same exchanges in the same order; those of a group
// are all of one stream, so all ranks of the group begin them in that order. Take the first exchange of the
// program that some rank has not finished. What it waits for comes before it in the program: exchanges that
// are over, and tasks of workers, who wait for no other rank. The mover of its stream is free on every rank,
// as all before it there are over. So all of its group come to it, and it ends; then the next is the first.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "weft/program/tasks/program.h"

namespace weft::exec {

struct CrewOptions {
  int workers = 1;              // counts the thread that calls run()
  bool overlap = true;          // moves run beside computing; false: nothing else runs while one does
  bool oversubscribed = false;  // more threads than processors: whoever waits sleeps at once
};

class Crew {
 public:
  // `streams` that move: the tasks of each, ascending. Fails to start threads with std::system_error.
  Crew(const CrewOptions& options, std::span<const program::Task> tasks,
       std::vector<std::vector<std::uint32_t>> streams = {});
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // Whether to go on. `worker` is workers() and more for the movers, in the order of their streams. Must not
  // throw.
  using Work = std::function<bool(std::uint32_t task, int worker)>;

  // Calls work(task, worker) once for every task, in an order that respects what they wait for; returns when
  // all are done. When one says no, the rest is left undone: true when none did.
  bool run(const Work& work);

  int workers() const;
  std::size_t movers() const;  // threads that move; none where moves do not overlap

 private:
  void dismiss();

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft::exec
