#include "weft/communication/transport/handshake.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <future>
#include <thread>

#include <gtest/gtest.h>

#include "weft/base/random.h"
#include "weft/communication/transport/tcp/socket.h"

namespace weft::transport {
namespace {

using namespace std::chrono_literals;
using State = Handshake::State;

struct Pair {
  tcp::Socket caller, listener;
};

Pair connected() {
  std::array<int, 2> ends = {};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
  return {tcp::Socket(ends[0]), tcp::Socket(ends[1])};
}

// Steps both sides until neither makes progress; a side that has failed closes its end.
std::pair<State, State> talk(Handshake& caller, Handshake& listener) {
  Pair pair = connected();
  for (int turn = 0; turn < 10; ++turn) {
    if (pair.caller && caller.step(pair.caller.descriptor()) > State::proven) pair.caller.close();
    if (pair.listener && listener.step(pair.listener.descriptor()) > State::proven) pair.listener.close();
  }
  return {caller.state(), listener.state()};
}

std::string read_all(const tcp::Socket& socket) {
  std::string out(4096, '\0');
  const ssize_t came = ::recv(socket.descriptor(), out.data(), out.size(), MSG_DONTWAIT);
  out.resize(came > 0 ? static_cast<std::size_t>(came) : 0);
  return out;
}

void write_all(const tcp::Socket& socket, std::string_view bytes) {
  ASSERT_EQ(::send(socket.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
}

TEST(Handshake, ProvesBothSides) {
  Handshake caller("the same secret", Role::caller), listener("the same secret", Role::listener);
  EXPECT_EQ(talk(caller, listener), std::pair(State::proven, State::proven));
}

TEST(Handshake, RejectsAnotherSecret) {
  Handshake caller("the same secret", Role::caller), listener("the same secrets", Role::listener);
  EXPECT_EQ(talk(caller, listener), std::pair(State::no_secret, State::no_secret));
}

TEST(Handshake, RevealsNothingDerivedFromTheKey) {
  Pair pair = connected();
  Handshake listener("secret", Role::listener);
  write_all(pair.caller, "weft-2\n\n" + std::string(32, 'n'));
  EXPECT_EQ(listener.step(pair.listener.descriptor()), State::going);
  EXPECT_EQ(read_all(pair.caller).size(), 40U);  // its random bytes
  write_all(pair.caller, std::string(32, 'p'));
  EXPECT_EQ(listener.step(pair.listener.descriptor()), State::no_secret);
  EXPECT_EQ(read_all(pair.caller), "weft: you do not know the secret");
}

// A listener that disconnects after it received the proof has rejected nothing: the client may
// retry.
TEST(Handshake, ADisconnectAfterTheProofIsNotARejection) {
  Pair pair = connected();
  Handshake caller("secret", Role::caller), listener("secret", Role::listener);
  caller.step(pair.caller.descriptor());
  listener.step(pair.listener.descriptor());
  caller.step(pair.caller.descriptor());
  pair.listener.close();
  EXPECT_EQ(caller.step(pair.caller.descriptor()), State::lost);
}

// One side encrypts and the other does not: each learns that, and no proof is sent.
TEST(Handshake, ReportsSidesThatDifferInEncryption) {
  Handshake plain("secret", Role::caller), sealing("secret", Role::listener, Traffic::sealed);
  EXPECT_EQ(talk(plain, sealing), std::pair(State::unlike, State::unlike));
  EXPECT_EQ(handshake_error(State::unlike, "rank 0 at h:1", Traffic::plain).message,
            "rank 0 at h:1 encrypts its messages, this rank does not");
  Handshake seals("secret", Role::caller, Traffic::sealed), open("secret", Role::listener);
  EXPECT_EQ(talk(seals, open), std::pair(State::unlike, State::unlike));
  EXPECT_EQ(handshake_error(State::unlike, "rank 0 at h:1", Traffic::sealed).message,
            "rank 0 at h:1 does not encrypt its messages, this rank does");
}

// A proof for one listener is useless at another, although both know the job's key.
TEST(Handshake, RejectsAProofForAnotherListener) {
  Handshake caller(bound_to("rank 1 at h:1", "secret"), Role::caller);
  Handshake listener(bound_to("rank 2 at h:1", "secret"), Role::listener);
  EXPECT_EQ(talk(caller, listener), std::pair(State::no_secret, State::no_secret));
}

TEST(Handshake, EachDirectionOfEachConnectionHasItsOwnKey) {
  Handshake caller("secret", Role::caller, Traffic::sealed),
      listener("secret", Role::listener, Traffic::sealed);
  ASSERT_EQ(talk(caller, listener), std::pair(State::proven, State::proven));
  EXPECT_EQ(caller.keys().send.key, listener.keys().receive.key);
  EXPECT_EQ(caller.keys().receive.key, listener.keys().send.key);
  EXPECT_NE(caller.keys().send.key, caller.keys().receive.key);
  Handshake again("secret", Role::caller, Traffic::sealed), other("secret", Role::listener, Traffic::sealed);
  ASSERT_EQ(talk(again, other), std::pair(State::proven, State::proven));
  EXPECT_NE(again.keys().send.key, caller.keys().send.key);
}

// A stranger that reflects everything cannot use a listener's own proof, and a client's proof is
// not a listener's.
TEST(Handshake, RejectsAReflection) {
  Pair pair = connected();
  Handshake caller("secret", Role::caller);
  for (int turn = 0; turn < 4; ++turn) {
    caller.step(pair.caller.descriptor());
    if (const std::string echo = read_all(pair.listener); !echo.empty()) write_all(pair.listener, echo);
  }
  EXPECT_EQ(caller.state(), State::no_secret);
}

// A recorded exchange between two ranks is useless to an eavesdropper.
TEST(Handshake, RejectsAReplay) {
  Pair line = connected();
  Handshake caller("secret", Role::caller), listener("secret", Role::listener);
  caller.step(line.caller.descriptor());
  const std::string hello = read_all(line.listener);
  write_all(line.caller, hello);
  listener.step(line.listener.descriptor());
  caller.step(line.caller.descriptor());
  const std::string proof = read_all(line.listener);
  ASSERT_EQ(proof.size(), 32U);

  Pair later = connected();
  Handshake other("secret", Role::listener);
  write_all(later.caller, hello + proof);
  EXPECT_EQ(other.step(later.listener.descriptor()), State::no_secret);
}

TEST(Handshake, DetectsStrangersByTheirFirstBytes) {
  for (const std::string garbage :
       {"G", "GET / HTTP/1.1\r\n\r\n", "weft-1\n\n", "weft-3\n\n", "\x16\x03\x01", "weft-2\n\t"}) {
    Pair pair = connected();
    Handshake listener("secret", Role::listener);
    write_all(pair.caller, garbage);
    EXPECT_EQ(listener.step(pair.listener.descriptor()), State::stranger) << garbage;
  }
}

TEST(Handshake, ReadsNoExtraByte) {
  Pair pair = connected();
  Handshake caller("secret", Role::caller), listener("secret", Role::listener);
  for (int turn = 0; turn < 3; ++turn) {
    caller.step(pair.caller.descriptor());
    listener.step(pair.listener.descriptor());
  }
  EXPECT_EQ(caller.state(), State::proven);
  write_all(pair.listener, "what follows");
  write_all(pair.caller, "and back");
  caller.step(pair.caller.descriptor());
  listener.step(pair.listener.descriptor());
  EXPECT_EQ(read_all(pair.caller), "what follows");
  EXPECT_EQ(read_all(pair.listener), "and back");
}

TEST(Handshake, WithstandsAnyBytes) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    Pair pair = connected();
    Handshake listener("secret", Role::listener);
    for (int piece = 0; piece < 5; ++piece) {
      std::string bytes = random.below(2) == 0 ? "weft-2\n\n" : "";
      for (std::uint64_t n = random.below(60); n > 0; --n) bytes += static_cast<char>(random.next());
      if (!bytes.empty()) write_all(pair.caller, bytes);
      EXPECT_NE(listener.step(pair.listener.descriptor()), State::proven);
    }
    pair.caller.close();
    EXPECT_GT(listener.step(pair.listener.descriptor()), State::proven);
  }
}

TEST(Authenticate, WaitsForTheOtherSideUntilTheTimeout) {
  Pair pair = connected();
  const auto deadline = std::chrono::steady_clock::now() + 5s;
  auto other = std::async(std::launch::async, [&] {
    std::this_thread::sleep_for(10ms);
    return authenticate(pair.listener.descriptor(), "secret", Role::listener, deadline, "rank 1").ok();
  });
  EXPECT_TRUE(authenticate(pair.caller.descriptor(), "secret", Role::caller, deadline, "rank 0").ok());
  EXPECT_TRUE(other.get());

  Pair silent = connected();
  const auto soon = std::chrono::steady_clock::now() + 30ms;
  const Status late = authenticate(silent.caller.descriptor(), "secret", Role::caller, soon, "rank 0");
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().message, "rank 0 did not authenticate in time");
}

TEST(Authenticate, ReportsAWrongSecret) {
  Pair pair = connected();
  const auto deadline = std::chrono::steady_clock::now() + 5s;
  auto other = std::async(std::launch::async, [&] {
    const Status status =
        authenticate(pair.listener.descriptor(), "secret", Role::listener, deadline, "rank 1");
    pair.listener.close();
    return status;
  });
  const Status mine = authenticate(pair.caller.descriptor(), "another", Role::caller, deadline, "rank 0");
  ASSERT_FALSE(mine.ok());
  EXPECT_EQ(mine.error().message, "rank 0 does not have the job's secret");
  EXPECT_EQ(other.get().error().message, "rank 1 does not have the job's secret");
}

}  // namespace
}  // namespace weft::transport
