// weft/runtime/exec/device_flight_recorder.h -- a flight recorder of a rank's work on its device.
//
//    step  what                      state      units    for
//      11  one launch                done     214/214  36 ms
//      12  one launch                running  128/214  4.2 s
//
// For devices whose launches are asynchronous. The host records what it launches. The device writes
// to host memory how many units of a stream are done: after each unit in the first step, later
// after every 64th, so that steps are not slowed down. These counts survive a device failure and
// identify the unit that failed, or the range that contains it. A step without progress for too
// long is aborted.
//
// Written by the rank's threads, one at a time per stream; may be read at any time by another
// thread (`weft doctor`).
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/device/device.h"
#include "weft/program/tasks/program.h"

namespace weft::exec {

// Identifies the rank, and configures how it is monitored.
struct FlightRecorderOptions {
  std::int32_t rank = 0, ranks = 1;
  double timeout = 0;         // seconds without progress until the device counts as hung; 0: none
  bool unit_by_unit = false;  // serialize kernels, to identify the one that fails
};

class DeviceFlightRecorder {
 public:
  // The first stream computes, the others exchange. `program` must outlive the recorder.
  static Result<std::unique_ptr<DeviceFlightRecorder>> make(std::shared_ptr<device::Device> device,
                                                            const program::Program& program,
                                                            std::size_t streams,
                                                            const FlightRecorderOptions& options);

  // Sets the number of the next step, for messages.
  void count_from(std::int64_t step) { next_step_ = step; }
  bool unit_by_unit() const { return options_.unit_by_unit; }

  // `often`: the device reports every unit.
  void begin_step(bool often);
  // Marks the step as a replay of the launches recorded in this or an earlier step.
  void launch_as_one();
  void end_step(bool good);

  // Surrounds a task's launch. With unit_by_unit, turn() returns a lock to hold during the launch,
  // and launched() waits for the unit and fails if it failed.
  std::unique_lock<std::mutex> turn();
  Status launched(std::size_t stream, std::uint32_t task, device::Stream& on);

  // Waits for the event, for as long as the device makes progress.
  Status wait(device::Event& event);
  // Waits for all work on a stream, in the same way.
  Status finish(std::size_t stream, device::Stream& on);

  // Adds all known details to a device error. Returns the first error that any rank of the device
  // reported.
  Error explain(const Error& error);

  std::string print() const;  // text for `weft doctor`

 private:
  using Clock = std::chrono::steady_clock;
  struct Lane {
    explicit Lane(std::size_t most) : tasks(most) {}
    std::uint64_t* done = nullptr;                  // tasks done, written by the device
    std::atomic<std::uint32_t> launched = 0;        // tasks launched in this step
    std::vector<std::atomic<std::uint32_t>> tasks;  // in launch order
    std::uint32_t written_down = 0;                 // number of tasks in the recorded step
    std::unique_ptr<device::Event> ended;
  };
  enum class Outcome : std::uint8_t { running, done, failed };
  struct Step {
    std::int64_t number = 0;
    bool as_one = false;
    Clock::time_point began = {}, ended = {};
    Outcome outcome = Outcome::running;
    std::uint32_t units = 0, done = 0;  // at the end of the step
  };

  DeviceFlightRecorder(std::shared_ptr<device::Device> device, const program::Program& program,
                       const FlightRecorderOptions& options);
  std::uint32_t done() const;      // over all streams
  std::uint32_t launched() const;  // over all streams
  Step step() const;
  std::string who() const;                    // "cuda:0 (NVIDIA H200)"
  std::string where(const Step& step) const;  // "in unit 58 of 214 (softmax ..)", for an unfinished stream
  std::string describe(std::uint32_t task) const;
  Error stuck(double seconds);

  const std::shared_ptr<device::Device> device_;
  const program::Program& program_;
  const FlightRecorderOptions options_;
  std::unique_ptr<device::HostMemory> words_;
  std::deque<Lane> lanes_;
  std::atomic<bool> often_ = false;
  std::int64_t next_step_ = 1;

  mutable std::mutex mutex_;  // guards steps_
  std::deque<Step> steps_;    // the most recent ones
};

}  // namespace weft::exec
