// Sealed records: opened messages equal the sealed ones, in order; an attacker in between can only
// cut the connection.

#include "weft/communication/transport/seal.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <numeric>

#include "weft/base/random.h"
#include "weft/communication/transport/tcp/connection.h"

namespace weft::transport {
namespace {

using Bytes = std::vector<std::byte>;
using tcp::Socket;

const SealKey kKey = SealKey::derive("a secret", "and some salt", "test");
constexpr Wire kWire{.from = 2, .to = 0, .channel = 0};
constexpr Capacity kCapacity{.slots = 3, .slot_bytes = 256 << 10};

Bytes some_bytes(std::size_t length, std::uint64_t seed) {
  Random random(seed);
  Bytes bytes(length);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next());
  return bytes;
}

struct Ends {
  explicit Ends(int buffer = 0) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    from = Socket(ends[0]);
    to = Socket(ends[1]);
    if (buffer > 0) tcp::set_buffers(from, buffer);
  }
  Socket from, to;
};

ssize_t send(SealedOut& out, const Socket& socket, const Bytes& bytes) {
  const iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  return out.send(socket.descriptor(), {&part, 1});
}

ssize_t receive(SealedIn& in, const Socket& socket, std::span<std::byte> bytes) {
  const iovec part{bytes.data(), bytes.size()};
  return in.receive(socket.descriptor(), {&part, 1});
}

// The records of some short messages, as transmitted.
std::vector<Bytes> sealed_records(std::size_t count, const SealKey& key = kKey) {
  SealedOut out(key);
  std::vector<Bytes> records;
  for (std::size_t i = 0; i < count; ++i) {
    Ends ends;
    EXPECT_EQ(send(out, ends.from, some_bytes(100, i)), 100);
    Bytes& record = records.emplace_back(1000);
    record.resize(static_cast<std::size_t>(::recv(ends.to.descriptor(), record.data(), record.size(), 0)));
  }
  return records;
}

// How many of these records open in sequence; opened ones must equal what was sealed.
std::size_t opened(std::span<const Bytes> records, const SealKey& key = kKey) {
  Ends ends;
  SealedIn in(key);
  for (const Bytes& record : records)
    EXPECT_EQ(::send(ends.from.descriptor(), record.data(), record.size(), 0),
              static_cast<ssize_t>(record.size()));
  ends.from.close();
  for (std::size_t count = 0;; ++count) {
    Bytes bytes(100);
    const ssize_t came = receive(in, ends.to, bytes);
    if (came <= 0) {
      EXPECT_TRUE(came == 0 || errno == EBADMSG);
      return count;
    }
    EXPECT_EQ(bytes, some_bytes(100, count));
  }
}

class Seal : public testing::Test {
  void SetUp() override {
    if (const Status can = check_can_seal(); !can.ok()) GTEST_SKIP() << can.error().message;
  }
};

TEST_F(Seal, KeysFollowRfc5869) {
  // Extract and expand once, as the RFC says: HMAC(HMAC(salt, secret), info 0x01).
  const Sha256 extracted = hmac_sha256("salt", "secret");
  const Sha256 expanded = hmac_sha256(bytes_of(extracted), "purpose key\x01");
  EXPECT_TRUE(
      std::ranges::equal(SealKey::derive("secret", "salt", "purpose").key, std::span(expanded).first<16>()));
}

TEST_F(Seal, CarriesBytesWithAnyFragmentation) {
  Random random(7);
  Ends ends(4096);
  SealedOut out(kKey, 3);  // keys change all the time
  SealedIn in(kKey, 3);
  const Bytes sent = some_bytes(1'000'000, 1);
  Bytes came(sent.size());
  std::size_t given = 0, got = 0;
  for (int turn = 0; turn < 100'000 && got < sent.size(); ++turn) {
    if (given < sent.size()) {
      const std::size_t most = std::min<std::size_t>(sent.size() - given, 1 + random.below(200'000));
      const std::size_t half = random.below(most + 1);
      std::byte* const at = const_cast<std::byte*>(sent.data()) + given;
      const iovec parts[] = {{at, half}, {at + half, most - half}};
      if (const ssize_t taken = out.send(ends.from.descriptor(), parts); taken > 0)
        given += static_cast<std::size_t>(taken);
    } else {
      out.flush(ends.from.descriptor());
    }
    const std::size_t room = std::min<std::size_t>(came.size() - got, 1 + random.below(100'000));
    const std::size_t half = random.below(room + 1);
    const iovec parts[] = {{came.data() + got, half}, {came.data() + got + half, room - half}};
    const ssize_t taken = in.receive(ends.to.descriptor(), parts);
    ASSERT_TRUE(taken > 0 || errno == EAGAIN) << errno;
    if (taken > 0) got += static_cast<std::size_t>(taken);
  }
  EXPECT_EQ(got, sent.size());
  EXPECT_TRUE(came == sent);
}

TEST_F(Seal, DetectsAnyChangedByte) {
  const std::vector<Bytes> good = sealed_records(2);
  EXPECT_EQ(opened(good), 2U);
  for (std::size_t at = 0; at < good[0].size(); ++at) {
    std::vector<Bytes> bad = good;
    bad[0][at] ^= std::byte{0x10};
    EXPECT_EQ(opened(bad), 0U) << at;
  }
}

TEST_F(Seal, DetectsReplayReorderingRemovalAndTruncation) {
  const std::vector<Bytes> good = sealed_records(3);
  EXPECT_EQ(opened(std::vector{good[0], good[0], good[1]}), 1U);
  EXPECT_EQ(opened(std::vector{good[0], good[2], good[1]}), 1U);
  EXPECT_EQ(opened(std::vector{good[1], good[2]}), 0U);
  for (std::size_t length = 0; length < good[0].size(); ++length) {
    std::vector<Bytes> cut = {good[0]};
    cut[0].resize(length);
    EXPECT_EQ(opened(cut), 0U) << length;
  }
}

TEST_F(Seal, AnotherKeyOpensNothing) {
  EXPECT_EQ(opened(sealed_records(1, SealKey::derive("a secret", "and other salt", "test"))), 0U);
  EXPECT_EQ(opened(sealed_records(1, SealKey::derive("a secret", "and some salt", "the way back"))), 0U);
}

// A connection whose bytes a test can hold, change and resend.
struct SealedLine {
  SealedLine() : before(4096), after() {
    sender.emplace(tcp::OutStream(share(before.from), std::make_unique<SealedOut>(kKey)), kWire, kCapacity,
                   false);
    receiver.emplace(tcp::InStream(share(after.to), std::make_unique<SealedIn>(kKey)), kWire, kCapacity,
                     false);
  }
  static std::shared_ptr<const Socket> share(Socket& socket) {
    return std::make_shared<const Socket>(std::move(socket));
  }
  Bytes overheard() {
    Bytes bytes(1 << 16);
    const ssize_t came = ::recv(before.to.descriptor(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(came, 0)));
    return bytes;
  }
  void pass_on(std::span<const std::byte> bytes) {
    EXPECT_EQ(::send(after.from.descriptor(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
  }

  Ends before, after;
  std::optional<tcp::Sender> sender;
  std::optional<tcp::Receiver> receiver;
};

TEST_F(Seal, AConnectionCarriesMessagesOfEveryLength) {
  for (const std::size_t length : {0UL, 1UL, 4096UL, 5000UL, 40'000UL, 200'000UL}) {
    SealedLine line;
    const Bytes sent = some_bytes(length, length);
    Bytes came(length);
    bool out = false, in = false;
    for (int turn = 0; turn < 10'000 && !(out && in); ++turn) {
      if (!out) out = line.sender->send_from(sent);
      line.pass_on(line.overheard());
      if (!in) in = line.receiver->receive_into(came);
    }
    EXPECT_TRUE(out && in) << length;
    EXPECT_EQ(came, sent) << length;
  }
}

TEST_F(Seal, AConnectionNamesItsPeerOnTampering) {
  Bytes came(100);
  const auto fault_after = [&](auto meddle) {
    SealedLine line;
    EXPECT_TRUE(line.sender->send_from(some_bytes(100, 1)));
    meddle(line, line.overheard());
    line.after.from.close();
    while (!line.receiver->fault()) line.receiver->receive_into(came);
    return line.receiver->fault()->text;
  };
  const std::string meddled =
      "a frame of rank 2 is damaged: its authentication failed: changed, replayed or truncated in transit";
  EXPECT_EQ(fault_after([](SealedLine& line, Bytes bytes) {
              bytes[50] ^= std::byte{1};
              line.pass_on(bytes);
            }),
            meddled);
  EXPECT_EQ(fault_after([](SealedLine& line, const Bytes& bytes) {
              line.pass_on(bytes);
              line.pass_on(bytes);
            }),
            meddled);
  EXPECT_EQ(fault_after([](SealedLine& line, const Bytes& bytes) {
              line.pass_on(std::span(bytes).first(bytes.size() - 1));
            }),
            "the connection from rank 2 ended within a message");
  // A plain frame on a sealed connection, and a sealed one on a plain connection.
  EXPECT_EQ(
      fault_after([](SealedLine& line, const Bytes&) { line.pass_on(encode(FrameHeader{.length = 100})); }),
      meddled);
}

}  // namespace
}  // namespace weft::transport
