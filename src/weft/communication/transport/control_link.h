// weft/communication/transport/control_link.h -- control channel between two ranks of a job: frames
// in both directions over one socket.
//
//   length 4 | kind 1 | descriptor? 1 | 0 2 | group 8 | number 8 | checksum 8 | bytes ...      little endian
//
// Nothing here blocks. Data that cannot be sent at once is queued. A queue longer than kMostQueued
// breaks the link, as does a corrupted frame or one longer than a Job allows. A descriptor travels
// with its frame if both ranks are on one host. With keys, everything is encrypted (seal.h). Not
// thread-safe.
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
  // during bootstrap: see bootstrap.h
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
  tcp::Socket descriptor = {};  // any open file, closed automatically
};

class ControlLink {
 public:
  enum class State : std::uint8_t {
    open,
    ended,    // the peer closed the connection
    reset,    // the peer closed without reading everything sent
    silent,   // no acknowledgement within the timeout
    damaged,  // received data is not a frame
    overfull  // the peer does not read
  };

  static constexpr std::size_t kMostQueued = 64 << 20;

  ControlLink() = default;  // empty: neither sends nor receives
  // Takes ownership of a connected socket. `local`: it is a Unix socket.
  ControlLink(tcp::Socket socket, bool local, const std::optional<SealKeys>& keys = {});

  explicit operator bool() const { return static_cast<bool>(socket_); }
  int descriptor() const { return socket_.descriptor(); }
  bool local() const { return local_; }
  State state() const { return state_; }
  const tcp::Socket& socket() const { return socket_; }

  // `file` is sent only on a local link; it is duplicated, and the caller keeps its own.
  void send(FrameKind kind, std::uint64_t group, std::uint64_t number, std::string_view bytes, int file = -1);
  bool has_queued() const { return !queue_.empty() || (out_ && out_->has_kept()); }
  // Sends queued data as far as the kernel accepts it. On failure the peer is gone, but data that
  // it sent before may still be read: receive() detects the end.
  void flush();

  // The frames that have arrived. state() tells whether there can be more.
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
  std::unique_ptr<SealedOut> out_;  // null: unencrypted
  std::unique_ptr<SealedIn> in_;
  bool deaf_ = false;    // the peer accepts no more data
  bool silent_ = false;  // because it stopped answering
  State state_ = State::open;
  std::deque<Queued> queue_;
  std::size_t queued_bytes_ = 0;
  std::string arrived_;
  std::size_t used_ = 0;  // consumed bytes of arrived_
  std::deque<tcp::Socket> files_;
};

}  // namespace weft::transport
