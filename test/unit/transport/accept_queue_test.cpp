// Which connections may wait at a listening socket while strangers flood it.

#include "weft/communication/transport/accept_queue.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

namespace weft::transport {
namespace {

using namespace std::chrono_literals;

struct Visit {
  Visit() {
    auto listener = tcp::listen("127.0.0.1", 0, 4096);
    EXPECT_TRUE(listener.ok());
    port = tcp::local_address(*listener)->port();
    accept_queue.open(std::move(*listener), false);
  }

  tcp::Socket call() const {
    auto socket = tcp::connect("127.0.0.1", port, std::chrono::steady_clock::now() + 5s);
    EXPECT_TRUE(socket.ok());
    return socket.ok() ? std::move(*socket) : tcp::Socket();
  }
  void crowd(int count, std::string_view speech = {}) {
    for (int i = 0; i < count; ++i) {
      strangers.push_back(call());
      ::send(strangers.back().descriptor(), speech.data(), speech.size(), MSG_NOSIGNAL);
    }
  }
  std::size_t proven() {
    const auto came = accept_queue.step();
    EXPECT_TRUE(came.ok());
    return came.ok() ? came->size() : 0;
  }

  AcceptQueue accept_queue{"secret", Traffic::plain};
  std::uint16_t port = 0;
  std::vector<tcp::Socket> strangers;
};

const std::string kHello = "weft-2\n\n" + std::string(32, 'x');

TEST(AcceptQueue, AClientInItsProofKeepsItsSlot) {
  Visit visit;
  const tcp::Socket socket = visit.call();
  Handshake rank("secret", Role::caller);
  rank.step(socket.descriptor());
  EXPECT_EQ(visit.proven(), 0U);
  for (int wave = 0; wave < 3; ++wave) {  // more than the queue holds, while its proof is in progress
    visit.crowd(150);
    visit.crowd(20, kHello);
    EXPECT_EQ(visit.proven(), 0U);
  }
  rank.step(socket.descriptor());
  EXPECT_EQ(visit.proven(), 1U);
  EXPECT_EQ(rank.step(socket.descriptor()), Handshake::State::proven);
}

TEST(AcceptQueue, AcceptsARankAmongSilentStrangers) {
  Visit visit;
  visit.crowd(400);
  EXPECT_EQ(visit.proven(), 0U);
  EXPECT_LE(visit.accept_queue.waiting(), AcceptQueue::kMostOfOneAddress);
  const tcp::Socket socket = visit.call();
  Handshake rank("secret", Role::caller);
  rank.step(socket.descriptor());
  visit.crowd(100);
  std::size_t came = 0;
  for (int turn = 0; turn < 3; ++turn) {
    came += visit.proven();
    rank.step(socket.descriptor());
  }
  EXPECT_EQ(came, 1U);
}

// Strangers that send a valid hello keep their slots no longer than a proof takes.
TEST(AcceptQueue, HellosWithoutAProofTimeOut) {
  Visit visit;
  visit.crowd(300, kHello);
  EXPECT_EQ(visit.proven(), 0U);
  EXPECT_EQ(visit.accept_queue.waiting(), AcceptQueue::kMostOfOneAddress);
  const auto begin = std::chrono::steady_clock::now();
  for (bool came = false; !came;) {  // a rank retries until it gets through
    const tcp::Socket socket = visit.call();
    Handshake rank("secret", Role::caller);
    while (rank.step(socket.descriptor()) == Handshake::State::going) came |= visit.proven() > 0;
    ASSERT_LT(std::chrono::steady_clock::now() - begin, 20s) << "hung";
  }
}

TEST(AcceptQueue, ReservesSlotsForOtherAddresses) {
  Visit visit;
  visit.crowd(300, kHello);
  EXPECT_EQ(visit.proven(), 0U);
  tcp::Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto from = tcp::resolve("127.0.0.2", 0), to = tcp::resolve("127.0.0.1", visit.port);
  const auto as_sockaddr = [](const tcp::Address& address) {
    return reinterpret_cast<const sockaddr*>(&address.storage);
  };
  ASSERT_EQ(::bind(socket.descriptor(), as_sockaddr(from->front()), from->front().length), 0);
  ASSERT_EQ(::connect(socket.descriptor(), as_sockaddr(to->front()), to->front().length), 0);
  Handshake rank("secret", Role::caller);
  std::size_t came = 0;
  for (int turn = 0; turn < 3; ++turn) {
    rank.step(socket.descriptor());
    came += visit.proven();
  }
  EXPECT_EQ(came, 1U);
}

// Strangers must not use up the listener's last descriptor.
TEST(AcceptQueue, ContinuesWithoutFreeDescriptors) {
  Visit visit;
  visit.crowd(60);
  const tcp::Socket socket = visit.call();
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = static_cast<rlim_t>(socket.descriptor()) + 8;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  Handshake rank("secret", Role::caller);
  std::size_t came = 0;
  for (int turn = 0; turn < 20 && came == 0; ++turn) {
    rank.step(socket.descriptor());
    came += visit.proven();
  }
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(came, 1U);
}

}  // namespace
}  // namespace weft::transport
