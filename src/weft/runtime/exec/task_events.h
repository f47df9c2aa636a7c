// weft/runtime/exec/task_events.h -- synchronization and timing of asynchronously launched tasks.
//
// Only for devices with asynchronous launches. Tasks on one stream run in order without this.
// Events are for other streams, and for the host, which exchanges data that tasks wrote, and
// measures.
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

// Where a task runs: on the compute stream, on an exchange stream, or on the host, which waits for
// it.
enum class DoneBy : std::uint8_t { computing, moving, host };

// One event per task that a task on another stream waits for.
class TaskEvents {
 public:
  static Result<std::unique_ptr<TaskEvents>> make(device::Device& device,
                                                  std::span<const program::Task> tasks,
                                                  std::span<const DoneBy> done_by);

  // Call before a task's launch: the stream waits for its dependencies on other streams.
  void await(std::uint32_t task, device::Stream& stream) const {
    for (const std::uint32_t wait : awaited_[task]) stream.wait(*events_[wait]);
  }
  // Call after the launch.
  void record(std::uint32_t task, device::Stream& stream) const {
    if (events_[task] != nullptr) stream.record(*events_[task]);
  }
  // The host waits for the dependencies of a task that it runs itself.
  Status wait(std::uint32_t task, const std::function<Status(device::Event&)>& wait_for) const;

 private:
  std::vector<std::unique_ptr<device::Event>> events_;  // by task; null if only its own stream waits for it
  std::vector<std::vector<std::uint32_t>> awaited_;     // by task: its dependencies that have events
};

// Start and end times of a step's tasks, measured by the device. In a recorded step, which uses one
// stream, a task starts when the previous one ends, so gaps count towards the later task.
class TaskClock {
 public:
  static Result<TaskClock> make(device::Device& device, std::size_t tasks);

  // Starts the clock. Returns when the stream has reached this point, so that the host's clock can
  // start as well.
  Status start(device::Stream& stream);
  // The same, as the first operation of a recording.
  void start_recorded(device::RecordingStream& stream);
  void begin(std::uint32_t task, device::Stream& stream) {
    if (!last_) stream.record(*begins_[task]);
  }
  void end(std::uint32_t task, device::Stream& stream);
  // REQUIRES: the stream has finished.
  program::TaskTime time(std::uint32_t task) const;

 private:
  std::unique_ptr<device::Event> start_;
  std::vector<std::unique_ptr<device::Event>> begins_, ends_;
  const device::Event* last_ = nullptr;         // last event of the recording; null: not recording
  std::vector<const device::Event*> previous_;  // by recorded task: the end of the previous one
};

}  // namespace weft::exec
