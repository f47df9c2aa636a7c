#include "weft/communication/transport/control_link.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

#include "weft/base/hash.h"
#include "weft/communication/transport/job.h"

namespace weft::transport {
namespace {

constexpr std::size_t kHeader = 32;
constexpr std::size_t kReadAtOnce = 64 << 10;
constexpr int kReadsInTurn = 32;       // per call, so that other links get their turn
constexpr std::size_t kMostFiles = 4;  // per received control message; the sender puts one

void put(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
}

std::uint64_t get(std::string_view from, std::size_t offset, int bytes) {
  std::uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) {
    value |= std::uint64_t{static_cast<unsigned char>(from[offset + static_cast<std::size_t>(i)])} << (8 * i);
  }
  return value;
}

std::uint64_t checksum(std::string_view header, std::string_view bytes) {
  return Hasher().text(header).text(bytes).digest().low;
}

// The kernel has retransmitted repeatedly without an answer.
bool is_silence(int error) { return error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH; }

ssize_t send_with_file(int socket, std::string_view bytes, int file) {
  iovec piece = {const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control = {};
  msghdr message = {};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (file >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(part), &file, sizeof file);
  }
  return ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

ControlLink::ControlLink(tcp::Socket socket, bool local, const std::optional<SealKeys>& keys)
    : socket_(std::move(socket)), local_(local) {
  if (!keys) return;
  out_ = std::make_unique<SealedOut>(keys->send);
  in_ = std::make_unique<SealedIn>(keys->receive);
}

ssize_t ControlLink::send_some(std::string_view bytes, int file) {
  if (!out_) return send_with_file(descriptor(), bytes, file);
  const iovec piece = {const_cast<char*>(bytes.data()), bytes.size()};
  return out_->send(descriptor(), {&piece, 1});
}

void ControlLink::send(FrameKind kind, std::uint64_t group, std::uint64_t number, std::string_view bytes,
                       int file) {
  if (!socket_ || state_ != State::open || deaf_) return;
  WEFT_CHECK(bytes.size() <= Job::kMostBytes);
  Queued next;
  if (file >= 0 && local_) next.file = tcp::Socket(::fcntl(file, F_DUPFD_CLOEXEC, 0));
  next.bytes.reserve(kHeader + bytes.size());
  put(next.bytes, bytes.size(), 4);
  put(next.bytes, static_cast<std::uint8_t>(kind), 1);
  put(next.bytes, next.file ? 1 : 0, 1);
  put(next.bytes, 0, 2);
  put(next.bytes, group, 8);
  put(next.bytes, number, 8);
  put(next.bytes, checksum(next.bytes, bytes), 8);
  next.bytes += bytes;
  queued_bytes_ += next.bytes.size();
  queue_.push_back(std::move(next));
  flush();
  if (queued_bytes_ > kMostQueued) state_ = State::overfull;
}

void ControlLink::flush() {
  while (has_queued() && !deaf_) {
    // Data that is already sealed is sent first; then the queue may be empty.
    const bool rest = queue_.empty();
    const int file = !rest && queue_.front().sent == 0 ? queue_.front().file.descriptor() : -1;
    const ssize_t sent =
        rest ? (out_->flush(descriptor()) ? 0 : -1)
             : send_some(std::string_view(queue_.front().bytes).substr(queue_.front().sent), file);
    if (sent < 0 && errno == EINTR) continue;
    // ETOOMANYREFS: too many descriptors are in flight; the receiver must accept some first.
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS || errno == ETOOMANYREFS))
      return;
    if (sent < 0) {
      deaf_ = true;
      silent_ = is_silence(errno);  // reported only once: the next call sees a plain close
      break;
    }
    if (rest) break;
    Queued& first = queue_.front();
    first.sent += static_cast<std::size_t>(sent);
    if (first.sent < first.bytes.size()) continue;
    queued_bytes_ -= first.bytes.size();
    queue_.pop_front();
  }
  if (deaf_) {
    queue_.clear();
    queued_bytes_ = 0;
  }
}

bool ControlLink::read_some() {
  const std::size_t had = arrived_.size();
  arrived_.resize(had + kReadAtOnce);
  iovec piece = {arrived_.data() + had, kReadAtOnce};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostFiles * sizeof(int))> control = {};
  msghdr message = {};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t came = 0;
  do
    came = in_ ? in_->receive(descriptor(), {&piece, 1})
               : ::recvmsg(descriptor(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  while (came < 0 && errno == EINTR);
  const int error = errno;
  arrived_.resize(had + static_cast<std::size_t>(came > 0 ? came : 0));
  if (came < 0) {
    if (error == EAGAIN || error == EWOULDBLOCK) return false;
    state_ = error == EBADMSG ? State::damaged : silent_ || is_silence(error) ? State::silent : State::reset;
    return false;
  }
  if (in_) message.msg_controllen = 0;  // encrypted links carry no descriptors
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t i = 0; CMSG_LEN((i + 1) * sizeof(int)) <= part->cmsg_len; ++i) {
      int file = -1;
      std::memcpy(&file, CMSG_DATA(part) + i * sizeof file, sizeof file);
      files_.emplace_back(file);
    }
  }
  // This process could not take another descriptor: the frame arrives without it.
  if ((message.msg_flags & MSG_CTRUNC) != 0) files_.emplace_back();
  if (came == 0) state_ = silent_ ? State::silent : State::ended;
  return came > 0;
}

bool ControlLink::take_frame(Frame& frame) {
  const std::string_view rest = std::string_view(arrived_).substr(used_);
  if (rest.size() < kHeader) return false;
  const std::uint64_t length = get(rest, 0, 4);
  if (length > Job::kMostBytes) {
    state_ = State::damaged;
    return false;
  }
  if (rest.size() < kHeader + length) return false;
  const std::string_view bytes = rest.substr(kHeader, length);
  const std::uint64_t kind = get(rest, 4, 1), with_file = get(rest, 5, 1);
  if (get(rest, 24, 8) != checksum(rest.substr(0, 24), bytes) || with_file > 1 || get(rest, 6, 2) != 0 ||
      kind == 0 || kind > static_cast<std::uint8_t>(FrameKind::agreement)) {
    state_ = State::damaged;
    return false;
  }
  frame = Frame{static_cast<FrameKind>(kind), get(rest, 8, 8), get(rest, 16, 8), std::string(bytes), {}};
  if (with_file == 1 && !files_.empty()) {
    frame.descriptor = std::move(files_.front());
    files_.pop_front();
  }
  used_ += kHeader + length;
  return true;
}

std::vector<Frame> ControlLink::receive() {
  std::vector<Frame> frames;
  if (!socket_) return frames;
  for (int turn = 0; turn < kReadsInTurn && state_ == State::open && read_some(); ++turn) {
    for (Frame frame; state_ == State::open && take_frame(frame);) frames.push_back(std::move(frame));
    arrived_.erase(0, used_);
    used_ = 0;
  }
  return frames;
}

}  // namespace weft::transport
