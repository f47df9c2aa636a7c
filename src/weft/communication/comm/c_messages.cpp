// The tagged messages of weft_comm.h, and its queries about a failed group.
#include <algorithm>

#include <fmt/format.h>

#include "weft/communication/comm/c_calls.h"

using weft::Status;
using weft::comm::ElementType;
using weft::comm::guarded;
using weft::comm::no_handle;
using weft::comm::tell;

namespace {

static_assert(WEFT_ANY == weft::comm::kAnySource && WEFT_ANY == weft::comm::kAnyTag);
static_assert(WEFT_ABORT == static_cast<int>(weft::comm::Cause::abort) &&
              WEFT_DEATH == static_cast<int>(weft::comm::Cause::death));

int tell_nothing(const char* what, int64_t timeout_ms) {
  weft::comm::remember(fmt::format("{} within {} ms", what, timeout_ms));
  return WEFT_LATE;
}

void put(const weft::comm::Received& from, weft_received* to) {
  if (to != nullptr) *to = {from.from, from.tag, from.count, static_cast<int>(from.type)};
}

}  // namespace

int weft_send_tagged(weft_comm* comm, const void* input, int64_t count, int type, int32_t to, int32_t tag,
                     int64_t timeout_ms) {
  return guarded([&] {
    if (comm == nullptr) return tell(no_handle("comm"));
    if (const Status known = weft::comm::check_type(type); !known.ok()) return tell(known);
    const auto sent = comm->communicator->send_tagged(input, count, static_cast<ElementType>(type), to, tag,
                                                      std::chrono::milliseconds(timeout_ms));
    if (!sent.ok()) return tell(sent.error());
    return *sent ? static_cast<int>(WEFT_OK) : tell_nothing("no rank received the message", timeout_ms);
  });
}

int weft_receive_tagged(weft_comm* comm, void* output, int64_t room, int type, int32_t from, int32_t tag,
                        int64_t timeout_ms, weft_received* received) {
  return guarded([&] {
    if (comm == nullptr) return tell(no_handle("comm"));
    if (const Status known = weft::comm::check_type(type); !known.ok()) return tell(known);
    const auto came = comm->communicator->receive_tagged(output, room, static_cast<ElementType>(type), from,
                                                         tag, std::chrono::milliseconds(timeout_ms));
    if (!came.ok()) return tell(came.error());
    if (!*came) return tell_nothing("no message arrived", timeout_ms);
    put(**came, received);
    return static_cast<int>(WEFT_OK);
  });
}

int weft_probe(weft_comm* comm, int32_t from, int32_t tag, int* found, weft_received* received) {
  return guarded([&] {
    if (comm == nullptr || found == nullptr) return tell(no_handle(comm == nullptr ? "comm" : "found"));
    *found = 0;
    const auto came = comm->communicator->probe(from, tag);
    if (!came.ok()) return tell(came.error());
    if (!*came) return static_cast<int>(WEFT_OK);
    *found = 1;
    put(**came, received);
    return static_cast<int>(WEFT_OK);
  });
}

int weft_comm_cause(const weft_comm* comm) {
  int cause = WEFT_GOES_ON;
  guarded([&] {
    const auto end = comm == nullptr ? std::nullopt : comm->communicator->end();
    if (end) cause = static_cast<int>(end->cause);
    return static_cast<int>(WEFT_OK);
  });
  return cause;
}

int weft_comm_dead_ranks(const weft_comm* comm, int32_t* ranks, int32_t room, int32_t* count) {
  return guarded([&] {
    if (comm == nullptr || count == nullptr) return tell(no_handle(comm == nullptr ? "comm" : "count"));
    if (room < 0) return tell(weft::user_error(fmt::format("room is negative: {}", room)));
    if (ranks == nullptr && room > 0) return tell(no_handle("ranks"));
    const std::vector<std::int32_t> dead = comm->communicator->dead_ranks();
    *count = static_cast<int32_t>(dead.size());
    std::copy_n(dead.begin(), std::min(*count, room), ranks);
    return static_cast<int>(WEFT_OK);
  });
}

int weft_abort(weft_comm* comm, int code, const char* why) {
  return guarded([&] {
    if (comm == nullptr) return tell(no_handle("comm"));
    comm->communicator->abort(code, why == nullptr ? "" : why);
    return static_cast<int>(WEFT_OK);
  });
}

int weft_set_timeout(weft_comm* comm, int64_t timeout_ms) {
  return guarded([&] {
    if (comm == nullptr) return tell(no_handle("comm"));
    if (timeout_ms < 0) return tell(weft::user_error(fmt::format("timeout is negative: {} ms", timeout_ms)));
    comm->communicator->set_call_timeout(std::chrono::milliseconds(timeout_ms));
    return static_cast<int>(WEFT_OK);
  });
}
