// weft/exec/crew.h -- the workers of a rank, and how they share its tasks.
//
//   waiting --(all it waits for are done)--> ready --(a worker takes it)--> running --> done
//
// Workers take the ready task that comes first in the program. They look for work for a moment
// before they sleep, so that a step of many small tasks pays for no waking. One worker alone runs
// the tasks in order and touches no lock.
//
// Tasks that move bytes between ranks belong to one more thread, the mover, which takes them strictly in the
// order of the program: all ranks must, or each would wait for another's exchange. Meanwhile workers compute.
//
//   worker 0   [product 1][product 2][product 3].........[update 3][update 2]
//   mover      ..........[reduce 1 ....][reduce 2 ....][reduce 3]
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "weft/program/program.h"

namespace weft::exec {

struct CrewOptions {
  int workers = 1;       // counts the thread that calls run()
  bool overlap = true;   // moves run beside computing; false: nothing else runs while one does
  bool crowded = false;  // more threads than processors: whoever waits sleeps at once
};

class Crew {
 public:
  // `moves` are the mover's tasks, ascending. Fails to start threads with std::system_error.
  Crew(const CrewOptions& options, std::span<const program::Task> tasks,
       std::vector<std::uint32_t> moves = {});
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // Whether to go on. `worker` is workers() for the mover. Must not throw.
  using Work = std::function<bool(std::uint32_t task, int worker)>;

  // Calls work(task, worker) once for every task, in an order that respects what they wait for; returns when
  // all are done. When one says no, the rest is left undone: true when none did.
  bool run(const Work& work);

  int workers() const;
  bool has_mover() const;

 private:
  void dismiss();

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft::exec
