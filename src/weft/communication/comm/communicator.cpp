#include "weft/communication/comm/communicator.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "weft/collectives/chunks/program_text.h"
#include "weft/communication/comm/group.h"
#include "weft/communication/transport/doctor.h"
#include "weft/communication/transport/mpi/job.h"
#include "weft/communication/transport/rendezvous.h"

namespace weft::comm {
namespace {

constexpr std::array<std::string_view, 6> kTransports = {"automatic", "inproc", "shm", "tcp", "mpi", "mixed"};

Result<std::unique_ptr<transport::Job>> join_job(TransportKind transport) {
  if (transport == TransportKind::mpi) {
    WEFT_TRY(library, transport::mpi::Library::load());
    return transport::mpi::join(std::move(library), transport::Rendezvous().timeout);
  }
  WEFT_TRY(rendezvous, transport::rendezvous_from_environment());
  return transport::join(rendezvous);
}

}  // namespace

std::string_view name(TransportKind kind) { return kTransports[static_cast<std::size_t>(kind)]; }

std::optional<TransportKind> find_transport(std::string_view name) {
  const auto found = std::find(kTransports.begin(), kTransports.end(), name);
  if (found == kTransports.end()) return {};
  return static_cast<TransportKind>(found - kTransports.begin());
}

Status Work::wait() const {
  state_->engine->wait_for(*state_);
  return state_->status;
}

std::optional<Status> Work::wait_for(std::chrono::milliseconds patience) const {
  if (!state_->engine->wait_until(*state_, moment_in(patience))) return {};
  return state_->status;
}

bool Work::done() const { return state_->done.load(std::memory_order_acquire); }

bool Work::cancel() const { return !done() && state_->cancel && state_->cancel(); }

Communicator::Communicator(std::shared_ptr<State> state) : state_(std::move(state)) {}

Communicator::~Communicator() { state_->close(); }

Result<std::unique_ptr<Communicator>> Communicator::create(std::shared_ptr<transport::Job> job,
                                                           const Options& options) {
  auto membership = std::make_shared<Membership>();
  membership->job = std::move(job);
  WEFT_TRY_STATUS(share_heaps(*membership));
  const std::weak_ptr<Membership> weak = membership;
  membership->job->on_doctor_query([weak]() -> std::string {
    const auto alive = weak.lock();
    if (!alive) return {};
    return print_flights(alive->read_flights(), ticks()) + transport::kFiguresSeparator +
           print_tallies(alive->read_metrics().tallies);
  });
  membership->metrics_file = MetricsFile::from_environment(
      membership->job->rank(), [all = membership.get()] { return print_prometheus(all->read_metrics()); });
  std::vector<std::int32_t> everyone;
  for (std::int32_t rank = 0; rank < membership->job->ranks(); ++rank) everyone.push_back(rank);
  WEFT_TRY(state, open_group(std::move(membership), std::move(everyone), kWorld, options));
  return std::make_unique<Communicator>(std::move(state));
}

std::int32_t Communicator::rank() const { return state_->rank; }
std::int32_t Communicator::size() const { return static_cast<std::int32_t>(state_->members.size()); }
std::string_view Communicator::transport() const { return name(state_->transport); }

// A training step repeats the same calls; only their buffers may differ.
bool Communicator::State::is_checked(const Call& call) const {
  return call.kind == checked.kind && call.count == checked.count && call.type == checked.type &&
         call.op == checked.op && call.root == checked.root && call.peer == checked.peer &&
         call.priority == checked.priority && call.counts.empty() && checked.counts.empty() &&
         call.input != nullptr && call.output != nullptr && checked.input != nullptr &&
         checked.output != nullptr;
}

Status Communicator::State::check_call(const Call& call) {
  const auto ranks = static_cast<std::int32_t>(members.size());
  if (options.several_threads) return check(call, ranks, rank);
  if (is_checked(call)) return check_overlap(call, rank, checked_input, checked_output);
  WEFT_TRY_STATUS(check(call, ranks, rank));
  if (!call.counts.empty()) return {};
  checked = call;
  checked_input = input_bytes(call, ranks, rank);
  checked_output = output_bytes(call, ranks, rank);
  return {};
}

Result<Runner*> Communicator::State::route_send(const Call& call) {
  const std::int32_t other = call.root == rank ? call.peer : call.root;
  if (direct) return runner_of("direct", call);
  return pair_with(other);
}

Result<Runner*> Communicator::State::route(const Call& call, std::uint64_t& number) {
  WEFT_TRY_STATUS(check_call(call));
  if (const auto failure = engine->failing() ? engine->failure() : std::nullopt) return *failure;
  if (call.kind == Kind::send) {
    number = kUnnumbered;
    return route_send(call);
  }
  number = agreement->next_call();
  Result<const Decision*> decision = decide(call, number);
  if (!decision.ok()) return engine->give_up(call, number, std::move(decision).error());
  return (*decision)->runner;
}

Status Communicator::run(const Call& call) {
  if (state_->options.several_threads) {
    WEFT_TRY(work, start(call));
    return work.wait();
  }
  if (call.timeout.count() == 0 && state_->options.call_timeout.count() != 0) {
    Call limited = call;
    limited.timeout = state_->options.call_timeout;
    return run(limited);
  }
  std::uint64_t number = 0;
  Result<Runner*> runner = state_->route(call, number);
  if (!runner.ok()) return std::move(runner).error();
  return state_->engine->run(**runner, call, number);
}

Result<Work> Communicator::start(const Call& made, std::function<void(const Status&)> on_done) {
  Call call = made;
  if (call.timeout.count() == 0) call.timeout = state_->options.call_timeout;
  std::unique_lock lock(state_->calling, std::defer_lock);
  if (state_->options.several_threads && call.kind != Kind::send) lock.lock();
  std::uint64_t number = 0;
  WEFT_TRY(runner, state_->route(call, number));
  auto work = std::make_shared<Work::State>();
  work->engine = state_->engine;
  work->number = number;
  work->on_done = std::move(on_done);
  if (call.kind != Kind::send) {
    work->cancel = [agreement = std::weak_ptr(state_->agreement), number] {
      const auto alive = agreement.lock();
      return alive && alive->cancel(number);
    };
  }
  state_->engine->start(*runner, call, number, work);
  if (call.kind != Kind::send) state_->agreement->withdraw_if_cancelled(number);
  return Work(std::move(work));
}

Status Communicator::all_reduce(const void* input, void* output, std::int64_t count, ElementType type,
                                ReduceOp op) {
  return run(
      {.kind = Kind::all_reduce, .input = input, .output = output, .count = count, .type = type, .op = op});
}

Status Communicator::reduce_scatter(const void* input, void* output, std::int64_t count, ElementType type,
                                    ReduceOp op) {
  return run({.kind = Kind::reduce_scatter,
              .input = input,
              .output = output,
              .count = count,
              .type = type,
              .op = op});
}

Status Communicator::all_gather(const void* input, void* output, std::int64_t count, ElementType type) {
  return run({.kind = Kind::all_gather, .input = input, .output = output, .count = count, .type = type});
}

Status Communicator::all_to_all(const void* input, void* output, std::int64_t count, ElementType type) {
  return run({.kind = Kind::all_to_all, .input = input, .output = output, .count = count, .type = type});
}

Status Communicator::broadcast(const void* input, void* output, std::int64_t count, ElementType type,
                               std::int32_t root) {
  return run({.kind = Kind::broadcast,
              .input = input,
              .output = output,
              .count = count,
              .type = type,
              .root = root});
}

Status Communicator::reduce(const void* input, void* output, std::int64_t count, ElementType type,
                            ReduceOp op, std::int32_t root) {
  return run({.kind = Kind::reduce,
              .input = input,
              .output = output,
              .count = count,
              .type = type,
              .op = op,
              .root = root});
}

Status Communicator::gather(const void* input, void* output, std::int64_t count, ElementType type,
                            std::int32_t root) {
  return run(
      {.kind = Kind::gather, .input = input, .output = output, .count = count, .type = type, .root = root});
}

Status Communicator::scatter(const void* input, void* output, std::int64_t count, ElementType type,
                             std::int32_t root) {
  return run(
      {.kind = Kind::scatter, .input = input, .output = output, .count = count, .type = type, .root = root});
}

Status Communicator::send(const void* input, std::int64_t count, ElementType type, std::int32_t to) {
  return run({.kind = Kind::send, .input = input, .count = count, .type = type, .root = rank(), .peer = to});
}

Status Communicator::receive(void* output, std::int64_t count, ElementType type, std::int32_t from) {
  return run(
      {.kind = Kind::send, .output = output, .count = count, .type = type, .root = from, .peer = rank()});
}

Status Communicator::barrier() { return run({.kind = Kind::barrier}); }

Result<void*> Communicator::allocate(std::size_t bytes) {
  if (state_->membership->no_heap) return *state_->membership->no_heap;
  const std::lock_guard lock(state_->membership->heap_mutex);
  return state_->membership->heap.allocate(bytes);
}

void Communicator::free(void* memory) {
  const std::lock_guard lock(state_->membership->heap_mutex);
  state_->membership->heap.free(memory);
}

Result<std::uint64_t> Communicator::install(const collective::Program& program) {
  return state_->agreement->install(collective::print(program));
}

void Communicator::use(const std::string& algorithm) {
  state_->options.algorithm = algorithm;
  state_->forget_decisions();
}

void Communicator::fail(const Error& error) {
  state_->engine->fail(error, Cause::abort);
  state_->agreement->tell_broken(error, Cause::abort);
}

void Communicator::set_call_timeout(std::chrono::milliseconds timeout) {
  state_->options.call_timeout = timeout;
}

void Communicator::abort(int code, std::string_view why) {
  fail(environment_error(fmt::format("rank {} aborted: {} (code {})", rank(), why, code)));
}

std::vector<std::int32_t> Communicator::dead_ranks() const {
  std::vector<std::int32_t> dead;
  for (const transport::Death& death : state_->membership->job->deaths()) {
    const auto found = std::ranges::find(state_->members, death.rank);
    if (!death.left && found != state_->members.end())
      dead.push_back(static_cast<std::int32_t>(found - state_->members.begin()));
  }
  std::ranges::sort(dead);
  return dead;
}

std::optional<Communicator::End> Communicator::end() const {
  auto error = state_->engine->failure();
  if (!error) return {};
  return End{*std::move(error), state_->engine->cause(), dead_ranks()};
}

Result<NamedAlgorithm> Communicator::find_algorithm(std::string_view name, Kind kind, std::int32_t root) {
  WEFT_TRY_STATUS(state_->check_algorithm(name, kind, root));
  std::vector<std::string>& names = state_->named;
  auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) found = names.insert(names.end(), std::string(name));
  return NamedAlgorithm{static_cast<std::uint32_t>(found - names.begin()) + 1};
}

Result<std::string> Communicator::explain(Kind kind, std::int64_t message_bytes) {
  const Setting setting{.kind = kind,
                        .ranks = size(),
                        .hosts = state_->hosts,
                        .transport = std::string(transport()),
                        .allocated = false};
  const Choice choice = state_->table.choose_for_group(setting, message_bytes);
  if (choice.algorithm.empty()) return user_error(fmt::format("no algorithm for {}", collective::name(kind)));
  return fmt::format("{}: {}", choice.algorithm, choice.why);
}

Result<std::unique_ptr<Communicator>> connect(const Options& options) {
  WEFT_TRY(job, join_job(options.transport));
  Options used = options;
  if (const char* explain = std::getenv("WEFT_EXPLAIN");
      explain != nullptr && std::string_view(explain) == "1") {
    used.explain = true;
    if (!used.on_explain) {
      // The user asked for this through the environment, so it goes to stderr.
      used.on_explain = [rank = job->rank()](std::string_view text) {
        const std::string line = fmt::format("weft: rank {}: {}\n", rank, text);
        (void)!write(STDERR_FILENO, line.data(), line.size());
      };
    }
  }
  return Communicator::create(std::move(job), used);
}

}  // namespace weft::comm
