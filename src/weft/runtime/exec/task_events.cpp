#include "weft/runtime/exec/task_events.h"

#include <utility>

namespace weft::exec {

Result<std::unique_ptr<TaskEvents>> TaskEvents::make(device::Device& device,
                                                     std::span<const program::Task> tasks,
                                                     std::span<const DoneBy> done_by) {
  auto made = std::make_unique<TaskEvents>();
  made->events_.resize(tasks.size());
  made->awaited_.resize(tasks.size());
  for (std::size_t task = 0; task < tasks.size(); ++task)
    for (const std::uint32_t wait : tasks[task].waits) {
      const bool in_order = done_by[task] == DoneBy::computing && done_by[wait] == DoneBy::computing;
      if (in_order || done_by[wait] == DoneBy::host) continue;
      made->awaited_[task].push_back(wait);
      if (made->events_[wait] != nullptr) continue;
      WEFT_TRY(event, device.make_event());
      made->events_[wait] = std::move(event);
    }
  return made;
}

Status TaskEvents::wait(std::uint32_t task, const std::function<Status(device::Event&)>& wait_for) const {
  for (const std::uint32_t wait : awaited_[task]) WEFT_TRY_STATUS(wait_for(*events_[wait]));
  return {};
}

Result<TaskClock> TaskClock::make(device::Device& device, std::size_t tasks) {
  TaskClock clock;
  WEFT_TRY(start, device.make_event());
  clock.start_ = std::move(start);
  for (auto* const events : {&clock.begins_, &clock.ends_})
    for (std::size_t task = 0; task < tasks; ++task) {
      WEFT_TRY(event, device.make_event());
      events->push_back(std::move(event));
    }
  return clock;
}

Status TaskClock::start(device::Stream& stream) {
  stream.record(*start_);
  return start_->wait();
}

void TaskClock::start_recorded(device::RecordingStream& stream) {
  previous_.assign(ends_.size(), nullptr);
  last_ = start_.get();
  stream.mark(*start_);
}

void TaskClock::end(std::uint32_t task, device::Stream& stream) {
  if (last_ == nullptr) return stream.record(*ends_[task]);
  previous_[task] = std::exchange(last_, ends_[task].get());
  device::as_recording(stream)->mark(*ends_[task]);
}

program::TaskTime TaskClock::time(std::uint32_t task) const {
  program::TaskTime time;
  const device::Event& begin = last_ == nullptr ? *begins_[task] : *previous_[task];
  time.begin = begin.seconds_since(*start_);
  time.end = ends_[task]->seconds_since(*start_);
  return time;
}

}  // namespace weft::exec
