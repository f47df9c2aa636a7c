// weft/torch/mailbox.h -- messages with tags over the sends of weft_comm.h, which have none.
//
//   sender      header (tag, type, count), payload, header, payload ...    one stream per pair of ranks
//   receiver    posted receives   ◀── header matches: the payload goes straight into the tensor
//               early messages    ◀── it matches none: the payload is kept until a receive asks for it
//
// A header is read only while a receive is posted for that sender, or for any. So a message that no
// receive waits for stays with its sender. These calls have a communicator of their own: a send that
// times out ends that one, and leaves the collectives usable. Thread-safe.
#pragma once
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include "library.h"

namespace weft_torch {

class Mailbox {
 public:
  using Clock = std::chrono::steady_clock;
  using Milliseconds = std::chrono::milliseconds;

  struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  struct Header {
    int32_t tag = 0, type = 0;
    int64_t count = 0, bytes = 0;
  };
  // A header with room for the payload of a short message.
  struct Envelope {
    Header header;
    char payload[1000] = {};
    bool is_short() const { return header.bytes <= static_cast<int64_t>(sizeof payload); }
  };

  Mailbox(weft_comm* comm, int rank, int size)
      : comm_(comm), rank_(rank), incoming_(static_cast<size_t>(size)) {
    for (int from = 0; from < size; ++from) {
      incoming_[static_cast<size_t>(from)].box = this;
      incoming_[static_cast<size_t>(from)].from = from;
    }
  }
  ~Mailbox() {
    library().close(comm_);  // ends the headers that are under way, which needs the members
  }

  // One thread at a time per receiver. The status of weft_comm.h.
  int send(const void* data, const Header& header, int to, Milliseconds timeout) {
    Envelope envelope;
    envelope.header = header;
    if (envelope.is_short() && header.bytes > 0)
      std::memcpy(envelope.payload, data, static_cast<size_t>(header.bytes));
    const int status = transfer(&envelope, nullptr, sizeof envelope, rank_, to, timeout);
    return status != WEFT_OK || envelope.is_short()
               ? status
               : transfer(data, nullptr, header.bytes, rank_, to, timeout);
  }

  struct Received {
    Header header;
    int from = -1;
  };
  // Receives up to `room` bytes; of a longer message, the header only. `from` may be WEFT_ANY. Throws
  // if the sender or the group has failed; false at the timeout.
  bool receive(void* room, int64_t bytes, int from, int tag, Milliseconds timeout, Received& received) {
    const auto deadline = Clock::now() + timeout;
    Posted posted{room, bytes, from, tag, {}, State::waits};
    Lock lock(mutex_);
    if (!take_early(posted)) posted_.push_back(&posted);
    while (posted.state != State::done) {
      if (posted.state == State::fills) {  // another thread writes into the room: it must not go away
        changed_.wait(lock);
        continue;
      }
      if (Clock::now() >= deadline || !failure_.empty()) break;
      request_headers(lock, from);
      if (!deliver(lock, from) && posted.state == State::waits && failure_.empty())
        wait(lock, deadline, from);
    }
    posted_.remove(&posted);
    received = posted.result;
    if (posted.state != State::done && !failure_.empty()) throw Failure(failure_);
    return posted.state == State::done;
  }

 private:
  using WorkHandle = std::shared_ptr<weft_work>;
  struct Incoming {  // from one sender
    Mailbox* box = nullptr;
    int from = 0;
    Envelope envelope;
    WorkHandle work;  // of the envelope
    // `requested` until the payload is read, too: only then may the next header be.
    bool requested = false, arrived = false, delivering = false, waited_for = false;
  };
  enum class State { waits, fills, done };
  struct Posted {
    void* room;
    int64_t bytes;
    int from, tag;
    Received result;
    State state;
  };
  struct Early {
    Received what;
    std::unique_ptr<char[]> payload;
  };
  using Lock = std::unique_lock<std::mutex>;

  // One thread at a time may make calls; any number may wait for them.
  int start(const weft_call& call, weft_done done, void* data, WorkHandle& handle) {
    const std::lock_guard<std::mutex> lock(calling_);
    weft_work* work = nullptr;
    const int status = library().start(comm_, &call, done, data, &work);
    handle = WorkHandle(work, [](weft_work* each) { library().forget(each); });
    return status;
  }

  int transfer(const void* input, void* output, int64_t bytes, int from, int to, Milliseconds timeout) {
    weft_call call = make(input, output, bytes, from, to);
    call.timeout_ms = timeout.count();
    WorkHandle work;
    const int status = start(call, nullptr, nullptr, work);
    return status == WEFT_OK ? library().wait(work.get()) : status;
  }

  static weft_call make(const void* input, void* output, int64_t bytes, int from, int to) {
    weft_call call{};
    call.kind = WEFT_SEND;
    call.input = input;
    call.output = output;
    call.count = bytes;
    call.type = WEFT_U8;
    call.priority = WEFT_NORMAL;
    call.root = from;
    call.peer = to;
    return call;
  }

  static bool matches(const Posted& posted, const Received& what) {
    return posted.state == State::waits && posted.tag == what.header.tag &&
           (posted.from == WEFT_ANY || posted.from == what.from);
  }

  bool take_early(Posted& posted) {
    for (auto each = early_.begin(); each != early_.end(); ++each) {
      if (!matches(posted, each->what)) continue;
      if (each->what.header.bytes <= posted.bytes && each->what.header.bytes > 0)
        std::memcpy(posted.room, each->payload.get(), static_cast<size_t>(each->what.header.bytes));
      posted.result = each->what;
      posted.state = State::done;
      early_.erase(each);
      return true;
    }
    return false;
  }

  // Starts to read the next header of each sender in question.
  void request_headers(Lock& lock, int from) {
    for (Incoming& each : incoming_) {
      if (each.requested || each.from == rank_ || (from != WEFT_ANY && from != each.from)) continue;
      each.requested = true;
      WorkHandle work;
      lock.unlock();  // the callback may run at once
      const int status = start(make(nullptr, &each.envelope, sizeof each.envelope, each.from, rank_),
                               &on_header, &each, work);
      const std::string why = status == WEFT_OK ? "" : library().last_error();
      lock.lock();
      each.work = work;
      if (status != WEFT_OK) failure_ = why;
    }
  }

  static void on_header(int status, void* data) {
    Incoming& incoming = *static_cast<Incoming*>(data);
    Mailbox& box = *incoming.box;
    const std::string why = status == WEFT_OK ? "" : library().last_error();
    const std::lock_guard<std::mutex> lock(box.mutex_);
    incoming.arrived = status == WEFT_OK;
    if (status != WEFT_OK) box.failure_ = why;
    box.changed_.notify_all();
  }

  // Reads the payloads of the headers that have arrived. Whether there was one.
  bool deliver(Lock& lock, int from) {
    bool any = false;
    for (Incoming& each : incoming_) {
      if (!each.arrived || (from != WEFT_ANY && from != each.from)) continue;
      any = true;
      deliver_one(lock, each);
    }
    return any;
  }

  void deliver_one(Lock& lock, Incoming& incoming) {
    incoming.arrived = false;
    incoming.delivering = true;
    const Received what{incoming.envelope.header, incoming.from};
    const int64_t bytes = what.header.bytes;
    const auto found = std::find_if(posted_.begin(), posted_.end(),
                                    [&](const Posted* posted) { return matches(*posted, what); });
    Posted* const target = found == posted_.end() ? nullptr : *found;
    if (target != nullptr) {  // no other thread may match it meanwhile
      target->result = what;
      target->state = State::fills;
    }
    std::unique_ptr<char[]> payload;
    void* room = target != nullptr && bytes <= target->bytes ? target->room : nullptr;
    if (room == nullptr && bytes > 0) {
      payload.reset(new char[static_cast<size_t>(bytes)]);
      room = payload.get();
    }
    lock.unlock();
    const int status = read_payload(incoming, room);
    const std::string why = status == WEFT_OK ? "" : library().last_error();
    lock.lock();
    incoming.requested = incoming.delivering = false;
    if (status != WEFT_OK) failure_ = why;
    if (target != nullptr) {
      target->state = status == WEFT_OK ? State::done : State::waits;
    } else if (status == WEFT_OK) {
      early_.push_back({what, std::move(payload)});
    }
    // Receives that were posted meanwhile may want an early message.
    for (Posted* const posted : posted_)
      if (posted->state == State::waits) take_early(*posted);
    changed_.notify_all();
  }

  int read_payload(const Incoming& incoming, void* room) {
    const int64_t bytes = incoming.envelope.header.bytes;
    if (!incoming.envelope.is_short())
      return transfer(nullptr, room, bytes, incoming.from, rank_, Milliseconds(0));
    if (bytes > 0) std::memcpy(room, incoming.envelope.payload, static_cast<size_t>(bytes));
    return WEFT_OK;
  }

  // One waiting thread drives the header of its sender; others are notified.
  void wait(Lock& lock, Clock::time_point deadline, int from) {
    Incoming* const own = from == WEFT_ANY ? nullptr : &incoming_[static_cast<size_t>(from)];
    if (own == nullptr || own->waited_for || !own->work || own->arrived || own->delivering) {
      changed_.wait_until(lock, std::min(deadline, Clock::now() + Milliseconds(100)));
      return;
    }
    own->waited_for = true;
    const WorkHandle work = own->work;
    const auto left = std::chrono::duration_cast<Milliseconds>(deadline - Clock::now()).count();
    lock.unlock();
    int done = 0;
    library().wait_for(work.get(), left > 0 ? left : 1, &done);
    lock.lock();
    own->waited_for = false;
  }

  weft_comm* comm_;
  const int rank_;
  std::mutex calling_, mutex_;
  std::condition_variable changed_;
  std::deque<Incoming> incoming_;
  std::list<Posted*> posted_;  // in the order they were posted
  std::list<Early> early_;     // in the order they arrived
  std::string failure_;
};

}  // namespace weft_torch
