// weft/communication/transport/control_link.h -- a quiet line between two ranks of a job: frames both ways over one socket.
//
//   length 4 | kind 1 | descriptor? 1 | 0 2 | group 8 | number 8 | checksum 8 | bytes ...      little endian
//
// Nothing here waits. What cannot be sent at once is queued; a queue that grows past kMostQueued breaks the
// line, as does a frame that is damaged or longer than a Job allows. A descriptor travels with its frame when
// both ranks are on one host. With keys all of it is sealed (seal.h). Not thread-safe.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/communication/transport/seal.h"
#include "weft/communication/transport/tcp/socket.h"

namespace weft::transport {

enum class FrameKind : std::uint8_t {
  // while ranks come together: see meeting.h
  hello = 1,
  waiting,
  table,
  ready,
  go,
  failed,
  link,
  // afterwards: see process_job.h
  parcel,
  message,
  death,
  alive,
  goodbye,
  agreement
};

struct Frame {
  FrameKind kind = FrameKind::alive;
  std::uint64_t group = 0, number = 0;
  std::string bytes = {};
  tcp::Socket descriptor = {};  // any open file: closes itself
};

class ControlLink {
 public:
  enum class State : std::uint8_t {
    open,
    ended,    // the other end closed
    reset,    // the other end threw away what we sent: it closed, in a hurry
    silent,   // the kernel got no answer for too long
    damaged,  // what came is not a frame
    overfull  // the other end does not read
  };

  static constexpr std::size_t kMostQueued = 64 << 20;

  ControlLink() = default;  // no line: neither sends nor receives
  // Takes over a connected socket. `local`: it is a Unix socket.
  ControlLink(tcp::Socket socket, bool local, const std::optional<SealKeys>& keys = {});

  explicit operator bool() const { return static_cast<bool>(socket_); }
  int descriptor() const { return socket_.descriptor(); }
  bool local() const { return local_; }
  State state() const { return state_; }
  const tcp::Socket& socket() const { return socket_; }

  // A file is sent only on a local line; it is duplicated and stays the caller's.
  void send(FrameKind kind, std::uint64_t group, std::uint64_t number, std::string_view bytes, int file = -1);
  bool has_queued() const { return !queue_.empty() || (out_ && out_->has_kept()); }
  // Sends what is queued as far as the kernel takes it. When that fails the other end is gone, but what it
  // sent before may still be read: receive() finds the end.
  void flush();

  // The frames that have come. The state tells whether there will be more.
  std::vector<Frame> receive();

  void close() { *this = {}; }

 private:
  struct Queued {
    std::string bytes;
    std::size_t sent = 0;
    tcp::Socket file = {};
  };

  ssize_t send_some(std::string_view bytes, int file);
  bool read_some();
  bool take_frame(Frame& frame);

  tcp::Socket socket_;
  bool local_ = false;
  std::unique_ptr<SealedOut> out_;  // null: plain
  std::unique_ptr<SealedIn> in_;
  bool deaf_ = false;    // the other end takes no more
  bool silent_ = false;  // because nothing was heard of it
  State state_ = State::open;
  std::deque<Queued> queue_;
  std::size_t queued_bytes_ = 0;
  std::string arrived_;
  std::size_t used_ = 0;  // of arrived_
  std::deque<tcp::Socket> files_;
};

}  // namespace weft::transport
