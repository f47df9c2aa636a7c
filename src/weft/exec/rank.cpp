#include "weft/exec/rank.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <system_error>

#include <fmt/format.h>

#include "weft/base/check.h"
#include "weft/base/machine.h"
#include "weft/base/units.h"
#include "weft/device/cpu/blas.h"
#include "weft/device/cpu/kernel.h"
#include "weft/exec/crew.h"
#include "weft/program/stream.h"

namespace weft::exec {
namespace {

using Clock = std::chrono::steady_clock;

// Pages, zero until written: from the system, or from who else is to reach them.
class Memory {
 public:
  explicit Memory(std::int64_t bytes, Exchanger* owner = nullptr)
      : size_(static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1))) {
    if (owner != nullptr) bytes_ = owner->allocate(size_);
    if (bytes_ != nullptr) {
      owner_ = owner;
      return;
    }
    void* found = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (found == MAP_FAILED) return;
    bytes_ = static_cast<std::byte*>(found);
    // Large pages where they are to be had: fewer misses when a matrix is walked.
    madvise(bytes_, size_, MADV_HUGEPAGE);
  }
  ~Memory() {
    if (bytes_ == nullptr) return;
    if (owner_ != nullptr)
      owner_->free(bytes_);
    else
      munmap(bytes_, size_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::byte* bytes() const { return bytes_; }

 private:
  std::byte* bytes_ = nullptr;
  std::size_t size_;
  Exchanger* owner_ = nullptr;
};

// What moves bytes between ranks, in the program's order.
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

}  // namespace

struct Rank::State {
  State(program::Program what, const RankOptions& options)
      : program(std::move(what)),
        bytes(program.bytes()),
        exchanger(options.exchanger),
        memory(program.bytes(), options.shared_memory ? options.exchanger : nullptr) {}

  // False when an exchange failed: `failure` then says how.
  bool run(std::uint32_t task, int worker) {
    const program::Task& what = program.tasks[task];
    if (const device::cpu::Kernel* const kernel = kernels[what.unit].get()) {
      kernel->run(what, scratch[static_cast<std::size_t>(worker)]->bytes());
      return true;
    }
    Status status = move(std::get<program::Exchange>(program.units[what.unit].kernel));
    if (status.ok()) return true;
    {
      const std::lock_guard lock(mutex);
      if (!failure.ok()) return false;  // by what failed first
      failure = std::move(status);
    }
    // Other streams have exchanges under way that may wait for what this rank does not do any more.
    if (streams > 1) exchanger->stop(failure.error());
    return false;
  }

  Status move(const program::Exchange& exchange) {
    std::byte *const operand = at(exchange.operand), *const result = at(exchange.result);
    if (streams == 1) return exchanger->run(exchange, operand, result);
    WEFT_TRY(handle, exchanger->start(exchange, operand, result));
    return exchanger->wait(handle);
  }

  // Where a place begins; null where this rank's share is empty.
  std::byte* at(const program::Place& place) const {
    return place.buffer.valid() ? device::cpu::address(program, place, memory.bytes()) : nullptr;
  }

  Status run_all(const Crew::Work& work) {
    if (!failure.ok()) return failure;
    crew->run(work);
    return failure;
  }

  program::Program program;
  const std::int64_t bytes;
  Exchanger* const exchanger;
  Memory memory;
  std::vector<std::unique_ptr<device::cpu::Kernel>> kernels;  // a unit; none for an exchange
  std::vector<std::unique_ptr<Memory>> scratch;          // a worker
  std::size_t streams = 0;                               // that move
  std::mutex mutex;
  Status failure;  // of the exchange that failed first; read when the crew has stopped
  std::unique_ptr<Crew> crew;
};

Result<std::unique_ptr<Rank>> Rank::start(program::Program program, const RankOptions& options) {
  const std::int64_t bytes = program.bytes();
  const auto describe = [&] {
    return fmt::format("{} kept and {} for the step",
                       print_bytes(static_cast<double>(program.persistent_bytes)),
                       print_bytes(static_cast<double>(program.work_bytes)));
  };
  if (options.memory_limit > 0 && bytes > options.memory_limit)
    return world_error(fmt::format("{} needs {} of memory, {}; the limit is {}", program.graph->name,
                                   print_bytes(static_cast<double>(bytes)), describe(),
                                   print_bytes(static_cast<double>(options.memory_limit))),
                       "a smaller batch needs less; SET memory_limit sets the limit");
  // Asked of the machine first: a step that does not fit would be killed, not told.
  const std::int64_t available = available_memory();
  const std::string needs = fmt::format("{} needs {} of memory, {}", program.graph->name,
                                        print_bytes(static_cast<double>(bytes)), describe());
  const std::int64_t ranks = std::max(options.ranks_here, 1);
  if (available > 0 && bytes > available / ranks)
    return world_error(
        fmt::format("{}; the machine has {} to give{}", needs, print_bytes(static_cast<double>(available)),
                    ranks > 1 ? fmt::format(" to {} ranks", ranks) : std::string()),
        "a smaller batch or model needs less");
  WEFT_CHECK(exchanges_of(program).empty() || options.exchanger != nullptr,
             "a rank that exchanges with nobody");
  auto state = std::make_unique<State>(std::move(program), options);
  if (state->memory.bytes() == nullptr)
    return world_error(fmt::format("{}, and the machine does not give it", needs),
                       "a smaller batch or model needs less");

  device::cpu::use_one_blas_thread();
  std::int64_t scratch = 0;
  for (const program::Unit& unit : state->program.units) {
    if (std::holds_alternative<program::Exchange>(unit.kernel)) {
      state->kernels.push_back(nullptr);
      continue;
    }
    state->kernels.push_back(device::cpu::make_kernel(state->program, unit, state->memory.bytes()));
    scratch = std::max(scratch, state->kernels.back()->scratch_bytes());
  }
  const int workers = std::max(options.workers, 1);
  for (int worker = 0; worker < workers; ++worker) {
    state->scratch.push_back(std::make_unique<Memory>(scratch));
    if (state->scratch.back()->bytes() == nullptr)
      return world_error(fmt::format("no memory for the scratch of {} workers, {} each", workers,
                                     print_bytes(static_cast<double>(scratch))),
                         "SET threads to fewer");
  }
  if (const auto exchanges = exchanges_of(state->program); !exchanges.empty())
    WEFT_TRY_STATUS(options.exchanger->prepare(exchanges));
  std::vector<std::vector<std::uint32_t>> streams = program::tasks_by_stream(state->program);
  streams.erase(streams.begin());  // that of the workers
  state->streams = streams.size();
  try {
    state->crew = std::make_unique<Crew>(
        CrewOptions{.workers = workers, .overlap = options.overlap, .crowded = options.crowded},
        state->program.tasks, std::move(streams));
  } catch (const std::system_error& error) {
    return world_error(fmt::format("cannot start {} threads: {}", workers, error.what()),
                       "SET threads to fewer");
  }
  return std::unique_ptr<Rank>(new Rank(std::move(state)));
}

Rank::Rank(std::unique_ptr<State> state) : state_(std::move(state)) {}
Rank::~Rank() = default;

const program::Program& Rank::program() const { return state_->program; }

std::span<std::byte> Rank::memory(const program::Port& port) {
  const std::int64_t bytes = port.place.elements() * plan::size_in_bytes(port.place.dtype);
  return {device::cpu::address(state_->program, port.place, state_->memory.bytes()),
          static_cast<std::size_t>(bytes)};
}

std::span<const std::byte> Rank::memory(const program::Port& port) const {
  return const_cast<Rank*>(this)->memory(port);
}

std::byte* Rank::at(program::BufferId buffer) {
  return state_->memory.bytes() + state_->program.buffer(buffer).offset;
}

std::span<std::byte> Rank::persistent_memory() {
  return {state_->memory.bytes(), static_cast<std::size_t>(state_->program.persistent_bytes)};
}

Status Rank::step() {
  return state_->run_all([&](std::uint32_t task, int worker) { return state_->run(task, worker); });
}

Status Rank::step(program::Timeline& timeline) {
  timeline.tasks.assign(state_->program.tasks.size(), {});
  const auto start = Clock::now();
  const auto now = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  Status status = state_->run_all([&](std::uint32_t task, int worker) {
    program::TaskTime& time = timeline.tasks[task];
    time.begin = now();
    const bool good = state_->run(task, worker);
    time.end = now();
    time.worker = worker;
    return good;
  });
  timeline.seconds = now();
  return status;
}

Status Rank::run_in_order(std::span<const std::uint32_t> tasks) {
  for (const std::uint32_t task : tasks)
    if (!state_->run(task, 0)) break;
  return state_->failure;
}

int Rank::workers() const { return state_->crew->workers(); }
std::int64_t Rank::bytes() const { return state_->bytes; }

std::size_t Rank::reference_units() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      state_->kernels, [](const auto& kernel) { return kernel != nullptr && kernel->is_reference(); }));
}

}  // namespace weft::exec
