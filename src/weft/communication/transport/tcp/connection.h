// weft/communication/transport/tcp/connection.h -- the two ends of a wire that is a socket, as state machines.
//
//   Sender                                                                       Receiver
//   header + caller's memory  ──writev──▶ kernel  ══▶  kernel ──readv──▶  header + caller's memory
//   (or the room it lent)                                                 (or a buffer of its own)
//
// Both ends know how long a message is, so a header and all of its payload are asked for at once: one system
// call for a message that is there. A short one is put together with its header first: copying it costs less
// than telling the kernel of two places. Nothing waits and nothing locks: the endpoint does. Once something
// is wrong it stays wrong: fault() says what, and no call succeeds any more.
//
// The two ends that a rank has of a pair of wires may share a connection (opening.h): a Sender that goes says
// so to the other side. Where the job is secure both ends' bytes are sealed (seal.h): what was changed on the
// way is a fault, and nothing of it is handed on.
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

// Of a payload that is copied to be together with its header. At 4 KiB the copy takes a fifth of the 0.5 us
// that sendmsg() and recvmsg() of two places take longer than send() and recv() of one.
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

  // Sends on what was written to room(); true when nothing of it is left.
  bool flush();
  bool has_leftover() const { return lent_ == Lent::sent && !fault_; }

  // Whether the last call was held up by the kernel, and nobody has been told since that it has room.
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

  // The message under way: `sent_` counts its header too.
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

  // Moves what has come unasked out of the kernel, as far as there is room. A message of another call shows
  // only when it is asked for; so does the end of the stream.
  void drain();

  // Whether a short message is waited for: then reading costs no more than looking, and read_ahead() may be
  // tried instead. It takes what has come into memory of the connection; true when something has, or the end.
  bool reads_ahead() const { return armed() && missing_ <= kMostAhead; }
  bool read_ahead();

  // Whether the last call found too little, and nobody has been told since that there is more.
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

  // The message that is arriving: `got_` counts its header too.
  FrameBytes header_bytes_{};
  FrameHeader header_;
  std::size_t got_ = 0;
  std::uint32_t checksum_ = 0;
  Buffer arriving_;  // where its payload goes, unless that is the caller's memory

  Buffer ahead_;  // what was read ahead of being asked for, and not handed on yet
  std::size_t ahead_begin_ = 0, ahead_end_ = 0;
  std::size_t missing_ = 0;  // of the message that was asked for last

  std::deque<Stored> stored_;  // whole messages
  std::vector<Buffer> free_;
  bool wanted_ = false;  // somebody asked and did not get it: the caller's memory may hold a part of it
  bool armed_ = false;
  bool ended_ = false;  // the other end closed
  std::optional<WireFault> fault_;
};

}  // namespace weft::transport::tcp
