// weft/communication/transport/job.h -- the ranks that belong together: who they are, and a quiet line between any two.
//
//   join ──▶ members known ──▶ exchange, send, deaths ...            leave: others are told
//
// A job carries little data and few messages: it sets up what carries the rest, and notices deaths. A
// process that dies is noticed by every other at once (the kernel closes its sockets) or, when its machine
// is gone, after the timeout; a process that is stopped or slow is not dead. What one rank notices it tells
// all others.
//
// Kinds of job: inproc (threads of one process: make_thread_jobs), process (sockets: see rendezvous.h).
// Thread-safe. Handlers run on the job's watcher thread: they must be quick and must not call exchange().
// Taking one off (handle with null, forget, on_question) returns when it no longer runs: hold no lock then
// that it takes.
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
  std::string host;     // the same text exactly for ranks that can share memory
  std::string address;  // where it listens: "127.0.0.1:41234" or "[::1]:41234"; empty for threads
  std::int64_t process = 0;
};

// What a rank contributes to an exchange, and what the others see of it. A descriptor is an open file of the
// kernel (shared memory): it reaches ranks of the same host, -1 elsewhere; the receiver closes it.
struct Parcel {
  std::string bytes;
  int descriptor = -1;
};

struct Death {
  std::int32_t rank = 0;
  std::string how;    // "its process ended", "no heartbeat for 30 s"
  bool left = false;  // it said goodbye: not a fault, but it will not answer
  // Nobody saw its process end: it may be alive beyond a network that was cut.
  bool presumed = false;
};

// Names what an exchange or a message is about: who starts with the same number meets.
struct Topic {
  std::uint64_t group = 0;  // 0: the whole job; communicators have numbers of their own
  std::uint64_t number = 0;
};

class Job {
 public:
  static constexpr std::size_t kMostBytes = 1 << 20;  // of a parcel or a message

  virtual ~Job() = default;  // leaves, if leave() was not called

  virtual std::int32_t rank() const = 0;
  virtual std::int32_t ranks() const = 0;
  virtual const Member& member(std::int32_t rank) const = 0;
  virtual std::chrono::milliseconds timeout() const = 0;

  // Every rank of `members` (job ranks, ascending, this one among them) gives a parcel and gets all, in the
  // order of `members`. Fails, naming the rank, when one of them dies, leaves, or is silent past the timeout.
  // A parcel has at most kMostBytes; its descriptor stays the giver's to close, whose own entry has none.
  virtual Result<std::vector<Parcel>> exchange(std::span<const std::int32_t> members, Topic topic,
                                               Parcel mine) = 0;

  // One way, in order between any two ranks, delivered to the handler of the topic's group; kept until there
  // is one. Sending to a dead rank does nothing.
  virtual void send(std::int32_t to, Topic topic, std::string_view bytes) = 0;
  using Handler = std::function<void(std::int32_t from, std::uint64_t number, std::string_view bytes)>;
  virtual void handle(std::uint64_t group, Handler handler) = 0;  // null: no longer

  // Deaths so far, oldest first; and a call for each further one. The listener's number takes it off again.
  virtual std::vector<Death> deaths() const = 0;
  using DeathListener = std::function<void(const Death&)>;
  virtual std::uint64_t on_death(DeathListener listener) = 0;
  virtual void forget(std::uint64_t listener) = 0;

  // Who of `members` goes on: every survivor calls this and gets the same list, which has this rank in it
  // and no rank that was dead before the first of them called. Survives deaths while it runs. `number` tells
  // one agreement of a group from the next.
  virtual Result<std::vector<std::int32_t>> agree_on_survivors(std::span<const std::int32_t> members,
                                                               Topic topic) = 0;

  // Answers `weft doctor`: what this rank says when asked. Runs on the watcher thread.
  virtual void on_question(std::function<std::string()> answer) = 0;

  // A key that only this job's ranks have, the same on all of them, for what `purpose` names: see
  // handshake.h.
  virtual std::string key(std::string_view purpose) const { return std::string(purpose); }

  // Whether everything that leaves by TCP is encrypted and authenticated: WEFT_SECURE=1, docs/security.md.
  virtual bool secure() const { return false; }

  virtual void leave() = 0;
};

// Jobs of `ranks` threads of this process, one for each.
std::vector<std::unique_ptr<Job>> make_thread_jobs(std::int32_t ranks, std::chrono::milliseconds timeout);

}  // namespace weft::transport
