// weft/runtime/exec/device_flights.h -- what a rank gave its device to do, and how far that is known to be done.
//
//    step  what                      state      units    for
//      11  one launch                done     214/214  36 ms
//      12  one launch                running  128/214  4.2 s
//
// Where launches return before their work is done. The host notes what it launches. The device says in the host's
// memory how many units of a stream are done: after each in the first step, later after every 64th, so that a step
// takes no longer. What it said stays there when it fails, which is how the unit that failed, or those that it is one
// of, is named; and a step in which nothing gets done for long is ended.
//
// Written by the rank's threads, each stream by one at a time; read at any time by another (`weft doctor`).
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

// Which of the ranks it is, and how it is watched.
struct FlightOptions {
  std::int32_t rank = 0, ranks = 1;
  double timeout = 0;  // seconds in which nothing gets done until the device counts as lost; 0: for ever
  bool unit_by_unit = false;  // the next is launched when one is done, so that it is known which fails
};

class DeviceFlights {
 public:
  // The first of the streams computes, the others move. The program must outlive it.
  static Result<std::unique_ptr<DeviceFlights>> make(std::shared_ptr<device::Device> device,
                                                     const program::Program& program, std::size_t streams,
                                                     const FlightOptions& options);

  // The number of the next step, for what is said of it.
  void count_from(std::int64_t step) { next_step_ = step; }
  bool unit_by_unit() const { return options_.unit_by_unit; }

  // `often`: the device tells of every unit.
  void begin_step(bool often);
  // The step is what was launched and written down since it began, or in an earlier one.
  void launch_as_one();
  void end_step(bool good);

  // A task's launch: held during it where units go one by one; then told of. Fails where they do and it failed.
  std::unique_lock<std::mutex> turn();
  Status launched(std::size_t stream, std::uint32_t task, device::Stream& on);

  // Waits until the event is done, for as long as anything gets done.
  Status wait(device::Event& event);
  // The same for all that a stream was given.
  Status finish(std::size_t stream, device::Stream& on);

  // What the device said, with all that is known: what was said first of any of its ranks.
  Error explain(const Error& error);

  std::string print() const;  // what `weft doctor` prints of the rank

 private:
  using Clock = std::chrono::steady_clock;
  struct Lane {
    explicit Lane(std::size_t most) : tasks(most) {}
    std::uint64_t* done = nullptr;                  // how many tasks, as the device says
    std::atomic<std::uint32_t> launched = 0;        // how many, in this step
    std::vector<std::atomic<std::uint32_t>> tasks;  // in the order of their launches
    std::uint32_t written_down = 0;                 // tasks of the step that is one launch
    std::unique_ptr<device::Event> ended;
  };
  enum class Outcome : std::uint8_t { running, done, failed };
  struct Step {
    std::int64_t number = 0;
    bool as_one = false;
    Clock::time_point began = {}, ended = {};
    Outcome outcome = Outcome::running;
    std::uint32_t units = 0, done = 0;  // when it was over
  };

  DeviceFlights(std::shared_ptr<device::Device> device, const program::Program& program,
                const FlightOptions& options);
  std::uint32_t done() const;      // of all streams
  std::uint32_t launched() const;  // likewise
  Step step() const;
  std::string who() const;                    // "cuda:0 (NVIDIA H200)"
  std::string where(const Step& step) const;  // "in unit 58 of 214 (softmax ..)", of a stream that is behind
  std::string describe(std::uint32_t task) const;
  Error stuck(double seconds);

  const std::shared_ptr<device::Device> device_;
  const program::Program& program_;
  const FlightOptions options_;
  std::unique_ptr<device::HostMemory> words_;
  std::deque<Lane> lanes_;
  std::atomic<bool> often_ = false;
  std::int64_t next_step_ = 1;

  mutable std::mutex mutex_;  // of what follows
  std::deque<Step> steps_;    // the last ones
};

}  // namespace weft::exec
