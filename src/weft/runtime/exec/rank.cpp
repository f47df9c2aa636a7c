#include "weft/runtime/exec/rank.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "weft/base/check.h"
#include "weft/base/units.h"
#include "weft/communication/transport/doctor_responder.h"
#include "weft/device/element_access.h"
#include "weft/device/recording.h"
#include "weft/program/tasks/spill.h"
#include "weft/program/tasks/stream.h"
#include "weft/runtime/exec/device_memory.h"
#include "weft/runtime/exec/rank_bytes.h"
#include "weft/runtime/exec/spill_file.h"
#include "weft/runtime/exec/task_events.h"
#include "weft/runtime/exec/worker_pool.h"

namespace weft::exec {
namespace {

using Clock = std::chrono::steady_clock;

// All exchanges, in program order.
std::vector<const program::Exchange*> exchanges_of(const program::Program& program) {
  std::vector<const program::Exchange*> exchanges;
  for (const program::Task& task : program.tasks) {
    const program::Unit& unit = program.units[task.unit];
    const auto* const exchange = std::get_if<program::Exchange>(&unit.kernel);
    WEFT_CHECK((exchange != nullptr) == (unit.stream > 0), "one stream computes, the others move");
    if (exchange != nullptr) exchanges.push_back(exchange);
  }
  return exchanges;
}

std::int64_t bytes_of(const program::Port& port) {
  return port.place.elements() * plan::size_in_bytes(port.place.dtype);
}

}  // namespace

struct Rank::State {
  State(program::Program what, const RankOptions& options, std::shared_ptr<device::Device> where)
      : program(std::move(what)),
        bytes(program.resident_bytes()),
        exchanger(options.exchanger),
        device(std::move(where)),
        room(options.memory_limit > 0 ? options.memory_limit - options.memory_held : 0) {}

  // Returns false after a failure, described by `failure`.
  bool run(std::uint32_t task, int worker) {
    const program::Task& what = program.tasks[task];
    if (const device::Kernel* const kernel = kernels[what.unit].get()) {
      device::Stream& stream = *streams[static_cast<std::size_t>(worker)];
      if (loading) loading->await(task, stream);
      if (launched) launched->await(task, stream);
      const auto turn = flights ? flights->turn() : std::unique_lock<std::mutex>();
      if (clock) clock->begin(task, stream);
      if (!is_left_out(program.units[what.unit], stream)) stream.launch(*kernel, what);
      if (clock) clock->end(task, stream);
      if (!released.empty())
        for (const program::Extent& extent : released[task]) release_extent(extent);
      if (launched) launched->record(task, stream);
      return !flights || go_on(flights->launched(lane_of(worker), task, stream));
    }
    return go_on(move(task, worker));
  }

  // Records a failed status and returns false; ranks that wait for this one are notified.
  bool go_on(Status status) {
    if (status.ok()) return true;
    {
      const std::lock_guard lock(mutex);
      if (!failure.ok()) return false;  // keep the first failure
      failure = std::move(status);
    }
    // Exchanges in flight on other streams may wait for work that this rank will not do.
    if (movers > 1 || (flights && exchanger != nullptr)) exchanger->stop(failure.error());
    return false;
  }

  // Evaluates a unit's skip flag. Only possible if its dependencies are done and the host can read
  // it.
  bool is_left_out(const program::Unit& unit, const device::Stream& stream) const {
    if (!unit.unless || !stream.on_caller()) return false;
    const std::byte* const flag = device->host(at(*unit.unless));
    return flag != nullptr && device::load_element(unit.unless->dtype, flag, 0) != 0;
  }

  Status move(std::uint32_t task, int worker) {
    const program::Unit& unit = program.units[program.tasks[task].unit];
    const auto& exchange = std::get<program::Exchange>(unit.kernel);
    if (launched && exchanger->is_on_device(exchange)) {
      device::Stream& stream = stream_of(worker);
      launched->await(task, stream);
      if (clock) clock->begin(task, stream);
      WEFT_TRY_STATUS(
          exchanger->enqueue(exchange, at(exchange.operand).raw(), at(exchange.result).raw(), stream));
      if (clock) clock->end(task, stream);
      launched->record(task, stream);
      return flights->launched(lane_of(worker), task, stream);
    }
    if (launched)
      WEFT_TRY_STATUS(launched->wait(task, [&](device::Event& event) { return flights->wait(event); }));
    const auto among_ranks = [&](std::byte* operand, std::byte* result) -> Status {
      if (movers == 1) return exchanger->run(exchange, operand, result);
      WEFT_TRY(handle, exchanger->start(exchange, operand, result));
      return exchanger->wait(handle);
    };
    return memory->exchange(exchange, at(exchange.operand), at(exchange.result), unit.stream, among_ranks);
  }

  // The stream of a worker, or of a mover; movers are numbered after workers.
  device::Stream& stream_of(int worker) {
    const auto number = static_cast<std::size_t>(worker);
    return number < streams.size() ? *streams[number] : *moving[number - streams.size()];
  }
  static std::size_t lane_of(int worker) { return static_cast<std::size_t>(worker); }

  bool spills() const { return program.spilled_bytes + program.spilled_work_bytes > 0; }
  void release_extent(const program::Extent& extent) const {
    const std::int64_t at = program.buffer(extent.buffer).offset + extent.begin;
    release_pages(device->host(memory->address() + at), extent.end - extent.begin);
  }
  bool has_file() const { return spills() && device->host_accessible(); }
  // Releases pages that the host touched since the last step.
  void release_all_pages() const {
    if (!has_file()) return;
    release_pages(device->host(memory->address()), program.spilled_bytes);
    release_pages(device->host(memory->address() + program.persistent_bytes + program.work_bytes),
                  program.spilled_work_bytes);
  }

  // The address of a place; null if this rank's share is empty.
  device::Address at(const program::Place& place) const {
    return place.buffer.valid() ? memory->address() + device::offset_of(program, place) : device::Address();
  }

  // Sends the inputs written by the host, unless take_prefetched() provided this step's inputs.
  void send_inputs() {
    if (!std::exchange(inputs_are_there, false)) memory->send_inputs(*streams.front());
  }

  Status run_all(const WorkerPool::Work& work) {
    if (!failure.ok()) return failure;
    // Frequent progress reports would delay steps that are timed or load weights.
    if (flights) flights->begin_step(!std::exchange(told, true) && !loading && clock == nullptr);
    send_inputs();
    if (loading) loading->start();
    release_all_pages();
    crew->run(work);
    return finish();
  }

  // On a device that can record, the second step is recorded and replayed as one launch from then
  // on. The first step launches separately, because the lazy initialization of libraries cannot be
  // recorded.
  Status step(const WorkerPool::Work& work) {
    device::RecordingStream* const stream = records();
    if (stream == nullptr) return run_all(work);
    if (!failure.ok()) return failure;
    if (exchanger != nullptr && exchanger->records()) return step_of_all(work);
    if (movers > 0) return run_all(work);
    flights->begin_step(/*often=*/false);
    send_inputs();
    if (recorded == nullptr) {
      stream->start_recording();
      crew->run(work);
      auto recording = stream->end_recording();
      if (!recording.ok()) return finish(recording.error());
      recorded = std::move(*recording);
    }
    flights->launch_as_one();
    stream->launch(*recorded);
    return finish();
  }

  // Null if this step cannot be recorded.
  device::RecordingStream* records() {
    device::RecordingStream* const stream = device::as_recording(*streams.front());
    const bool is_first = !std::exchange(stepped, true);
    return stream == nullptr || streams.size() > 1 || loading || is_first || flights->unit_by_unit() ? nullptr
                                                                                                     : stream;
  }

  // The same with a time for every task. Recording matters here: the host launches more slowly than
  // the device computes, so separately launched tasks would seem to take longer.
  Status timed_step(device::RecordingStream& stream, const WorkerPool::Work& work,
                    program::Timeline& timeline) {
    if (!failure.ok()) return failure;
    const auto start = Clock::now();
    flights->begin_step(/*often=*/false);
    send_inputs();
    if (timed == nullptr) {
      WEFT_TRY(made, TaskClock::make(*device, program.tasks.size()));
      marks = std::move(made);
      clock = &*marks;
      stream.start_recording();
      marks->start_recorded(stream);
      crew->run(work);
      clock = nullptr;
      auto recording = stream.end_recording();
      if (!recording.ok()) return finish(recording.error());
      timed = std::move(*recording);
    }
    flights->launch_as_one();
    stream.launch(*timed);
    WEFT_TRY_STATUS(finish());
    timeline.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    for (std::uint32_t task = 0; task < timeline.tasks.size(); ++task)
      timeline.tasks[task] = marks->time(task);
    return {};
  }

  // The same with the steps of all ranks in one recording.
  Status step_of_all(const WorkerPool::Work& work) {
    flights->begin_step(/*often=*/false);
    send_inputs();
    if (Status sent = flights->finish(0, *streams.front()); !sent.ok()) return finish(std::move(sent));
    if (!std::exchange(recorded_with_all, true)) {
      std::vector<device::Stream*> all;
      for (const auto* const some : {&streams, &moving})
        for (const auto& stream : *some) all.push_back(stream.get());
      if (!go_on(exchanger->start_recording(all))) return end_step();
      if (!crew->run(work)) return end_step();
      if (!go_on(exchanger->end_recording(all))) return end_step();
    }
    flights->launch_as_one();
    const auto given = exchanger->run_recorded();
    if (!given.ok()) {
      go_on(given.error());
      return end_step();
    }
    return finish(flights->wait(**given));
  }

  // Waits for everything launched; errors on a stream are only known then.
  Status finish(Status known = {}) {
    std::size_t lane = 0;
    for (const auto* const some : {&streams, &moving})
      for (const auto& stream : *some)
        if (known.ok()) known = flights ? flights->finish(lane++, *stream) : stream->synchronize();
    if (loading) {
      if (known.ok()) known = loading->finish();
      loading.reset();
    }
    if (!known.ok()) go_on(flights ? Status(flights->explain(known.error())) : std::move(known));
    return end_step();
  }

  Status end_step() {
    if (flights) flights->end_step(failure.ok());
    return failure;
  }

  // For asynchronous launches: creates events, and separate streams for exchanges.
  Status prepare_async_launches(bool overlap, const FlightRecorderOptions& how) {
    std::vector<DoneBy> done_by;
    for (const program::Task& task : program.tasks) {
      const auto* const exchange = std::get_if<program::Exchange>(&program.units[task.unit].kernel);
      done_by.push_back(exchange == nullptr                   ? DoneBy::computing
                        : !exchanger->is_on_device(*exchange) ? DoneBy::host
                                                              : DoneBy::moving);
    }
    WEFT_TRY(made, TaskEvents::make(*device, program.tasks, done_by));
    launched = std::move(made);
    // Exchanges have priority over compute, because other ranks wait for them.
    for (std::size_t mover = 0; overlap && mover < movers; ++mover) {
      WEFT_TRY(stream, device->make_stream({.high_priority = true, .computes = false}));
      moving.push_back(std::move(stream));
    }
    // Without movers, the worker runs the exchanges that the host waits for.
    WEFT_TRY(record, DeviceFlightRecorder::make(device, program, streams.size() + movers, how));
    flights = std::move(record);
    answers = std::make_unique<transport::DoctorResponder>([this] { return flights->print(); });
    return {};
  }

  program::Program program;
  std::int64_t bytes;
  Exchanger* const exchanger;
  const std::shared_ptr<device::Device> device;
  std::unique_ptr<DeviceMemory> memory;
  std::vector<std::unique_ptr<device::Kernel>> kernels;  // per unit; null for an exchange
  std::unique_ptr<DeviceFlightRecorder> flights;         // if launches are asynchronous
  std::vector<std::unique_ptr<device::Stream>> streams;  // per worker; they write to the members above
  std::vector<std::unique_ptr<device::Stream>> moving;   // per mover, if the device runs exchanges
  std::unique_ptr<device::Recording> recorded;           // a whole step
  bool stepped = false, told = false, recorded_with_all = false;
  bool inputs_are_there = false;                        // for the next step
  const std::int64_t room;                              // memory limit in bytes; 0: what the machine has
  std::optional<TaskClock> marks;                       // of a step recorded with timing
  std::unique_ptr<device::Recording> timed;             // that recording
  TaskClock* clock = nullptr;                           // set while a step is timed on the device
  std::unique_ptr<Loading> loading;                     // until the next step ends
  std::unique_ptr<TaskEvents> launched;                 // together with `flights`
  std::unique_ptr<transport::DoctorResponder> answers;  // answers queries of the flight record
  std::vector<std::vector<program::Extent>> released;   // by task; empty without a spill file
  std::size_t movers = 0;                               // number of exchange streams of the program
  std::mutex mutex;
  Status failure;  // the first failure; read after the crew has stopped
  std::unique_ptr<WorkerPool> crew;
};

Result<std::unique_ptr<Rank>> Rank::start(program::Program program, const RankOptions& options) {
  auto device = options.device;
  if (device == nullptr) {
    WEFT_TRY(processor, device::open_device("cpu"));
    device = std::move(processor);
  }
  const std::int64_t bytes = program.resident_bytes();
  const auto describe = [&] {
    return fmt::format("{} persistent and {} per step",
                       print_bytes(static_cast<double>(program.persistent_bytes)),
                       print_bytes(static_cast<double>(program.work_bytes)));
  };
  const auto exceeds = [&](std::int64_t taken) {
    return options.memory_limit > 0 && taken > options.memory_limit - options.memory_held;
  };
  if (exceeds(bytes)) return too_large(program, bytes, options.memory_limit, options.memory_held);
  // Checks the available memory first: a step that does not fit would be killed without an error
  // message.
  const std::int64_t available = device->available_memory();
  const std::string needs = fmt::format("{} needs {} of memory, {}", program.graph->name,
                                        print_bytes(static_cast<double>(bytes)), describe());
  const std::string giver = device->host_accessible() ? "the machine" : device->name();
  const std::int64_t ranks = std::max(options.ranks_here, 1);
  const auto check_there_is = [&](std::int64_t taken) -> Status {
    if (available <= 0 || taken <= available / ranks) return {};
    const std::string beside = taken > bytes ? fmt::format(" and {} for its threads",
                                                           print_bytes(static_cast<double>(taken - bytes)))
                                             : std::string();
    return environment_error(fmt::format("{}{}; {} has {} available{}", needs, beside, giver,
                                         print_bytes(static_cast<double>(available)),
                                         ranks > 1 ? fmt::format(" to {} ranks", ranks) : std::string()),
                             "use a smaller batch or model");
  };
  WEFT_TRY_STATUS(check_there_is(bytes));
  WEFT_CHECK(exchanges_of(program).empty() || options.exchanger != nullptr, "a rank without peers");
  auto state = std::make_unique<State>(std::move(program), options, std::move(device));
  if (state->has_file()) state->released = program::release_points(state->program);
  auto memory = state->spills()
                    ? DeviceMemory::take_spilling(state->device, state->program, options.spill_folder)
                    : DeviceMemory::take(state->device, state->program.bytes(),
                                         options.shared_memory ? options.exchanger : nullptr);
  if (!memory.ok() && state->spills()) return std::move(memory).error();
  if (!memory.ok())
    return environment_error(
        fmt::format("{}, and {} refuses it{}", needs, giver,
                    state->device->host_accessible() ? "" : ": " + memory.error().message),
        "use a smaller batch or model");
  state->memory = std::move(*memory);
  for (const program::Port& port : state->program.inputs)
    WEFT_TRY_STATUS(state->memory->make_input(state->at(port.place), bytes_of(port)));

  WEFT_TRY_STATUS(state->device->prepare(state->program));
  WorkerBytes needed;
  for (const program::Unit& unit : state->program.units) {
    if (std::holds_alternative<program::Exchange>(unit.kernel)) {
      state->kernels.push_back(nullptr);
      continue;
    }
    WEFT_TRY(kernel, state->device->make_kernel(state->program, unit, state->memory->address()));
    state->kernels.push_back(std::move(kernel));
    needed.see(unit, *state->kernels.back());
  }
  // On a processor each worker thread has a stream. A device with asynchronous launches gets
  // everything on one stream, in program order.
  int workers = std::max(options.workers, 1);
  const std::int64_t scratch = needed.scratch;
  state->bytes += needed.of(workers);
  if (exceeds(state->bytes))
    return too_large(state->program, state->bytes, options.memory_limit, options.memory_held);
  WEFT_TRY_STATUS(check_there_is(state->bytes));
  for (int worker = 0; worker < workers; ++worker) {
    auto stream = state->device->make_stream({.scratch_bytes = scratch,
                                              .on_caller = true,
                                              .high_priority = options.high_priority,
                                              .leaves_sms_free = options.gives_way});
    if (!stream.ok() && !state->device->host_accessible()) return std::move(stream).error();
    if (!stream.ok())
      return environment_error(fmt::format("out of memory for the scratch of {} workers, {} each", workers,
                                           print_bytes(static_cast<double>(scratch))),
                               "SET threads to a smaller number");
    state->streams.push_back(std::move(*stream));
    if (!state->streams.back()->on_caller()) workers = 1;
  }
  if (options.exchanger != nullptr) WEFT_TRY_STATUS(options.exchanger->prepare(exchanges_of(state->program)));
  std::vector<std::vector<std::uint32_t>> moves = program::tasks_by_stream(state->program);
  moves.erase(moves.begin());  // the workers' stream
  state->movers = moves.size();
  if (!state->streams.front()->on_caller())
    WEFT_TRY_STATUS(state->prepare_async_launches(options.overlap, options.flights));
  try {
    state->crew = std::make_unique<WorkerPool>(
        WorkerPoolOptions{
            .workers = workers, .overlap = options.overlap, .oversubscribed = options.oversubscribed},
        state->program.tasks, std::move(moves));
  } catch (const std::system_error& error) {
    return environment_error(fmt::format("cannot start {} threads: {}", workers, error.what()),
                             "SET threads to a smaller number");
  }
  return std::unique_ptr<Rank>(new Rank(std::move(state)));
}

Rank::Rank(std::unique_ptr<State> state) : state_(std::move(state)) {}
Rank::~Rank() = default;

const program::Program& Rank::program() const { return state_->program; }

std::span<std::byte> Rank::input(const program::Port& port) {
  return state_->memory->input(state_->at(port.place), bytes_of(port));
}

bool Rank::make_prefetch_buffer() {
  State& state = *state_;
  if (state.memory->has_prefetch_buffer()) return true;
  const std::int64_t with_it = state.bytes + state.memory->prefetch_bytes();
  if ((state.room > 0 && with_it > state.room) || !state.memory->make_prefetch_buffer()) return false;
  state.bytes = with_it;
  return true;
}

Status Rank::send_prefetched() { return state_->memory->send_prefetched(); }

void Rank::take_prefetched() {
  state_->memory->take_prefetched(*state_->streams.front());
  state_->inputs_are_there = true;
}

Status Rank::write(const program::Port& port, std::span<const std::byte> bytes) {
  WEFT_CHECK(static_cast<std::int64_t>(bytes.size()) == bytes_of(port), "a value of another size");
  const Status written = state_->memory->write(state_->at(port.place), bytes);
  state_->release_all_pages();
  return written;
}

Status Rank::write(const program::Port& port, const std::function<void(std::span<std::byte>)>& make) {
  const Status written = state_->memory->write(state_->at(port.place), bytes_of(port), make);
  state_->release_all_pages();
  return written;
}

Status Rank::load(std::span<const Loaded> weights, const LoadingGroups& groups, std::size_t staged_bytes) {
  State& state = *state_;
  if (state.device->host_accessible() || state.streams.size() > 1) {
    for (const Loaded& one : weights) WEFT_TRY_STATUS(write(*one.port, one.bytes));
    return {};
  }
  const auto wait = [&state](device::Event& event) {
    return state.flights ? state.flights->wait(event) : event.wait();
  };
  WEFT_TRY(loading, Loading::make(*state.device, state.program, state.memory->address(), weights, groups,
                                  staged_bytes, wait));
  state.loading = std::move(loading);
  return {};
}

Result<HostBytes> Rank::read(const program::Port& port) const {
  return state_->memory->read(state_->at(port.place), bytes_of(port));
}

Result<HostBytes> Rank::read(program::BufferId buffer) const {
  const program::Buffer& what = state_->program.buffer(buffer);
  return state_->memory->read(state_->memory->address() + what.offset, what.bytes);
}

Result<double> Rank::number(const program::Port& port) const {
  WEFT_TRY(held, state_->memory->read(state_->at(port.place), plan::size_in_bytes(port.place.dtype)));
  return device::load_element(port.place.dtype, held.data(), 0);
}

Status Rank::keep(std::vector<std::byte>& bytes) const {
  bytes.resize(static_cast<std::size_t>(state_->program.persistent_bytes));
  return state_->memory->copy_out(bytes, state_->memory->address());
}

Status Rank::put_back(std::span<const std::byte> bytes) {
  return state_->memory->copy_in(state_->memory->address(), bytes);
}

void Rank::count_from(std::int64_t step) {
  if (state_->flights) state_->flights->count_from(step);
}

Status Rank::step() {
  return state_->step([&](std::uint32_t task, int worker) { return state_->run(task, worker); });
}

Status Rank::step(program::Timeline& timeline) {
  State& state = *state_;
  timeline.tasks.assign(state.program.tasks.size(), {});
  if (device::RecordingStream* const stream = state.records(); stream != nullptr && state.movers == 0)
    return state.timed_step(
        *stream, [&](std::uint32_t task, int worker) { return state.run(task, worker); }, timeline);
  // With asynchronous launches, task times come from the device.
  std::optional<TaskClock> clock;
  if (state.launched != nullptr) {
    WEFT_TRY(made, TaskClock::make(*state.device, state.program.tasks.size()));
    clock = std::move(made);
    WEFT_TRY_STATUS(clock->start(*state.streams.front()));
    state.clock = &*clock;
  }
  const auto start = Clock::now();
  const auto now = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  Status status = state.run_all([&](std::uint32_t task, int worker) {
    program::TaskTime& time = timeline.tasks[task];
    time.begin = now();
    const bool good = state.run(task, worker);
    time.end = now();
    time.worker = worker;
    return good;
  });
  timeline.seconds = now();
  state.clock = nullptr;
  if (!clock || !status.ok()) return status;
  for (std::uint32_t task = 0; task < timeline.tasks.size(); ++task) {
    const auto* const exchange =
        std::get_if<program::Exchange>(&state.program.units[state.program.tasks[task].unit].kernel);
    if (exchange != nullptr && !state.exchanger->is_on_device(*exchange)) continue;
    const program::TaskTime seen = clock->time(task);
    timeline.tasks[task].begin = seen.begin;
    timeline.tasks[task].end = seen.end;
    timeline.seconds = std::max(timeline.seconds, seen.end);
  }
  return status;
}

Status Rank::run_in_order(std::span<const std::uint32_t> tasks) {
  if (state_->flights) state_->flights->begin_step(/*often=*/true);
  state_->send_inputs();
  for (const std::uint32_t task : tasks)
    if (!state_->run(task, 0)) break;
  return state_->finish();
}

void Rank::forget_step() {
  state_->memory->forget(state_->memory->address() + state_->program.persistent_bytes,
                         state_->program.work_bytes);
}

void Rank::forget(const program::Port& port) {
  state_->memory->forget(state_->at(port.place), bytes_of(port));
}

int Rank::workers() const { return state_->crew->workers(); }
std::int64_t Rank::bytes() const { return state_->bytes; }

std::size_t Rank::reference_units() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      state_->kernels, [](const auto& kernel) { return kernel != nullptr && kernel->is_reference(); }));
}

}  // namespace weft::exec
