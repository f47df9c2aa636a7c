#include "weft/communication/comm/weft_comm.h"

#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "weft/communication/comm/c_calls.h"

using weft::Status;
using weft::comm::Call;
using weft::comm::Communicator;
using weft::comm::guarded;
using weft::comm::no_handle;
using weft::comm::Quorum;
using weft::comm::tell;

namespace {

thread_local std::string last_error;

// The C enumerators equal the C++ ones.
static_assert(WEFT_USER == static_cast<int>(weft::Fault::user) &&
              WEFT_WORLD == static_cast<int>(weft::Fault::world));
static_assert(WEFT_BARRIER == static_cast<int>(weft::comm::Kind::barrier) &&
              WEFT_SEND == static_cast<int>(weft::comm::Kind::send) &&
              WEFT_ALL_REDUCE == static_cast<int>(weft::comm::Kind::all_reduce));
static_assert(WEFT_U8 == static_cast<int>(weft::comm::ElementType::u8) &&
              WEFT_U64 == static_cast<int>(weft::comm::ElementType::u64) &&
              WEFT_F64 == static_cast<int>(weft::comm::ElementType::f64));
static_assert(WEFT_AVG == static_cast<int>(weft::comm::ReduceOp::avg) &&
              WEFT_XOR == static_cast<int>(weft::comm::ReduceOp::bit_xor));
static_assert(WEFT_LOW == static_cast<int>(weft::comm::Priority::low));

Call to_call(const weft_call& call) {
  Call result;
  result.kind = static_cast<weft::comm::Kind>(call.kind);
  result.input = call.input;
  result.output = call.output;
  result.count = call.count;
  result.type = static_cast<weft::comm::ElementType>(call.type);
  result.op = static_cast<weft::comm::ReduceOp>(call.op);
  result.root = call.root;
  result.peer = call.peer;
  if (call.counts_length > 0)
    result.counts = std::span(call.counts, static_cast<std::size_t>(call.counts_length));
  result.priority = static_cast<weft::comm::Priority>(call.priority);
  result.timeout = std::chrono::milliseconds(call.timeout_ms);
  return result;
}

int hand_over(weft::Result<std::unique_ptr<Communicator>> made, weft_comm** comm) {
  if (!made.ok()) return tell(made.error());
  *comm = *made ? new weft_comm{std::move(made).value()} : nullptr;
  return WEFT_OK;
}

}  // namespace

namespace weft::comm {

void remember(std::string_view text) noexcept {
  try {
    last_error = text;
  } catch (...) {
    last_error.clear();
  }
}

int tell(const Error& error) {
  remember(error.hint.empty() ? error.message : error.message + ": " + error.hint);
  return static_cast<int>(error.fault);
}

int tell(const Status& status) { return status.ok() ? WEFT_OK : tell(status.error()); }

Error no_handle(const char* what) { return user_error(fmt::format("{} is NULL", what)); }

Status check_type(int type) {
  if (type >= 0 && type <= WEFT_U64) return {};
  return user_error(fmt::format("no such type: {}", type));
}

Status check_operation(int op) {
  if (op >= 0 && op <= WEFT_XOR) return {};
  return user_error(fmt::format("no such operation: {}", op));
}

// Other values would be truncated to a byte and might become valid.
Status check_numbers(const weft_call& call) {
  const auto within = [](int number, int last) { return number >= 0 && number <= last; };
  if (!within(call.kind, WEFT_BARRIER)) return user_error(fmt::format("no such kind of call: {}", call.kind));
  WEFT_TRY_STATUS(check_type(call.type));
  WEFT_TRY_STATUS(check_operation(call.op));
  if (!within(call.priority, WEFT_LOW)) return user_error(fmt::format("no such priority: {}", call.priority));
  if (call.counts_length < 0 || (call.counts_length > 0 && call.counts == nullptr))
    return user_error(fmt::format("counts of {} elements expected, none given", call.counts_length));
  return {};
}

int run(weft_comm* comm, const weft_call& call) {
  return guarded([&] {
    if (comm == nullptr) return tell(no_handle("comm"));
    if (const Status numbers = check_numbers(call); !numbers.ok()) return tell(numbers);
    return tell_late(*comm, comm->communicator->run(to_call(call)));
  });
}

int tell_late(weft_comm& comm, const Status& status) {
  const int told = tell(status);
  const auto end = status.ok() ? std::nullopt : comm.communicator->end();
  return end && end->cause == Cause::timeout && end->error.message == status.error().message ? WEFT_LATE
                                                                                             : told;
}

}  // namespace weft::comm

const char* weft_last_error(void) { return last_error.c_str(); }

namespace {

Status read_options(const weft_options* given, weft::comm::Options& options) {
  if (given == nullptr) return {};
  if (given->transport != nullptr) {
    const auto kind = weft::comm::find_transport(given->transport);
    if (!kind)
      return weft::user_error(fmt::format("no such transport: {}", given->transport),
                              "inproc, shm, tcp, mpi");
    options.transport = *kind;
  }
  if (given->timeout_ms < 0)
    return weft::user_error(fmt::format("timeout is negative: {} ms", given->timeout_ms));
  options.call_timeout = std::chrono::milliseconds(given->timeout_ms);
  options.several_threads = given->several_threads != 0;
  return {};
}

}  // namespace

int weft_connect(const char* transport, weft_comm** comm) {
  const weft_options options = {transport, 0, 0};
  return weft_connect_with(&options, comm);
}

int weft_connect_with(const weft_options* given, weft_comm** comm) {
  return guarded([&] {
    if (comm == nullptr) return tell(no_handle("comm"));
    *comm = nullptr;
    weft::comm::Options options;
    if (const Status read = read_options(given, options); !read.ok()) return tell(read);
    return hand_over(weft::comm::connect(options), comm);
  });
}

int weft_grow(weft_comm* comm, int32_t newcomers, const char* where, const char* secret, int64_t timeout_ms,
              weft_comm** grown) {
  return guarded([&] {
    if (comm == nullptr || where == nullptr || grown == nullptr)
      return tell(no_handle(comm == nullptr ? "comm" : where == nullptr ? "where" : "grown"));
    *grown = nullptr;
    const weft::comm::RendezvousPoint place{where, secret == nullptr ? "" : secret,
                                            std::chrono::milliseconds(timeout_ms)};
    return hand_over(comm->communicator->grow(newcomers, place), grown);
  });
}

int weft_join(const char* where, const char* secret, int64_t timeout_ms, int32_t rank, int32_t ranks,
              const weft_options* given, weft_comm** comm) {
  return guarded([&] {
    if (where == nullptr || comm == nullptr) return tell(no_handle(where == nullptr ? "where" : "comm"));
    *comm = nullptr;
    weft::comm::Options options;
    if (const Status read = read_options(given, options); !read.ok()) return tell(read);
    const weft::comm::RendezvousPoint place{where, secret == nullptr ? "" : secret,
                                            std::chrono::milliseconds(timeout_ms)};
    return hand_over(weft::comm::join(place, rank, ranks, options), comm);
  });
}

int weft_split(weft_comm* comm, int32_t colour, int32_t key, weft_comm** part) {
  return guarded([&] {
    if (comm == nullptr || part == nullptr) return tell(no_handle(comm == nullptr ? "comm" : "part"));
    *part = nullptr;
    return hand_over(comm->communicator->split(colour, key), part);
  });
}

namespace {

int shrink(weft_comm* comm, weft_comm** survivors, Quorum quorum) {
  return guarded([&] {
    if (comm == nullptr || survivors == nullptr)
      return tell(no_handle(comm == nullptr ? "comm" : "survivors"));
    *survivors = nullptr;
    return hand_over(comm->communicator->shrink(quorum), survivors);
  });
}

}  // namespace

int weft_shrink(weft_comm* comm, weft_comm** survivors) { return shrink(comm, survivors, Quorum::majority); }
int weft_shrink_any(weft_comm* comm, weft_comm** survivors) { return shrink(comm, survivors, Quorum::any); }

void weft_close(weft_comm* comm) { delete comm; }
int32_t weft_rank(const weft_comm* comm) { return comm == nullptr ? -1 : comm->communicator->rank(); }
int32_t weft_size(const weft_comm* comm) { return comm == nullptr ? 0 : comm->communicator->size(); }

int weft_run(weft_comm* comm, const weft_call* call) {
  if (call == nullptr) return guarded([] { return tell(no_handle("call")); });
  return weft::comm::run(comm, *call);
}

int weft_start(weft_comm* comm, const weft_call* call, weft_done done, void* data, weft_work** work) {
  return guarded([&] {
    if (comm == nullptr || call == nullptr || work == nullptr)
      return tell(no_handle(comm == nullptr ? "comm" : call == nullptr ? "call" : "work"));
    *work = nullptr;
    if (const Status numbers = weft::comm::check_numbers(*call); !numbers.ok()) return tell(numbers);
    std::function<void(const Status&)> on_done;
    if (done != nullptr) on_done = [done, data](const Status& status) { done(tell(status), data); };
    auto started = comm->communicator->start(to_call(*call), std::move(on_done));
    if (!started.ok()) return tell(started.error());
    *work = new weft_work{std::move(started).value()};
    return static_cast<int>(WEFT_OK);
  });
}

int weft_wait(weft_work* work) {
  return guarded([&] { return work == nullptr ? tell(no_handle("work")) : tell(work->work.wait()); });
}
int weft_wait_for(weft_work* work, int64_t timeout_ms, int* done) {
  return guarded([&] {
    if (work == nullptr || done == nullptr) return tell(no_handle(work == nullptr ? "work" : "done"));
    const auto status = work->work.wait_for(std::chrono::milliseconds(timeout_ms));
    *done = status ? 1 : 0;
    return status ? tell(*status) : static_cast<int>(WEFT_OK);
  });
}
int weft_is_done(const weft_work* work) { return work == nullptr || work->work.done() ? 1 : 0; }

int weft_cancel(weft_work* work) {
  bool cancelled = false;
  guarded([&] {
    cancelled = work != nullptr && work->work.cancel();
    return static_cast<int>(WEFT_OK);
  });
  return cancelled ? 1 : 0;
}

void weft_forget(weft_work* work) { delete work; }

int weft_allocate(weft_comm* comm, size_t bytes, void** memory) {
  return guarded([&] {
    if (comm == nullptr || memory == nullptr) return tell(no_handle(comm == nullptr ? "comm" : "memory"));
    *memory = nullptr;
    const auto allocated = comm->communicator->allocate(bytes);
    if (!allocated.ok()) return tell(allocated.error());
    *memory = *allocated;
    return static_cast<int>(WEFT_OK);
  });
}

void weft_free(weft_comm* comm, void* memory) {
  if (comm != nullptr && memory != nullptr) comm->communicator->free(memory);
}
