// weft/exec/crew.h -- the workers of a rank, and how they share its tasks.
//
//   waiting --(all it waits for are done)--> ready --(a worker takes it)--> running --> done
//
// Workers take the ready task that comes first in the program. They look for work for a moment
// before they sleep, so that a step of many small tasks pays for no waking. One worker alone runs
// the tasks in order and touches no lock.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "weft/program/program.h"

namespace weft::exec {

class Crew {
 public:
  // `workers` counts the thread that calls run(). Fails to start threads with std::system_error.
  Crew(int workers, std::span<const program::Task> tasks);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // Calls work(task, worker) once for every task, on any worker, in an order that respects what
  // they wait for; returns when all are done. `work` must not throw.
  void run(const std::function<void(std::uint32_t task, int worker)>& work);

  int workers() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft::exec
