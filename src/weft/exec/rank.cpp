#include "weft/exec/rank.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <system_error>

#include <fmt/format.h>

#include "weft/base/machine.h"
#include "weft/base/units.h"
#include "weft/device/blas.h"
#include "weft/device/kernel.h"
#include "weft/exec/crew.h"

namespace weft::exec {
namespace {

using Clock = std::chrono::steady_clock;

// Pages from the system, zero until written.
class Pages {
 public:
  explicit Pages(std::int64_t bytes) : bytes_(static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1))) {
    void* found = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (found == MAP_FAILED) return;
    memory_ = static_cast<std::byte*>(found);
    // Large pages where they are to be had: fewer misses when a matrix is walked.
    madvise(memory_, bytes_, MADV_HUGEPAGE);
  }
  ~Pages() {
    if (memory_ != nullptr) munmap(memory_, bytes_);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  std::byte* memory() const { return memory_; }

 private:
  std::byte* memory_ = nullptr;
  std::size_t bytes_;
};

}  // namespace

struct Rank::State {
  State(program::Program what, std::int64_t total) : program(std::move(what)), bytes(total), pages(total) {}

  program::Program program;
  const std::int64_t bytes;
  Pages pages;
  std::vector<std::unique_ptr<device::Kernel>> kernels;  // a unit
  std::vector<std::unique_ptr<Pages>> scratch;           // a worker
  std::unique_ptr<Crew> crew;

  void run(std::uint32_t task, int worker) const {
    const program::Task& what = program.tasks[task];
    kernels[what.unit]->run(what, scratch[static_cast<std::size_t>(worker)]->memory());
  }
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
  if (available > 0 && bytes > available)
    return world_error(
        fmt::format("{}; the machine has {} to give", needs, print_bytes(static_cast<double>(available))),
        "a smaller batch or model needs less");
  auto state = std::make_unique<State>(std::move(program), bytes);
  if (state->pages.memory() == nullptr)
    return world_error(fmt::format("{}, and the machine does not give it", needs),
                       "a smaller batch or model needs less");

  device::use_one_blas_thread();
  std::int64_t scratch = 0;
  for (const program::Unit& unit : state->program.units) {
    state->kernels.push_back(device::make_kernel(state->program, unit, state->pages.memory()));
    scratch = std::max(scratch, state->kernels.back()->scratch_bytes());
  }
  const int workers = std::max(options.workers, 1);
  for (int worker = 0; worker < workers; ++worker) {
    state->scratch.push_back(std::make_unique<Pages>(scratch));
    if (state->scratch.back()->memory() == nullptr)
      return world_error(fmt::format("no memory for the scratch of {} workers, {} each", workers,
                                     print_bytes(static_cast<double>(scratch))),
                         "SET threads to fewer");
  }
  try {
    state->crew = std::make_unique<Crew>(workers, state->program.tasks);
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
  return {device::address(state_->program, port.place, state_->pages.memory()),
          static_cast<std::size_t>(bytes)};
}

std::span<const std::byte> Rank::memory(const program::Port& port) const {
  return const_cast<Rank*>(this)->memory(port);
}

std::byte* Rank::at(program::BufferId buffer) {
  return state_->pages.memory() + state_->program.buffer(buffer).offset;
}

std::span<std::byte> Rank::persistent_memory() {
  return {state_->pages.memory(), static_cast<std::size_t>(state_->program.persistent_bytes)};
}

void Rank::step() {
  state_->crew->run([&](std::uint32_t task, int worker) { state_->run(task, worker); });
}

void Rank::step(program::Timeline& timeline) {
  timeline.tasks.assign(state_->program.tasks.size(), {});
  const auto start = Clock::now();
  const auto now = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  state_->crew->run([&](std::uint32_t task, int worker) {
    program::TaskTime& time = timeline.tasks[task];
    time.begin = now();
    state_->run(task, worker);
    time.end = now();
    time.worker = worker;
  });
  timeline.seconds = now();
}

void Rank::run_in_order(std::span<const std::uint32_t> tasks) {
  for (const std::uint32_t task : tasks) state_->run(task, 0);
}

int Rank::workers() const { return state_->crew->workers(); }
std::int64_t Rank::bytes() const { return state_->bytes; }

std::size_t Rank::reference_units() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(state_->kernels, [](const auto& kernel) { return kernel->is_reference(); }));
}

}  // namespace weft::exec
