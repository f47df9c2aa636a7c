// The two ends of a socket: messages arrive whole and in order with any fragmentation, and every
// fault is named.

#include "weft/communication/transport/tcp/connection.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstring>
#include <numeric>

#include "weft/base/crc32c.h"
#include "weft/base/random.h"

namespace {

using namespace weft::transport;
using namespace weft::transport::tcp;
using What = WireFault::What;
using Bytes = std::vector<std::byte>;

Bytes message(std::size_t length, std::uint64_t seed) {
  weft::Random random(seed);
  Bytes bytes(length);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next());
  return bytes;
}

constexpr Wire kWire{.from = 2, .to = 0, .channel = 0};
constexpr Capacity kCapacity{.slots = 3, .slot_bytes = 64 << 10};

// A connection within this process. The kernel's buffers are small, so long messages are sent in
// fragments.
struct Line {
  explicit Line(bool checked = true, int buffer = 4096) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    Socket from(ends[0]), to(ends[1]);
    set_buffers(from, buffer);
    set_buffers(to, buffer);
    raw = ends[0];
    sender.emplace(std::move(from), kWire, kCapacity, checked);
    receiver.emplace(std::move(to), kWire, kCapacity, checked);
  }

  void write(std::span<const std::byte> bytes) const {
    EXPECT_EQ(::send(raw, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }
  void write_frame(FrameHeader header, const Bytes& payload) const {
    header.length = static_cast<std::uint32_t>(payload.size());
    write(encode(header));
    write(payload);
  }

  int raw = -1;  // the sender's socket, to write what a sender never would
  std::optional<Sender> sender;
  std::optional<Receiver> receiver;
};

// One call on each end in turn, as two ranks would make them; false if neither end makes progress.
bool carry(Line& line, const Bytes& out, Bytes& in) {
  bool sent = false, received = false;
  for (int turn = 0; turn < 10'000 && !(sent && received); ++turn) {
    if (!sent) sent = line.sender->send_from(out);
    if (!received) received = line.receiver->receive_into(in);
  }
  return sent && received;
}

TEST(TcpConnection, CarriesMessagesOfEveryLengthInOrder) {
  for (const bool checked : {false, true}) {
    Line line(checked);
    for (const std::size_t length : {0UL, 1UL, 31UL, 32UL, 2047UL, 4096UL, 5000UL, 40'000UL, 65'536UL}) {
      const Bytes out = message(length, length);
      Bytes in(length);
      ASSERT_TRUE(carry(line, out, in)) << length;
      EXPECT_EQ(in, out) << length;
    }
    EXPECT_FALSE(line.receiver->fault());
  }
}

TEST(TcpConnection, AMessageArrivesOnlyWhenComplete) {
  Line line(true, 1 << 20);
  const Bytes payload = message(100, 1);
  const FrameBytes header = encode({.length = 100, .checked = true, .checksum = weft::crc32c(payload)});
  Bytes frame(header.begin(), header.end());
  frame.insert(frame.end(), payload.begin(), payload.end());
  Bytes in(100);
  for (const std::byte byte : frame) {
    EXPECT_FALSE(line.receiver->receive_into(in));
    EXPECT_TRUE(line.receiver->armed());
    line.write({&byte, 1});
  }
  EXPECT_TRUE(line.receiver->receive_into(in));
  EXPECT_FALSE(line.receiver->armed());
  EXPECT_EQ(in, payload);
}

// While a short message is awaited, reading replaces polling: all received data is kept, including
// what follows the message, and returned in order.
TEST(TcpConnection, ReadsShortMessagesAheadOfTheNextCall) {
  Line line(true, 1 << 20);
  const Bytes first = message(100, 1), second = message(200, 2), third = message(60'000, 3);
  Bytes in(first.size());
  EXPECT_FALSE(line.receiver->reads_ahead()) << "not requested";
  EXPECT_FALSE(line.receiver->receive_into(in));
  ASSERT_TRUE(line.receiver->reads_ahead());
  EXPECT_FALSE(line.receiver->read_ahead());
  for (const Bytes& each : {first, second, third}) ASSERT_TRUE(line.sender->send_from(each));
  EXPECT_TRUE(line.receiver->read_ahead());
  line.receiver->disarm();
  EXPECT_TRUE(line.receiver->receive_into(in));
  EXPECT_EQ(in, first);
  const std::byte* lent = line.receiver->front(second.size());
  ASSERT_NE(lent, nullptr);
  EXPECT_EQ(Bytes(lent, lent + second.size()), second);
  line.receiver->pop();
  in.resize(third.size());
  EXPECT_TRUE(line.receiver->receive_into(in));
  EXPECT_EQ(in, third);
  EXPECT_FALSE(line.receiver->receive_into(in));
  EXPECT_FALSE(line.receiver->reads_ahead()) << "long messages are read in place";
}

TEST(TcpConnection, ReadingAheadDetectsTheEnd) {
  Line line;
  Bytes in(10);
  EXPECT_FALSE(line.receiver->receive_into(in));
  line.sender.reset();
  EXPECT_TRUE(line.receiver->read_ahead());
  EXPECT_FALSE(line.receiver->receive_into(in));
  ASSERT_TRUE(line.receiver->fault());
  EXPECT_EQ(line.receiver->fault()->what, What::closed);
}

TEST(TcpConnection, LendsRoomAndBuffers) {
  Line line(true, 1 << 20);
  for (const std::size_t length : {16UL, 60'000UL, 0UL}) {
    const Bytes out = message(length, length + 5);
    std::byte* room = line.sender->room(length);
    ASSERT_NE(room, nullptr);
    std::copy(out.begin(), out.end(), room);
    line.sender->send();
    const std::byte* in = line.receiver->front(length);
    ASSERT_NE(in, nullptr);
    EXPECT_EQ(line.receiver->front(length), in) << "it stays until pop()";
    EXPECT_EQ(Bytes(in, in + length), out);
    line.receiver->pop();
    EXPECT_EQ(line.receiver->front(1), nullptr);
  }
}

TEST(TcpConnection, LendsRoomAgainAfterTheKernelTookTheLast) {
  Line line;
  std::byte* room = line.sender->room(60'000);
  const Bytes out = message(60'000, 3);
  std::copy(out.begin(), out.end(), room);
  line.sender->send();
  EXPECT_TRUE(line.sender->has_leftover());
  EXPECT_EQ(line.sender->room(1), nullptr);
  EXPECT_FALSE(line.sender->send_from(out));
  Bytes in(60'000);
  for (int turn = 0; turn < 1000 && !line.receiver->receive_into(in); ++turn) line.sender->flush();
  EXPECT_EQ(in, out);
  EXPECT_FALSE(line.sender->has_leftover());
  EXPECT_NE(line.sender->room(1), nullptr);
}

// Unrequested data is drained from the kernel, one message per slot, and is returned unchanged,
// whether a message had arrived whole, in part, or with part of its header.
TEST(TcpConnection, KeepsUnrequestedMessages) {
  for (const std::size_t length : {0UL, 100UL, 3000UL}) {
    Line line(true, 1 << 20);
    for (std::uint64_t i = 0; i < 6; ++i) ASSERT_TRUE(line.sender->send_from(message(length, i)));
    line.receiver->drain();
    EXPECT_FALSE(line.receiver->can_drain()) << "three slots, three messages";
    for (std::uint64_t i = 0; i < 6; ++i) {
      Bytes in(length);
      ASSERT_TRUE(line.receiver->receive_into(in)) << i;
      EXPECT_EQ(in, message(length, i));
    }
  }
  const Bytes payload = message(500, 9);
  const FrameBytes header = encode({.length = 500, .checked = true, .checksum = weft::crc32c(payload)});
  Bytes frame(header.begin(), header.end());
  frame.insert(frame.end(), payload.begin(), payload.end());
  for (const std::size_t cut : {10UL, 32UL, 33UL, 400UL, 532UL})
    for (const bool in_place : {false, true}) {
      Line line(true, 1 << 20);
      line.write(std::span(frame).first(cut));
      line.receiver->drain();
      line.write(std::span(frame).subspan(cut));
      Bytes in(500);
      if (in_place) {
        const std::byte* front = line.receiver->front(500);
        ASSERT_NE(front, nullptr) << cut;
        in.assign(front, front + 500);
      } else {
        ASSERT_TRUE(line.receiver->receive_into(in)) << cut;
      }
      EXPECT_EQ(in, payload) << cut;
    }
}

// The same fault whether or not the message was drained before; and it persists.
struct Wrong {
  FrameHeader header;
  What what;
  std::string text;
};

TEST(TcpConnection, NamesFramesOfAnotherCall) {
  const Bytes payload = message(64, 1);
  const std::uint32_t checksum = weft::crc32c(payload);
  const Wrong cases[] = {
      {{.label = 5, .checked = true, .checksum = checksum},
       What::other_call,
       "a message of rank 2 belongs to another call: call 0x0000000000000005, expected 0x0000000000000004"},
      {{.sequence = 1, .label = 4, .checked = true, .checksum = checksum},
       What::damaged,
       "a frame of rank 2 is damaged: sequence number 1, expected 0"},
      {{.label = 4},
       What::damaged,
       "a frame of rank 2 is damaged: it has no checksum although it came from another machine"}};
  for (const Wrong& wrong : cases)
    for (const bool drained : {false, true}) {
      Line line(true, 1 << 20);
      line.receiver->set_label(4);
      line.write_frame(wrong.header, payload);
      if (drained) line.receiver->drain();
      Bytes in(64);
      EXPECT_FALSE(line.receiver->receive_into(in));
      ASSERT_TRUE(line.receiver->fault());
      EXPECT_EQ(line.receiver->fault()->what, wrong.what);
      EXPECT_EQ(line.receiver->fault()->text, wrong.text);
      EXPECT_EQ(line.receiver->fault()->wire, kWire);
      EXPECT_FALSE(line.receiver->receive_into(in));
      EXPECT_EQ(line.receiver->front(64), nullptr);
    }
}

TEST(TcpConnection, NamesMessagesOfAnotherLength) {
  for (const std::size_t asked : {63UL, 65UL, 0UL, 4000UL})
    for (const bool drained : {false, true}) {
      Line line(false, 1 << 20);
      ASSERT_TRUE(line.sender->send_from(message(64, 1)));
      ASSERT_TRUE(line.sender->send_from(message(64, 2)));
      if (drained) line.receiver->drain();
      Bytes in(asked);
      EXPECT_FALSE(line.receiver->receive_into(in));
      ASSERT_TRUE(line.receiver->fault());
      EXPECT_EQ(line.receiver->fault()->what, What::other_call);
      EXPECT_EQ(line.receiver->fault()->text,
                "a message of rank 2 belongs to another call: 64 bytes, expected " + std::to_string(asked));
    }
}

TEST(TcpConnection, DetectsAnyFlippedByte) {
  const Bytes payload = message(200, 1);
  const FrameBytes header = encode({.length = 200, .checked = true, .checksum = weft::crc32c(payload)});
  Bytes frame(header.begin(), header.end());
  frame.insert(frame.end(), payload.begin(), payload.end());
  for (std::size_t at = 0; at < frame.size(); ++at) {
    Line line(true, 1 << 20);
    frame[at] ^= std::byte{0x10};
    line.write(frame);
    frame[at] ^= std::byte{0x10};
    Bytes in(200);
    EXPECT_FALSE(line.receiver->receive_into(in)) << at;
    ASSERT_TRUE(line.receiver->fault()) << at;
    EXPECT_EQ(line.receiver->fault()->what, What::damaged) << at;
  }
}

// A length is accepted only if a slot can hold it: otherwise nothing is allocated and nothing
// awaited.
TEST(TcpConnection, RejectsLengthsBeyondASlot) {
  Line line(false, 1 << 20);
  line.write(encode({.length = 0xffffffff}));
  line.receiver->drain();
  ASSERT_TRUE(line.receiver->fault());
  EXPECT_EQ(line.receiver->fault()->text,
            "a frame of rank 2 is damaged: 4294967295 bytes, expected at most 65536");
}

TEST(TcpConnection, AClosedEndIsAFaultOnlyWhenMoreIsNeeded) {
  for (const bool drained : {false, true}) {
    Line line(true, 1 << 20);
    ASSERT_TRUE(line.sender->send_from(message(10, 1)));
    line.sender.reset();
    if (drained) line.receiver->drain();
    EXPECT_FALSE(line.receiver->fault());
    Bytes in(10);
    EXPECT_TRUE(line.receiver->receive_into(in));
    EXPECT_FALSE(line.receiver->receive_into(in));
    ASSERT_TRUE(line.receiver->fault());
    EXPECT_EQ(line.receiver->fault()->what, What::closed);
    EXPECT_EQ(line.receiver->fault()->text, "rank 2 closed its connection");
  }
}

TEST(TcpConnection, NamesAStreamThatEndsWithinAMessage) {
  for (const std::size_t cut : {5UL, 32UL, 60UL})
    for (const bool drained : {false, true}) {
      Line line(false, 1 << 20);
      const FrameBytes header = encode({.length = 64});
      Bytes frame(header.begin(), header.end());
      frame.resize(cut);
      line.write(frame);
      line.sender.reset();
      if (drained) line.receiver->drain();
      Bytes in(64);
      EXPECT_FALSE(line.receiver->receive_into(in));
      ASSERT_TRUE(line.receiver->fault());
      EXPECT_EQ(line.receiver->fault()->text, "the connection from rank 2 ended within a message");
    }
}

TEST(TcpConnection, SendingToAClosedEndIsAFault) {
  Line line;
  line.receiver.reset();
  EXPECT_FALSE(line.sender->send_from(message(10, 1)));
  ASSERT_TRUE(line.sender->fault());
  EXPECT_EQ(line.sender->fault()->what, What::closed);
  EXPECT_EQ(line.sender->fault()->text, "cannot send to rank 0: the peer closed the connection");
  EXPECT_EQ(line.sender->room(1), nullptr);
}

}  // namespace
