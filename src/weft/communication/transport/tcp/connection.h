// weft/communication/transport/tcp/connection.h -- the two ends of a wire over a socket, as state
// machines.
//
//   Sender                                                                       Receiver
//   header + caller's memory  ──writev──▶ kernel  ══▶  kernel ──readv──▶  header + caller's memory
//   (or the room it lent)                                                 (or a buffer of its own)
//
// Both ends know the length of a message, so its header and payload are requested together: one
// system call for a message that has arrived. A short payload is first copied next to its header,
// which is cheaper than a system call with two buffers. Nothing here blocks or locks: the endpoint
// does. A fault is permanent: fault() describes it, and no further call succeeds.
//
// The two ends that a rank has of a pair of wires may share a TCP connection (opening.h): a Sender
// that is destroyed shuts down its direction. In a secure job both directions are sealed (seal.h):
// modified data is a fault and is never delivered.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "weft/communication/transport/connection.h"
#include "weft/communication/transport/tcp/stream.h"
#include "weft/communication/transport/wire.h"

namespace weft::transport::tcp {

// Payloads up to this size are copied next to their header. At 4 KiB the copy takes a fifth of the
// 0.5 us that sendmsg() and recvmsg() with two buffers take longer than send() and recv() with one.
inline constexpr std::size_t kMostTogether = 4 << 10;

class Sender {
 public:
  // `checked`: payloads carry a checksum.
  Sender(OutStream stream, const Wire& wire, const Capacity& capacity, bool checked);
  ~Sender();

  // As in Outgoing.
  void set_label(std::uint64_t label) { label_ = label; }
  std::byte* room(std::size_t bytes);
  void send();
  bool send_from(std::span<const std::byte> bytes);

  // Continues to send the message written to room(); true when nothing of it is left.
  bool flush();
  bool has_leftover() const { return lent_ == Lent::sent && !fault_; }

  // Whether the kernel blocked the last call, and writability has not been reported since.
  bool armed() const { return blocked_ && !fault_; }
  void disarm() { blocked_ = false; }
  int descriptor() const { return stream_.descriptor(); }
  const std::optional<WireFault>& fault() const { return fault_; }

 private:
  void begin(std::span<const std::byte> bytes);
  bool push(std::span<const std::byte> bytes);
  ssize_t give(std::span<const std::byte> bytes, std::size_t rest);
  void fail(int code);

  OutStream stream_;
  Wire wire_;
  Capacity capacity_;
  bool checked_;
  std::uint64_t label_ = 0;
  std::uint32_t sequence_ = 0;

  // The current message: `sent_` includes its header.
  bool under_way_ = false;
  std::array<std::byte, kFrameHeaderBytes + kMostTogether> frame_;  // the header, and a short payload
  std::size_t length_ = 0, sent_ = 0;
  bool blocked_ = false;

  enum class Lent : std::uint8_t { no, to_caller, sent };
  Lent lent_ = Lent::no;
  std::unique_ptr<std::byte[]> room_;
  std::size_t room_bytes_ = 0;
  std::optional<WireFault> fault_;
};

class Receiver {
 public:
  Receiver(InStream stream, const Wire& wire, const Capacity& capacity, bool checked);

  // As in Incoming.
  void set_label(std::uint64_t label) { label_ = label; }
  const std::byte* front(std::size_t bytes);
  void pop();
  bool receive_into(std::span<std::byte> target);

  // Receives data that was not asked for yet, as far as there is space. A message of another call
  // is detected only when it is asked for, as is the end of the stream.
  void drain();

  // Whether a short message is awaited: then reading costs no more than polling, and read_ahead()
  // may be used instead. It buffers available data; true if there was any, or at the end of the
  // stream.
  bool reads_ahead() const { return armed() && missing_ <= kMostAhead; }
  bool read_ahead();

  // Whether the last call was incomplete, and readability has not been reported since.
  bool armed() const { return armed_ && !fault_; }
  void disarm() { armed_ = false; }
  bool can_drain() const { return !wanted_ && !ended_ && !fault_ && stored_.size() < slots(); }
  int descriptor() const { return stream_.descriptor(); }
  const std::optional<WireFault>& fault() const { return fault_; }

  std::int32_t from() const { return wire_.from; }

 private:
  static constexpr std::size_t kMostAhead = 16 << 10;
  using Buffer = std::unique_ptr<std::byte[]>;
  struct Stored {
    FrameHeader header;
    Buffer bytes;
  };

  std::size_t slots() const { return static_cast<std::size_t>(capacity_.slots); }
  bool go_on(std::span<std::byte> payload);
  bool read(std::span<std::byte> payload, bool asked);
  ssize_t take(std::span<std::byte> payload, bool asked);
  ssize_t fill_ahead();
  bool take_header(std::optional<std::size_t> asked);
  bool whole();
  bool fits_call(const FrameHeader& header, std::size_t bytes);
  bool fail(const Deviation& deviation);
  void fail_closed();
  Buffer take_buffer();
  void keep_buffer(Buffer buffer);

  InStream stream_;
  Wire wire_;
  Capacity capacity_;
  bool checked_;
  std::uint64_t label_ = 0;
  std::uint32_t sequence_ = 0;

  // The message being received: `got_` includes its header.
  FrameBytes header_bytes_{};
  FrameHeader header_;
  std::size_t got_ = 0;
  std::uint32_t checksum_ = 0;
  Buffer arriving_;  // buffer for its payload, unless in the caller's memory

  Buffer ahead_;  // data read ahead and not consumed yet
  std::size_t ahead_begin_ = 0, ahead_end_ = 0;
  std::size_t missing_ = 0;  // bytes of the last requested message

  std::deque<Stored> stored_;  // complete messages
  std::vector<Buffer> free_;
  bool wanted_ = false;  // a request is incomplete: the caller's memory may hold a part
  bool armed_ = false;
  bool ended_ = false;  // the peer closed the connection
  std::optional<WireFault> fault_;
};

}  // namespace weft::transport::tcp
