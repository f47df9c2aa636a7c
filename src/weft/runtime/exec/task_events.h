// weft/runtime/exec/task_events.h -- tasks that are done some time after their launch: waited for, and timed.
//
// Only for a device whose launches return before the work is done. Tasks of one stream wait for each other
// without this; events are for other streams, and for the host, which moves what some of them wrote, and measures.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/device/device.h"
#include "weft/device/recording.h"
#include "weft/program/tasks/timeline.h"

namespace weft::exec {

// Where a task is done: on the stream that computes, on one that moves, or by the host, which waits until it is.
enum class DoneBy : std::uint8_t { computing, moving, host };

// An event for each task that one on another stream waits for.
class TaskEvents {
 public:
  static Result<std::unique_ptr<TaskEvents>> make(device::Device& device,
                                                  std::span<const program::Task> tasks,
                                                  std::span<const DoneBy> done_by);

  // Before a task's launch: the stream waits for what others do for it.
  void await(std::uint32_t task, device::Stream& stream) const {
    for (const std::uint32_t wait : awaited_[task]) stream.wait(*events_[wait]);
  }
  // After it.
  void record(std::uint32_t task, device::Stream& stream) const {
    if (events_[task] != nullptr) stream.record(*events_[task]);
  }
  // The host waits for what a task of its own waits for.
  Status wait(std::uint32_t task, const std::function<Status(device::Event&)>& wait_for) const;

 private:
  std::vector<std::unique_ptr<device::Event>>
      events_;                                       // by task; none where its own stream alone waits for it
  std::vector<std::vector<std::uint32_t>> awaited_;  // by task: those with events that it waits for
};

// When the tasks of a step began and ended, as the device saw it. Of a step that is recorded, on one stream: a task
// begins when the one before it has ended, and what lies between is its own.
class TaskClock {
 public:
  static Result<TaskClock> make(device::Device& device, std::size_t tasks);

  // The step begins; returns when the stream has come so far, so that the host's clock begins here too.
  Status start(device::Stream& stream);
  // The same as the first of what is recorded.
  void start_recorded(device::RecordingStream& stream);
  void begin(std::uint32_t task, device::Stream& stream) {
    if (!last_) stream.record(*begins_[task]);
  }
  void end(std::uint32_t task, device::Stream& stream);
  // REQUIRES: the stream is done.
  program::TaskTime time(std::uint32_t task) const;

 private:
  std::unique_ptr<device::Event> start_;
  std::vector<std::unique_ptr<device::Event>> begins_, ends_;
  const device::Event* last_ = nullptr;         // of what is recorded; none: nothing is
  std::vector<const device::Event*> previous_;  // by task that was: the end of the one before it
};

}  // namespace weft::exec
