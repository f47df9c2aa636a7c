// weft/communication/transport/job.h -- the ranks of a job: membership, control messages and
// failure detection.
//
//   join ──▶ members known ──▶ exchange, send, deaths ...            leave: others are notified
//
// A job carries few, small messages: it sets up the transports and detects failures. An exited
// process is detected by all others at once (the kernel closes its sockets), or after the timeout
// if its machine is gone. A stopped or slow process is not a failed one. A rank that detects a
// failure notifies all others.
//
// Kinds of job: inproc (threads of one process: make_thread_jobs), process (sockets: see
// rendezvous.h). Thread-safe. Handlers run on the job's watcher thread: they must be quick and must
// not call exchange(). Removing one (handle with null, forget, on_doctor_query) returns once it no
// longer runs: do not hold a lock that it acquires.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"

namespace weft::transport {

struct Member {
  std::string host;     // equal exactly for ranks that can share memory
  std::string address;  // its listener: "127.0.0.1:41234" or "[::1]:41234"; empty for threads
  std::int64_t process = 0;
};

// A rank's contribution to an exchange, as the others receive it. A descriptor is an open file
// (shared memory). It reaches ranks of the same host and is -1 elsewhere; the receiver closes it.
struct Parcel {
  std::string bytes;
  int descriptor = -1;
};

struct Death {
  std::int32_t rank = 0;
  std::string how;    // "its process ended", "no heartbeat for 30 s"
  bool left = false;  // it said goodbye: no fault, but it will not answer
  // Its exit was not observed: it may be alive beyond a network partition.
  bool presumed = false;
};

// Identifies an exchange or message: participants use the same topic.
struct Topic {
  std::uint64_t group = 0;  // 0: the whole job; communicators have their own numbers
  std::uint64_t number = 0;
};

class Job {
 public:
  static constexpr std::size_t kMostBytes = 1 << 20;  // per parcel or message

  virtual ~Job() = default;  // calls leave() if necessary

  virtual std::int32_t rank() const = 0;
  virtual std::int32_t ranks() const = 0;
  virtual const Member& member(std::int32_t rank) const = 0;
  virtual std::chrono::milliseconds timeout() const = 0;

  // Every rank of `members` (job ranks, ascending, including this one) contributes a parcel and
  // receives all, in the order of `members`. Fails with the name of a rank that fails, leaves, or
  // does not join within the timeout. A parcel has at most kMostBytes. The caller still owns its
  // descriptor, and its own entry in the result has none.
  virtual Result<std::vector<Parcel>> exchange(std::span<const std::int32_t> members, Topic topic,
                                               Parcel mine) = 0;

  // One-way message, in order between any two ranks, delivered to the handler of the topic's group.
  // Kept until there is a handler. Sending to a failed rank does nothing.
  virtual void send(std::int32_t to, Topic topic, std::string_view bytes) = 0;
  using Handler = std::function<void(std::int32_t from, std::uint64_t number, std::string_view bytes)>;
  virtual void handle(std::uint64_t group, Handler handler) = 0;  // null: removes the handler

  // deaths(): the failures so far, oldest first. on_death(): registers a listener for further ones
  // and returns its number, by which forget() removes it.
  virtual std::vector<Death> deaths() const = 0;
  using DeathListener = std::function<void(const Death&)>;
  virtual std::uint64_t on_death(DeathListener listener) = 0;
  virtual void forget(std::uint64_t listener) = 0;

  // Agrees on the survivors among `members`. Every survivor calls this and gets the same list,
  // which contains this rank and no rank that had failed before the first call. Tolerates failures
  // meanwhile. `number` of the topic distinguishes the agreements of a group.
  virtual Result<std::vector<std::int32_t>> agree_on_survivors(std::span<const std::int32_t> members,
                                                               Topic topic) = 0;

  // Sets this rank's answer to `weft doctor`. `answer` runs on the watcher thread.
  virtual void on_doctor_query(std::function<std::string()> answer) = 0;

  // A key that only this job's ranks have, the same on all of them, for the given `purpose`: see
  // handshake.h.
  virtual std::string key(std::string_view purpose) const { return std::string(purpose); }

  // Whether all TCP traffic is encrypted and authenticated: WEFT_SECURE=1, docs/security.md.
  virtual bool secure() const { return false; }

  virtual void leave() = 0;
};

// Jobs of `ranks` threads of this process, one per thread.
std::vector<std::unique_ptr<Job>> make_thread_jobs(std::int32_t ranks, std::chrono::milliseconds timeout);

}  // namespace weft::transport
