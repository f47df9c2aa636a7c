#include "weft/communication/transport/tcp/connection.h"

#include <fmt/format.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "weft/base/check.h"
#include "weft/base/crc32c.h"

namespace weft::transport::tcp {

namespace {

// The rest of a header and payload after `done` bytes.
struct Rest {
  std::array<iovec, 2> parts{};
  std::size_t count = 0, bytes = 0;

  Rest(std::byte* header, std::span<std::byte> payload, std::size_t done) {
    if (done < kFrameHeaderBytes) add(header + done, kFrameHeaderBytes - done);
    const std::size_t skip = done > kFrameHeaderBytes ? done - kFrameHeaderBytes : 0;
    if (skip < payload.size()) add(payload.data() + skip, payload.size() - skip);
  }

  std::span<const iovec> all() const { return std::span(parts).first(count); }
  msghdr message() {
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = count;
    return message;
  }

 private:
  void add(std::byte* at, std::size_t length) {
    parts[count++] = {at, length};
    bytes += length;
  }
};

}  // namespace

Sender::Sender(OutStream stream, const Wire& wire, const Capacity& capacity, bool checked)
    : stream_(std::move(stream)), wire_(wire), capacity_(capacity), checked_(checked) {}

// A Receiver may share the connection and keep it open.
Sender::~Sender() {
  if (stream_) ::shutdown(descriptor(), SHUT_WR);
}

void Sender::begin(std::span<const std::byte> bytes) {
  WEFT_CHECK(static_cast<std::int64_t>(bytes.size()) <= capacity_.slot_bytes,
             "a message is longer than a slot");
  const FrameBytes header = encode(FrameHeader{.sequence = sequence_,
                                               .length = static_cast<std::uint32_t>(bytes.size()),
                                               .label = label_,
                                               .checked = checked_,
                                               .checksum = checked_ ? crc32c(bytes) : 0});
  std::ranges::copy(header, frame_.begin());
  if (bytes.size() <= kMostTogether) std::ranges::copy(bytes, frame_.begin() + kFrameHeaderBytes);
  length_ = bytes.size();
  sent_ = 0;
  under_way_ = true;
}

bool Sender::push(std::span<const std::byte> bytes) {
  const std::size_t all = kFrameHeaderBytes + length_;
  const auto is_kept = [this] { return stream_.seal && stream_.seal->has_kept(); };
  while (sent_ < all || is_kept()) {
    const ssize_t taken = sent_ < all ? give(bytes, all - sent_) : stream_.seal->flush(descriptor()) ? 0 : -1;
    if (taken >= 0) {
      sent_ += static_cast<std::size_t>(taken);
    } else if (errno == EAGAIN) {
      blocked_ = true;
      return false;
    } else if (errno != EINTR) {
      fail(errno);
      return false;
    }
  }
  ++sequence_;
  under_way_ = blocked_ = false;
  return true;
}

// Sends more of the current message, of which `rest` bytes are left; returns like sendmsg(2).
ssize_t Sender::give(std::span<const std::byte> bytes, std::size_t rest) {
  constexpr int kFlags = MSG_NOSIGNAL | MSG_DONTWAIT;
  if (length_ <= kMostTogether) {
    if (!stream_.seal) return ::send(descriptor(), frame_.data() + sent_, rest, kFlags);
    const iovec part{frame_.data() + sent_, rest};
    return stream_.seal->send(descriptor(), {&part, 1});
  }
  // sendmsg() only reads, but iovec is not const.
  Rest parts(frame_.data(), {const_cast<std::byte*>(bytes.data()), bytes.size()}, sent_);
  if (stream_.seal) return stream_.seal->send(descriptor(), parts.all());
  const msghdr message = parts.message();
  return ::sendmsg(descriptor(), &message, kFlags);
}

bool Sender::send_from(std::span<const std::byte> bytes) {
  if (fault_ || !flush()) return false;
  if (!under_way_) begin(bytes);
  WEFT_CHECK(bytes.size() == length_, "a message changed while it was being sent");
  return push(bytes);
}

std::byte* Sender::room(std::size_t bytes) {
  WEFT_CHECK(static_cast<std::int64_t>(bytes) <= capacity_.slot_bytes, "a message is longer than a slot");
  if (fault_ || !flush()) return nullptr;
  WEFT_CHECK(!under_way_, "the message before this one is not sent yet");
  if (!room_)
    room_ = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(capacity_.slot_bytes));
  room_bytes_ = bytes;
  lent_ = Lent::to_caller;
  return room_.get();
}

void Sender::send() {
  WEFT_CHECK(lent_ == Lent::to_caller, "room() comes before send()");
  begin({room_.get(), room_bytes_});
  lent_ = Lent::sent;
  flush();
}

bool Sender::flush() {
  if (lent_ != Lent::sent) return true;
  if (fault_ || !push({room_.get(), room_bytes_})) return false;
  lent_ = Lent::no;
  return true;
}

void Sender::fail(int code) {
  const Error error = socket_error(fmt::format("cannot send to rank {}", wire_.to), code);
  fault_ = WireFault{wire_, WireFault::What::closed, error.message};
}

Receiver::Receiver(InStream stream, const Wire& wire, const Capacity& capacity, bool checked)
    : stream_(std::move(stream)), wire_(wire), capacity_(capacity), checked_(checked) {}

// Reads as far as bytes are available; true when the message is complete. Until its header has
// arrived, its length is assumed to be that of `payload`: the requested length if `asked`,
// otherwise empty.
bool Receiver::read(std::span<std::byte> payload, bool asked) {
  while (got_ < kFrameHeaderBytes + payload.size()) {
    const ssize_t received = take(payload, asked);
    if (received < 0 && errno == EINTR) continue;
    if (received < 0 && errno == EAGAIN) return false;
    if (received < 0 && errno == EBADMSG)
      return fail(
          {WireFault::What::damaged, "its authentication failed: changed, replayed or truncated in transit"});
    if (received <= 0) {  // end of stream, or an error treated as one: a reset by a failed peer
      ended_ = true;
      return false;
    }
    const std::size_t before = std::exchange(got_, got_ + static_cast<std::size_t>(received));
    if (before < kFrameHeaderBytes && got_ >= kFrameHeaderBytes &&
        !take_header(asked ? std::optional(payload.size()) : std::nullopt))
      return false;
    if (header_.checked && got_ > kFrameHeaderBytes) {
      const std::size_t from = std::max(before, kFrameHeaderBytes) - kFrameHeaderBytes;
      checksum_ = crc32c(payload.subspan(from, got_ - kFrameHeaderBytes - from), checksum_);
    }
  }
  return asked || header_.length == payload.size() ? whole() : false;
}

// Receives more of the current message; returns like recvmsg(2).
ssize_t Receiver::take(std::span<std::byte> payload, bool asked) {
  Rest rest(header_bytes_.data(), payload, got_);
  if (stream_.seal) return stream_.seal->receive(descriptor(), rest.all());
  if (ahead_begin_ == ahead_end_) {
    if (!asked || payload.size() > kMostTogether) {
      msghdr message = rest.message();
      return ::recvmsg(descriptor(), &message, MSG_DONTWAIT);
    }
    if (const ssize_t received = fill_ahead(); received <= 0) return received;
  }
  const std::size_t before = ahead_begin_;
  for (const iovec& part : rest.all()) {
    const std::size_t bytes = std::min(part.iov_len, ahead_end_ - ahead_begin_);
    if (bytes == 0) break;
    std::memcpy(part.iov_base, ahead_.get() + ahead_begin_, bytes);
    ahead_begin_ += bytes;
  }
  return static_cast<ssize_t>(ahead_begin_ - before);
}

// REQUIRES: all data read ahead is consumed.
ssize_t Receiver::fill_ahead() {
  if (stream_.seal) return stream_.seal->fill(descriptor());
  if (!ahead_) ahead_ = std::make_unique_for_overwrite<std::byte[]>(kMostAhead);
  const ssize_t received = ::recv(descriptor(), ahead_.get(), kMostAhead, MSG_DONTWAIT);
  ahead_begin_ = 0;
  ahead_end_ = static_cast<std::size_t>(std::max<ssize_t>(received, 0));
  return received;
}

// The receiver is not armed while read-ahead data is unconsumed.
bool Receiver::read_ahead() {
  // The next call reports an error.
  return fill_ahead() >= 0 || (errno != EAGAIN && errno != EINTR);
}

bool Receiver::take_header(std::optional<std::size_t> asked) {
  const auto decoded = decode(header_bytes_);
  if (const auto* deviation = std::get_if<Deviation>(&decoded)) return fail(*deviation);
  header_ = std::get<FrameHeader>(decoded);
  if (const auto deviation = check_turn(header_, sequence_, checked_, capacity_.slot_bytes))
    return fail(*deviation);
  return !asked || fits_call(header_, *asked);
}

bool Receiver::whole() {
  if (const auto deviation = check_payload(header_, checksum_)) return fail(*deviation);
  ++sequence_;
  got_ = 0;
  checksum_ = 0;
  return true;
}

bool Receiver::fits_call(const FrameHeader& header, std::size_t bytes) {
  const auto deviation = check_call(header, label_, bytes);
  return !deviation || fail(*deviation);
}

const std::byte* Receiver::front(std::size_t bytes) {
  WEFT_CHECK(static_cast<std::int64_t>(bytes) <= capacity_.slot_bytes, "a message is longer than a slot");
  if (fault_) return nullptr;
  if (stored_.empty()) {
    if (!arriving_) arriving_ = take_buffer();
    if (!go_on({arriving_.get(), bytes})) return nullptr;
    stored_.push_back({header_, std::move(arriving_)});
  }
  wanted_ = armed_ = false;
  return fits_call(stored_.front().header, bytes) ? stored_.front().bytes.get() : nullptr;
}

void Receiver::pop() {
  WEFT_CHECK(!stored_.empty(), "front() comes before pop()");
  keep_buffer(std::move(stored_.front().bytes));
  stored_.pop_front();
}

bool Receiver::receive_into(std::span<std::byte> target) {
  if (fault_) return false;
  if (!stored_.empty()) {
    const std::byte* message = front(target.size());
    if (!message) return false;
    if (!target.empty()) std::memcpy(target.data(), message, target.size());
    pop();
    return true;
  }
  if (arriving_) {  // partly received before the request: the rest goes straight to the caller
    if (got_ > kFrameHeaderBytes && fits_call(header_, target.size()))
      std::memcpy(target.data(), arriving_.get(), got_ - kFrameHeaderBytes);
    keep_buffer(std::move(arriving_));
  }
  return go_on(target);
}

// Reads the requested message; if it is incomplete, arms the connection.
bool Receiver::go_on(std::span<std::byte> payload) {
  // The header may have arrived before the request.
  if (fault_ || (got_ >= kFrameHeaderBytes && !fits_call(header_, payload.size()))) return false;
  wanted_ = armed_ = !read(payload, true);
  missing_ = kFrameHeaderBytes + payload.size() - got_;
  if (wanted_ && ended_ && !fault_) fail_closed();
  return !wanted_;
}

void Receiver::drain() {
  while (can_drain()) {
    bool is_whole = got_ < kFrameHeaderBytes && read({}, false);  // an empty message
    if (fault_ || (!is_whole && got_ < kFrameHeaderBytes)) return;
    if (!arriving_) arriving_ = take_buffer();
    if (!is_whole && !read({arriving_.get(), header_.length}, false)) return;
    stored_.push_back({header_, std::move(arriving_)});
  }
}

bool Receiver::fail(const Deviation& deviation) {
  const bool damaged = deviation.what == WireFault::What::damaged;
  fault_ = WireFault{wire_, deviation.what,
                     fmt::format("{} rank {} {}: {}", damaged ? "a frame of" : "a message of", wire_.from,
                                 damaged ? "is damaged" : "belongs to another call", deviation.text)};
  return false;
}

void Receiver::fail_closed() {
  const bool within = got_ > 0 || (stream_.seal && stream_.seal->within_record());
  fault_ = WireFault{wire_, WireFault::What::closed,
                     within ? fmt::format("the connection from rank {} ended within a message", wire_.from)
                            : fmt::format("rank {} closed its connection", wire_.from)};
}

Receiver::Buffer Receiver::take_buffer() {
  if (free_.empty())
    return std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(capacity_.slot_bytes));
  Buffer buffer = std::move(free_.back());
  free_.pop_back();
  return buffer;
}

void Receiver::keep_buffer(Buffer buffer) {
  if (free_.size() < slots()) free_.push_back(std::move(buffer));
}

}  // namespace weft::transport::tcp
