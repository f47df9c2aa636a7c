#include "weft/communication/comm/engine.h"

#include <algorithm>
#include <utility>

#include "weft/communication/transport/doorbell.h"

namespace weft::comm {
namespace {

// A wait spins, yields and sleeps as its source sees fit. The first wait of a call is not recorded.
// It is long enough for a message from another host, a few milliseconds away: a thread that woke
// just before would take the core from the receiving thread. The second figure bounds every wait,
// so that the engine runs its periodic checks between waits.
constexpr std::chrono::nanoseconds kFirstWait{5'000'000}, kLongestWait{20'000'000};
// A thread cannot sleep on two sources at once: it sleeps on one for this long, then checks both.
constexpr std::chrono::nanoseconds kNap{100'000};

}  // namespace

// How long the calling thread has seen no progress. The clock is first read after the first wait:
// most waits are over by then.
class Engine::StallTimer {
 public:
  // Call after a wait that may have been fruitless. True when it is time to check for problems.
  bool lasts() {
    if (++waits_ == 1) return false;
    if (since_ == kNever) since_ = Clock::now();
    return true;
  }
  void ends() {
    since_ = kNever;
    waits_ = 0;
  }
  std::chrono::nanoseconds time() const { return Clock::now() - since_; }
  std::chrono::nanoseconds next_wait() const { return waits_ == 0 ? kFirstWait : kLongestWait; }

 private:
  static constexpr Clock::time_point kNever{};
  Clock::time_point since_ = kNever;
  int waits_ = 0;
};

// Registers a thread that drives a call alone and is blocked for longer, so that fail() can wake
// it.
class Engine::SleeperEntry {
 public:
  explicit SleeperEntry(Engine& engine) : engine_(engine) {}
  ~SleeperEntry() {
    if (source_ == nullptr) return;
    const Lock lock(engine_.mutex_);
    engine_.asleep_on_.erase(std::ranges::find(engine_.asleep_on_, source_));
  }
  void enter(Source& source) {
    if (source_ != nullptr) return;
    source_ = &source;
    const Lock lock(engine_.mutex_);
    engine_.asleep_on_.push_back(source_);
  }

 private:
  Engine& engine_;
  Source* source_ = nullptr;
};

Engine::Engine(Options options, FlightRecorder& recorder)
    : options_(std::move(options)), recorder_(recorder) {}

Engine::~Engine() { stop(); }

bool Engine::is_like_latest(const Call& call, Stage stage, std::string_view algorithm) const {
  return call.counts.empty() && latest_.fingerprint == 0 && latest_.kind == call.kind &&
         latest_.count == call.count && latest_.type == call.type && latest_.op == call.op &&
         latest_.priority == call.priority && latest_.purpose == call.purpose && latest_.root == call.root &&
         latest_.peer == call.peer && latest_.stage == stage && has_algorithm(latest_, algorithm);
}

std::uint64_t Engine::record(const Call& call, std::uint64_t number, Stage stage,
                             std::string_view algorithm) {
  if (!is_like_latest(call, stage, algorithm)) {
    latest_.group = options_.group;
    latest_.fingerprint = call.counts.empty() ? 0 : fingerprint(call);  // else implied by the rest
    latest_.kind = call.kind;
    latest_.type = call.type;
    latest_.op = call.op;
    latest_.priority = call.priority;
    latest_.purpose = call.purpose;
    latest_bytes_ = message_bytes(call, options_.ranks);
    latest_.stage = stage;
    latest_.root = call.root;
    latest_.peer = call.peer;
    latest_.count = call.count;
    set_algorithm(latest_, algorithm);
  }
  latest_.call = number;
  latest_.began_at = latest_.changed_at = ticks();
  return recorder_.record(latest_);
}

Status Engine::run(Runner& runner, const Call& call, std::uint64_t number) {
  if (failing()) return *failure();
  if (under_way_.load(std::memory_order_acquire) == 0 && runner.can_start(call) &&
      !(options_.is_held && options_.is_held(number))) {
    Operation* const operation = runner.start(call, number);
    const std::uint64_t flight = record(call, number, Stage::running, operation->algorithm());
    bool waited = false;
    Status status = drive(runner, *operation, call, number, flight, waited);
    if (status.ok() && !waited) {
      recorder_.finish_quick(flight);
    } else {
      recorder_.update(flight, status.ok() ? Stage::done : Stage::failed, operation->pieces_done(),
                       operation->pieces(), -1);
    }
    runner.finish(operation);
    count(call, latest_bytes_, latest_.began_at, waited, !status.ok());
    return status;
  }
  auto state = std::make_shared<Work::State>();
  start(runner, call, number, state);
  wait_for(*state);
  return state->status;
}

void Engine::count(const Call& call, std::int64_t bytes, std::int64_t began_at, bool waited, bool failed) {
  if (!options_.metrics) return;
  Metrics& metrics = *options_.metrics;
  metrics.add(call.kind, bytes, metrics.is_timed() ? ticks() - began_at : 0, waited, failed);
}

// No other thread touches the runner: no call is in flight, and one thread at a time makes calls.
Status Engine::drive(Runner& runner, Operation& operation, const Call& call, std::uint64_t number,
                     std::uint64_t flight, bool& waited) {
  Source& source = runner.source();
  StallTimer blockage;
  SleeperEntry sleeper(*this);
  const Moment deadline = deadline_of(call.timeout);
  bool told = false;
  for (;;) {
    const std::uint32_t seen = source.signal();
    switch (operation.step()) {
      case Progress::moved: blockage.ends(); continue;
      case Progress::done: return {};
      case Progress::failed: fail(why(runner, call, number, operation)); return *failure();
      case Progress::blocked: break;
    }
    if (failing()) return *failure();
    source.wait(seen, blockage.next_wait());
    if (has_passed(deadline)) give_up_late(call, operation.waiting_for());
    if (!blockage.lasts()) continue;

    waited = true;
    if (failure_.comes_true(blockage.time(), operation.waiting_for())) continue;
    if (!told && number != kUnnumbered && blockage.time() > kStuck && options_.on_stuck) {
      told = true;
      options_.on_stuck(call, number);
    }
    recorder_.update(flight, Stage::running, operation.pieces_done(), operation.pieces(),
                     operation.waiting_for());
    sleeper.enter(source);
  }
}

void Engine::start(Runner& runner, const Call& call, std::uint64_t number,
                   std::shared_ptr<Work::State> state) {
  auto entry = std::make_unique<Entry>();
  entry->call = call;
  entry->counts.assign(call.counts.begin(), call.counts.end());
  entry->call.counts = entry->counts;
  entry->runner = &runner;
  entry->number = number;
  entry->state = std::move(state);
  entry->deadline = deadline_of(call.timeout);
  Lock lock(mutex_);
  entry->flight = record(call, number, Stage::queued, "");
  entry->began_at = latest_.began_at;
  ++under_way_;
  Entry& kept = *entries_[static_cast<std::size_t>(call.priority)].emplace_back(std::move(entry));
  if (failing() || stopped_) {
    fail_all();
  } else {
    begin_queued();
    // Send the first fragment at once: other ranks may be waiting for it.
    if (kept.operation != nullptr) progress();
  }
  hand_out(lock);
  if (under_way_ == 0 || !options_.background) return;
  if (!background_.joinable() && !stopped_) background_ = std::thread([this] { run_background(); });
  wake_sleepers();  // their wait does not cover this call's source yet
  work_.notify_one();
}

void Engine::begin_queued() {
  for (auto& queue : entries_) {
    std::vector<const void*> taken;  // resources that an earlier call waits for
    for (const auto& entry : queue) {
      if (entry->operation != nullptr) continue;
      const void* const resource = entry->runner->resource(entry->call);
      if (std::find(taken.begin(), taken.end(), resource) != taken.end()) continue;
      if (!entry->runner->can_start(entry->call) || (options_.is_held && options_.is_held(entry->number))) {
        taken.push_back(resource);
        continue;
      }
      entry->operation = entry->runner->start(entry->call, entry->number);
      recorder_.begin(entry->flight, entry->operation->algorithm());
    }
  }
}

bool Engine::progress() {
  for (auto& queue : entries_) {
    for (std::size_t i = 0; i < queue.size(); ++i) {
      Entry& entry = *queue[i];
      if (entry.operation == nullptr) continue;
      const Progress progress = entry.operation->step();
      if (progress == Progress::blocked) continue;
      if (progress == Progress::moved) return true;
      Status status;
      if (progress == Progress::failed) {
        failure_.set(why(*entry.runner, entry.call, entry.number, *entry.operation));
        status = *failure();
      }
      complete(entry, status, status.ok() ? Stage::done : Stage::failed);
      completed_.push_back(std::move(queue[i]));
      queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(i));
      begin_queued();
      return true;
    }
  }
  return false;
}

// REQUIRES: the entry is removed from the queues right after.
void Engine::complete(Entry& entry, Status status, Stage stage) {
  if (entry.operation != nullptr) {
    recorder_.update(entry.flight, stage, entry.operation->pieces_done(), entry.operation->pieces(), -1);
    entry.runner->finish(entry.operation);
    entry.operation = nullptr;
  } else {
    recorder_.update(entry.flight, stage, 0, 0, -1);
  }
  if (stage != Stage::cancelled)
    count(entry.call, message_bytes(entry.call, options_.ranks), entry.began_at, entry.waited, !status.ok());
  entry.state->status = std::move(status);
  --under_way_;
}

void Engine::fail_all() {
  const Error error = failure().value_or(environment_error("the communicator is closed"));
  for (auto& queue : entries_) {
    for (auto& entry : queue) {
      complete(*entry, error, Stage::failed);
      completed_.push_back(std::move(entry));
    }
    queue.clear();
  }
}

void Engine::hand_out(Lock& lock) {
  while (!completed_.empty()) {
    auto completed = std::exchange(completed_, {});
    const bool others_wait = drivers_ > 1;
    lock.unlock();
    for (const auto& entry : completed) {
      Work::State& state = *entry->state;
      const auto on_done = std::exchange(state.on_done, nullptr);
      state.done.store(true, std::memory_order_release);
      if (on_done) on_done(state.status);
    }
    lock.lock();
    if (others_wait) wake_sleepers();  // one may be waiting for a call that this thread completed
  }
}

std::vector<Source*> Engine::sources() const {
  std::vector<Source*> sources;
  for (const auto& queue : entries_) {
    for (const auto& entry : queue) {
      Source* const source = &entry->runner->source();
      if (std::find(sources.begin(), sources.end(), source) == sources.end()) sources.push_back(source);
    }
  }
  return sources;
}

// Waits until progress may be possible.
void Engine::rest(Lock& lock, StallTimer& blockage) {
  if (failing()) {
    fail_all();
    return;
  }
  const std::vector<Source*> all = sources();
  if (all.empty()) return;
  Source* const source = all.front();
  asleep_on_.push_back(source);
  const std::uint32_t seen = source->signal();
  if (progress()) {
    blockage.ends();
  } else {
    const std::chrono::nanoseconds limit = all.size() > 1 ? kNap : blockage.next_wait();
    lock.unlock();
    source->wait(seen, limit);
    lock.lock();
    if (blockage.lasts()) tell_stuck(blockage);
  }
  asleep_on_.erase(std::ranges::find(asleep_on_, source));
}

void Engine::tell_stuck(const StallTimer& blockage) {
  for (auto& queue : entries_) {
    for (auto& entry : queue) {
      entry->waited = true;
      if (has_passed(entry->deadline))
        give_up_late(entry->call, entry->operation != nullptr ? entry->operation->waiting_for() : -1);
      if (entry->operation == nullptr) continue;
      const Operation& operation = *entry->operation;
      if (failure_.comes_true(blockage.time(), operation.waiting_for())) return;
      recorder_.update(entry->flight, Stage::running, operation.pieces_done(), operation.pieces(),
                       operation.waiting_for());
      if (entry->stuck_told || entry->number == kUnnumbered) continue;
      if (blockage.time() < kStuck || !options_.on_stuck) continue;
      entry->stuck_told = true;
      options_.on_stuck(entry->call, entry->number);
    }
  }
}

void Engine::wait_for(const Work::State& state) { wait_until(state, Moment::max()); }

bool Engine::wait_until(const Work::State& state, Moment deadline) {
  if (state.done.load(std::memory_order_acquire)) return true;
  Lock lock(mutex_);
  ++drivers_;
  StallTimer blockage;
  while (!state.done.load(std::memory_order_acquire)) {
    if (has_passed(deadline)) break;
    if (under_way_ == 0 && completed_.empty()) {
      // Another thread is about to set `done`.
      lock.unlock();
      transport::yield_core();
      lock.lock();
      continue;
    }
    if (progress()) {
      blockage.ends();
    } else {
      rest(lock, blockage);
    }
    hand_out(lock);
  }
  --drivers_;
  if (drivers_ == 0 && under_way_ > 0) work_.notify_one();
  return state.done.load(std::memory_order_acquire);
}

void Engine::run_background() {
  StallTimer blockage;
  Lock lock(mutex_);
  while (!stopped_) {
    if (under_way_ == 0 || drivers_ > 0) {
      work_.wait(lock);
      blockage.ends();
      continue;
    }
    if (progress()) {
      blockage.ends();
    } else {
      rest(lock, blockage);
    }
    hand_out(lock);
  }
}

void Engine::wake_sleepers() {
  for (Source* sleeper : asleep_on_) sleeper->wake();
}

bool Engine::is_queued(std::uint64_t number) const {
  const Lock lock(mutex_);
  for (const auto& queue : entries_) {
    for (const auto& entry : queue) {
      if (entry->number == number) return entry->operation == nullptr;
    }
  }
  return false;
}

void Engine::look_again() {
  const Lock lock(mutex_);
  begin_queued();
  wake_sleepers();
  work_.notify_one();
}

void Engine::begin_opened() {
  Lock lock(mutex_);
  begin_queued();
  for (std::size_t calls = under_way_; calls > 0 && progress();) --calls;
  hand_out(lock);
  wake_sleepers();
  work_.notify_one();
}

bool Engine::withdraw(std::uint64_t number, const Error& error) {
  Lock lock(mutex_);
  for (auto& queue : entries_) {
    const auto found =
        std::find_if(queue.begin(), queue.end(), [&](const auto& entry) { return entry->number == number; });
    if (found == queue.end()) continue;
    if ((*found)->operation != nullptr) return false;
    complete(**found, error, Stage::cancelled);
    completed_.push_back(std::move(*found));
    queue.erase(found);
    hand_out(lock);
    return true;
  }
  return false;
}

void Engine::stop() {
  {
    Lock lock(mutex_);
    stopped_ = true;
    fail_all();
    hand_out(lock);
    wake_sleepers();
    work_.notify_all();
  }
  if (background_.joinable()) background_.join();
}

}  // namespace weft::comm
