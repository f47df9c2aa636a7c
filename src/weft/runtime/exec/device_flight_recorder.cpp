#include "weft/runtime/exec/device_flight_recorder.h"

#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "weft/base/units.h"
#include "weft/runtime/exec/saved_flight_record.h"

namespace weft::exec {
namespace {

constexpr std::size_t kStepsKept = 32;
constexpr std::uint32_t kUnitsBetweenWords = 64;  // a progress write takes about a microsecond
constexpr std::size_t kWordBytes = 64;            // one cache line each
// Polling the driver delays launches by other threads: poll without pause at first, then less and
// less often.
constexpr std::chrono::microseconds kWithoutPause{100}, kShortPause{20}, kLongPause{1000};
constexpr int kPausesOfAWait = 256;

double seconds_of(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

std::uint32_t read_word(const std::uint64_t* word) {
  return static_cast<std::uint32_t>(
      std::atomic_ref(*const_cast<std::uint64_t*>(word)).load(std::memory_order_acquire));
}

}  // namespace

DeviceFlightRecorder::DeviceFlightRecorder(std::shared_ptr<device::Device> device,
                                           const program::Program& program,
                                           const FlightRecorderOptions& options)
    : device_(std::move(device)), program_(program), options_(options) {}

Result<std::unique_ptr<DeviceFlightRecorder>> DeviceFlightRecorder::make(
    std::shared_ptr<device::Device> device, const program::Program& program, std::size_t streams,
    const FlightRecorderOptions& options) {
  std::unique_ptr<DeviceFlightRecorder> made(new DeviceFlightRecorder(std::move(device), program, options));
  WEFT_TRY(words, made->device_->allocate_host(static_cast<std::int64_t>(streams * kWordBytes)));
  made->words_ = std::move(words);
  for (std::size_t stream = 0; stream < streams; ++stream) {
    Lane& lane = made->lanes_.emplace_back(program.tasks.size());
    lane.done = reinterpret_cast<std::uint64_t*>(made->words_->bytes().data() + stream * kWordBytes);
    *lane.done = 0;
    WEFT_TRY(ended, made->device_->make_event());
    lane.ended = std::move(ended);
  }
  return made;
}

void DeviceFlightRecorder::begin_step(bool often) {
  often_ = often || options_.unit_by_unit;
  for (Lane& lane : lanes_) {
    lane.launched.store(0, std::memory_order_relaxed);
    std::atomic_ref(*lane.done).store(0, std::memory_order_relaxed);
  }
  const std::lock_guard lock(mutex_);
  if (steps_.size() == kStepsKept) steps_.pop_front();
  steps_.push_back({.number = next_step_++, .began = Clock::now()});
}

void DeviceFlightRecorder::launch_as_one() {
  for (Lane& lane : lanes_) {
    const std::uint32_t now = lane.launched.load(std::memory_order_relaxed);
    if (now > 0) lane.written_down = now;
    lane.launched.store(lane.written_down, std::memory_order_release);
  }
  const std::lock_guard lock(mutex_);
  steps_.back().as_one = true;
}

void DeviceFlightRecorder::end_step(bool good) {
  const std::uint32_t units = launched(), known = good ? units : done();
  const std::lock_guard lock(mutex_);
  Step& step = steps_.back();
  if (step.outcome != Outcome::running) return;
  step.ended = Clock::now();
  step.outcome = good ? Outcome::done : Outcome::failed;
  step.units = units;
  step.done = known;
}

std::unique_lock<std::mutex> DeviceFlightRecorder::turn() {
  return options_.unit_by_unit ? std::unique_lock(device_->turn()) : std::unique_lock<std::mutex>();
}

Status DeviceFlightRecorder::launched(std::size_t stream, std::uint32_t task, device::Stream& on) {
  Lane& lane = lanes_[stream];
  const std::uint32_t place = lane.launched.load(std::memory_order_relaxed);
  lane.tasks[place].store(task, std::memory_order_relaxed);
  lane.launched.store(place + 1, std::memory_order_release);
  if (often_ || (place + 1) % kUnitsBetweenWords == 0) on.tell(*lane.done, place + 1);
  if (!options_.unit_by_unit) return {};
  Status ended = finish(stream, on);
  if (ended.ok()) return {};
  // Exchanges do not hold the launch lock. Taking it here lets a unit that failed at the same time
  // be reported first.
  const auto after = stream > 0 ? turn() : std::unique_lock<std::mutex>();
  return explain(ended.error());
}

std::uint32_t DeviceFlightRecorder::done() const {
  std::uint32_t count = 0;
  for (const Lane& lane : lanes_) count += read_word(lane.done);
  return count;
}

std::uint32_t DeviceFlightRecorder::launched() const {
  std::uint32_t count = 0;
  for (const Lane& lane : lanes_) count += lane.launched.load(std::memory_order_acquire);
  return count;
}

DeviceFlightRecorder::Step DeviceFlightRecorder::step() const {
  const std::lock_guard lock(mutex_);
  return steps_.empty() ? Step{.number = next_step_} : steps_.back();
}

Status DeviceFlightRecorder::wait(device::Event& event) {
  const auto begin = Clock::now();
  auto moved = begin;
  std::uint32_t before = done();
  for (;;) {
    if (event.is_done()) return event.wait();
    if (device_->is_abandoned()) return device_->fault().heard();
    const auto now = Clock::now();
    if (const std::uint32_t after = done(); after != std::exchange(before, after)) moved = now;
    const double still = seconds_of(now - moved);
    if (options_.timeout > 0 && still >= options_.timeout) return stuck(still);
    if (now - begin < kWithoutPause)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(
          std::clamp<Clock::duration>((now - begin) / kPausesOfAWait, kShortPause, kLongPause));
  }
}

Status DeviceFlightRecorder::finish(std::size_t stream, device::Stream& on) {
  device::Event& ended = *lanes_[stream].ended;
  on.record(ended);
  Status waited = wait(ended);
  return device_->is_abandoned() ? waited : on.synchronize();  // a stream reports more detail than its event
}

std::string DeviceFlightRecorder::who() const {
  const std::string name = device_->name(), model = device_->model();
  return model == name ? name : fmt::format("{} ({})", name, model);
}

std::string DeviceFlightRecorder::describe(std::uint32_t task) const {
  return program::describe(program_, program_.units[program_.tasks[task].unit]);
}

std::string DeviceFlightRecorder::where(const Step& step) const {
  std::string one;
  if (step.as_one)
    one = options_.ranks > 1 ? fmt::format("which is one launch for {} ranks, ", options_.ranks)
                             : "which is one launch, ";
  for (const Lane& lane : lanes_) {
    const std::uint32_t last = lane.launched.load(std::memory_order_acquire);
    const std::uint32_t first = read_word(lane.done);
    if (first >= last) continue;
    const std::uint32_t end = often_ ? first + 1 : std::min(last, first + kUnitsBetweenWords);
    const auto task = [&](std::uint32_t place) { return lane.tasks[place].load(std::memory_order_relaxed); };
    if (end == first + 1)
      return fmt::format("{}in unit {} of {} ({})", one, task(first) + 1, program_.tasks.size(),
                         describe(task(first)));
    return fmt::format("{}in one of the units {} to {} of {} ({} .. {})", one, task(first) + 1,
                       task(end - 1) + 1, program_.tasks.size(), describe(task(first)),
                       describe(task(end - 1)));
  }
  return fmt::format("{}with {} of {} units done", one, done(), program_.tasks.size());
}

Error DeviceFlightRecorder::stuck(double seconds) {
  const Step now = step();
  Error error = device_->fault().say(environment_error(
      fmt::format("rank {} on {} is stuck in step {}, {}: no progress for {}", options_.rank, who(),
                  print_exact(now.number), where(now), print_seconds(seconds)),
      "check nvidia-smi and the kernel log (Xid) for a lost device; if a unit can take this "
      "long, raise device_timeout"));
  end_step(false);
  save_flight_record(print());
  device_->abandon();
  return error;
}

Error DeviceFlightRecorder::explain(const Error& error) {
  if (const Status heard = device_->fault().heard(); !heard.ok()) return heard.error();
  const Step now = step();
  std::string hint = error.hint;
  if (!often_)
    hint = fmt::format(
        "WITH (serialize_kernels = true) runs one unit at a time and names the one that fails{}{}",
        hint.empty() ? "" : "; ", hint);
  Error said = device_->fault().say(
      environment_error(fmt::format("rank {} on {} failed in step {}, {}: {}", options_.rank, who(),
                                    print_exact(now.number), where(now), error.message),
                        std::move(hint)));
  end_step(false);
  save_flight_record(print());
  return said;
}

std::string DeviceFlightRecorder::print() const {
  std::string text = fmt::format("rank {} of {}, process {}\n", options_.rank, options_.ranks, ::getpid());
  std::deque<Step> steps;
  {
    const std::lock_guard lock(mutex_);
    steps = steps_;
  }
  const auto now = Clock::now();
  if (!steps.empty() && steps.back().outcome == Outcome::running) {
    Step& last = steps.back();
    last.units = launched();
    last.done = done();
    text += fmt::format("  waits for {} in step {} for {}, {}\n", who(), print_exact(last.number),
                        print_seconds(seconds_of(now - last.began)), where(last));
  } else {
    text += fmt::format("  has nothing running on {}\n", who());
  }
  if (const Status heard = device_->fault().heard(); !heard.ok())
    text += fmt::format("  {} failed: {}\n", device_->name(), heard.error().message);
  text += fmt::format("{:>8}  {:<16} {:<8} {:>13}  {}\n", "step", "what", "state", "units", "for");
  for (const Step& step : steps) {
    constexpr std::string_view kStates[] = {"running", "done", "failed"};
    const bool open = step.outcome == Outcome::running;
    text += fmt::format(
        "{:>8}  {:<16} {:<8} {:>13}  {}\n", step.number, step.as_one ? "one launch" : "unit after unit",
        kStates[static_cast<std::size_t>(step.outcome)], fmt::format("{}/{}", step.done, step.units),
        print_seconds(seconds_of((open ? now : step.ended) - step.began)));
  }
  return text;
}

}  // namespace weft::exec
